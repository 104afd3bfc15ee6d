/* ManifestAlloc: the steps of each region in order as a linear list of instructions over explicit storages. Sizes are
 * expressions in the symbols, so this runs once and nothing has to be fused again. */
#include "compiler/memory/manifest.h"

#include "runtime/tensor/value_type.h"

#include <string.h>

void lth_build_bound(struct lth_builder *builder, uint32_t symbol)
{
	builder->bound[symbol] = builder->new_bounds = true;
}

/* Has every symbol of the expression a value? What has one keeps it. */
static bool has_value(struct lth_builder *builder, uint32_t expr)
{
	const struct lth_program *program = builder->program;
	const struct lth_expr *e = &program->exprs[expr];
	if (e->op == LTH_EXPR_SYMBOL)
		return program->symbols[e->a].source == LTH_SOURCE_INPUT || builder->bound[e->a];
	unsigned operands = lth_expr_operands(e->op);
	bool *valued = lth_arena_grow(program->arena, builder->valued, &builder->cap_valued, expr + 1, sizeof(*valued));
	if (!valued)
		return false;
	builder->valued = valued;
	if (!valued[expr] && (operands < 1 || has_value(builder, e->a)) && (operands < 2 || has_value(builder, e->b)))
		builder->valued[expr] = true;
	return builder->valued[expr];
}

bool lth_build_known(struct lth_builder *builder, lth_dim dim, uint32_t expr)
{
	return !lth_dim_depends_on_data(builder->graph->dims, dim) || has_value(builder, expr);
}

void lth_build_guards(struct lth_builder *builder, lth_region_id region)
{
	struct lth_graph *graph = builder->graph;
	for (uint32_t i = 0; i < graph->num_guards; i++) {
		const struct lth_guard *guard = &graph->guards[i];
		if (guard->region != region || builder->guarded[i])
			continue;
		uint32_t least = lth_build_dim(builder, guard->a), most = lth_build_dim(builder, guard->b);
		uint32_t ints[2] = {least, most};
		if (!lth_build_known(builder, guard->a, ints[0]) || !lth_build_known(builder, guard->b, ints[1]))
			continue;
		builder->guarded[i] = true;
		struct lth_instr instr = {.op = LTH_INSTR_GUARD,
					  .ints = ints,
					  .num_ints = 2,
					  .relation = guard->relation,
					  .text = guard->what,
					  .node = guard->node};
		lth_program_instr(builder->program, &instr);
	}
}

static uint32_t kernel_id(struct lth_builder *builder, const struct lth_step *step)
{
	uint32_t *id = &builder->kernel_of[step->kernel];
	struct lth_kernel kernel = {.name = step->kernel_name,
				    .description = step->spec->description,
				    .num_pointers = step->spec->num_operands,
				    .num_ints = step->spec->num_ints};
	if (*id == LTH_NONE)
		*id = lth_program_kernel(builder->program, &kernel);
	return *id;
}

/* The tensor that names a packed constant: bytes. */
static uint32_t packed_tensor(struct lth_builder *builder, const struct lth_packed *packed, const char *name)
{
	struct lth_program *program = builder->program;
	struct lth_tensor tensor = {.dtype = LTH_DTYPE_U8, .rank = 1, .name = name};
	tensor.storage = lth_build_constant(builder, packed->source, packed->pack, packed->bytes, name);
	tensor.dims[0] = lth_program_const(program, packed->bytes);
	tensor.strides[0] = lth_program_const(program, 1);
	tensor.offset = lth_program_const(program, 0);
	return lth_program_tensor(program, &tensor);
}

