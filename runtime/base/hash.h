/* Fast 64-bit hashing for tables and corruption checks (not for trust: see sha256.h). Multiply-rotate mixing in the
 * manner of xxHash64; the values are part of the executable's format and must not change. */
#ifndef LTH_BASE_HASH_H
#define LTH_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

uint64_t lth_hash_bytes(const void *bytes, size_t size, uint64_t seed);
uint64_t lth_hash_u64(uint64_t value, uint64_t seed);

#endif
