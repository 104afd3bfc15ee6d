/* The matrix product template against plain loops: random ranks, shapes, strides, operand kinds and machines. */
#include "tests/unit/template_rig.h"
#include "tests/unit/run_suite.h"

#include <string.h>

struct shape {
	uint32_t num_batch, num_rows;
	int64_t batch[2], rows[2], k, n;
	bool broadcast_a[2], broadcast_b[2], transpose_a, transpose_b, constant_b;
};

/* Strides of an operand [batch.., outer.., inner] or with the last two exchanged; batch axes broadcast where told. */
struct operand_shape {
	int64_t batch_stride[2], row_stride[2], k_stride, n_stride, elements;
};

static struct operand_shape layout_a(const struct shape *s)
{
	struct operand_shape out = {.elements = 1};
	int64_t rows = 1;
	for (uint32_t i = 0; i < s->num_rows; i++)
		rows *= s->rows[i];
	out.k_stride = s->transpose_a ? rows : 1;
	int64_t stride = s->transpose_a ? 1 : s->k;
	for (uint32_t i = s->num_rows; i-- > 0; stride *= s->rows[i])
		out.row_stride[i] = stride;
	out.elements = rows * s->k;
	for (uint32_t i = s->num_batch; i-- > 0;) {
		out.batch_stride[i] = s->broadcast_a[i] ? 0 : out.elements;
		out.elements *= s->broadcast_a[i] ? 1 : s->batch[i];
	}
	return out;
}

static struct operand_shape layout_b(const struct shape *s)
{
	struct operand_shape out = {.k_stride = s->transpose_b ? 1 : s->n, .n_stride = s->transpose_b ? s->k : 1};
	out.elements = s->k * s->n;
	for (uint32_t i = s->num_batch; i-- > 0;) {
		out.batch_stride[i] = s->broadcast_b[i] ? 0 : out.elements;
		out.elements *= s->broadcast_b[i] ? 1 : s->batch[i];
	}
	return out;
}

static void check_product(const struct rig *rig, const struct shape *s, const struct operand_shape *a_shape,
			  const void *a, const struct operand_shape *b_shape, const void *b)
{
	int64_t count = rig->outputs[0].elements, index[5], extents[5];
	uint32_t rank = s->num_batch + s->num_rows + 1;
	memcpy(extents, rig->outputs[0].extents, sizeof(extents));
	for (int64_t flat = 0; flat < count; flat++) {
		int64_t rest = flat, a_at = 0, b_at = 0;
		for (uint32_t i = rank; i-- > 0; rest /= extents[i])
			index[i] = rest % extents[i];
		for (uint32_t i = 0; i < s->num_batch; i++) {
			a_at += index[i] * a_shape->batch_stride[i];
			b_at += index[i] * b_shape->batch_stride[i];
		}
		for (uint32_t i = 0; i < s->num_rows; i++)
			a_at += index[s->num_batch + i] * a_shape->row_stride[i];
		b_at += index[rank - 1] * b_shape->n_stride;
		double sum = 0;
		for (int64_t k = 0; k < s->k; k++)
			sum += rig_get(rig, a, a_at + k * a_shape->k_stride) *
			       rig_get(rig, b, b_at + k * b_shape->k_stride);
		ck_assert_msg(rig_near(rig, rig_at(rig, 0, index), sum, s->k),
			      "element %lld of %lld: got %g, expected %g", (long long)flat, (long long)count,
			      rig_at(rig, 0, index), sum);
	}
}