/* A kernel's operands are those of its CALL, in order; lowering puts the written ones first. */
static enum lth_code build_kernel(struct lth_builder *builder, const struct lth_step *step)
{
	const struct lth_kernel_spec *spec = step->spec;
	struct lth_program *program = builder->program;
	uint32_t *tensors = builder->operands, *ints = builder->ints;
	for (uint32_t i = 0; i < spec->num_operands; i++) {
		const struct lth_kernel_operand *operand = &spec->operands[i];
		tensors[i] = operand->value == LTH_NONE ? packed_tensor(builder, &operand->packed, spec->node)
							: lth_build_tensor(builder, operand->value);
		if (operand->written)
			lth_build_alloc(builder, program->tensors[tensors[i]].storage);
	}
	for (uint32_t i = 0; i < spec->num_ints; i++)
		ints[i] = lth_build_dim(builder, spec->ints[i]);
	struct lth_instr instr = {.op = LTH_INSTR_CALL,
				  .callee = kernel_id(builder, step),
				  .tensors = tensors,
				  .num_tensors = spec->num_operands,
				  .ints = ints,
				  .num_ints = spec->num_ints,
				  .range = lth_build_dim(builder, spec->range),
				  .grain = spec->grain,
				  .scratch = LTH_NONE,
				  .scratch_bytes = LTH_NONE,
				  .flops = spec->flops == LTH_DIM_NONE ? LTH_NONE : lth_build_dim(builder, spec->flops),
				  .node = spec->node};
	for (uint32_t i = 0; i < spec->num_operands; i++) {
		instr.num_outputs += spec->operands[i].written;
		if (spec->operands[i].in_place && i < 32)
			instr.in_place |= 1u << i;
	}
	if (spec->scratch_bytes != LTH_DIM_NONE) {
		struct lth_dims *dims = builder->graph->dims;
		lth_dim align = lth_dim_const(dims, 64);
		lth_dim each = lth_dim_mul(dims, lth_dim_ceildiv(dims, spec->scratch_bytes, align), align);
		lth_dim all = lth_dim_mul(dims, each, lth_dim_const(dims, builder->input->threads));
		lth_dim bound = lth_dim_upper_bound(dims, all);
		instr.scratch_bytes = lth_build_dim(builder, each);
		uint32_t size = lth_build_dim(builder, bound == LTH_DIM_NONE ? all : bound);
		instr.scratch = lth_build_scratch(builder, size, spec->node);
		if (bound == LTH_DIM_NONE) /* the run alone knows how much */
			program->storages[instr.scratch].kind = LTH_STORAGE_POOL;
		lth_build_alloc(builder, instr.scratch);
	}
	lth_program_instr(program, &instr);
	return LTH_OK;
}

/* Asks for what a step's operands lead to (`deep`: at two removes), so that it has come when their turn does: most of
 * this pass would be waiting for memory. */
static void expect(const struct lth_builder *builder, const struct lth_step *step, bool deep)
{
	if (step->kind != LTH_STEP_KERNEL)
		return;
	for (uint32_t i = 0; i < step->spec->num_operands; i++) {
		lth_value_id value = step->spec->operands[i].value;
		if (value == LTH_NONE)
			continue;
		const struct lth_value *v = &builder->graph->values[value];
		const struct lth_access *access = &builder->input->accesses[value];
		__builtin_prefetch(deep ? (const void *)v->type.dims : v);
		__builtin_prefetch(deep ? (const void *)access->strides : access);
	}
}

enum lth_code lth_build_region(struct lth_builder *builder, lth_region_id region)
{
	enum { AHEAD = 4 };
	const struct lth_region_steps *list = &builder->input->regions[region];
	lth_build_guards(builder, region);
	for (uint32_t i = 0; i < list->count; i++) {
		const struct lth_step *step = &list->steps[i];
		const struct lth_node *node = &builder->graph->nodes[step->node];
		enum lth_code code = LTH_OK;
		if (i + AHEAD < list->count)
			expect(builder, step + AHEAD, true);
		if (i + 2 * AHEAD < list->count)
			expect(builder, step + 2 * AHEAD, false);
		switch (step->kind) {
		case LTH_STEP_KERNEL:
			code = build_kernel(builder, step);
			break;
		case LTH_STEP_VIEW:
			break;
		case LTH_STEP_BUILTIN:
			code = lth_build_builtin(builder, step);
			break;
		case LTH_STEP_CONTROL:
			code = lth_build_control(builder, node);
			break;
		}
		if (code != LTH_OK)
			return code;
		for (uint32_t k = 0; k < step->num_outputs; k++)
			lth_build_binds(builder, step->outputs[k]);
		if (builder->new_bounds) {
			builder->new_bounds = false;
			lth_build_guards(builder, region);
		}
	}
	return LTH_OK;
}

