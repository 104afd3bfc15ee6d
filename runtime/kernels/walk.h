/* Walking the elements of a strided tensor in row-major order. Thread rule: plain values. */
#ifndef LTH_KERNELS_WALK_H
#define LTH_KERNELS_WALK_H

#include "runtime/kernels/builtin.h"

struct lth_walk {
	uint32_t rank;
	const int64_t *dims;
	int64_t steps[LTH_MAX_RANK]; /* bytes */
	int64_t index[LTH_MAX_RANK];
	char *at; /* the element in hand */
};

/* Starts at the first element. Axis `skip` is left out, and stays at 0; LTH_MAX_RANK skips none. */
static inline void lth_walk_init(struct lth_walk *walk, const struct lth_builtin_tensor *tensor, uint32_t skip)
{
	int64_t element = lth_dtype_bits(tensor->dtype) / 8;
	walk->rank = tensor->rank;
	walk->dims = tensor->dims;
	walk->at = tensor->data;
	for (uint32_t axis = 0; axis < tensor->rank; axis++) {
		walk->index[axis] = axis == skip ? -1 : 0; /* -1 marks it */
		walk->steps[axis] = tensor->strides[axis] * element;
	}
}

/* Goes to the next element; behind the last, to the first. */
static inline void lth_walk_next(struct lth_walk *walk)
{
	for (uint32_t axis = walk->rank; axis-- > 0;) {
		if (walk->index[axis] < 0)
			continue;
		walk->at += walk->steps[axis];
		if (++walk->index[axis] < walk->dims[axis])
			return;
		walk->at -= walk->steps[axis] * walk->dims[axis];
		walk->index[axis] = 0;
	}
}

#endif
