/* Properties of the graph passes on random graphs: whatever passes run, the graph stays well formed and its outputs
 * keep their values (computed by folding everything with constants for inputs); groups have one anchor at most, stand in
 * an order that works, and what they write has one shape. Seeds: LATHE_SEED, else fixed. */
#include "compiler/passes/groups.h"
#include "compiler/passes/layout.h"
#include "compiler/passes/pass.h"
#include "tests/unit/run_suite.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { NUM_GRAPHS = 120, NUM_NODES = 30, NUM_INPUTS = 4 };

static uint64_t state;

static uint32_t dice(uint32_t sides)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (uint32_t)(state >> 33) % sides;
}

static uint64_t first_seed(void)
{
	const char *text = getenv("LATHE_SEED");
	return text ? strtoull(text, NULL, 10) : 20260101;
}

/* ---- random graphs ---- */

static lth_value_id new_value(struct lth_graph *graph)
{
	return lth_graph_value(graph, "t", NULL);
}

static lth_value_id ints(struct lth_graph *graph, const int64_t *list, uint32_t count)
{
	int64_t shape = count;
	const void *data = lth_arena_memdup(graph->arena, list, count * sizeof(*list));
	return lth_graph_constant(graph, "c", LTH_DTYPE_I64, 1, &shape, data, (int64_t)(count * sizeof(*list)));
}

static lth_value_id scalar(struct lth_graph *graph, float number)
{
	const void *data = lth_arena_memdup(graph->arena, &number, sizeof(number));
	return lth_graph_constant(graph, "c", LTH_DTYPE_F32, 0, NULL, data, sizeof(number));
}

static int64_t extent(const struct lth_graph *graph, lth_value_id value, uint32_t axis)
{
	int64_t result;
	ck_assert(lth_dim_is_const(graph->dims, graph->values[value].type.dims[axis], &result));
	return result;
}

static bool same_shape(const struct lth_graph *graph, lth_value_id a, lth_value_id b)
{
	const struct lth_type *first = &graph->values[a].type, *second = &graph->values[b].type;
	return first->rank == second->rank && memcmp(first->dims, second->dims, first->rank * sizeof(lth_dim)) == 0;
}

/* Adds a node and infers it; false (and no value) when the operator refuses. */
static bool add(struct lth_graph *graph, enum lth_op_id op, const lth_value_id *inputs, uint32_t num_inputs,
		const struct lth_attr *attrs, uint32_t num_attrs, lth_value_id *list, uint32_t *count)
{
	struct lth_diag diag = {0};
	char line[512];
	lth_value_id output = new_value(graph);
	lth_node_id node = lth_graph_node(graph, 0, &lth_ops[op], NULL, inputs, num_inputs, &output, 1, attrs, num_attrs);
	enum lth_code code = lth_infer_node(graph, node, &diag);
	ck_assert_msg(code == LTH_OK, "%s", lth_diag_line(&diag, line, sizeof(line)));
	list[(*count)++] = output;
	return true;
}

static void add_transpose(struct lth_graph *graph, lth_value_id value, lth_value_id *list, uint32_t *count)
{
	uint32_t rank = graph->values[value].type.rank;
	int64_t perm[LTH_MAX_RANK];
	for (uint32_t i = 0; i < rank; i++)
		perm[i] = i;
	for (uint32_t i = rank; i > 1; i--) {
		uint32_t other = dice(i);
		int64_t held = perm[i - 1];
		perm[i - 1] = perm[other];
		perm[other] = held;
	}
	struct lth_attr attr = {.name = "perm", .kind = LTH_ATTR_INTS, .count = rank};
	attr.ints = lth_arena_memdup(graph->arena, perm, rank * sizeof(*perm));
	add(graph, LTH_OP_ID_Transpose, &value, 1, &attr, 1, list, count);
}

static void add_reshape(struct lth_graph *graph, lth_value_id value, lth_value_id *list, uint32_t *count)
{
	uint32_t rank = graph->values[value].type.rank, at = 0;
	int64_t shape[LTH_MAX_RANK + 1];
	uint32_t joined = rank > 1 ? dice(rank - 1) : rank;
	for (uint32_t axis = 0; axis < rank; axis++) {
		shape[at++] = extent(graph, value, axis);
		if (axis == joined + 1 && dice(2)) {
			shape[at - 2] *= shape[at - 1];
			at--;
		}
	}
	if (at < 5 && dice(2))
		shape[at++] = 1;
	lth_value_id inputs[2] = {value, ints(graph, shape, at)};
	add(graph, LTH_OP_ID_Reshape, inputs, 2, NULL, 0, list, count);
}

