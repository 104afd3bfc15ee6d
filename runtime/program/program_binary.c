/* The program as bytes, as executables carry it: little-endian, a version in front, a hash of everything at the end.
 *
 * One function a struct serves both directions: it visits the fields in order, and the codec in its hand either appends
 * each field or reads it. Reading checks sizes against what is left of the bytes, so that no count makes it allocate
 * more than a small multiple of the input; everything else is for lth_program_verify. */
#include "runtime/base/hash.h"
#include "runtime/kernels/builtin.h"
#include "runtime/program/program.h"

#include <string.h>

static const char magic[8] = {'l', 't', 'h', 'p', 'r', 'o', 'g', 4}; /* the last is the version */

struct codec {
	struct lth_buf *out; /* writing; NULL when reading */
	const unsigned char *at, *end;
	struct lth_arena *arena;
	bool failed;
};

static void visit_u64(struct codec *c, uint64_t *value)
{
	if (c->out) {
		lth_buf_u64(c->out, *value);
		return;
	}
	*value = 0;
	if (c->end - c->at < 8) {
		c->failed = true;
		return;
	}
	for (int i = 0; i < 8; i++)
		*value |= (uint64_t)*c->at++ << 8 * i;
}

static void visit_u32(struct codec *c, uint32_t *value)
{
	if (c->out) {
		lth_buf_u32(c->out, *value);
		return;
	}
	*value = 0;
	if (c->end - c->at < 4) {
		c->failed = true;
		return;
	}
	for (int i = 0; i < 4; i++)
		*value |= (uint32_t)*c->at++ << 8 * i;
}

static void visit_i64(struct codec *c, int64_t *value)
{
	uint64_t bits = (uint64_t)*value;
	visit_u64(c, &bits);
	memcpy(value, &bits, sizeof(bits));
}

/* Of elements that take at least `element_bytes` each. */
static void visit_count(struct codec *c, uint32_t *count, size_t element_bytes)
{
	visit_u32(c, count);
	if (!c->out && *count > (size_t)(c->end - c->at) / element_bytes) {
		c->failed = true;
		*count = 0;
	}
}

/* A length + 1 and the bytes; 0 for NULL. */
static void visit_text(struct codec *c, const char **text)
{
	uint32_t size = c->out && *text ? (uint32_t)strlen(*text) + 1 : 0;
	visit_count(c, &size, 1);
	if (c->out) {
		if (size)
			lth_buf_append(c->out, *text, size - 1);
		return;
	}
	*text = NULL;
	if (size == 0)
		return;
	if (memchr(c->at, 0, size - 1))
		c->failed = true;
	*text = lth_arena_strndup(c->arena, (const char *)c->at, size - 1);
	c->at += size - 1;
}

static void visit_ids(struct codec *c, const uint32_t **ids, uint32_t count)
{
	if (c->out) {
		for (uint32_t i = 0; i < count; i++)
			lth_buf_u32(c->out, (*ids)[i]);
		return;
	}
	*ids = NULL;
	if (count > (size_t)(c->end - c->at) / 4) {
		c->failed = true;
		return;
	}
	uint32_t *read = lth_arena_array(c->arena, count, sizeof(*read));
	for (uint32_t i = 0; read && i < count; i++)
		visit_u32(c, &read[i]);
	*ids = read;
}

/* An enum, which the verifier checks to be in range. */
#define VISIT_ENUM(c, lvalue, type)                  \
	do {                                         \
		uint32_t visited = (uint32_t)(lvalue); \
		visit_u32(c, &visited);              \
		(lvalue) = (type)visited;            \
	} while (0)

static void visit_symbol(struct codec *c, struct lth_symbol *s)
{
	visit_text(c, &s->name);
	visit_i64(c, &s->min);
	visit_i64(c, &s->max);
	visit_i64(c, &s->multiple);
	visit_i64(c, &s->hint);
	VISIT_ENUM(c, s->source, enum lth_symbol_source);
	visit_u32(c, &s->input);
	visit_u32(c, &s->axis);
	visit_u32(c, &s->bound);
}