static void run_shape(const struct shape *s, enum rig_machine machine, enum lth_dtype compute, bool symbolic)
{
	struct rig rig;
	struct lth_problem problem = {.kind = LTH_PROBLEM_GEMM, .compute = compute};
	struct lth_template_plan plan;
	struct lth_gemm *gemm = &problem.gemm;
	struct operand_shape a_shape = layout_a(s), b_shape = layout_b(s);
	uint32_t rank = s->num_batch + s->num_rows + 1, order[5];
	int64_t extents[5];
	rig_start(&rig, machine, compute, symbolic);
	void *a = rig_random(&rig, a_shape.elements), *b = rig_random(&rig, b_shape.elements);
	gemm->a = rig_operand(&rig, a, compute, false);
	gemm->b = rig_operand(&rig, b, compute, false);
	gemm->b.constant = s->constant_b;
	gemm->num_batch = s->num_batch;
	gemm->num_rows = s->num_rows;
	for (uint32_t i = 0; i < s->num_batch; i++) {
		gemm->batch[i] = (struct lth_gemm_axis){rig_dim(&rig, s->batch[i]),
							lth_dim_const(rig.dims, a_shape.batch_stride[i]),
							lth_dim_const(rig.dims, b_shape.batch_stride[i])};
		extents[i] = s->batch[i];
	}
	for (uint32_t i = 0; i < s->num_rows; i++) {
		gemm->rows[i] = (struct lth_gemm_axis){rig_dim(&rig, s->rows[i]),
						       lth_dim_const(rig.dims, a_shape.row_stride[i]), LTH_DIM_NONE};
		extents[s->num_batch + i] = s->rows[i];
	}
	extents[rank - 1] = s->n;
	gemm->k = rig_dim(&rig, s->k);
	gemm->n = s->constant_b ? lth_dim_const(rig.dims, s->n) : rig_dim(&rig, s->n);
	gemm->a_k_stride = lth_dim_const(rig.dims, a_shape.k_stride);
	gemm->b_k_stride = lth_dim_const(rig.dims, b_shape.k_stride);
	gemm->b_n_stride = lth_dim_const(rig.dims, b_shape.n_stride);
	for (uint32_t i = 0; i < rank; i++)
		order[i] = i;
	if (rank > 1 && rig_uniform(0, 3) == 0) { /* columns not contiguous in the output */
		order[rank - 1] = rank - 2;
		order[rank - 2] = rank - 1;
	}
	rig_output(&rig, 0, rank, extents, order);
	rig.epilogue.flat_pixels = order[rank - 1] == rank - 1 && rig_uniform(0, 1);
	ck_assert(rig_run(&rig, &problem, (struct lth_operand *[]){&gemm->b, NULL}, &plan));
	check_product(&rig, s, &a_shape, a, &b_shape, b);
	rig_end(&rig);
}

static struct shape random_shape(void)
{
	static const int64_t widths[] = {1, 3, 8, 15, 16, 17, 24, 31, 33, 40, 48, 63, 64, 65, 72, 100, 128, 130};
	struct shape s = {.num_batch = (uint32_t)rig_uniform(0, 2), .num_rows = (uint32_t)rig_uniform(0, 2)};
	for (uint32_t i = 0; i < s.num_batch; i++) {
		s.batch[i] = rig_uniform(1, 3);
		s.broadcast_a[i] = rig_uniform(0, 3) == 0;
		s.broadcast_b[i] = rig_uniform(0, 1) == 0;
	}
	for (uint32_t i = 0; i < s.num_rows; i++)
		s.rows[i] = rig_uniform(1, s.num_rows == 1 ? 60 : 9);
	s.k = rig_uniform(0, 40);
	s.n = widths[rig_uniform(0, 17)];
	s.transpose_a = rig_uniform(0, 1);
	s.transpose_b = rig_uniform(0, 1);
	s.constant_b = rig_uniform(0, 1);
	return s;
}

START_TEST(random_products)
{
	for (int i = 0; i < 60; i++) {
		struct shape s = random_shape();
		run_shape(&s, (enum rig_machine)rig_uniform(0, RIG_NUM_MACHINES - 1),
			  rig_uniform(0, 3) ? LTH_DTYPE_F32 : LTH_DTYPE_F64, rig_uniform(0, 1));
	}
}
END_TEST

START_TEST(computed_b_in_panels)
{
	struct shape s = {.num_rows = 1, .rows = {97}, .k = 260, .n = 70};
	for (int transposed = 0; transposed < 2; transposed++) {
		s.transpose_b = transposed;
		run_shape(&s, RIG_AVX512, LTH_DTYPE_F32, false);
		run_shape(&s, RIG_AVX2, LTH_DTYPE_F32, true);
	}
}
END_TEST

START_TEST(empty_extents)
{
	struct shape no_rows = {.num_rows = 1, .rows = {0}, .k = 3, .n = 5};
	struct shape no_depth = {.num_rows = 1, .rows = {5}, .k = 0, .n = 70, .constant_b = true};
	for (int symbolic = 0; symbolic < 2; symbolic++) {
		run_shape(&no_rows, RIG_AVX512, LTH_DTYPE_F32, symbolic);
		run_shape(&no_depth, RIG_AVX512, LTH_DTYPE_F32, symbolic);
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("templates/gemm");
	TCase *tcase = tcase_create("gemm");
	rig_seed();
	tcase_set_timeout(tcase, 300);
	tcase_add_test(tcase, random_products);
	tcase_add_test(tcase, computed_b_in_panels);
	tcase_add_test(tcase, empty_extents);
	suite_add_tcase(suite, tcase);
	return run_suite(suite);
}
