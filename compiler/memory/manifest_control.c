/* ManifestAlloc: control flow. The results of an If are storages that begin to live before it; arms write or copy into
 * them. Loops are in manifest_loop.c. Block targets are filled in at the end (lth_program_link_blocks). */
#include "compiler/memory/manifest_control.h"

#include "compiler/ops/op.h"

#include <string.h>

void lth_build_plain(struct lth_builder *builder, enum lth_instr_op op, const char *node)
{
	struct lth_instr instr = {.op = op, .node = node};
	lth_program_instr(builder->program, &instr);
}

enum lth_code lth_build_unsupported(struct lth_builder *builder, const struct lth_node *node, const char *what)
{
	return lth_diag_fail(builder->diag, LTH_UNSUPPORTED, node->name, NULL, NULL, "%s: %s", node->op->name, what);
}

/* The graph's data symbol NODE.WHAT as a dimension and as the program's symbol; false when there is none. */
bool lth_build_find_symbol(struct lth_builder *builder, const struct lth_node *node, const char *what, lth_dim *out_dim,
			uint32_t *out_symbol)
{
	struct lth_dims *dims = builder->graph->dims;
	const char *name = lth_arena_printf(builder->program->arena, "%s.%s", node->name, what);
	lth_dim dim = name ? lth_dim_find_symbol(dims, name) : LTH_DIM_NONE;
	for (uint32_t i = 0; dim != LTH_DIM_NONE && i < lth_dims_num_symbols(dims); i++)
		if (lth_dims_symbol_dim(dims, i) == dim) {
			*out_dim = dim;
			*out_symbol = builder->symbol_map[i];
			return *out_symbol != LTH_NONE;
		}
	return false;
}

void lth_build_set(struct lth_builder *builder, uint32_t symbol, uint32_t value, const char *node)
{
	struct lth_instr instr = {
		.op = LTH_INSTR_SET, .symbol = symbol, .ints = &value, .num_ints = 1, .node = node};
	lth_program_instr(builder->program, &instr);
	lth_build_bound(builder, symbol);
}

void lth_build_copy(struct lth_builder *builder, uint32_t to, uint32_t from, const char *node)
{
	uint32_t tensors[2] = {to, from};
	struct lth_instr instr = {
		.op = LTH_INSTR_COPY, .tensors = tensors, .num_tensors = 2, .num_outputs = 1, .node = node};
	lth_program_instr(builder->program, &instr);
}

void lth_build_grow(struct lth_builder *builder, uint32_t tensor, uint32_t bytes, const char *node)
{
	struct lth_instr instr = {.op = LTH_INSTR_GROW,
				  .tensors = &tensor,
				  .num_tensors = 1,
				  .num_outputs = 1,
				  .ints = &bytes,
				  .num_ints = 1,
				  .node = node};
	lth_program_instr(builder->program, &instr);
}

/* A dense tensor with the shape of `like` on a storage. */
uint32_t lth_build_dense_on(struct lth_builder *builder, lth_value_id like, uint32_t storage)
{
	const struct lth_value *v = &builder->graph->values[like];
	struct lth_tensor tensor = {.dtype = v->type.dtype,
				    .rank = v->type.rank,
				    .name = v->name,
				    .storage = storage,
				    .offset = lth_program_const(builder->program, 0)};
	const lth_dim *strides =
		lth_dense_strides(builder->graph, builder->program->arena, v->type.rank, v->type.dims, NULL);
	for (uint32_t axis = 0; strides && axis < tensor.rank; axis++) {
		tensor.dims[axis] = lth_build_dim(builder, v->type.dims[axis]);
		tensor.strides[axis] = lth_build_dim(builder, strides[axis]);
	}
	return lth_program_tensor(builder->program, &tensor);
}

bool lth_same_dims(const struct lth_graph *graph, lth_value_id a, lth_value_id b)
{
	const struct lth_type *x = &graph->values[a].type, *y = &graph->values[b].type;
	return x->rank == y->rank && x->dtype == y->dtype &&
	       (x->rank == 0 || memcmp(x->dims, y->dims, x->rank * sizeof(x->dims[0])) == 0);
}

