/* 64-bit hashing. See hash.h. */
#include "runtime/base/hash.h"

#include <string.h>

static const uint64_t P1 = 0x9E3779B185EBCA87u, P2 = 0xC2B2AE3D27D4EB4Fu, P3 = 0x165667B19E3779F9u;

static uint64_t rotl(uint64_t x, int r)
{
	return (x << r) | (x >> (64 - r));
}

static uint64_t finish(uint64_t h)
{
	h ^= h >> 33;
	h *= P2;
	h ^= h >> 29;
	h *= P3;
	return h ^ (h >> 32);
}

uint64_t lth_hash_u64(uint64_t value, uint64_t seed)
{
	return finish(rotl(seed + value * P2, 31) * P1 + P3);
}

uint64_t lth_hash_bytes(const void *bytes, size_t size, uint64_t seed)
{
	const unsigned char *p = bytes;
	uint64_t lanes[4] = {seed + P1, seed + P2, seed, seed - P1}, h = seed + P3 + size;
	size_t left = size;
	for (; left >= 32; left -= 32, p += 32)
		for (int i = 0; i < 4; i++) {
			uint64_t word;
			memcpy(&word, p + 8 * i, 8);
			lanes[i] = rotl(lanes[i] + word * P2, 31) * P1;
		}
	if (size >= 32)
		for (int i = 0; i < 4; i++)
			h = rotl(h ^ lanes[i], 27) * P1 + P3;
	for (; left >= 8; left -= 8, p += 8) {
		uint64_t word;
		memcpy(&word, p, 8);
		h = rotl(h ^ (rotl(word * P2, 31) * P1), 27) * P1 + P3;
	}
	for (; left; left--, p++)
		h = rotl(h ^ (*p * P3), 11) * P1;
	return finish(h);
}