/* Is the value one dense row-major run from its base's start, of the base's own size? Then the base's storage can be the
 * caller's output buffer. */
static bool is_whole(struct lth_builder *builder, lth_value_id value)
{
	struct lth_graph *graph = builder->graph;
	const struct lth_access *access = &builder->input->accesses[value];
	const struct lth_value *v = &graph->values[value], *base = &graph->values[access->base];
	int64_t offset;
	if (base->def != LTH_DEF_NODE || !lth_dim_is_const(graph->dims, access->offset, &offset) || offset != 0)
		return false;
	lth_dim count = lth_dim_product(graph->dims, v->type.dims, v->type.rank);
	if (count == LTH_DIM_NONE || count != lth_dim_product(graph->dims, base->type.dims, base->type.rank))
		return false;
	lth_dim step = lth_dim_const(graph->dims, 1);
	for (uint32_t axis = v->type.rank; axis-- > 0;) {
		int64_t extent;
		bool one = lth_dim_is_const(graph->dims, v->type.dims[axis], &extent) && extent == 1;
		if (!one && access->strides[axis] != step)
			return false;
		step = lth_dim_mul(graph->dims, step, v->type.dims[axis]);
	}
	return true;
}

static bool depends_on_data(const struct lth_graph *graph, const struct lth_type *type)
{
	for (uint32_t axis = 0; axis < type->rank; axis++)
		if (lth_dim_depends_on_data(graph->dims, type->dims[axis]))
			return true;
	return false;
}

/* Which bases are the caller's output buffers: those defined in the main region that an output shows whole. */
static void choose_outputs(struct lth_builder *builder)
{
	struct lth_graph *graph = builder->graph;
	const struct lth_region *main = &graph->regions[0];
	for (uint32_t i = 0; i < main->num_outputs; i++) {
		lth_value_id base = builder->input->accesses[main->outputs[i]].base;
		const struct lth_value *value = &graph->values[base];
		if (value->def != LTH_DEF_NODE || graph->nodes[value->def_id].region != 0)
			continue;
		if (value->type.kind != LTH_TYPE_TENSOR)
			continue; /* the runtime hands it out */
		if (depends_on_data(graph, &value->type))
			continue; /* its size is not known before the run */
		if (is_whole(builder, main->outputs[i]) && builder->output_of[base] == LTH_NONE)
			builder->output_of[base] = i;
	}
}

/* A port whose elements have no type (a sequence that nothing is put into) cannot be described. */
static enum lth_code check_ports(const struct lth_graph *graph, const lth_value_id *list, uint32_t count,
				 struct lth_diag *diag)
{
	for (uint32_t i = 0; i < count; i++) {
		const struct lth_type *type = &graph->values[list[i]].type;
		uint32_t depth = 0;
		for (; type->kind != LTH_TYPE_TENSOR; type = type->element)
			depth++;
		if (depth > LTH_MAX_VALUE_DEPTH || type->dtype == LTH_NUM_DTYPES)
			return lth_diag_fail(diag, LTH_UNSUPPORTED, graph->values[list[i]].name, NULL, NULL, "%s",
					     depth > LTH_MAX_VALUE_DEPTH ? "a type nested more than 8 deep"
									 : "elements whose type nothing tells");
	}
	return LTH_OK;
}

#define SAME_KIND(graph, program) _Static_assert((int)graph == (int)program, "kinds of types are one list")
SAME_KIND(LTH_TYPE_TENSOR, LTH_VALUE_TENSOR);
SAME_KIND(LTH_TYPE_SEQUENCE, LTH_VALUE_SEQUENCE);
SAME_KIND(LTH_TYPE_OPTIONAL, LTH_VALUE_OPTIONAL);
SAME_KIND(LTH_TYPE_MAP, LTH_VALUE_MAP);

