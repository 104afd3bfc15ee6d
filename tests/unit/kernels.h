/* For tests: compiled kernels in this process, by way of a shared object. */
#ifndef LTH_TESTS_KERNELS_H
#define LTH_TESTS_KERNELS_H

#include "compiler/codegen/codegen.h"

struct test_kernels {
	void *handle; /* of dlopen */
	const lathe_kernel_fn *functions; /* in the order of the list */
};

/* Whether this processor can run code for a target's name. */
bool test_can_run(const char *cpu);
/* Compiles for `cpu` and loads; exits the test with the reason when something fails. */
struct test_kernels test_kernels_load(const struct lth_loop_fn *const *functions, uint32_t count, const char *cpu);
void test_kernels_close(struct test_kernels *kernels);

#endif
