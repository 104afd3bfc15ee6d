/* inverse: inverses of the matrices in the last two axes.
 *
 *   output: matrices; input: matrices [..., n, n], any floating-point type
 *
 * Gauss-Jordan elimination with partial pivoting in double, matrix by matrix. A singular matrix gives infinities and
 * NaNs, as its divisions do. */
#include "runtime/exec/pool.h"
#include "runtime/kernels/copy.h"
#include "runtime/kernels/real.h"
#include "runtime/kernels/walk.h"

#include <math.h>

/* Rows are [matrix | identity], 2 n wide; afterwards the right half is the inverse. */
static void invert(double *rows, int64_t n)
{
	int64_t width = 2 * n;
	for (int64_t column = 0; column < n; column++) {
		int64_t pivot = column;
		for (int64_t row = column + 1; row < n; row++)
			if (fabs(rows[row * width + column]) > fabs(rows[pivot * width + column]))
				pivot = row;
		double *head = rows + column * width;
		for (int64_t k = 0; pivot != column && k < width; k++) {
			double value = head[k];
			head[k] = rows[pivot * width + k];
			rows[pivot * width + k] = value;
		}
		double factor = head[column];
		for (int64_t k = 0; k < width; k++)
			head[k] /= factor;
		for (int64_t row = 0; row < n; row++) {
			double *other = rows + row * width, share = other[column];
			for (int64_t k = 0; row != column && k < width; k++)
				other[k] -= share * head[k];
		}
	}
}

int lth_builtin_inverse(struct lth_builtin_call *call)
{
	struct lth_builtin_tensor in = lth_builtin_input(call, 0), out = call->tensors[0];
	if (!in.data || in.rank < 2 || !lth_real_has(in.dtype) || in.dims[in.rank - 1] != in.dims[in.rank - 2])
		return lth_builtin_fail(call, LTH_KERNEL_SHAPE, "inverse takes square matrices");
	int64_t n = in.dims[in.rank - 1], count = lth_tensor_count(in.rank - 2, in.dims);
	int64_t bytes = 2 * n * n * (int64_t)sizeof(double), element = lth_dtype_bits(out.dtype) / 8;
	double *rows = lth_pool_take(call->pool, bytes);
	if (!rows)
		return LTH_KERNEL_MEMORY;
	char *to = out.data;
	struct lth_walk walk;
	lth_walk_init(&walk, &in, LTH_MAX_RANK);
	for (int64_t i = 0; i < count; i++) {
		for (int64_t row = 0; row < n; row++)
			for (int64_t k = 0; k < n; k++, lth_walk_next(&walk)) {
				rows[row * 2 * n + k] = lth_real_load(walk.at, in.dtype);
				rows[row * 2 * n + n + k] = row == k;
			}
		invert(rows, n);
		for (int64_t row = 0; row < n; row++)
			for (int64_t k = 0; k < n; k++, to += element)
				lth_real_store(to, out.dtype, rows[row * 2 * n + n + k]);
	}
	lth_pool_give(call->pool, rows, bytes);
	return 0;
}
