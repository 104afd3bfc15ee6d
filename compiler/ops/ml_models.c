/* ai.onnx.ml: linear models and support vector machines, as matrix products with constants. The decisions of a
 * classifier between pairs of classes are one product with a constant matrix, and so are the votes. */
#include "compiler/ops/family.h"
#include "compiler/ops/ml.h"

#include <string.h>

static lth_value_id f32(struct lth_infer *infer, double value)
{
	return lth_build_scalar(infer, LTH_DTYPE_F32, value);
}

/* x [rows, features] times the transpose of coefficients [outputs, features], and a bias for each output. */
static lth_value_id affine(struct lth_infer *infer, lth_value_id x, const double *coefficients, uint32_t count,
			   int64_t outputs, const double *bias, uint32_t num_bias)
{
	const struct lth_attr transposed = {.name = "transB", .kind = LTH_ATTR_INT, .count = 1, .i = 1};
	lth_value_id in[3] = {x, lth_ml_matrix(infer, coefficients, 2, (int64_t[]){outputs, count / outputs}),
			      LTH_NONE};
	if (num_bias)
		in[2] = lth_ml_matrix(infer, bias, 1, &(int64_t){num_bias});
	return lth_build(infer, LTH_OP_ID_Gemm, in, num_bias ? 3 : 2, &transposed, 1);
}

static enum lth_code check_affine(struct lth_infer *infer, uint32_t count, int64_t outputs, uint32_t num_bias)
{
	enum lth_code code = lth_infer_need_rank(infer, 0, 1, 2);
	if (!code &&
	    (outputs < 1 || count == 0 || count % outputs || (num_bias && num_bias != outputs && num_bias != 1)))
		code = lth_infer_reject(infer, "the same number of coefficients for each output",
					"%u coefficients and %u intercepts for %lld outputs", count, num_bias,
					(long long)outputs);
	return code;
}

/* ---- linear ---- */

static enum lth_code expand_linear_regressor(struct lth_infer *infer)
{
	uint32_t count, num_bias;
	const double *coefficients = lth_ml_floats(infer, "coefficients", &count);
	const double *bias = lth_ml_floats(infer, "intercepts", &num_bias);
	int64_t targets = lth_op_int(infer->node, "targets");
	enum lth_code code = check_affine(infer, count, targets, num_bias);
	if (code)
		return code;
	lth_value_id y = affine(infer, lth_ml_input(infer), coefficients, count, targets, bias, num_bias);
	lth_build_output(infer, 0, lth_ml_post(infer, y));
	return LTH_OK;
}

const struct lth_op_impl lth_impl_linear_regressor = {.expand = expand_linear_regressor};

/* One score and one label: the label from a threshold on, else 0. */
static lth_value_id one_label(struct lth_infer *infer, lth_value_id scores)
{
	const int64_t flat = -1;
	double threshold = lth_op_string_is(infer->node, "post_transform", "NONE") ? 0 : 0.5;
	lth_value_id score = lth_build_reshape(infer, scores, &flat, 1);
	lth_value_id chosen = lth_build2(infer, LTH_OP_ID_GreaterOrEqual, score, f32(infer, threshold));
	chosen = lth_build_cast(infer, chosen, LTH_DTYPE_I64);
	const struct lth_attr *ints = lth_node_attr(infer->node, "classlabels_ints");
	return ints && ints->count ? lth_build2(infer, LTH_OP_ID_Mul, chosen, lth_build_ints(infer, ints->ints, 1))
				   : chosen;
}

static const char *const label_lists[] = {"classlabels_ints", "classlabels_strings"};

static enum lth_code expand_linear_classifier(struct lth_infer *infer)
{
	uint32_t count, num_bias, labels = lth_ml_num_labels(infer);
	const double *coefficients = lth_ml_floats(infer, "coefficients", &count);
	const double *bias = lth_ml_floats(infer, "intercepts", &num_bias);
	int64_t outputs = num_bias ? num_bias : labels;
	enum lth_code code = check_affine(infer, count, outputs, num_bias);
	if (!code)
		code = lth_infer_one_of(infer, label_lists, 2);
	if (!code && labels && labels != outputs && !(labels == 2 && outputs == 1))
		code = lth_infer_reject(infer, "a label for each output", "%u labels for %lld outputs", labels,
					(long long)outputs);
	if (code)
		return code;
	lth_value_id scores = affine(infer, lth_ml_input(infer), coefficients, count, outputs, bias, num_bias);
	if (outputs == 1 && labels == 2) {
		scores = lth_ml_both_signs(infer, scores);
		outputs = 2;
	}
	scores = lth_ml_post(infer, scores);
	if (lth_build_wants(infer, 0))
		lth_build_output(infer, 0,
				 outputs > 1 ? lth_ml_labels(infer, lth_ml_best(infer, scores))
					     : one_label(infer, scores));
	lth_build_output(infer, 1, scores);
	return LTH_OK;
}

