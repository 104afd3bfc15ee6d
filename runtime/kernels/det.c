/* det: determinants of the matrices in the last two axes.
 *
 *   output: values [...]; input: matrices [..., n, n], any floating-point type
 *
 * Elimination with partial pivoting in double, matrix by matrix. */
#include "runtime/exec/pool.h"
#include "runtime/kernels/copy.h"
#include "runtime/kernels/real.h"
#include "runtime/kernels/walk.h"

#include <math.h>

static void swap_rows(double *a, double *b, int64_t count)
{
	for (int64_t i = 0; i < count; i++) {
		double value = a[i];
		a[i] = b[i];
		b[i] = value;
	}
}

/* Destroys the matrix. */
static double determinant(double *matrix, int64_t n)
{
	double result = 1;
	for (int64_t column = 0; column < n; column++) {
		int64_t pivot = column;
		for (int64_t row = column + 1; row < n; row++)
			if (fabs(matrix[row * n + column]) > fabs(matrix[pivot * n + column]))
				pivot = row;
		if (pivot != column) {
			swap_rows(matrix + pivot * n, matrix + column * n, n);
			result = -result;
		}
		double head = matrix[column * n + column];
		result *= head;
		if (head == 0)
			return result;
		for (int64_t row = column + 1; row < n; row++) {
			double factor = matrix[row * n + column] / head;
			for (int64_t k = column + 1; k < n; k++)
				matrix[row * n + k] -= factor * matrix[column * n + k];
		}
	}
	return result;
}

int lth_builtin_det(struct lth_builtin_call *call)
{
	struct lth_builtin_tensor in = lth_builtin_input(call, 0), out = call->tensors[0];
	if (!in.data || in.rank < 2 || !lth_real_has(in.dtype) || in.dims[in.rank - 1] != in.dims[in.rank - 2])
		return lth_builtin_fail(call, LTH_KERNEL_SHAPE, "det takes square matrices");
	int64_t n = in.dims[in.rank - 1], count = lth_tensor_count(in.rank - 2, in.dims);
	int64_t bytes = n * n * (int64_t)sizeof(double), element = lth_dtype_bits(out.dtype) / 8;
	double *matrix = lth_pool_take(call->pool, bytes);
	if (!matrix)
		return LTH_KERNEL_MEMORY;
	struct lth_walk walk;
	lth_walk_init(&walk, &in, LTH_MAX_RANK);
	for (int64_t i = 0; i < count; i++) {
		for (int64_t k = 0; k < n * n; k++, lth_walk_next(&walk))
			matrix[k] = lth_real_load(walk.at, in.dtype);
		lth_real_store((char *)out.data + i * element, out.dtype, determinant(matrix, n));
	}
	lth_pool_give(call->pool, matrix, bytes);
	return 0;
}
