/* ManifestAlloc: C kernels, and symbols that data binds (builtin.h tells the order of a C kernel's operands). */
#include "compiler/memory/manifest.h"

#include "compiler/ops/op.h"
#include "runtime/kernels/builtin.h"

#include <string.h>

/* Whether a symbol is an element of a value: that value binds it (lth_build_binds). */
static bool is_element(const struct lth_graph *graph, uint32_t number)
{
	for (uint32_t i = 0; i < graph->num_bindings; i++)
		if (graph->bindings[i].symbol == number)
			return true;
	return false;
}

/* Symbols "NODE.WHAT" that the node's own results bind, in order of creation. A value may be named so, too. */
static bool binds(const struct lth_graph *graph, uint32_t number, const struct lth_node *node)
{
	const struct lth_dim_symbol *symbol = lth_dims_symbol(graph->dims, number);
	size_t length = strlen(node->name);
	return symbol->from_data && symbol->node && strcmp(symbol->node, node->name) == 0 &&
	       strncmp(symbol->name, node->name, length) == 0 && symbol->name[length] == '.' &&
	       !is_element(graph, number);
}

static void emit_bind(struct lth_builder *builder, uint32_t symbol, uint32_t tensor, int64_t place, const char *node)
{
	uint32_t index = lth_program_const(builder->program, place);
	struct lth_instr instr = {.op = LTH_INSTR_BIND,
				  .symbol = symbol,
				  .tensors = &tensor,
				  .num_tensors = 1,
				  .ints = &index,
				  .num_ints = 1,
				  .node = node};
	lth_program_instr(builder->program, &instr);
	lth_build_bound(builder, symbol);
}

void lth_build_binds(struct lth_builder *builder, lth_value_id value)
{
	const struct lth_graph *graph = builder->graph;
	for (uint32_t i = 0; i < graph->num_bindings; i++) {
		const struct lth_binding *binding = &graph->bindings[i];
		if (binding->value == value)
			emit_bind(builder, builder->symbol_map[binding->symbol], lth_build_tensor(builder, value),
				  binding->element, graph->values[value].name);
	}
}

/* "name=value;..." of all attributes that are numbers, words or lists of them. */
static const char *attributes_text(struct lth_builder *builder, const struct lth_node *node)
{
	struct lth_buf text = {0};
	for (uint32_t i = 0; i < node->num_attrs; i++) {
		const struct lth_attr *attr = &node->attrs[i];
		lth_buf_printf(&text, "%s%s=", text.size ? ";" : "", attr->name);
		switch (attr->kind) {
		case LTH_ATTR_INT:
			lth_buf_printf(&text, "%lld", (long long)attr->i);
			break;
		case LTH_ATTR_FLOAT:
			lth_buf_double(&text, attr->f);
			break;
		case LTH_ATTR_STRING:
			lth_buf_append(&text, attr->s.data, attr->s.size);
			break;
		case LTH_ATTR_INTS:
			for (uint32_t k = 0; k < attr->count; k++)
				lth_buf_printf(&text, "%s%lld", k ? "," : "", (long long)attr->ints[k]);
			break;
		case LTH_ATTR_FLOATS:
			for (uint32_t k = 0; k < attr->count; k++) {
				lth_buf_puts(&text, k ? "," : "");
				lth_buf_double(&text, attr->floats[k]);
			}
			break;
		default:
			break;
		}
	}
	const char *copy = lth_arena_strdup(builder->program->arena, lth_buf_text(&text));
	lth_buf_free(&text);
	return copy;
}

/* What is known of a dimension before the kernel runs: itself, or a bound where the kernel decides it: that of its own
 * extent, which may be another extent of the run, or one over the inputs' symbols. LTH_DIM_NONE without any. */
static lth_dim known_bound(struct lth_builder *builder, lth_dim dim)
{
	struct lth_dims *dims = builder->graph->dims;
	if (lth_build_known(builder, dim, lth_build_dim(builder, dim)))
		return dim;
	lth_dim bound = lth_dim_upper_bound(dims, dim);
	for (uint32_t i = 0; bound == LTH_DIM_NONE && i < lth_dims_num_symbols(dims); i++)
		if (lth_dims_symbol_dim(dims, i) == dim)
			bound = lth_dims_symbol(dims, i)->bound;
	bool known = bound != LTH_DIM_NONE && lth_build_known(builder, bound, lth_build_dim(builder, bound));
	return known ? bound : LTH_DIM_NONE;
}

