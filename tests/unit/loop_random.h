/* For tests: random functions of loop IR with every kind of instruction, and data to run them on. */
#ifndef LTH_TESTS_LOOP_RANDOM_H
#define LTH_TESTS_LOOP_RANDOM_H

#include "compiler/lower/loop.h"

enum { RANDOM_ELEMENTS = 160, RANDOM_POINTERS = 32, RANDOM_UNITS = 75 };

struct random_options {
	bool fma;  /* operators that a target without fused multiply-add may round twice */
	bool math; /* math functions (which use fma) */
};

/* A function over units [begin, end) within [0, RANDOM_UNITS). Its pointers are in turn an input and an output of each
 * memory type of test_memory_types; ints: 0 is a small number, 1 a lane count.
 * NULL or of no meaning when the arena is exhausted. */
struct lth_loop_fn *random_function(struct lth_arena *arena, uint64_t seed, struct random_options options);

extern const enum lth_dtype random_types[];
extern const uint32_t random_num_types;

struct loop_data {
	unsigned char bytes[RANDOM_POINTERS][RANDOM_ELEMENTS * 8];
	void *pointers[RANDOM_POINTERS];
	int64_t ints[2];
	struct lathe_kernel_call call;
};
void loop_data_fill(struct loop_data *data, uint64_t seed);
/* Whether all outputs agree bit for bit (nan equals nan); prints the first that does not. */
bool loop_data_equal(const struct loop_data *a, const struct loop_data *b);

#endif