const struct lth_op_impl lth_impl_linear_classifier = {.expand = expand_linear_classifier};

/* ---- support vectors ---- */

/* The kernel of each row of x with each of `count` support vectors: [rows, count]. */
static lth_value_id kernel_values(struct lth_infer *infer, lth_value_id x, int64_t count)
{
	uint32_t num_params, num_values;
	const double *params = lth_ml_floats(infer, "kernel_params", &num_params);
	const double *vectors = lth_ml_floats(infer, "support_vectors", &num_values);
	double gamma = num_params > 0 ? params[0] : 0, coef0 = num_params > 1 ? params[1] : 0;
	double degree = num_params > 2 ? params[2] : 0;
	if (lth_op_string_is(infer->node, "kernel_type", "RBF")) {
		const int64_t middle = 1, last = -1;
		lth_value_id wide = lth_build_unsqueeze(infer, x, &middle, 1);
		lth_value_id all = lth_ml_matrix(infer, vectors, 2, (int64_t[]){count, num_values / count});
		lth_value_id apart = lth_build2(infer, LTH_OP_ID_Sub, wide, all);
		lth_value_id distance = lth_build_reduce(infer, LTH_OP_ID_ReduceSumSquare, apart, &last, 1, false);
		return lth_build1(infer, LTH_OP_ID_Exp,
				  lth_build2(infer, LTH_OP_ID_Mul, distance, f32(infer, -gamma)));
	}
	lth_value_id dot = affine(infer, x, vectors, num_values, count, NULL, 0);
	if (lth_op_string_is(infer->node, "kernel_type", "LINEAR"))
		return dot;
	dot = lth_build2(infer, LTH_OP_ID_Mul, dot, f32(infer, gamma));
	dot = lth_build2(infer, LTH_OP_ID_Add, dot, f32(infer, coef0));
	if (lth_op_string_is(infer->node, "kernel_type", "SIGMOID"))
		return lth_build1(infer, LTH_OP_ID_Tanh, dot);
	return lth_build2(infer, LTH_OP_ID_Pow, dot, f32(infer, degree));
}

static enum lth_code check_vectors(struct lth_infer *infer, int64_t count)
{
	uint32_t values;
	lth_ml_floats(infer, "support_vectors", &values);
	if (count < 1 || values == 0 || values % count)
		return lth_infer_reject(infer, "support vectors of one length", "%u numbers for %lld vectors", values,
					(long long)count);
	return LTH_OK;
}

static enum lth_code expand_svm_regressor(struct lth_infer *infer)
{
	uint32_t count, num_rho;
	const double *coefficients = lth_ml_floats(infer, "coefficients", &count);
	const double *rho = lth_ml_floats(infer, "rho", &num_rho);
	int64_t supports = lth_op_int(infer->node, "n_supports");
	enum lth_code code = check_affine(infer, count, 1, num_rho);
	if (!code && supports)
		code = check_vectors(infer, supports);
	if (!code && (num_rho < 1 || (supports && count != supports)))
		code = lth_infer_reject(infer, "a rho, and a coefficient for each support vector", "%u and %u", num_rho,
					count);
	if (code)
		return code;
	lth_value_id x = lth_ml_input(infer), base = supports ? kernel_values(infer, x, supports) : x;
	lth_value_id y = affine(infer, base, coefficients, count, 1, rho, 1);
	if (lth_op_int(infer->node, "one_class")) {
		lth_value_id inside = lth_build2(infer, LTH_OP_ID_Greater, y, f32(infer, 0));
		lth_value_id one = f32(infer, 1), minus = f32(infer, -1);
		y = lth_build(infer, LTH_OP_ID_Where, (lth_value_id[]){inside, one, minus}, 3, NULL, 0);
	}
	lth_build_output(infer, 0, lth_ml_post(infer, y));
	return LTH_OK;
}

const struct lth_op_impl lth_impl_svm_regressor = {.expand = expand_svm_regressor};

struct svm {
	uint32_t classes, vectors, pairs;
	const double *coefficients, *rho;
	uint32_t num_coefficients, num_rho;
	const int64_t *per_class;
	bool all_positive; /* coefficients */
};

/* Decisions [rows, pairs]: above 0 for the first class of the pair. Row v of the constant matrix has the coefficient of
 * vector v in each pair that its class takes part in. */
