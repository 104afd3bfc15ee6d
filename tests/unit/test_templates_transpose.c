/* The transposing template: every pair of axes, tails on both sides. */
#include "tests/unit/template_rig.h"
#include "tests/unit/run_suite.h"


static void run_transpose(const int64_t *extents, uint32_t source, uint32_t target, enum rig_machine machine,
			  enum lth_dtype compute, bool symbolic)
{
	struct rig rig;
	struct lth_problem problem = {.kind = LTH_PROBLEM_TRANSPOSE, .compute = compute};
	struct lth_template_plan plan;
	struct lth_transpose *p = &problem.transpose;
	int64_t strides[3], step = extents[source], count = extents[0] * extents[1] * extents[2];
	uint32_t order[3], other = 3 - source - target;
	rig_start(&rig, machine, compute, symbolic);
	strides[source] = 1;
	strides[target] = step;
	strides[other] = step * extents[target];
	order[0] = other;
	order[1] = source;
	order[2] = target;
	void *x = rig_random(&rig, count);
	p->x = rig_operand(&rig, x, compute, false);
	p->num_axes = 3;
	p->source_axis = source;
	p->target_axis = target;
	for (int i = 0; i < 3; i++) {
		p->extent[i] = rig_dim(&rig, extents[i]);
		p->x_stride[i] = lth_dim_const(rig.dims, strides[i]);
	}
	rig_output(&rig, 0, 3, extents, order);
	ck_assert(rig_run(&rig, &problem, (struct lth_operand *[]){NULL, NULL}, &plan));
	for (int64_t flat = 0; flat < count; flat++) {
		int64_t index[3] = {flat / (extents[1] * extents[2]), flat / extents[2] % extents[1],
				    flat % extents[2]};
		double want = rig_get(&rig, x, index[0] * strides[0] + index[1] * strides[1] + index[2] * strides[2]);
		ck_assert(rig_near(&rig, rig_at(&rig, 0, index), want, 1));
	}
	rig_end(&rig);
}

START_TEST(random_transposes)
{
	for (int i = 0; i < 20; i++) {
		int64_t extents[3] = {rig_uniform(1, 3), rig_uniform(1, 40), rig_uniform(1, 40)};
		uint32_t source = (uint32_t)rig_uniform(0, 2), target = (source + (uint32_t)rig_uniform(1, 2)) % 3;
		run_transpose(extents, source, target, (enum rig_machine)rig_uniform(0, RIG_NUM_MACHINES - 1),
			      rig_uniform(0, 2) ? LTH_DTYPE_F32 : LTH_DTYPE_F64, rig_uniform(0, 1));
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("templates/transpose");
	TCase *tcase = tcase_create("transpose");
	rig_seed();
	tcase_set_timeout(tcase, 300);
	tcase_add_test(tcase, random_transposes);
	suite_add_tcase(suite, tcase);
	return run_suite(suite);
}