/* The type of a port that is no tensor as the program has it: sizes that are no numbers may be any. */
static const char *port_type(struct lth_builder *builder, lth_value_id id)
{
	const struct lth_graph *graph = builder->graph;
	const struct lth_type *type = &graph->values[id].type;
	struct lth_value_type out = {.depth = 0};
	struct lth_buf text = {0};
	if (type->kind == LTH_TYPE_TENSOR)
		return NULL;
	for (; type->kind != LTH_TYPE_TENSOR; type = type->element) {
		out.kinds[out.depth] = (enum lth_value_kind)type->kind;
		out.keys[out.depth++] = type->key;
	}
	out.dtype = type->dtype;
	out.rank = type->rank <= LTH_MAX_RANK ? (int32_t)type->rank : LTH_ANY_RANK;
	for (int32_t axis = 0; axis < out.rank; axis++) {
		lth_dim dim = type->dims[axis];
		if (dim == LTH_DIM_NONE || !lth_dim_is_const(graph->dims, dim, &out.dims[axis]))
			out.dims[axis] = LTH_ANY_SIZE;
	}
	lth_value_type_print(&out, &text);
	const char *copy = lth_arena_strdup(builder->program->arena, lth_buf_text(&text));
	lth_buf_free(&text);
	return copy;
}

/* Output ports; what lives elsewhere than in the caller's buffers the runtime copies out at the end. */
static void build_outputs(struct lth_builder *builder)
{
	const struct lth_region *main = &builder->graph->regions[0];
	for (uint32_t i = 0; i < main->num_outputs; i++) {
		uint32_t tensor = lth_build_tensor(builder, main->outputs[i]);
		lth_program_output(builder->program, builder->graph->values[main->outputs[i]].name, tensor,
				   port_type(builder, main->outputs[i]));
	}
}

static bool tells_shape(const struct lth_tensor *tensor)
{
	bool told = tensor->offset != LTH_NONE;
	for (uint32_t axis = 0; axis < tensor->rank; axis++)
		told &= tensor->dims[axis] != LTH_NONE && tensor->strides[axis] != LTH_NONE;
	return told;
}

static bool tells_numbers(const struct lth_instr *instr)
{
	if (instr->op == LTH_INSTR_LOOP || instr->op == LTH_INSTR_SWAP)
		return true; /* may leave them out */
	for (uint32_t i = 0; i < instr->num_ints; i++)
		if (instr->ints[i] == LTH_NONE)
			return false;
	return instr->op != LTH_INSTR_CALL ||
	       (instr->range != LTH_NONE && (instr->scratch == LTH_NONE || instr->scratch_bytes != LTH_NONE));
}

/* Formulas have a largest size and numbers of 64 bits: what needs more has none. */
static enum lth_code check_sizes(const struct lth_program *program, struct lth_diag *diag)
{
	const char *place = NULL;
	for (uint32_t s = 0; s < program->num_storages && !place; s++)
		if (program->storages[s].size == LTH_NONE)
			place = program->storages[s].name;
	for (uint32_t t = 0; t < program->num_tensors && !place; t++)
		if (!tells_shape(&program->tensors[t]))
			place = program->tensors[t].name;
	for (uint32_t i = 0; i < program->num_instrs && !place; i++)
		if (!tells_numbers(&program->instrs[i]))
			place = program->instrs[i].node ? program->instrs[i].node : "";
	if (!place)
		return LTH_OK;
	return lth_diag_fail(diag, LTH_UNSUPPORTED, place, "a size that a formula tells, within 64 bits",
			     "give the operands that decide the shape as constants", "a shape whose formula grows too large");
}

/* Room for what the steps will need at the least, so that the program's arrays are not moved as they grow. Asks for the
 * kernels' lists on the way: lowering has long left them to memory. */
