/* 64-bit hashing. See hash.h. */
#include "runtime/base/hash.h"

#include <string.h>

uint64_t lth_hash_bytes(const void *bytes, size_t size, uint64_t seed)
{
	const unsigned char *p = bytes;
	uint64_t lanes[4] = {seed + LTH_HASH_P1, seed + LTH_HASH_P2, seed, seed - LTH_HASH_P1}, h = seed + LTH_HASH_P3 + size;
	size_t left = size;
	for (; left >= 32; left -= 32, p += 32)
		for (int i = 0; i < 4; i++) {
			uint64_t word;
			memcpy(&word, p + 8 * i, 8);
			lanes[i] = lth_hash_rotate(lanes[i] + word * LTH_HASH_P2, 31) * LTH_HASH_P1;
		}
	if (size >= 32)
		for (int i = 0; i < 4; i++)
			h = lth_hash_rotate(h ^ lanes[i], 27) * LTH_HASH_P1 + LTH_HASH_P3;
	for (; left >= 8; left -= 8, p += 8) {
		uint64_t word;
		memcpy(&word, p, 8);
		h = lth_hash_rotate(h ^ (lth_hash_rotate(word * LTH_HASH_P2, 31) * LTH_HASH_P1), 27) * LTH_HASH_P1 + LTH_HASH_P3;
	}
	for (; left; left--, p++)
		h = lth_hash_rotate(h ^ (*p * LTH_HASH_P3), 11) * LTH_HASH_P1;
	return lth_hash_finish(h);
}