static void add_slice(struct lth_graph *graph, lth_value_id value, lth_value_id *list, uint32_t *count)
{
	uint32_t rank = graph->values[value].type.rank;
	int64_t axis = dice(rank), end = extent(graph, value, (uint32_t)axis), start = dice(2) ? 0 : dice((uint32_t)end);
	lth_value_id inputs[4] = {value, ints(graph, &start, 1), ints(graph, &end, 1), ints(graph, &axis, 1)};
	add(graph, LTH_OP_ID_Slice, inputs, 4, NULL, 0, list, count);
}

static void add_concat(struct lth_graph *graph, lth_value_id a, lth_value_id b, lth_value_id *list, uint32_t *count)
{
	lth_value_id inputs[2] = {a, b};
	struct lth_attr axis = {.name = "axis", .kind = LTH_ATTR_INT, .count = 1,
				.i = (int64_t)dice(graph->values[a].type.rank)};
	int64_t elements = 1;
	for (uint32_t i = 0; i < graph->values[a].type.rank; i++)
		elements *= extent(graph, a, i);
	if (same_shape(graph, a, b) && elements < 2000)
		add(graph, LTH_OP_ID_Concat, inputs, 2, &axis, 1, list, count);
}

static void add_binary(struct lth_graph *graph, lth_value_id a, lth_value_id b, lth_value_id *list, uint32_t *count)
{
	static const enum lth_op_id binaries[] = {LTH_OP_ID_Add, LTH_OP_ID_Sub, LTH_OP_ID_Mul, LTH_OP_ID_Div};
	static const float numbers[] = {0.0f, -0.0f, 1.0f, 2.0f, 0.25f, 3.0f, -1.5f};
	lth_value_id inputs[2] = {a, b};
	if (!same_shape(graph, a, b))
		inputs[1] = scalar(graph, numbers[dice(7)]);
	else if (dice(4) == 0)
		inputs[0] = scalar(graph, numbers[dice(7)]);
	add(graph, binaries[dice(4)], inputs, 2, NULL, 0, list, count);
}

static void add_random_node(struct lth_graph *graph, lth_value_id *list, uint32_t *count)
{
	static const enum lth_op_id unaries[] = {LTH_OP_ID_Neg,     LTH_OP_ID_Abs,  LTH_OP_ID_Relu, LTH_OP_ID_Sigmoid,
						 LTH_OP_ID_Tanh,    LTH_OP_ID_Floor, LTH_OP_ID_Erf, LTH_OP_ID_Identity};
	/* The newest values more often: chains are what passes look for. */
	uint32_t window = dice(2) && *count > 4 ? 4 : *count;
	lth_value_id a = list[*count - 1 - dice(window)], b = list[*count - 1 - dice(*count)];
	for (uint32_t i = 0; i < *count && !same_shape(graph, a, b) && dice(3); i++)
		b = list[i];
	switch (dice(8)) {
	case 0:
	case 1:
		add(graph, unaries[dice(8)], &a, 1, NULL, 0, list, count);
		break;
	case 2:
		add_transpose(graph, a, list, count);
		break;
	case 3:
		add_reshape(graph, a, list, count);
		break;
	case 4:
		add_slice(graph, a, list, count);
		break;
	case 5:
		add_concat(graph, a, b, list, count);
		break;
	default:
		add_binary(graph, a, b, list, count);
		break;
	}
}

static struct lth_graph *random_graph(struct lth_arena *arena, uint64_t seed)
{
	static const int64_t shapes[NUM_INPUTS][3] = {{2, 3, 4}, {2, 3, 4}, {1, 4, 6}, {4, 3, 2}};
	struct lth_graph *graph = lth_graph_create(arena);
	lth_value_id list[NUM_INPUTS + NUM_NODES + 1];
	uint32_t count = 0;
	state = seed * 0x9e3779b97f4a7c15u | 1;
	for (uint32_t i = 0; i < 8; i++)
		dice(2);
	for (uint32_t i = 0; i < NUM_INPUTS; i++) {
		lth_dim dims[3];
		for (uint32_t axis = 0; axis < 3; axis++)
			dims[axis] = lth_dim_const(graph->dims, shapes[i][axis]);
		struct lth_type type = lth_type_tensor(graph, LTH_DTYPE_F32, 3, dims);
		list[count++] = lth_graph_input(graph, 0, "x", &type);
	}
	for (uint32_t i = 0; i < NUM_NODES; i++)
		add_random_node(graph, list, &count);
	lth_graph_output(graph, 0, list[count - 1]);
	for (uint32_t i = NUM_INPUTS; i + 1 < count; i++)
		if (dice(6) == 0)
			lth_graph_output(graph, 0, list[i]);
	return graph;
}

