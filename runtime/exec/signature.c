/* Shape signatures: checking inputs, binding symbols, evaluating what follows. See signature.h. */
#include "runtime/exec/signature.h"
#include "runtime/base/checked.h"
#include "runtime/base/hash.h"

#include <stdio.h>
#include <string.h>

enum { CACHE_BYTES = 4 << 20, MIN_ENTRIES = 4, MAX_ENTRIES = 256 };

static uint32_t choose_count(const struct lth_program *program, uint32_t wanted)
{
	size_t entry = ((size_t)program->num_exprs + program->num_symbols + program->num_storages) * sizeof(int64_t);
	size_t count = wanted ? wanted : CACHE_BYTES / (entry + 1);
	if (wanted)
		return wanted;
	return count < MIN_ENTRIES ? MIN_ENTRIES : count > MAX_ENTRIES ? MAX_ENTRIES : (uint32_t)count;
}

bool lth_signatures_init(struct lth_signatures *cache, const struct lathe_executable *x, uint32_t wanted,
			 struct lth_arena *arena)
{
	const struct lth_program *program = x->program;
	*cache = (struct lth_signatures){.x = x, .count = choose_count(program, wanted)};
	cache->entries = lth_arena_array(arena, cache->count, sizeof(*cache->entries));
	for (uint32_t i = 0; cache->entries && i < cache->count; i++) {
		struct lth_signature *entry = &cache->entries[i];
		entry->symbols = lth_arena_array(arena, program->num_symbols, sizeof(int64_t));
		entry->values = lth_arena_array(arena, program->num_exprs, sizeof(int64_t));
		entry->offsets = lth_arena_array(arena, program->num_storages, sizeof(int64_t));
	}
	cache->bound = lth_arena_array(arena, program->num_symbols, sizeof(int64_t));
	cache->trial = lth_arena_array(arena, program->num_storages, sizeof(int64_t));
	cache->known = lth_arena_array(arena, program->num_symbols, sizeof(bool));
	cache->defined = lth_arena_array(arena, program->num_exprs, sizeof(bool));
	for (uint32_t i = 0; lth_arena_ok(arena) && i < x->num_shape_symbols; i++)
		cache->known[x->shape_symbols[i]] = true;
	return lth_arena_ok(arena);
}

static void place_input(char place[300], const struct lathe_executable *x, uint32_t input, int axis)
{
	const char *name = x->description.inputs[input].name;
	int used = snprintf(place, 300, "input %u '%.200s'", input, name);
	if (axis >= 0)
		snprintf(place + used, 300 - (size_t)used, ", axis %d", axis);
}

static const char *dtype_text(int32_t onnx)
{
	enum lth_dtype dtype = onnx == LATHE_OBJECT ? LTH_DTYPE_OBJECT : lth_dtype_by_onnx(onnx);
	return dtype == LTH_NUM_DTYPES ? "an unknown type" : lth_dtype_text(dtype);
}

/* What the value holds is looked at when it is taken (values.c). */
static enum lth_code check_object(const struct lathe_tensor *input, const char *place, struct lth_diag *diag)
{
	bool fits = input->data && (uintptr_t)input->data % _Alignof(struct lathe_value) == 0 &&
		    input->bytes >= sizeof(struct lathe_value);
	return fits ? LTH_OK
		    : lth_diag_fail(diag, LTH_BAD_INPUT, place, "data that is a struct lathe_value", NULL, "%llu bytes",
				    (unsigned long long)input->bytes);
}