static bool make_room(struct lth_builder *builder)
{
	const struct lth_manifest *input = builder->input;
	struct lth_arena *arena = builder->program->arena;
	uint32_t steps = 0, operands = 0, most_operands = 0, most_ints = 0;
	for (lth_region_id region = 0; region < builder->graph->num_regions; region++) {
		const struct lth_region_steps *list = &input->regions[region];
		steps += list->count;
		for (uint32_t i = 0; i < list->count; i++) {
			const struct lth_kernel_spec *spec = list->steps[i].spec;
			if (list->steps[i].kind != LTH_STEP_KERNEL)
				continue;
			__builtin_prefetch(spec->operands);
			__builtin_prefetch(spec->ints);
			operands += spec->num_operands;
			most_operands = spec->num_operands > most_operands ? spec->num_operands : most_operands;
			most_ints = spec->num_ints > most_ints ? spec->num_ints : most_ints;
		}
	}
	builder->kernel_of = lth_arena_array(arena, input->num_kernels + 1, sizeof(uint32_t));
	builder->operands = lth_arena_array(arena, most_operands + 1, sizeof(uint32_t));
	builder->ints = lth_arena_array(arena, most_ints + 1, sizeof(uint32_t));
	if (!builder->kernel_of || !builder->operands || !builder->ints)
		return false;
	memset(builder->kernel_of, 0xff, (input->num_kernels + 1) * sizeof(uint32_t));
	return lth_program_reserve(builder->program, operands, 3 * steps + 1);
}

enum lth_code lth_manifest_alloc(const struct lth_manifest *input, struct lth_arena *arena,
				 struct lth_program **out_program, struct lth_constants *out_constants,
				 struct lth_diag *diag)
{
	struct lth_graph *graph = input->graph;
	struct lth_constants constants = {0};
	struct lth_builder builder = {.input = input, .graph = graph, .constants = &constants, .diag = diag};
	size_t bytes = graph->num_values * sizeof(uint32_t);
	builder.program = lth_program_create(arena);
	builder.storage_of = lth_arena_alloc(arena, bytes);
	builder.tensor_of = lth_arena_alloc(arena, bytes);
	builder.output_of = lth_arena_alloc(arena, bytes);
	if (!builder.program || !builder.storage_of || !builder.tensor_of || !builder.output_of || !make_room(&builder))
		goto exhausted;
	memset(builder.storage_of, 0xff, bytes);
	memset(builder.tensor_of, 0xff, bytes);
	memset(builder.output_of, 0xff, bytes);
	builder.program->name = graph->name;
	const struct lth_region *main = &graph->regions[0];
	enum lth_code code = check_ports(graph, main->inputs, main->num_inputs, diag);
	if (code == LTH_OK)
		code = check_ports(graph, main->outputs, main->num_outputs, diag);
	if (code == LTH_OK)
		code = lth_build_symbols(&builder);
	if (code != LTH_OK)
		return code;
	builder.bound = lth_arena_array(arena, builder.program->num_symbols + 1, sizeof(bool));
	builder.guarded = lth_arena_array(arena, graph->num_guards + 1, sizeof(bool));
	if (!builder.bound || !builder.guarded)
		goto exhausted;
	choose_outputs(&builder);
	for (uint32_t i = 0; i < main->num_inputs; i++) {
		uint32_t tensor = lth_build_tensor(&builder, main->inputs[i]);
		lth_program_input(builder.program, graph->values[main->inputs[i]].name, tensor,
				  port_type(&builder, main->inputs[i]));
	}
	for (uint32_t i = 0; i < main->num_inputs; i++)
		lth_build_binds(&builder, main->inputs[i]);
	for (uint32_t i = 0; i < graph->num_bindings; i++)
		if (graph->values[graph->bindings[i].value].def == LTH_DEF_CONSTANT &&
		    !builder.bound[builder.symbol_map[graph->bindings[i].symbol]])
			lth_build_binds(&builder, graph->bindings[i].value);
	code = lth_build_region(&builder, 0);
	if (code != LTH_OK)
		return code;
	build_outputs(&builder);
	struct lth_instr end = {.op = LTH_INSTR_RETURN};
	lth_program_instr(builder.program, &end);
	if (!lth_arena_ok(arena))
		goto exhausted;
	code = check_sizes(builder.program, diag);
	if (code == LTH_OK)
		code = lth_program_link_blocks(builder.program, diag);
	if (code != LTH_OK)
		return code;
	builder.program->constants_bytes = (uint64_t)constants.bytes;
	*out_program = builder.program;
	*out_constants = constants;
	return LTH_OK;
exhausted:
	return lth_diag_fail(diag, LTH_OUT_OF_MEMORY, "", NULL, NULL, "the compile's memory is exhausted");
}
