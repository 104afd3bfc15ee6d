/* Copying between strided tensors of one shape: what COPY executes, and what C kernels use to gather and scatter. */
#ifndef LTH_KERNELS_COPY_H
#define LTH_KERNELS_COPY_H

#include "runtime/kernels/builtin.h"

/* Copies element by element; dims of both are equal; the two do not overlap, or are the same. `threads` may be NULL.
 * Sub-byte types must be dense on both sides. */
void lth_copy_tensor(const struct lth_builtin_tensor *to, const struct lth_builtin_tensor *from,
		     struct lth_threadpool *threads);
/* Whether the elements lie one behind the other in row-major order. */
bool lth_tensor_is_dense(uint32_t rank, const int64_t *dims, const int64_t *strides);
/* The number of elements; dims are known to be inside memory, so the product does not overflow. */
int64_t lth_tensor_count(uint32_t rank, const int64_t *dims);

#endif