static lth_value_id pair_decisions(struct lth_infer *infer, const struct svm *svm, lth_value_id kernels)
{
	double *matrix = lth_arena_array(infer->graph->arena, (size_t)svm->pairs * svm->vectors, sizeof(*matrix));
	uint32_t pair = 0;
	int64_t first_start = 0;
	if (!matrix)
		return LTH_NONE;
	for (uint32_t i = 0; i < svm->classes; first_start += svm->per_class[i], i++) {
		int64_t second_start = first_start + svm->per_class[i];
		for (uint32_t j = i + 1; j < svm->classes; second_start += svm->per_class[j], j++, pair++) {
			double *row = matrix + (size_t)pair * svm->vectors;
			for (int64_t v = first_start; v < first_start + svm->per_class[i]; v++)
				row[v] = svm->coefficients[(j - 1) * svm->vectors + v];
			for (int64_t v = second_start; v < second_start + svm->per_class[j]; v++)
				row[v] = svm->coefficients[i * svm->vectors + v];
		}
	}
	return affine(infer, kernels, matrix, svm->pairs * svm->vectors, svm->pairs, svm->rho, svm->pairs);
}

/* Votes [rows, classes]: 1 of each pair goes to the class that its decision is for. */
static lth_value_id count_votes(struct lth_infer *infer, const struct svm *svm, lth_value_id decisions)
{
	double *change = lth_arena_array(infer->graph->arena, (size_t)svm->pairs * svm->classes, sizeof(*change));
	double *start = lth_arena_array(infer->graph->arena, svm->classes, sizeof(*start));
	uint32_t pair = 0;
	if (!change || !start)
		return LTH_NONE;
	for (uint32_t i = 0; i < svm->classes; i++)
		for (uint32_t j = i + 1; j < svm->classes; j++, pair++) {
			start[j] += 1; /* the second class has the vote, */
			change[i * svm->pairs + pair] = 1; /* unless the first takes it */
			change[j * svm->pairs + pair] = -1;
		}
	lth_value_id won = lth_build2(infer, LTH_OP_ID_Greater, decisions, f32(infer, 0));
	won = lth_build_cast(infer, won, LTH_DTYPE_F32);
	return affine(infer, won, change, svm->pairs * svm->classes, svm->classes, start, svm->classes);
}

static enum lth_code infer_pair_coupling(struct lth_infer *infer)
{
	int64_t classes = lth_op_int(infer->node, "classes");
	enum lth_code code = lth_infer_need_rank(infer, 0, 2, 2);
	if (!code && (classes < 2 || classes > INT16_MAX))
		code = lth_infer_reject(infer, "2 to 32767 classes", "%lld", (long long)classes);
	if (!code)
		code = lth_infer_require(infer, LTH_REL_EQ, lth_infer_dim(infer, 0, 1),
					 lth_dim_const(infer->dims, classes * (classes - 1) / 2),
					 "a column for each pair");
	if (code)
		return code;
	const lth_dim dims[2] = {lth_infer_dim(infer, 0, 0), lth_dim_const(infer->dims, classes)};
	return lth_infer_output(infer, 0, LTH_DTYPE_F32, 2, dims);
}

const struct lth_op_impl lth_impl_pair_coupling = {.infer = infer_pair_coupling, .builtin = "pair_coupling"};

/* Each decision is a probability of the first class of its pair by a sigmoid; those of all pairs give the classes'. */
static lth_value_id probabilities(struct lth_infer *infer, const struct svm *svm, lth_value_id decisions)
{
	uint32_t count;
	const int64_t pairs = svm->pairs;
	const struct lth_attr classes = lth_attr_int("classes", svm->classes);
	lth_value_id a = lth_ml_matrix(infer, lth_ml_floats(infer, "prob_a", &count), 1, &pairs);
	lth_value_id b = lth_ml_matrix(infer, lth_ml_floats(infer, "prob_b", &count), 1, &pairs);
	lth_value_id z = lth_build2(infer, LTH_OP_ID_Add, lth_build2(infer, LTH_OP_ID_Mul, decisions, a), b);
	lth_value_id low = f32(infer, 1e-7), high = f32(infer, 1 - 1e-7);
	lth_value_id first = lth_build1(infer, LTH_OP_ID_Sigmoid, lth_build1(infer, LTH_OP_ID_Neg, z));
	first = lth_build(infer, LTH_OP_ID_Clip, (lth_value_id[]){first, low, high}, 3, NULL, 0);
	return lth_build(infer, LTH_OP_ID_PairCoupling, &first, 1, &classes, 1);
}

/* The label where the most votes (or the greatest score) are. With one rho, positive coefficients make the second of
 * two labels the positive one; without labels it is 1 above 0, else 0. */
