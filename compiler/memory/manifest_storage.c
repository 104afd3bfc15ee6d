/* ManifestAlloc: symbols, storages and tensors. */
#include "compiler/memory/manifest.h"

#include "runtime/base/hash.h"

#include <string.h>

uint32_t lth_build_dim(struct lth_builder *builder, lth_dim dim)
{
	return lth_dim_to_program(&builder->emitter, dim);
}

/* Which dimension of which input a symbol is. */
static bool find_source(const struct lth_graph *graph, lth_dim dim, struct lth_symbol *out)
{
	const struct lth_region *main = &graph->regions[0];
	for (uint32_t i = 0; i < main->num_inputs; i++) {
		const struct lth_type *type = &graph->values[main->inputs[i]].type;
		if (type->kind != LTH_TYPE_TENSOR || type->rank > LTH_MAX_RANK)
			continue;
		for (uint32_t axis = 0; axis < type->rank; axis++)
			if (type->dims[axis] == dim) {
				out->source = LTH_SOURCE_INPUT;
				out->input = i;
				out->axis = axis;
				return true;
			}
	}
	return false;
}

enum lth_code lth_build_symbols(struct lth_builder *builder)
{
	struct lth_dims *dims = builder->graph->dims;
	uint32_t count = lth_dims_num_symbols(dims);
	builder->symbol_map = lth_arena_array(builder->program->arena, count + 1, sizeof(uint32_t));
	if (!builder->symbol_map)
		return LTH_OK;
	memset(builder->symbol_map, 0xff, (count + 1) * sizeof(uint32_t));
	builder->emitter = (struct lth_dim_emitter){
		.dims = dims, .program = builder->program, .symbol_map = builder->symbol_map};
	for (int data = 0; data < 2; data++)
		for (uint32_t i = 0; i < count; i++) {
			const struct lth_dim_symbol *from = lth_dims_symbol(dims, i);
			struct lth_symbol symbol = {.name = from->name,
						    .min = from->min,
						    .max = from->max,
						    .multiple = from->multiple,
						    .hint = from->hint,
						    .source = LTH_SOURCE_DATA,
						    .bound = LTH_NONE};
			if (from->from_data != (data == 1))
				continue;
			if (!data && !find_source(builder->graph, lth_dims_symbol_dim(dims, i), &symbol))
				continue; /* no input carries it: whoever uses it is told by lth_build_dim's result */
			lth_dim bound = data ? lth_dim_upper_bound(dims, from->bound) : LTH_DIM_NONE;
			if (bound != LTH_DIM_NONE) /* of counts of counts, too, over the inputs' symbols */
				symbol.bound = lth_build_dim(builder, bound);
			builder->symbol_map[i] = lth_program_symbol(builder->program, &symbol);
		}
	return LTH_OK;
}

static int64_t round_up(int64_t value, int64_t unit)
{
	return (value + unit - 1) / unit * unit;
}

/* Where the bytes stand in the executable's constants: one piece for what several values share. LTH_NONE: no memory. */
static uint32_t constant_piece(struct lth_builder *builder, const void *data, const struct lth_pack *pack,
			       int64_t bytes)
{
	struct lth_constants *constants = builder->constants;
	struct lth_arena *arena = builder->program->arena;
	uint64_t hash = lth_hash_u64((uint64_t)(uintptr_t)(pack ? (const void *)pack : data), (uint64_t)bytes);
	for (uint32_t at = 0, id; (id = lth_id_table_next(&builder->pieces, hash, &at)) != LTH_NONE;)
		if (constants->pieces[id].data == data && constants->pieces[id].pack == pack &&
		    constants->pieces[id].bytes == bytes)
			return id;
	struct lth_constant_piece *pieces = lth_arena_grow(arena, constants->pieces, &constants->capacity,
							   constants->count + 1, sizeof(*pieces));
	if (!pieces || !lth_id_table_put(&builder->pieces, arena, hash, constants->count))
		return LTH_NONE;
	constants->pieces = pieces;
	int64_t offset = round_up(constants->bytes, 64);
	pieces[constants->count] = (struct lth_constant_piece){data, pack, bytes, offset};
	constants->bytes = offset + bytes;
	return constants->count++;
}

uint32_t lth_build_constant(struct lth_builder *builder, const void *data, const struct lth_pack *pack, int64_t bytes,
			    const char *name)
{
	struct lth_program *program = builder->program;
	uint32_t piece = constant_piece(builder, data, pack, bytes);
	if (piece == LTH_NONE)
		return LTH_NONE;
	struct lth_storage storage = {.kind = LTH_STORAGE_CONSTANT,
				      .index = builder->constants->pieces[piece].offset,
				      .size = lth_program_const(program, bytes),
				      .alignment = 64,
				      .name = name};
	return lth_program_storage(program, &storage);
}

/* Bytes that so many elements take; `divide` says what becomes of a byte that packed elements fill in part. */
static lth_dim bytes_of(struct lth_dims *dims, enum lth_dtype dtype, lth_dim count,
			lth_dim (*divide)(struct lth_dims *, lth_dim, lth_dim))
{
	int64_t bits = (int64_t)lth_dtype_bits(dtype);
	if (bits % 8 == 0)
		return lth_dim_mul(dims, count, lth_dim_const(dims, bits / 8));
	return divide(dims, lth_dim_mul(dims, count, lth_dim_const(dims, bits)), lth_dim_const(dims, 8));
}