/* Type, rank, data, bytes for its dims. */
static enum lth_code check_input(const struct lathe_executable *x, uint32_t number, const struct lathe_tensor *input,
				 struct lth_diag *diag)
{
	const struct lathe_port *port = &x->description.inputs[number];
	char place[300], expected[64];
	int64_t count = 1, bytes = 0;
	place_input(place, x, number, -1);
	if (input->dtype != port->dtype)
		return lth_diag_fail(diag, LTH_BAD_INPUT, place, dtype_text(port->dtype), NULL, "%s",
				     dtype_text(input->dtype));
	if (input->rank != port->rank) {
		snprintf(expected, sizeof(expected), "rank %u", port->rank);
		return lth_diag_fail(diag, LTH_BAD_INPUT, place, expected, NULL, "rank %u", input->rank);
	}
	for (uint32_t axis = 0; axis < input->rank; axis++)
		if (input->dims[axis] < 0 || !lth_mul_i64(count, input->dims[axis], &count))
			return lth_diag_fail(diag, LTH_BAD_INPUT, place, "dims of 0 or more whose product is an int64",
					     NULL, "%lld at axis %u", (long long)input->dims[axis], axis);
	if (port->dtype == LATHE_OBJECT)
		return check_object(input, place, diag);
	enum lth_dtype dtype = lth_dtype_by_onnx(input->dtype);
	if (!lth_dtype_bytes(dtype, count, &bytes) || (uint64_t)bytes > input->bytes) {
		snprintf(expected, sizeof(expected), "%lld bytes for its dims", (long long)bytes);
		return lth_diag_fail(diag, LTH_BAD_INPUT, place, expected, NULL, "%llu bytes",
				     (unsigned long long)input->bytes);
	}
	unsigned unit = lth_dtype_bits(dtype) / 8;
	unit = unit > 8 ? 8 : unit < 1 ? 1 : unit;
	if (bytes && (!input->data || (uintptr_t)input->data % unit != 0))
		return lth_diag_fail(diag, LTH_BAD_INPUT, place, "data aligned to its element", NULL, "%s",
				     input->data ? "data that is not" : "no data");
	return LTH_OK;
}

/* What a wrong dimension should have been. */
static enum lth_code wrong_dim(const struct lathe_executable *x, const struct lth_input_dim *d, int64_t want,
			       int64_t got, struct lth_diag *diag)
{
	char place[300], expected[300];
	const char *text = x->description.inputs[d->input].dims[d->axis];
	place_input(place, x, d->input, (int)d->axis);
	if (x->program->exprs[d->expr].op == LTH_EXPR_CONST)
		snprintf(expected, sizeof(expected), "%lld", (long long)want);
	else
		snprintf(expected, sizeof(expected), "%lld, since it is %.200s", (long long)want, text);
	return lth_diag_fail(diag, LTH_BAD_INPUT, place, expected, NULL, "%lld", (long long)got);
}

/* The dims against their symbols and constants; with values, against every expression. */
static enum lth_code check_dims(const struct lth_signatures *cache, const struct lathe_tensor *inputs,
				const int64_t *values, struct lth_diag *diag)
{
	const struct lathe_executable *x = cache->x;
	for (uint32_t i = 0; i < x->num_input_dims; i++) {
		const struct lth_input_dim *d = &x->input_dims[i];
		const struct lth_expr *e = &x->program->exprs[d->expr];
		int64_t got = inputs[d->input].dims[d->axis], want;
		if (values)
			want = values[d->expr];
		else if (d->symbol != LTH_NONE)
			want = cache->bound[d->symbol];
		else if (e->op == LTH_EXPR_CONST)
			want = e->value;
		else
			continue;
		if (got != want)
			return wrong_dim(x, d, want, got, diag);
	}
	return LTH_OK;
}

static enum lth_code bind_symbols(const struct lth_signatures *cache, const struct lathe_tensor *inputs,
				  struct lth_diag *diag)
{
	const struct lathe_executable *x = cache->x;
	for (uint32_t i = 0; i < x->num_shape_symbols; i++) {
		uint32_t id = x->shape_symbols[i];
		const struct lth_symbol *s = &x->program->symbols[id];
		int64_t value = inputs[s->input].dims[s->axis];
		cache->bound[id] = value;
		if (value >= s->min && value <= s->max && value % s->multiple == 0)
			continue;
		char place[300];
		place_input(place, x, s->input, (int)s->axis);
		return lth_symbol_check(s, value, LTH_BAD_INPUT, place, diag);
	}
	return LTH_OK;
}