static lth_value_id choose_label(struct lth_infer *infer, const struct svm *svm, lth_value_id weights, bool has_proba)
{
	const int64_t last = -1;
	uint32_t labels = lth_ml_num_labels(infer);
	lth_value_id best = lth_ml_best(infer, weights);
	if (svm->num_rho != 1 || (labels && labels != 2))
		return lth_ml_labels(infer, best);
	lth_value_id most = lth_build_reduce(infer, LTH_OP_ID_ReduceMax, weights, &last, 1, false);
	if (!labels) {
		lth_value_id above = lth_build2(infer, LTH_OP_ID_Greater, most, f32(infer, 0));
		return lth_build_cast(infer, above, LTH_DTYPE_I64);
	}
	if (!has_proba && svm->all_positive) {
		lth_value_id sure = lth_build2(infer, LTH_OP_ID_GreaterOrEqual, most, f32(infer, 0.5));
		lth_value_id second = lth_build_scalar(infer, LTH_DTYPE_I64, 1);
		best = lth_build(infer, LTH_OP_ID_Where, (lth_value_id[]){sure, second, best}, 3, NULL, 0);
	}
	return lth_ml_labels(infer, best);
}

static enum lth_code read_svm(struct lth_infer *infer, struct svm *svm)
{
	uint32_t count = 0, params = 0;
	lth_ml_floats(infer, "kernel_params", &params);
	if (params != 0 && params != 3)
		return lth_infer_reject(infer, "gamma, coef0 and degree", "%u kernel_params", params);
	int64_t vectors = 0;
	svm->coefficients = lth_ml_floats(infer, "coefficients", &svm->num_coefficients);
	svm->rho = lth_ml_floats(infer, "rho", &svm->num_rho);
	svm->classes = lth_ml_num_labels(infer) ? lth_ml_num_labels(infer) : 1;
	lth_node_ints(infer->node, "vectors_per_class", &svm->per_class, &count);
	for (uint32_t i = 0; i < count; i++) {
		if (svm->per_class[i] < 0 || svm->per_class[i] > INT32_MAX)
			return lth_infer_reject(infer, "vectors_per_class of at least 0", "%lld",
						(long long)svm->per_class[i]);
		vectors += svm->per_class[i];
	}
	svm->all_positive = true;
	for (uint32_t i = 0; i < svm->num_coefficients; i++)
		svm->all_positive &= svm->coefficients[i] >= 0;
	if (vectors == 0)
		return svm->num_rho < 1 ? lth_infer_reject(infer, "a rho", "none")
					: check_affine(infer, svm->num_coefficients, svm->classes, 1);
	svm->vectors = (uint32_t)vectors;
	svm->pairs = svm->classes * (svm->classes - 1) / 2;
	if (count != svm->classes || vectors > INT32_MAX || svm->num_rho != svm->pairs ||
	    svm->num_coefficients != (uint64_t)(svm->classes - 1) * svm->vectors || svm->pairs == 0)
		return lth_infer_reject(infer, "a rho for each pair of classes, coefficients for each vector and rival",
					"%u classes, %lld vectors, %u rho, %u coefficients", svm->classes,
					(long long)vectors, svm->num_rho, svm->num_coefficients);
	return check_vectors(infer, vectors);
}

static enum lth_code expand_svm_classifier(struct lth_infer *infer)
{
	struct svm svm = {0};
	uint32_t num_proba, num_b;
	enum lth_code code = lth_infer_need_rank(infer, 0, 1, 2);
	if (!code)
		code = lth_infer_one_of(infer, label_lists, 2);
	if (!code)
		code = read_svm(infer, &svm);
	if (code)
		return code;
	lth_ml_floats(infer, "prob_a", &num_proba);
	lth_ml_floats(infer, "prob_b", &num_b);
	bool proba = num_proba && svm.vectors;
	if (num_proba != num_b || (proba && num_proba != svm.pairs))
		return lth_infer_reject(infer, "prob_a and prob_b for each pair of classes", "%u and %u", num_proba,
					num_b);
	lth_value_id x = lth_ml_input(infer), scores, weights;
	if (svm.vectors) {
		scores = pair_decisions(infer, &svm, kernel_values(infer, x, svm.vectors));
		weights = count_votes(infer, &svm, scores);
	} else {
		scores = affine(infer, x, svm.coefficients, svm.num_coefficients, svm.classes, svm.rho, 1);
		weights = scores;
	}
	if (lth_build_wants(infer, 0))
		lth_build_output(infer, 0, choose_label(infer, &svm, weights, proba));
	if (proba)
		scores = probabilities(infer, &svm, scores);
	else if (svm.vectors && svm.classes == 2)
		scores = lth_ml_both_signs(infer, scores);
	lth_build_output(infer, 1, lth_ml_post(infer, scores));
	return LTH_OK;
}

const struct lth_op_impl lth_impl_svm_classifier = {.expand = expand_svm_classifier};
