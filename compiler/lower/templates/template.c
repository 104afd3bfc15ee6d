/* The table of templates: which takes a problem. */
#include "compiler/lower/templates/internal.h"

#include <string.h>

static const struct lth_template templates[] = {
#define LTH_TEMPLATE(name, problem, text, plan, emit, description) {text, LTH_PROBLEM_##problem, plan, emit},
#include "compiler/lower/templates/templates.def"
#undef LTH_TEMPLATE
};

const char *lth_template_name(const struct lth_template *chosen)
{
	return chosen->name;
}

/* The types that templates compute in at all; bytes are multiplied as i32. */
static bool computes(const struct lth_problem *problem)
{
	switch (problem->compute) {
	case LTH_DTYPE_F32:
	case LTH_DTYPE_F64:
		return true;
	case LTH_DTYPE_I32:
		return problem->kind == LTH_PROBLEM_GEMM || problem->kind == LTH_PROBLEM_CONV;
	case LTH_DTYPE_U8:
	case LTH_DTYPE_I8:
		return problem->kind == LTH_PROBLEM_POOL;
	default:
		return false;
	}
}

bool lth_template_plan(struct lth_dims *dims, const struct lth_machine *machine, const struct lth_problem *problem,
		       struct lth_template_plan *out_plan)
{
	if (!computes(problem))
		return false;
	for (size_t i = 0; i < sizeof(templates) / sizeof(templates[0]); i++) {
		struct lth_template_plan plan;
		memset(&plan, 0, sizeof(plan));
		plan.chosen = &templates[i];
		plan.flops = LTH_DIM_NONE;
		if (templates[i].problem != problem->kind || !templates[i].plan(dims, machine, problem, &plan))
			continue;
		*out_plan = plan;
		return true;
	}
	return false;
}

void lth_template_emit(struct lth_emit *emit, const struct lth_problem *problem, const struct lth_template_plan *plan)
{
	emit->min_units = lth_dim_const(emit->dims, 1);
	emit->scratch_bytes = lth_dim_const(emit->dims, 0);
	plan->chosen->emit(emit, problem, plan);
}
