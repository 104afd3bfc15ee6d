/* Fast 64-bit hashing for tables and corruption checks (not for trust: see sha256.h). Multiply-rotate mixing in the
 * manner of xxHash64; the values are part of the executable's format and must not change. */
#ifndef LTH_BASE_HASH_H
#define LTH_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

static const uint64_t LTH_HASH_P1 = 0x9E3779B185EBCA87u, LTH_HASH_P2 = 0xC2B2AE3D27D4EB4Fu,
		      LTH_HASH_P3 = 0x165667B19E3779F9u;

static inline uint64_t lth_hash_rotate(uint64_t x, int r)
{
	return (x << r) | (x >> (64 - r));
}

static inline uint64_t lth_hash_finish(uint64_t h)
{
	h ^= h >> 33;
	h *= LTH_HASH_P2;
	h ^= h >> 29;
	h *= LTH_HASH_P3;
	return h ^ (h >> 32);
}

/* Here, for tables ask for little else. */
static inline uint64_t lth_hash_u64(uint64_t value, uint64_t seed)
{
	return lth_hash_finish(lth_hash_rotate(seed + value * LTH_HASH_P2, 31) * LTH_HASH_P1 + LTH_HASH_P3);
}

uint64_t lth_hash_bytes(const void *bytes, size_t size, uint64_t seed);

#endif
