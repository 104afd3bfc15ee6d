/* pair_coupling: probabilities of classes from those of their pairs.
 *
 *   output: f32 [rows, classes]; input: f32 [rows, classes * (classes - 1) / 2], the probability of the first class of
 *   each pair against the second, pairs in order (0, 1), (0, 2) ..., (1, 2) ...
 *
 * The second method of Wu, Lin and Weng (Probability Estimates for Multi-class Classification by Pairwise Coupling,
 * JMLR 5, 2004), with the end of its iterations as LIBSVM has it: models were made with these numbers in mind, so that
 * a better solution of the same equations would be another answer. Single precision for the same reason. */
#include "runtime/exec/pool.h"
#include "runtime/kernels/copy.h"
#include "runtime/kernels/walk.h"

#include <math.h>

enum { MOST_ROUNDS = 100 };

/* The symmetric matrix whose quadratic form the probabilities make least; wins[i, j]: of i against j. */
static void form(const float *wins, int64_t classes, float *out)
{
	for (int64_t i = 0; i < classes; i++) {
		float sum = 0;
		for (int64_t j = 0; j < classes; j++) {
			if (j == i)
				continue;
			sum += wins[j * classes + i] * wins[j * classes + i];
			out[i * classes + j] = -wins[j * classes + i] * wins[i * classes + j];
		}
		out[i * classes + i] = sum;
	}
}

/* The products of the matrix with p, and the quadratic form. */
static float apply(const float *matrix, const float *p, int64_t classes, float *out)
{
	float whole = 0;
	for (int64_t i = 0; i < classes; i++) {
		out[i] = 0;
		for (int64_t j = 0; j < classes; j++)
			out[i] += matrix[i * classes + j] * p[j];
		whole += p[i] * out[i];
	}
	return whole;
}

static bool settled(const float *product, float whole, int64_t classes)
{
	float most = 0;
	for (int64_t i = 0; i < classes; i++)
		most = fmaxf(most, fabsf(product[i] - whole));
	return most < 0.005f / (float)classes;
}

static void couple(const float *matrix, int64_t classes, float *product, float *p)
{
	for (int64_t i = 0; i < classes; i++)
		p[i] = 1 / (float)classes;
	for (int round = 0; round < MOST_ROUNDS; round++) {
		float whole = apply(matrix, p, classes, product);
		if (settled(product, whole, classes))
			return;
		for (int64_t i = 0; i < classes; i++) {
			float own = matrix[i * classes + i], change = (whole - product[i]) / own, scale = 1 + change;
			p[i] += change;
			whole = (whole + change * (change * own + 2 * product[i])) / scale / scale;
			for (int64_t j = 0; j < classes; j++) {
				product[j] = (product[j] + change * matrix[i * classes + j]) / scale;
				p[j] /= scale;
			}
		}
	}
}

int lth_builtin_pair_coupling(struct lth_builtin_call *call)
{
	struct lth_builtin_tensor in = lth_builtin_input(call, 0), out = call->tensors[0];
	int64_t classes = out.rank == 2 ? out.dims[1] : 0;
	if (!in.data || in.rank != 2 || in.dtype != LTH_DTYPE_F32 || out.dtype != LTH_DTYPE_F32 || classes < 2 ||
	    classes > INT16_MAX || in.dims[0] != out.dims[0] || in.dims[1] != classes * (classes - 1) / 2)
		return lth_builtin_fail(call, LTH_KERNEL_SHAPE, "pair_coupling takes a probability of each pair");
	int64_t bytes = (2 * classes * classes + classes) * (int64_t)sizeof(float);
	float *wins = lth_pool_take(call->pool, bytes), *to = out.data;
	if (!wins)
		return LTH_KERNEL_MEMORY;
	float *matrix = wins + classes * classes, *product = matrix + classes * classes;
	struct lth_walk walk;
	lth_walk_init(&walk, &in, LTH_MAX_RANK);
	for (int64_t row = 0; row < in.dims[0]; row++, to += classes) {
		for (int64_t i = 0; i < classes; i++)
			for (int64_t j = i + 1; j < classes; j++, lth_walk_next(&walk)) {
				wins[i * classes + j] = *(const float *)(const void *)walk.at;
				wins[j * classes + i] = 1 - wins[i * classes + j];
			}
		form(wins, classes, matrix);
		couple(matrix, classes, product, to);
	}
	lth_pool_give(call->pool, wins, bytes);
	return 0;
}
