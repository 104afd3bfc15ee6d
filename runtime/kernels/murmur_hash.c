/* murmur_hash: MurmurHash3 (x86, 32 bits) of each element's bytes, as com.microsoft MurmurHash3 has it.
 *
 *   output: i32 or u32, like the input; input: strings, or a type of 32 or 64 bits; attribute seed */
#include "runtime/kernels/copy.h"
#include "runtime/kernels/walk.h"
#include "runtime/tensor/dtype.h"

#include <string.h>

static uint32_t rotated(uint32_t x, unsigned bits)
{
	return x << bits | x >> (32 - bits);
}

static uint32_t mixed(uint32_t block)
{
	return rotated(block * 0xcc9e2d51u, 15) * 0x1b873593u;
}

static uint32_t hash_bytes(const unsigned char *bytes, size_t size, uint32_t seed)
{
	uint32_t hash = seed, tail = 0;
	size_t whole = size / 4 * 4;
	for (size_t i = 0; i < whole; i += 4) {
		uint32_t block;
		memcpy(&block, bytes + i, sizeof(block));
		hash = rotated(hash ^ mixed(block), 13) * 5 + 0xe6546b64u;
	}
	for (size_t i = size; i > whole; i--)
		tail = tail << 8 | bytes[i - 1];
	hash ^= mixed(tail) ^ (uint32_t)size;
	hash = (hash ^ hash >> 16) * 0x85ebca6bu;
	hash = (hash ^ hash >> 13) * 0xc2b2ae35u;
	return hash ^ hash >> 16;
}

int lth_builtin_murmur_hash(struct lth_builtin_call *call)
{
	struct lth_builtin_tensor in = lth_builtin_input(call, 0), out = call->tensors[0];
	unsigned bits = lth_dtype_bits(in.dtype);
	bool strings = in.dtype == LTH_DTYPE_STRING;
	if (!strings && bits != 32 && bits != 64)
		return lth_builtin_fail(call, LTH_KERNEL_SHAPE, "murmur_hash takes strings, or 32 or 64 bits");
	int64_t count = lth_tensor_count(in.rank, in.dims);
	uint32_t seed = (uint32_t)lth_builtin_int(call, "seed", 0), *hashes = out.data;
	struct lth_walk walk;
	lth_walk_init(&walk, &in, LTH_MAX_RANK);
	for (int64_t i = 0; i < count; i++, lth_walk_next(&walk)) {
		const struct lth_string *string = (const struct lth_string *)walk.at;
		hashes[i] = strings ? hash_bytes((const unsigned char *)string->data, string->size, seed)
				    : hash_bytes((const unsigned char *)walk.at, bits / 8, seed);
	}
	return 0;
}