static void visit_expr(struct codec *c, struct lth_expr *e)
{
	VISIT_ENUM(c, e->op, enum lth_expr_op);
	visit_u32(c, &e->a);
	visit_u32(c, &e->b);
	visit_i64(c, &e->value);
}

static void visit_storage(struct codec *c, struct lth_storage *s)
{
	VISIT_ENUM(c, s->kind, enum lth_storage_kind);
	visit_i64(c, &s->index);
	visit_u32(c, &s->size);
	visit_i64(c, &s->alignment);
	visit_u32(c, &s->first);
	visit_u32(c, &s->last);
	visit_text(c, &s->name);
}

static void visit_tensor(struct codec *c, struct lth_tensor *t)
{
	VISIT_ENUM(c, t->dtype, enum lth_dtype);
	visit_u32(c, &t->rank);
	if (t->rank > LTH_MAX_RANK) {
		c->failed = true;
		t->rank = 0;
	}
	for (uint32_t axis = 0; axis < t->rank; axis++) {
		visit_u32(c, &t->dims[axis]);
		visit_u32(c, &t->strides[axis]);
	}
	visit_u32(c, &t->offset);
	visit_u32(c, &t->storage);
	visit_text(c, &t->name);
}

static void visit_kernel(struct codec *c, struct lth_kernel *k)
{
	visit_text(c, &k->name);
	visit_text(c, &k->description);
	visit_u32(c, &k->num_pointers);
	visit_u32(c, &k->num_ints);
}

/* Builtins travel by name, so that their table may grow anywhere. */
static void visit_callee(struct codec *c, struct lth_instr *instr)
{
	if (instr->op != LTH_INSTR_BUILTIN) {
		visit_u32(c, &instr->callee);
		return;
	}
	const char *name = c->out ? lth_builtin_text((enum lth_builtin)instr->callee) : NULL;
	visit_text(c, &name);
	if (!c->out)
		instr->callee = name ? (uint32_t)lth_builtin_by_text(name) : LTH_NUM_BUILTINS;
}

static void visit_instr(struct codec *c, struct lth_instr *instr)
{
	VISIT_ENUM(c, instr->op, enum lth_instr_op);
	visit_callee(c, instr);
	visit_u32(c, &instr->storage);
	visit_u32(c, &instr->symbol);
	visit_u32(c, &instr->target);
	visit_count(c, &instr->num_tensors, 4);
	visit_u32(c, &instr->num_outputs);
	visit_ids(c, &instr->tensors, instr->num_tensors);
	visit_count(c, &instr->num_ints, 4);
	visit_ids(c, &instr->ints, instr->num_ints);
	visit_u32(c, &instr->range);
	visit_u32(c, &instr->grain);
	visit_u32(c, &instr->scratch);
	visit_u32(c, &instr->scratch_bytes);
	visit_u32(c, &instr->flops);
	VISIT_ENUM(c, instr->relation, enum lth_relation);
	visit_text(c, &instr->text);
	visit_text(c, &instr->node);
}

static void visit_port(struct codec *c, struct lth_port *port)
{
	visit_text(c, &port->name);
	visit_u32(c, &port->tensor);
	visit_text(c, &port->type);
}

static void visit_orientation(struct codec *c, struct lth_orientation *o)
{
	visit_count(c, &o->num_storages, 16);
	visit_count(c, &o->num_edges, 4);
	visit_ids(c, &o->storages, o->num_storages);
	int64_t *base = c->out ? NULL : lth_arena_array(c->arena, o->num_storages, sizeof(*base));
	for (uint32_t i = 0; i < o->num_storages && (c->out || base); i++) {
		int64_t value = c->out ? o->base[i] : 0;
		visit_i64(c, &value);
		if (base)
			base[i] = value;
	}
	if (!c->out)
		o->base = base;
	visit_ids(c, &o->edges, o->num_storages + 1);
	visit_ids(c, &o->below, o->num_edges);
}