static enum lth_code check_sizes(const struct lth_program *program, const struct lathe_executable *x,
				 const int64_t *values, struct lth_diag *diag)
{
	for (uint32_t i = 0; i < program->num_storages; i++) {
		uint32_t size = program->storages[i].size;
		char place[32];
		if (!x->shape_only[size] || values[size] >= 0)
			continue;
		snprintf(place, sizeof(place), "storage %u", i);
		return lth_diag_fail(diag, LTH_RUNTIME_ERROR, place, "a size of 0 or more", NULL, "%lld bytes",
				     (long long)values[size]);
	}
	for (uint32_t i = 0; i < program->num_tensors; i++) {
		const struct lth_storage *s = &program->storages[program->tensors[i].storage];
		if (!x->tensor_shape_only[i] || s->kind == LTH_STORAGE_POOL)
			continue; /* those in the pool are checked at each use */
		enum lth_code code = lth_tensor_check(program, i, values, values[s->size], diag);
		if (code != LTH_OK)
			return code;
	}
	return LTH_OK;
}

/* Whether a port's tensor is dense and as large as its storage. */
static bool port_is_whole(const struct lathe_executable *x, uint32_t tensor, const int64_t *values, bool exact)
{
	const struct lth_tensor *t = &x->program->tensors[tensor];
	int64_t expected = 1, bytes;
	bool empty = false, dense = true;
	for (uint32_t axis = t->rank; axis-- > 0;) {
		int64_t dim = values[t->dims[axis]];
		empty = empty || dim == 0;
		dense = dense && (dim == 1 || values[t->strides[axis]] == expected);
		if (!lth_mul_i64(expected, dim, &expected))
			return false;
	}
	return (dense || empty) && lth_dtype_bytes(t->dtype, expected, &bytes) &&
	       (!exact || values[x->program->storages[t->storage].size] <= bytes);
}

static enum lth_code check_ports(const struct lathe_executable *x, const int64_t *values, struct lth_diag *diag)
{
	const struct lth_program *program = x->program;
	for (uint32_t i = 0; i < program->num_inputs; i++)
		if (!port_is_whole(x, program->inputs[i].tensor, values, true))
			return lth_diag_fail(diag, LTH_BAD_EXECUTABLE, program->inputs[i].name, "a dense input", NULL,
					     "strides or a size that do not fit its dims");
	for (uint32_t i = 0; i < program->num_outputs; i++) {
		uint32_t id = program->outputs[i].tensor;
		const struct lth_storage *s = &program->storages[program->tensors[id].storage];
		if (s->kind == LTH_STORAGE_OUTPUT && s->index == (int64_t)i && x->tensor_shape_only[id] &&
		    !port_is_whole(x, id, values, false))
			return lth_diag_fail(diag, LTH_BAD_EXECUTABLE, program->outputs[i].name, "a dense output", NULL,
					     "strides that do not fit its dims");
	}
	return LTH_OK;
}

static enum lth_code check_guards(const struct lathe_executable *x, const int64_t *values, struct lth_diag *diag)
{
	enum lth_code code = LTH_OK;
	for (uint32_t i = 0; i < x->program->num_instrs && code == LTH_OK; i++)
		if (x->guard_done[i])
			code = lth_guard_check(&x->program->instrs[i], i, values, diag);
	return code;
}