/* An output as the kernel sees it: at the bound of the extents that it decides. LTH_NONE when there is no bound. */
static uint32_t bounded_tensor(struct lth_builder *builder, lth_value_id value)
{
	struct lth_graph *graph = builder->graph;
	const struct lth_type type = graph->values[value].type;
	lth_dim bounds[LTH_MAX_RANK];
	bool exact = true;
	for (uint32_t axis = 0; axis < type.rank; axis++) {
		bounds[axis] = known_bound(builder, type.dims[axis]);
		exact &= bounds[axis] == type.dims[axis];
		if (bounds[axis] == LTH_DIM_NONE)
			return LTH_NONE;
	}
	if (exact)
		return lth_build_tensor(builder, value);
	lth_dim elements = lth_dim_product(graph->dims, bounds, type.rank);
	if (builder->storage_of[value] == LTH_NONE && lth_dim_upper_bound(graph->dims, elements) == LTH_DIM_NONE)
		lth_build_pool(builder, value, elements);
	uint32_t storage = lth_build_storage(builder, value);
	struct lth_tensor tensor = {.dtype = type.dtype,
				    .rank = type.rank,
				    .name = graph->values[value].name,
				    .storage = storage,
				    .offset = lth_program_const(builder->program, 0)};
	const lth_dim *strides = lth_dense_strides(graph, builder->program->arena, type.rank, bounds, NULL);
	for (uint32_t axis = 0; strides && axis < type.rank; axis++) {
		tensor.dims[axis] = lth_build_dim(builder, bounds[axis]);
		tensor.strides[axis] = lth_build_dim(builder, strides[axis]);
	}
	return lth_program_tensor(builder->program, &tensor);
}

/* A fresh i64 scalar for a true extent. */
static uint32_t extent_tensor(struct lth_builder *builder, const char *name)
{
	struct lth_tensor tensor = {.dtype = LTH_DTYPE_I64, .name = name, .offset = lth_program_const(builder->program, 0)};
	tensor.storage = lth_build_scratch(builder, lth_program_const(builder->program, 8), name);
	return lth_program_tensor(builder->program, &tensor);
}

enum lth_code lth_build_builtin(struct lth_builder *builder, const struct lth_step *step)
{
	struct lth_graph *graph = builder->graph;
	struct lth_program *program = builder->program;
	const struct lth_node *node = &graph->nodes[step->node];
	enum lth_builtin builtin = node->op->impl->builtin ? lth_builtin_by_text(node->op->impl->builtin) : LTH_NUM_BUILTINS;
	uint32_t symbols = lth_dims_num_symbols(graph->dims), num_extents = 0, count = 0;
	if (builtin == LTH_NUM_BUILTINS)
		return lth_diag_fail(builder->diag, LTH_UNSUPPORTED, node->name, NULL, NULL,
				     "%s: its C kernel is not implemented", node->op->name);
	for (uint32_t i = 0; i < symbols; i++)
		num_extents += binds(graph, i, node);
	uint32_t *tensors = lth_arena_array(program->arena, node->num_outputs + num_extents + node->num_inputs + 1,
					    sizeof(*tensors));
	if (!tensors)
		return LTH_OK;
	for (uint32_t k = 0; k < node->num_outputs; k++) {
		tensors[count] = node->outputs[k] == LTH_NONE ? LTH_NONE : bounded_tensor(builder, node->outputs[k]);
		if (node->outputs[k] != LTH_NONE && tensors[count] == LTH_NONE)
			return lth_diag_fail(builder->diag, LTH_UNSUPPORTED, node->name, NULL,
					     "bound the dims that its inputs have", "%s: a result whose size has no bound",
					     node->op->name);
		count++;
	}
	uint32_t first_extent = count;
	for (uint32_t i = 0; i < symbols; i++)
		if (binds(graph, i, node))
			tensors[count++] = extent_tensor(builder, lth_dims_symbol(graph->dims, i)->name);
	uint32_t outputs = count;
	for (uint32_t k = 0; k < outputs; k++)
		if (tensors[k] != LTH_NONE)
			lth_build_alloc(builder, program->tensors[tensors[k]].storage);
	for (uint32_t k = 0; k < node->num_inputs; k++)
		tensors[count++] = node->inputs[k] == LTH_NONE ? LTH_NONE : lth_build_tensor(builder, node->inputs[k]);
	struct lth_instr instr = {.op = LTH_INSTR_BUILTIN,
				  .callee = builtin,
				  .tensors = tensors,
				  .num_tensors = count,
				  .num_outputs = outputs,
				  .text = attributes_text(builder, node),
				  .node = node->name};
	lth_program_instr(program, &instr);
	for (uint32_t i = 0; i < symbols; i++)
		if (binds(graph, i, node))
			emit_bind(builder, builder->symbol_map[i], tensors[first_extent++], 0, node->name);
	return LTH_OK;
}
