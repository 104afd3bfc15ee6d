/* Products with weights of few bits against plain loops: bits, block sizes, last blocks that are not whole, zero points
 * of bytes, floats or none, one row and many, on all machines. */
#include "tests/unit/template_rig.h"
#include "tests/unit/run_suite.h"


struct shape {
	int64_t rows, k, n, size;
	unsigned bits;
	enum { NO_ZEROS, BYTE_ZEROS, FLOAT_ZEROS } zeros;
	bool transpose_a;
};

struct weights {
	uint8_t *bytes, *byte_zeros;
	float *scales, *zeros;
	int64_t blocks;
};

static struct weights random_weights(struct rig *rig, const struct shape *s)
{
	struct weights w = {.blocks = (s->k + s->size - 1) / s->size};
	int64_t count = w.blocks * s->size * s->bits / 8 * s->n;
	w.bytes = lth_arena_array(rig->arena, (size_t)count, 1);
	w.byte_zeros = lth_arena_array(rig->arena, (size_t)(w.blocks * s->n), 1);
	w.scales = rig_random(rig, w.blocks * s->n);
	w.zeros = rig_random(rig, w.blocks * s->n);
	for (int64_t i = 0; i < count; i++)
		w.bytes[i] = (uint8_t)rig_uniform(0, 255);
	for (int64_t i = 0; i < w.blocks * s->n; i++)
		w.byte_zeros[i] = (uint8_t)rig_uniform(0, (1 << s->bits) - 1);
	return w;
}

static double weight_at(const struct shape *s, const struct weights *w, int64_t k, int64_t column)
{
	int64_t each = 8 / s->bits, at = k / s->size * s->n + column;
	int q = w->bytes[k / each * s->n + column] >> (k % each * s->bits) & ((1 << s->bits) - 1);
	double zero = s->zeros == BYTE_ZEROS ? w->byte_zeros[at] : s->zeros ? (double)w->zeros[at] : 1 << (s->bits - 1);
	return (q - zero) * (double)w->scales[at];
}

static void describe(struct rig *rig, const struct shape *s, const struct weights *w, void *a,
		     struct lth_problem *problem)
{
	struct lth_gemm *gemm = &problem->gemm;
	lth_dim one = lth_dim_const(rig->dims, 1), n = rig_dim(rig, s->n);
	gemm->a = rig_operand(rig, a, LTH_DTYPE_F32, false);
	gemm->b = rig_operand(rig, w->bytes, LTH_DTYPE_U8, false);
	gemm->num_rows = 1;
	gemm->rows[0] = (struct lth_gemm_axis){rig_dim(rig, s->rows),
					       s->transpose_a ? one : lth_dim_const(rig->dims, s->k), LTH_DIM_NONE};
	gemm->a_k_stride = s->transpose_a ? lth_dim_const(rig->dims, s->rows) : one;
	gemm->k = rig_dim(rig, s->k);
	gemm->n = n;
	gemm->b_k_stride = gemm->b_n_stride = one;
	problem->blocks = (struct lth_blocks){.bits = s->bits,
					      .size = s->size,
					      .count = rig_dim(rig, w->blocks),
					      .row_stride = n,
					      .scale_stride = n,
					      .zero_stride = n,
					      .scales = rig_operand(rig, w->scales, LTH_DTYPE_F32, false),
					      .zeros = {.pointer = LTH_LV_NONE}};
	if (s->zeros == BYTE_ZEROS)
		problem->blocks.zeros = rig_operand(rig, w->byte_zeros, LTH_DTYPE_U8, false);
	else if (s->zeros == FLOAT_ZEROS)
		problem->blocks.zeros = rig_operand(rig, w->zeros, LTH_DTYPE_F32, false);
}

static void run_shape(const struct shape *s, enum rig_machine machine, bool symbolic)
{
	struct rig rig;
	struct lth_problem problem = {.kind = LTH_PROBLEM_GEMM, .compute = LTH_DTYPE_F32};
	struct lth_template_plan plan;
	rig_start(&rig, machine, LTH_DTYPE_F32, symbolic);
	void *a = rig_random(&rig, s->rows * s->k);
	struct weights w = random_weights(&rig, s);
	describe(&rig, s, &w, a, &problem);
	rig_output(&rig, 0, 2, (int64_t[]){s->rows, s->n}, (uint32_t[]){0, 1});
	ck_assert(rig_run(&rig, &problem, (struct lth_operand *[]){NULL, NULL}, &plan));
	for (int64_t row = 0; row < s->rows; row++)
		for (int64_t column = 0; column < s->n; column++) {
			double sum = 0;
			for (int64_t k = 0; k < s->k; k++)
				sum += rig_get(&rig, a, s->transpose_a ? k * s->rows + row : row * s->k + k) *
				       weight_at(s, &w, k, column);
			double got = rig_at(&rig, 0, (int64_t[]){row, column});
			ck_assert_msg(rig_near(&rig, got, sum, s->k << s->bits),
				      "row %lld of %lld, column %lld: got %g, expected %g", (long long)row,
				      (long long)s->rows, (long long)column, got, sum);
		}
	rig_end(&rig);
}

START_TEST(random_blocks)
{
	static const int64_t widths[] = {1, 16, 30, 64, 70, 100, 130};
	for (int i = 0; i < 40; i++) {
		struct shape s = {.rows = rig_uniform(0, 2) ? rig_uniform(2, 14) : 1,
				  .k = rig_uniform(1, 150),
				  .n = widths[rig_uniform(0, 6)],
				  .size = 8 << rig_uniform(0, 3),
				  .bits = 2u << rig_uniform(0, 2),
				  .zeros = (int)rig_uniform(0, 2),
				  .transpose_a = rig_uniform(0, 1)};
		run_shape(&s, (enum rig_machine)rig_uniform(0, RIG_NUM_MACHINES - 1), rig_uniform(0, 1));
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("templates/blocks");
	TCase *tcase = tcase_create("blocks");
	rig_seed();
	tcase_set_timeout(tcase, 300);
	tcase_add_test(tcase, random_blocks);
	suite_add_tcase(suite, tcase);
	return run_suite(suite);
}