/* Lets the producer of `inner`, in the region, write straight into the storage of `outer`, where it has one of its own. */
static bool write_through(struct lth_builder *builder, lth_region_id region, lth_value_id inner, uint32_t storage,
			  lth_value_id outer)
{
	const struct lth_graph *graph = builder->graph;
	const struct lth_value *v = &graph->values[inner];
	if (v->def != LTH_DEF_NODE || graph->nodes[v->def_id].region != region || v->layout ||
	    builder->input->accesses[inner].base != inner || builder->storage_of[inner] != LTH_NONE ||
	    !lth_same_dims(graph, inner, outer))
		return false;
	builder->storage_of[inner] = storage;
	return true;
}

/* ---- If ---- */

/* Sets the symbols of the axes on which the arms disagree. */
static void set_axes(struct lth_builder *builder, const struct lth_node *node, uint32_t output, lth_value_id from)
{
	const struct lth_graph *graph = builder->graph;
	lth_value_id out = node->outputs[output];
	for (uint32_t axis = 0; axis < graph->values[out].type.rank; axis++) {
		lth_dim dim;
		uint32_t symbol;
		const char *what = lth_arena_printf(builder->program->arena, "out%u.%u", output, axis);
		if (what && lth_build_find_symbol(builder, node, what, &dim, &symbol) &&
		    dim == graph->values[out].type.dims[axis])
			lth_build_set(builder, symbol, lth_build_dim(builder, graph->values[from].type.dims[axis]),
				      node->name);
	}
}

static enum lth_code build_arm(struct lth_builder *builder, const struct lth_node *node, lth_region_id arm)
{
	struct lth_graph *graph = builder->graph;
	const struct lth_region *region = &graph->regions[arm];
	for (uint32_t k = 0; k < node->num_outputs; k++) {
		uint32_t storage = node->outputs[k] == LTH_NONE ? LTH_NONE : builder->storage_of[node->outputs[k]];
		if (storage != LTH_NONE && builder->program->storages[storage].kind != LTH_STORAGE_POOL)
			write_through(builder, arm, region->outputs[k], storage, node->outputs[k]);
	}
	enum lth_code code = lth_build_region(builder, arm);
	for (uint32_t k = 0; k < node->num_outputs && code == LTH_OK; k++) {
		lth_value_id out = node->outputs[k], from = region->outputs[k];
		uint32_t storage = out == LTH_NONE ? LTH_NONE : builder->storage_of[out];
		if (storage == LTH_NONE)
			continue;
		if (builder->storage_of[from] != storage || builder->input->accesses[from].base != from) {
			uint32_t to = lth_build_dense_on(builder, from, storage);
			if (builder->program->storages[storage].kind == LTH_STORAGE_POOL)
				lth_build_grow(builder, to, lth_build_bytes(builder, from), node->name);
			lth_build_copy(builder, to, lth_build_tensor(builder, from), node->name);
		}
		set_axes(builder, node, k, from);
	}
	return code;
}

/* A result whose size neither the box nor what ran before bounds: each arm makes the room that it needs. */
static void begin_result(struct lth_builder *builder, lth_value_id out)
{
	struct lth_graph *graph = builder->graph;
	const struct lth_type *type = &graph->values[out].type;
	lth_dim elements = lth_dim_product(graph->dims, type->dims, type->rank);
	if (builder->storage_of[out] == LTH_NONE && lth_dim_upper_bound(graph->dims, elements) == LTH_DIM_NONE &&
	    !lth_build_known(builder, elements, lth_build_dim(builder, elements)))
		lth_build_pool(builder, out, lth_dim_const(graph->dims, 0));
	lth_build_alloc(builder, lth_build_storage(builder, out));
}

