/* The ABI between a program and its kernels, compiled or C. A kernel computes units [begin, end) of its parallel range;
 * ranges may run at the same time on several threads. Returns 0, or an error of enum lth_kernel_error. */
#ifndef LTH_PROGRAM_KERNEL_ABI_H
#define LTH_PROGRAM_KERNEL_ABI_H

#include <stdint.h>

struct lathe_kernel_call {
	void *const *pointers;  /* one a tensor operand, at its first element; NULL for an absent one */
	const int64_t *ints;    /* the evaluated int operands */
	void *scratch;          /* this thread's scratch, 64-byte aligned; NULL if the call has none */
	int64_t thread;         /* 0 .. threads - 1 */
};

typedef int (*lathe_kernel_fn)(const struct lathe_kernel_call *call, int64_t begin, int64_t end);

enum lth_kernel_error {
	LTH_KERNEL_OK,
	LTH_KERNEL_INDEX,     /* an index read from data is outside its tensor */
	LTH_KERNEL_SHAPE,     /* a shape read from data does not fit */
	LTH_KERNEL_DIVISION,  /* integer division by zero */
	LTH_KERNEL_MEMORY,    /* a C kernel could not allocate */
	LTH_KERNEL_LIMIT,     /* data that would cost a C kernel too much memory or time */
	LTH_KERNEL_LIBRARY,   /* a C kernel did not find its library */
	LTH_NUM_KERNEL_ERRORS
};

#endif