/* ---- running passes ---- */

static void run(struct lth_graph *graph, const char *const *names, size_t count)
{
	struct lth_pass_set set = {0};
	struct lth_pass_context context = {.opt_level = 2, .vector_lanes = 16};
	struct lth_pass_record records[LTH_NUM_PASSES];
	struct lth_diag diag = {0};
	size_t num_records;
	char line[512];
	for (size_t i = 0; i < count; i++)
		set.on[lth_pass_find(names[i])] = true;
	enum lth_code code = lth_passes_run(graph, &set, &context, true, NULL, NULL, records, &num_records, &diag);
	ck_assert_msg(code == LTH_OK, "%s", lth_diag_line(&diag, line, sizeof(line)));
	ck_assert_uint_eq(num_records, count);
}

/* Inputs become constants of fixed numbers. */
static void give_inputs(struct lth_graph *graph)
{
	state = 77;
	for (uint32_t i = 0; i < graph->regions[0].num_inputs; i++) {
		struct lth_value *value = &graph->values[graph->regions[0].inputs[i]];
		float *data = lth_arena_array(graph->arena, 24, sizeof(*data));
		for (uint32_t k = 0; k < 24; k++)
			data[k] = (float)(int32_t)(dice(2001) - 1000) / 256.0f;
		value->def = LTH_DEF_CONSTANT;
		value->constant = (struct lth_constant){.data = data, .bytes = 24 * sizeof(*data)};
	}
	graph->regions[0].num_inputs = 0;
}

/* The numbers of an output that folding has reduced to a constant, or to a copy of one. */
static const float *numbers_of(const struct lth_graph *graph, lth_value_id id, int64_t *out_bytes)
{
	while (graph->values[id].def == LTH_DEF_NODE) {
		const struct lth_node *node = &graph->nodes[graph->values[id].def_id];
		ck_assert_str_eq(node->op->name, "Identity");
		id = node->inputs[0];
	}
	ck_assert_int_eq(graph->values[id].def, LTH_DEF_CONSTANT);
	*out_bytes = graph->values[id].constant.bytes;
	return graph->values[id].constant.data;
}

static void compare(const struct lth_graph *expected, const struct lth_graph *got)
{
	ck_assert_uint_eq(expected->regions[0].num_outputs, got->regions[0].num_outputs);
	for (uint32_t k = 0; k < expected->regions[0].num_outputs; k++) {
		lth_value_id a = expected->regions[0].outputs[k], b = got->regions[0].outputs[k];
		int64_t bytes, other_bytes;
		const float *want = numbers_of(expected, a, &bytes), *have = numbers_of(got, b, &other_bytes);
		ck_assert_str_eq(expected->values[a].name, got->values[b].name);
		ck_assert_int_eq(bytes, other_bytes);
		for (int64_t i = 0; i < bytes / 4; i++) {
			if (isnan(want[i]) && isnan(have[i]))
				continue;
			bool right = isinf(want[i]) ? want[i] == have[i]
						    : fabsf(want[i] - have[i]) <= 1e-6f + 1e-5f * fabsf(want[i]);
			ck_assert_msg(right, "output %u (%s), element %d: %g, expected %g", k,
				      expected->values[a].name, (int)i, (double)have[i], (double)want[i]);
		}
	}
}

START_TEST(passes_keep_the_outputs)
{
	static const char *const fold[] = {"FoldConstant"};
	static const char *const subject[] = {"FoldConstant", "EliminateCommonSubexpr", "SimplifyExpr", "FoldScaleAxis",
					      "DeadCodeElimination"};
	uint64_t seed = first_seed() + (uint64_t)_i;
	struct lth_arena *arena = lth_arena_create(0), *other = lth_arena_create(0);
	struct lth_graph *reference = random_graph(arena, seed), *graph = random_graph(other, seed);
	give_inputs(reference);
	run(reference, fold, 1);
	run(graph, subject, 5);
	give_inputs(graph);
	run(graph, fold, 1);
	compare(reference, graph);
	lth_arena_destroy(&arena);
	lth_arena_destroy(&other);
}
END_TEST