static enum lth_code build_if(struct lth_builder *builder, const struct lth_node *node)
{
	uint32_t condition = lth_build_tensor(builder, node->inputs[0]);
	for (uint32_t k = 0; k < node->num_outputs; k++)
		if (node->outputs[k] != LTH_NONE)
			begin_result(builder, node->outputs[k]);
	struct lth_instr instr = {
		.op = LTH_INSTR_IF, .tensors = &condition, .num_tensors = 1, .node = node->name};
	lth_program_instr(builder->program, &instr);
	enum lth_code code = build_arm(builder, node, lth_node_attr(node, "then_branch")->id);
	if (code != LTH_OK)
		return code;
	lth_build_plain(builder, LTH_INSTR_ELSE, node->name);
	code = build_arm(builder, node, lth_node_attr(node, "else_branch")->id);
	lth_build_plain(builder, LTH_INSTR_ENDIF, node->name);
	return code;
}

enum lth_code lth_build_control(struct lth_builder *builder, const struct lth_node *node)
{
	switch (lth_op_id(node->op)) {
	case LTH_OP_ID_If:
		return build_if(builder, node);
	case LTH_OP_ID_Loop:
		return lth_build_loop(builder, node);
	case LTH_OP_ID_Scan:
		return lth_build_scan(builder, node);
	default:
		return lth_build_unsupported(builder, node, "this control flow is not implemented");
	}
}

/* ---- windows ---- */

int64_t lth_control_entry(const struct lth_node *node, const char *name, uint32_t index)
{
	const int64_t *list;
	uint32_t count;
	return lth_node_ints(node, name, &list, &count) && index < count ? list[index] : 0;
}

static void scan_windows(struct lth_graph *graph, struct lth_access *accesses, const struct lth_node *node)
{
	struct lth_dims *dims = graph->dims;
	uint32_t scanned = (uint32_t)lth_node_int(node, "num_scan_inputs", 1), states = node->num_inputs - scanned;
	const char *name = lth_arena_printf(graph->arena, "%s.turn", node->name);
	lth_dim turn = name ? lth_dim_find_symbol(dims, name) : LTH_DIM_NONE;
	for (uint32_t i = 0; i < scanned && turn != LTH_DIM_NONE; i++) {
		lth_value_id from = node->inputs[states + i];
		lth_value_id to = graph->regions[lth_node_attr(node, "body")->id].inputs[states + i];
		const struct lth_type *type = &graph->values[from].type;
		int64_t axis = lth_control_entry(node, "scan_input_axes", i);
		axis = axis < 0 ? axis + type->rank : axis;
		lth_dim *strides = lth_arena_array(graph->arena, type->rank + 1, sizeof(*strides)), place = turn;
		if (lth_control_entry(node, "scan_input_directions", i))
			place = lth_dim_sub(dims, lth_dim_sub(dims, type->dims[axis], lth_dim_const(dims, 1)), turn);
		if (!strides)
			return;
		for (uint32_t k = 0, out = 0; k < type->rank; k++)
			if (k != (uint32_t)axis)
				strides[out++] = accesses[from].strides[k];
		lth_dim shift = lth_dim_mul(dims, place, accesses[from].strides[axis]);
		accesses[to] = (struct lth_access){.base = accesses[from].base,
						   .strides = strides,
						   .offset = lth_dim_add(dims, accesses[from].offset, shift)};
	}
}

void lth_control_windows(struct lth_graph *graph, struct lth_access *accesses, const struct lth_node *node)
{
	if (lth_op_id(node->op) == LTH_OP_ID_Scan)
		scan_windows(graph, accesses, node);
}

/* A body's windows are windows on its node's: the node comes first, whatever the order of ids. */
void lth_control_all_windows(struct lth_graph *graph, struct lth_access *accesses, lth_region_id region)
{
	for (uint32_t i = 0; i < graph->regions[region].num_nodes; i++) {
		const struct lth_node *node = &graph->nodes[graph->regions[region].nodes[i]];
		if (node->deleted || node->op->kind != LTH_OP_CONTROL)
			continue;
		lth_control_windows(graph, accesses, node);
		for (uint32_t k = 0; k < node->num_attrs; k++)
			if (node->attrs[k].kind == LTH_ATTR_REGION)
				lth_control_all_windows(graph, accesses, node->attrs[k].id);
	}
}