static enum lth_code evaluate(struct lth_signatures *cache, struct lth_signature *entry, struct lth_diag *diag)
{
	const struct lathe_executable *x = cache->x;
	enum lth_code code = lth_program_eval(x->program, entry->symbols, cache->known, entry->values, cache->defined,
					      diag);
	if (code == LTH_OK)
		code = check_guards(x, entry->values, diag); /* first: it says what the model's author can act on */
	if (code == LTH_OK)
		code = check_sizes(x->program, x, entry->values, diag);
	if (code == LTH_OK)
		code = check_ports(x, entry->values, diag);
	if (code == LTH_OK &&
	    !lth_arena_layout(x->program, entry->values, cache->trial, entry->offsets, &entry->arena_bytes))
		code = lth_diag_fail(diag, LTH_RUNTIME_ERROR, "arena", NULL, "use smaller dims",
				     "sizes whose sum is no int64");
	return code;
}

static uint64_t hash_bound(const struct lth_signatures *cache)
{
	uint64_t hash = 0;
	for (uint32_t i = 0; i < cache->x->num_shape_symbols; i++)
		hash = lth_hash_u64((uint64_t)cache->bound[cache->x->shape_symbols[i]], hash);
	return hash;
}

static bool matches(const struct lth_signatures *cache, const struct lth_signature *entry, uint64_t hash)
{
	if (!entry || !entry->last_used || entry->hash != hash)
		return false;
	for (uint32_t i = 0; i < cache->x->num_shape_symbols; i++) {
		uint32_t id = cache->x->shape_symbols[i];
		if (entry->symbols[id] != cache->bound[id])
			return false;
	}
	return true;
}

/* The entry of the symbols in hand, or the one to evaluate them into. */
static struct lth_signature *look_up(struct lth_signatures *cache, uint64_t hash, bool *out_hit)
{
	*out_hit = matches(cache, cache->last, hash);
	if (*out_hit)
		return cache->last;
	struct lth_signature *oldest = &cache->entries[0];
	for (uint32_t i = 0; i < cache->count; i++) {
		*out_hit = matches(cache, &cache->entries[i], hash);
		if (*out_hit)
			return &cache->entries[i];
		if (cache->entries[i].last_used < oldest->last_used)
			oldest = &cache->entries[i];
	}
	return oldest;
}

static enum lth_code check_inputs(struct lth_signatures *cache, const struct lathe_tensor *inputs, size_t num_inputs,
				  struct lth_diag *diag)
{
	const struct lathe_executable *x = cache->x;
	char expected[64];
	if (num_inputs != x->program->num_inputs) {
		snprintf(expected, sizeof(expected), "%u", x->program->num_inputs);
		return lth_diag_fail(diag, LTH_BAD_INPUT, "number of inputs", expected, NULL, "%zu", num_inputs);
	}
	enum lth_code code = LTH_OK;
	for (uint32_t i = 0; i < x->program->num_inputs && code == LTH_OK; i++)
		code = check_input(x, i, &inputs[i], diag);
	if (code == LTH_OK)
		code = bind_symbols(cache, inputs, diag);
	return code;
}

enum lth_code lth_signature_find(struct lth_signatures *cache, const struct lathe_tensor *inputs, size_t num_inputs,
				 struct lth_signature **out_signature, struct lth_diag *diag)
{
	enum lth_code code = check_inputs(cache, inputs, num_inputs, diag);
	if (code != LTH_OK)
		return code;
	bool hit;
	uint64_t hash = hash_bound(cache);
	struct lth_signature *entry = look_up(cache, hash, &hit);
	if (!hit) {
		code = check_dims(cache, inputs, NULL, diag);
		if (code != LTH_OK)
			return code;
		cache->misses++;
		entry->last_used = 0; /* empty until all is well */
		entry->hash = hash;
		memcpy(entry->symbols, cache->bound, cache->x->program->num_symbols * sizeof(int64_t));
		code = evaluate(cache, entry, diag);
	} else {
		cache->hits++;
	}
	if (code == LTH_OK)
		code = check_dims(cache, inputs, entry->values, diag);
	if (code != LTH_OK)
		return code;
	entry->last_used = ++cache->clock;
	cache->last = entry;
	*out_signature = entry;
	return LTH_OK;
}