/* Elements of a base's dense shape: what one step along its outermost axis skips, times the extent of that. */
static lth_dim count_elements(const struct lth_builder *builder, lth_value_id base)
{
	struct lth_dims *dims = builder->graph->dims;
	const struct lth_value *value = &builder->graph->values[base];
	const struct lth_access *access = &builder->input->accesses[base];
	if (value->type.rank == 0 || access->base != base || !access->strides)
		return lth_dim_product(dims, value->type.dims, value->type.rank);
	uint32_t outermost = value->layout ? value->layout[0] : 0;
	return lth_dim_mul(dims, access->strides[outermost], value->type.dims[outermost]);
}

/* Bytes of a base's dense shape as an expression; `bounded`: with data symbols at their bound. LTH_NONE without one. */
static uint32_t value_bytes(struct lth_builder *builder, lth_value_id base, bool bounded)
{
	const struct lth_value *value = &builder->graph->values[base];
	struct lth_dims *dims = builder->graph->dims;
	lth_dim count = count_elements(builder, base);
	if (count != LTH_DIM_NONE && bounded)
		count = lth_dim_upper_bound(dims, count);
	if (count == LTH_DIM_NONE)
		return LTH_NONE;
	return lth_build_dim(builder, bytes_of(dims, value->type.dtype, count, lth_dim_ceildiv));
}

uint32_t lth_build_bytes(struct lth_builder *builder, lth_value_id value)
{
	return value_bytes(builder, value, false);
}

void lth_build_pool(struct lth_builder *builder, lth_value_id base, lth_dim elements)
{
	const struct lth_value *value = &builder->graph->values[base];
	struct lth_dims *dims = builder->graph->dims;
	struct lth_storage storage = {.kind = LTH_STORAGE_POOL,
				      .size = lth_build_dim(builder, bytes_of(dims, value->type.dtype, elements, lth_dim_ceildiv)),
				      .alignment = builder->input->alignment,
				      .name = value->name};
	builder->storage_of[base] = lth_program_storage(builder->program, &storage);
}

uint32_t lth_build_storage(struct lth_builder *builder, lth_value_id base)
{
	const struct lth_value *value = &builder->graph->values[base];
	struct lth_program *program = builder->program;
	if (builder->storage_of[base] != LTH_NONE)
		return builder->storage_of[base];
	uint32_t id;
	if (value->def == LTH_DEF_CONSTANT) {
		id = lth_build_constant(builder, value->constant.data, NULL, value->constant.bytes, value->name);
	} else {
		struct lth_storage storage = {.kind = LTH_STORAGE_ARENA,
					      .alignment = builder->input->alignment,
					      .name = value->name};
		storage.size = value_bytes(builder, base, true);
		if (value->def == LTH_DEF_INPUT) {
			storage.kind = LTH_STORAGE_INPUT;
			storage.index = value->def_id;
		} else if (builder->output_of[base] != LTH_NONE) {
			storage.kind = LTH_STORAGE_OUTPUT;
			storage.index = builder->output_of[base];
		}
		if (storage.size == LTH_NONE) {
			if (storage.kind == LTH_STORAGE_ARENA)
				storage.kind = LTH_STORAGE_POOL;
			storage.size = value_bytes(builder, base, false);
		}
		id = lth_program_storage(program, &storage);
	}
	builder->storage_of[base] = id;
	return id;
}

uint32_t lth_build_tensor(struct lth_builder *builder, lth_value_id value)
{
	if (builder->tensor_of[value] != LTH_NONE)
		return builder->tensor_of[value];
	const struct lth_access *access = &builder->input->accesses[value];
	const struct lth_value *v = &builder->graph->values[value];
	struct lth_dims *dims = builder->graph->dims;
	struct lth_tensor tensor = {.dtype = v->type.dtype, .rank = v->type.rank, .name = v->name};
	tensor.storage = lth_build_storage(builder, access->base);
	for (uint32_t axis = 0; axis < tensor.rank; axis++) {
		tensor.dims[axis] = lth_build_dim(builder, v->type.dims[axis]);
		tensor.strides[axis] = lth_build_dim(builder, access->strides[axis]);
	}
	tensor.offset = lth_build_dim(builder, bytes_of(dims, v->type.dtype, access->offset, lth_dim_floordiv));
	return builder->tensor_of[value] = lth_program_tensor(builder->program, &tensor);
}

uint32_t lth_build_scratch(struct lth_builder *builder, uint32_t size, const char *name)
{
	struct lth_storage storage = {.kind = LTH_STORAGE_ARENA,
				      .size = size,
				      .alignment = builder->input->alignment,
				      .name = name};
	return lth_program_storage(builder->program, &storage);
}

void lth_build_alloc(struct lth_builder *builder, uint32_t storage)
{
	struct lth_program *program = builder->program;
	enum lth_storage_kind kind = program->storages[storage].kind;
	if (kind != LTH_STORAGE_ARENA && kind != LTH_STORAGE_POOL)
		return;
	bool *alive = lth_arena_grow(program->arena, builder->alive, &builder->cap_alive, storage + 1, sizeof(*alive));
	if (!alive)
		return;
	builder->alive = alive;
	if (alive[storage])
		return;
	alive[storage] = true;
	struct lth_instr instr = {.op = LTH_INSTR_ALLOC, .storage = storage};
	lth_program_instr(program, &instr);
}