/* Visits the elements of one of the program's arrays. An element takes at least `least` bytes. */
#define VISIT_ARRAY(c, program, array, visit, least)                                                               \
	do {                                                                                                       \
		visit_count(c, &(program)->num_##array, least);                                                    \
		if (!(c)->out) {                                                                                   \
			(program)->cap_##array = (program)->num_##array;                                           \
			(program)->array = lth_arena_array((c)->arena, (program)->num_##array,                     \
							   sizeof(*(program)->array));                             \
		}                                                                                                  \
		for (uint32_t i_ = 0; (program)->array && !(c)->failed && i_ < (program)->num_##array; i_++)       \
			visit(c, &(program)->array[i_]);                                                           \
	} while (0)

static void visit_exprs(struct codec *c, struct lth_program *program)
{
	uint32_t count = program->num_exprs;
	visit_count(c, &count, 20);
	for (uint32_t i = 0; i < count && !c->failed; i++) {
		struct lth_expr e = c->out ? program->exprs[i] : (struct lth_expr){0};
		visit_expr(c, &e);
		if (!c->out && lth_program_append_expr(program, e) == LTH_NONE)
			return; /* the arena says so */
	}
}

static void visit_program(struct codec *c, struct lth_program *program)
{
	uint32_t fused = program->fused_sizes;
	visit_text(c, &program->name);
	visit_text(c, &program->certificate);
	visit_u32(c, &fused);
	visit_u64(c, &program->constants_bytes);
	program->fused_sizes = fused != 0;
	VISIT_ARRAY(c, program, symbols, visit_symbol, 52);
	visit_exprs(c, program);
	VISIT_ARRAY(c, program, storages, visit_storage, 36);
	VISIT_ARRAY(c, program, tensors, visit_tensor, 20);
	VISIT_ARRAY(c, program, kernels, visit_kernel, 16);
	VISIT_ARRAY(c, program, instrs, visit_instr, 64);
	VISIT_ARRAY(c, program, inputs, visit_port, 12);
	VISIT_ARRAY(c, program, outputs, visit_port, 12);
	VISIT_ARRAY(c, program, orientations, visit_orientation, 12);
}

void lth_program_encode(const struct lth_program *program, struct lth_buf *out)
{
	struct codec c = {.out = out};
	struct lth_program copy = *program; /* its arrays are only read */
	size_t start = out->size;
	lth_buf_append(out, magic, sizeof(magic));
	visit_program(&c, &copy);
	if (lth_buf_ok(out))
		lth_buf_u64(out, lth_hash_bytes(out->data + start, out->size - start, 0));
}

static enum lth_code damaged(struct lth_diag *diag, const char *found)
{
	return lth_diag_fail(diag, LTH_BAD_EXECUTABLE, "program", "bytes that this version of Lathe wrote",
			     "compile the model again with this version", "%s", found);
}

enum lth_code lth_program_decode(const void *bytes, size_t size, struct lth_arena *arena,
				 struct lth_program **out_program, struct lth_diag *diag)
{
	if (size < sizeof(magic) + 8)
		return damaged(diag, "too few bytes");
	if (memcmp(bytes, magic, sizeof(magic)) != 0)
		return damaged(diag, "another format or version");
	struct codec c = {.arena = arena};
	uint64_t hash;
	c.at = (const unsigned char *)bytes + size - 8;
	c.end = c.at + 8;
	visit_u64(&c, &hash);
	if (hash != lth_hash_bytes(bytes, size - 8, 0))
		return damaged(diag, "a hash that does not match");
	c.at = (const unsigned char *)bytes + sizeof(magic);
	c.end = (const unsigned char *)bytes + size - 8;
	struct lth_program *program = lth_program_create(arena);
	if (program)
		visit_program(&c, program);
	if (!program || !lth_arena_ok(arena))
		return lth_diag_fail(diag, LTH_OUT_OF_MEMORY, "program", NULL, NULL, "no memory for its arrays");
	if (c.failed || c.at != c.end)
		return damaged(diag, "counts that do not fit the bytes");
	*out_program = program;
	return LTH_OK;
}