static void check_group(const struct lth_graph *graph, const struct lth_group *group)
{
	uint32_t anchors = 0;
	for (uint32_t i = 0; i < group->num_nodes; i++) {
		const struct lth_node *node = &graph->nodes[group->nodes[i]];
		anchors += node->op->kind == LTH_OP_TEMPLATE || node->op->kind == LTH_OP_REDUCTION;
		ck_assert_uint_eq(node->group, group->id);
	}
	ck_assert_uint_le(anchors, 1);
	ck_assert_uint_ge(group->num_outputs, 1);
	for (uint32_t k = 1; k < group->num_outputs && anchors == 0; k++) {
		ck_assert(same_shape(graph, group->outputs[0], group->outputs[k]));
		ck_assert(lth_layout_equal(graph, &graph->values[group->outputs[0]].type,
					   graph->values[group->outputs[0]].layout,
					   graph->values[group->outputs[k]].layout));
	}
}

START_TEST(groups_are_well_formed)
{
	static const char *const all[] = {"FoldConstant", "EliminateCommonSubexpr", "SimplifyExpr",
					  "DeadCodeElimination", "AlterOpLayout", "FuseOps"};
	struct lth_arena *arena = lth_arena_create(0);
	struct lth_graph *graph = random_graph(arena, first_seed() + 1000 + (uint64_t)_i);
	struct lth_groups groups;
	struct lth_diag diag = {0};
	char line[512];
	run(graph, _i % 2 ? all : all + 5, _i % 2 ? 6 : 1);
	enum lth_code code = lth_graph_groups(graph, arena, &groups, &diag);
	ck_assert_msg(code == LTH_OK, "%s", lth_diag_line(&diag, line, sizeof(line)));
	bool *made = calloc(graph->num_values, sizeof(*made));
	for (uint32_t g = 0; g < groups.count; g++) {
		check_group(graph, &groups.list[g]);
		for (uint32_t k = 0; k < groups.list[g].num_inputs; k++)
			ck_assert(made[groups.list[g].inputs[k]] ||
				  graph->values[groups.list[g].inputs[k]].def != LTH_DEF_NODE);
		for (uint32_t k = 0; k < groups.list[g].num_outputs; k++)
			made[groups.list[g].outputs[k]] = true;
	}
	for (uint32_t k = 0; k < graph->regions[0].num_outputs; k++)
		ck_assert(made[graph->regions[0].outputs[k]] ||
			  graph->values[graph->regions[0].outputs[k]].def != LTH_DEF_NODE);
	free(made);
	lth_arena_destroy(&arena);
}
END_TEST

START_TEST(selection_by_level_and_name)
{
	struct lth_pass_set set;
	struct lth_diag diag = {0};
	const char *fuse = "FuseOps", *wrong = "FuseOp", *alloc = "ManifestAlloc";
	ck_assert_int_eq(lth_pass_select(0, &fuse, 1, NULL, 0, &set, &diag), LTH_OK);
	ck_assert(set.on[LTH_PASS_ID_FuseOps] && set.on[LTH_PASS_ID_ManifestAlloc]);
	ck_assert(!set.on[LTH_PASS_ID_SimplifyExpr]);
	ck_assert_int_eq(lth_pass_select(2, &fuse, 1, &fuse, 1, &set, &diag), LTH_OK);
	ck_assert(!set.on[LTH_PASS_ID_FuseOps] && set.on[LTH_PASS_ID_SimplifyExpr]);
	ck_assert_int_eq(lth_pass_select(2, &wrong, 1, NULL, 0, &set, &diag), LTH_INVALID_OPTION);
	ck_assert_ptr_nonnull(strstr(diag.advice, "FuseOps"));
	diag = (struct lth_diag){0};
	ck_assert_int_eq(lth_pass_select(2, NULL, 0, &alloc, 1, &set, &diag), LTH_INVALID_OPTION);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("passes");
	TCase *tests = tcase_create("passes");
	tcase_set_timeout(tests, 60);
	tcase_add_test(tests, selection_by_level_and_name);
	tcase_add_loop_test(tests, passes_keep_the_outputs, 0, NUM_GRAPHS);
	tcase_add_loop_test(tests, groups_are_well_formed, 0, NUM_GRAPHS);
	suite_add_tcase(suite, tests);
	return run_suite(suite);
}
