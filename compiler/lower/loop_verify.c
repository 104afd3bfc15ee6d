/* Structure and types of loop IR that came from text: everything the builder asserts, as errors. Values are visible from
 * their definition to the end of their block; entry values everywhere. See loop.h. */
#include "compiler/lower/loop_build.h"

#include "compiler/lower/lanes.h"

#include <stdarg.h>
#include <stdio.h>

enum { MAX_DEPTH = 128 };

struct open_block {
	enum lth_loop_op op; /* FOR, IF or ELSE */
	lth_lv opening, otherwise;
	lth_lv first; /* inside */
};

struct verifier {
	const struct lth_loop_fn *fn;
	const uint32_t *lines; /* by instruction; NULL for a function without text */
	struct lth_diag *diag;
	bool *visible;
	struct open_block blocks[MAX_DEPTH];
	uint32_t depth;
	lth_lv at;
};

static bool wrong(struct verifier *v, const char *expected, const char *format, ...) LTH_PRINTF(3, 4);
static bool wrong(struct verifier *v, const char *expected, const char *format, ...)
{
	char place[64], found[256];
	va_list args;
	va_start(args, format);
	vsnprintf(found, sizeof(found), format, args);
	va_end(args);
	snprintf(place, sizeof(place), v->lines ? "line %u" : "instruction %u", v->lines ? v->lines[v->at] : v->at);
	lth_diag_fail(v->diag, LTH_INVALID_GRAPH, place, expected, NULL, "%s", found);
	return false;
}

static const char *dtype_text(enum lth_dtype dtype)
{
	return dtype == LTH_POINTER_TYPE ? "ptr" : dtype < LTH_NUM_DTYPES ? lth_dtype_text(dtype) : "nothing";
}

static const struct lth_loop_instr *here(const struct verifier *v)
{
	return lth_loop_get(v->fn, v->at);
}

/* An operand that is there, visible and of this type. LTH_NUM_DTYPES + 1 allows any. */
#define ANY_TYPE ((enum lth_dtype)(LTH_NUM_DTYPES + 1))
static bool operand(struct verifier *v, lth_lv value, enum lth_dtype dtype, unsigned lanes)
{
	if (value >= v->fn->num_instrs || !v->visible[value])
		return wrong(v, "a value defined before, in scope", "operand %u of %s", value, lth_loop_text(here(v)->op));
	const struct lth_loop_instr *x = lth_loop_get(v->fn, value);
	if ((dtype != ANY_TYPE && x->dtype != dtype) || (lanes && x->lanes != lanes)) {
		char expected[64];
		snprintf(expected, sizeof(expected), "%s with %u lanes", dtype == ANY_TYPE ? "a value" : dtype_text(dtype), lanes);
		return wrong(v, expected, "%s with %u lanes", dtype_text(x->dtype), x->lanes);
	}
	return true;
}

static bool result(struct verifier *v, enum lth_dtype dtype, unsigned lanes)
{
	const struct lth_loop_instr *x = here(v);
	if (x->dtype == dtype && x->lanes == lanes)
		return true;
	char expected[64];
	snprintf(expected, sizeof(expected), "%s with %u lanes", dtype_text(dtype), lanes);
	return wrong(v, expected, "a result of %s with %u lanes", dtype_text(x->dtype), x->lanes);
}

static bool check_entry(struct verifier *v)
{
	const struct lth_loop_instr *x = here(v);
	if (x->op == LTH_LOOP_CONST)
		return (lth_is_compute_dtype(x->dtype) && x->lanes == 1) ||
		       wrong(v, "a scalar of a compute type", "constant of %s", dtype_text(x->dtype));
	if (x->op == LTH_LOOP_INT && x->id >= v->fn->num_ints)
		return wrong(v, "a parameter that exists", "i%u of %u", x->id, v->fn->num_ints);
	if (x->op == LTH_LOOP_POINTER && x->id >= v->fn->num_pointers)
		return wrong(v, "a parameter that exists", "p%u of %u", x->id, v->fn->num_pointers);
	bool pointer = x->op == LTH_LOOP_POINTER || x->op == LTH_LOOP_SCRATCH;
	return result(v, pointer ? LTH_POINTER_TYPE : LTH_DTYPE_I64, 1);
}

static bool check_op(struct verifier *v)
{
	const struct lth_loop_instr *x = here(v);
	unsigned arity = lth_scalar_arity(x->scalar);
	bool choice = x->scalar == LTH_SCALAR_SELECT;
	if (!operand(v, x->a, choice ? LTH_DTYPE_BOOL : ANY_TYPE, x->lanes))
		return false;
	if (choice && !operand(v, x->b, ANY_TYPE, x->lanes))
		return false;
	enum lth_dtype type = lth_loop_get(v->fn, choice ? x->b : x->a)->dtype;
	if ((arity > 1 && !choice && !operand(v, x->b, type, x->lanes)) || (arity > 2 && !operand(v, x->c, type, x->lanes)))
		return false;
	bool states_type = x->scalar == LTH_SCALAR_CAST || x->scalar == LTH_SCALAR_BITCAST;
	enum lth_dtype to = x->scalar == LTH_SCALAR_ROUND_TO ? x->memory : x->dtype;
	if ((type == LTH_POINTER_TYPE && x->lanes != 1) || !lth_lanes(x->scalar, type, to))
		return wrong(v, "types that the operator takes", "%s of %s", lth_scalar_text(x->scalar), dtype_text(type));
	return states_type || result(v, lth_loop_op_dtype(x->scalar, type), x->lanes);
}

static bool check_vector(struct verifier *v)
{
	const struct lth_loop_instr *x = here(v);
	unsigned lanes;
	switch (x->op) {
	case LTH_LOOP_SPLAT:
		return operand(v, x->a, x->dtype, 1) &&
		       (x->lanes > 1 && x->dtype != LTH_POINTER_TYPE ? true : wrong(v, "a vector", "a splat to a scalar"));
	case LTH_LOOP_RAMP:
	case LTH_LOOP_MASK:
		return operand(v, x->a, LTH_DTYPE_I64, 1) &&
		       result(v, x->op == LTH_LOOP_RAMP ? LTH_DTYPE_I64 : LTH_DTYPE_BOOL, x->lanes > 1 ? x->lanes : 2);
	case LTH_LOOP_EXTRACT:
		if (!operand(v, x->a, x->dtype, 0) || !result(v, x->dtype, 1))
			return false;
		lanes = lth_loop_get(v->fn, x->a)->lanes;
		return (lanes > 1 && x->i >= 0 && x->i < lanes) || wrong(v, "a lane of a vector", "lane %lld of %u",
									  (long long)x->i, lanes);
	case LTH_LOOP_SHUFFLE:
		if (!operand(v, x->a, x->dtype, 0))
			return false;
		lanes = lth_loop_get(v->fn, x->a)->lanes;
		if (!operand(v, x->b, x->dtype, lanes) || !result(v, x->dtype, x->count))
			return false;
		if (lanes < 2 || x->count < 2)
			return wrong(v, "vectors", "%u of %u lanes", x->count, lanes);
		for (uint32_t k = 0; k < x->count; k++)
			if (x->list[k] >= 2 * lanes)
				return wrong(v, "a lane of two vectors", "lane %u of twice %u", x->list[k], lanes);
		return true;
	case LTH_LOOP_PERMUTE:
		return operand(v, x->a, x->dtype, x->lanes) && operand(v, x->b, LTH_DTYPE_I32, x->lanes) &&
		       (x->lanes > 1 && x->dtype != LTH_POINTER_TYPE ? true : wrong(v, "a vector", "a scalar"));
	default: /* REDUCE */
		if (!operand(v, x->a, x->dtype, 0) || !result(v, x->dtype, 1))
			return false;
		lanes = lth_loop_get(v->fn, x->a)->lanes;
		if (lanes < 2 || x->dtype == LTH_POINTER_TYPE || lth_scalar_arity(x->scalar) != 2 ||
		    lth_loop_op_dtype(x->scalar, LTH_NUM_DTYPES) != LTH_NUM_DTYPES ||
		    !lth_lanes(x->scalar, x->dtype, x->dtype))
			return wrong(v, "a vector and add, mul, min, max, and, or", "%s of %u lanes", lth_scalar_text(x->scalar),
				     lanes);
		return true;
	}
}

static bool check_memory_type(struct verifier *v, enum lth_dtype compute)
{
	const struct lth_loop_instr *x = here(v);
	if (x->memory >= LTH_NUM_DTYPES || lth_dtype_bits(x->memory) < 8)
		return wrong(v, "elements of whole bytes", "memory of %s", dtype_text(x->memory));
	if (x->op == LTH_LOOP_OFFSET)
		return true;
	return (lth_compute_dtype(x->memory) == compute && lth_is_compute_dtype(compute)) ||
	       wrong(v, "the memory's compute type", "%s in memory of %s", dtype_text(compute), dtype_text(x->memory));
}

static bool check_memory(struct verifier *v)
{
	const struct lth_loop_instr *x = here(v);
	if (!operand(v, x->a, LTH_POINTER_TYPE, 1))
		return false;
	if (x->op == LTH_LOOP_PREFETCH)
		return true;
	if (x->c != LTH_LV_NONE && !operand(v, x->c, LTH_DTYPE_BOOL, x->lanes))
		return false;
	switch (x->op) {
	case LTH_LOOP_OFFSET:
		return operand(v, x->b, LTH_DTYPE_I64, 1) && result(v, LTH_POINTER_TYPE, 1) && check_memory_type(v, x->dtype);
	case LTH_LOOP_LOAD:
		return check_memory_type(v, x->dtype);
	case LTH_LOOP_STORE:
		return operand(v, x->b, x->dtype, x->lanes) && check_memory_type(v, x->dtype);
	case LTH_LOOP_GATHER:
		return operand(v, x->b, LTH_DTYPE_I64, x->lanes) && check_memory_type(v, x->dtype) &&
		       (x->lanes > 1 || wrong(v, "a vector", "a gather of one lane"));
	default:
		return operand(v, x->b, x->dtype, x->lanes) && operand(v, x->list[0], LTH_DTYPE_I64, x->lanes) &&
		       check_memory_type(v, x->dtype) && (x->lanes > 1 || wrong(v, "a vector", "a scatter of one lane"));
	}
}

/* The instructions behind a FOR or an end: one a list entry, of its type. */
static bool check_followers(struct verifier *v, enum lth_loop_op follower)
{
	const struct lth_loop_instr *x = here(v);
	for (uint32_t k = 0; k < x->count; k++) {
		lth_lv at = v->at + 1 + k;
		const struct lth_loop_instr *y = at < v->fn->num_instrs ? lth_loop_get(v->fn, at) : NULL;
		const struct lth_loop_instr *from = lth_loop_get(v->fn, x->list[k]);
		if (!y || y->op != follower || y->id != v->at || y->i != k || y->dtype != from->dtype || y->lanes != from->lanes)
			return wrong(v, "one value of the same type for each of the list", "entry %u of %s", k,
				     lth_loop_text(x->op));
	}
	return true;
}

static bool check_list(struct verifier *v)
{
	const struct lth_loop_instr *x = here(v);
	for (uint32_t k = 0; k < x->count; k++)
		if (!operand(v, x->list[k], ANY_TYPE, 0))
			return false;
	return true;
}

/* What a block's end hands on agrees with `like`. */
static bool check_same_types(struct verifier *v, lth_lv like)
{
	const struct lth_loop_instr *x = here(v), *y = lth_loop_get(v->fn, like);
	if (x->count != y->count)
		return wrong(v, "as many values as before", "%u, before %u", x->count, y->count);
	for (uint32_t k = 0; k < x->count; k++) {
		const struct lth_loop_instr *was = lth_loop_get(v->fn, y->list[k]);
		if (!operand(v, x->list[k], was->dtype, was->lanes))
			return false;
	}
	return true;
}

static bool open_block(struct verifier *v, enum lth_loop_op op)
{
	if (v->depth == MAX_DEPTH)
		return wrong(v, "at most 128 nested blocks", "more");
	v->blocks[v->depth++] = (struct open_block){op, v->at, LTH_LV_NONE, v->at + 1};
	return true;
}

static void hide(struct verifier *v, const struct open_block *block)
{
	for (lth_lv value = block->first; value < v->at; value++)
		if (!lth_loop_is_entry(lth_loop_get(v->fn, value)->op))
			v->visible[value] = false;
}

/* An ELSE, ENDFOR or ENDIF: closes the innermost block, if it is the right one. */
static bool close_block(struct verifier *v)
{
	const struct lth_loop_instr *x = here(v);
	struct open_block *block = v->depth ? &v->blocks[v->depth - 1] : NULL;
	bool loop = x->op == LTH_LOOP_ENDFOR;
	if (!block || (block->op == LTH_LOOP_FOR) != loop || block->opening != x->id ||
	    (x->op == LTH_LOOP_ELSE && block->op == LTH_LOOP_ELSE))
		return wrong(v, "an open block of its kind", "%s", lth_loop_text(x->op));
	if (x->op == LTH_LOOP_ELSE) {
		if (!check_list(v))
			return false;
		hide(v, block);
		*block = (struct open_block){LTH_LOOP_ELSE, block->opening, v->at, v->at + 1};
		return true;
	}
	if (block->op == LTH_LOOP_IF && x->count)
		return wrong(v, "an else before an endif with values", "%u values", x->count);
	if (block->op != LTH_LOOP_IF && !check_same_types(v, loop ? block->opening : block->otherwise))
		return false;
	hide(v, block);
	v->depth--;
	return check_followers(v, LTH_LOOP_RESULT);
}

static bool check_for(struct verifier *v)
{
	const struct lth_loop_instr *x = here(v);
	if (!operand(v, x->a, LTH_DTYPE_I64, 1) || !operand(v, x->b, LTH_DTYPE_I64, 1) || !operand(v, x->c, LTH_DTYPE_I64, 1) ||
	    !result(v, LTH_DTYPE_I64, 1) || !check_list(v))
		return false;
	const struct lth_loop_instr *step = lth_loop_get(v->fn, x->c);
	if (step->op != LTH_LOOP_CONST || step->i <= 0)
		return wrong(v, "a constant above 0", "another step");
	return check_followers(v, LTH_LOOP_PHI) && open_block(v, LTH_LOOP_FOR);
}

/* PHIs and RESULTs stand where check_followers has seen them, or nowhere. */
static bool check_follower(struct verifier *v)
{
	const struct lth_loop_instr *x = here(v);
	const struct lth_loop_instr *parent = x->id < v->at ? lth_loop_get(v->fn, x->id) : NULL;
	bool phi = x->op == LTH_LOOP_PHI;
	if (parent && x->i >= 0 && x->i < parent->count && x->id + 1 + (uint64_t)x->i == v->at &&
	    (phi ? parent->op == LTH_LOOP_FOR : parent->op == LTH_LOOP_ENDFOR || parent->op == LTH_LOOP_ENDIF))
		return true;
	return wrong(v, "its block before it", "a %s", lth_loop_text(x->op));
}

static bool check_dot4(struct verifier *v)
{
	const struct lth_loop_instr *x = here(v);
	return result(v, LTH_DTYPE_I32, x->lanes) && operand(v, x->a, LTH_DTYPE_I32, x->lanes) &&
	       operand(v, x->b, LTH_DTYPE_U8, 4 * x->lanes) && operand(v, x->c, LTH_DTYPE_I8, 4 * x->lanes);
}

static bool check_instr(struct verifier *v)
{
	const struct lth_loop_instr *x = here(v);
	if (x->lanes < 1 || x->lanes > LTH_MAX_LANES)
		return wrong(v, "1 to 256 lanes", "%u", x->lanes);
	switch (x->op) {
	case LTH_LOOP_CONST:
	case LTH_LOOP_INT:
	case LTH_LOOP_POINTER:
	case LTH_LOOP_SCRATCH:
	case LTH_LOOP_BEGIN:
	case LTH_LOOP_END:
		return check_entry(v);
	case LTH_LOOP_OP:
		return check_op(v);
	case LTH_LOOP_SPLAT:
	case LTH_LOOP_RAMP:
	case LTH_LOOP_MASK:
	case LTH_LOOP_EXTRACT:
	case LTH_LOOP_SHUFFLE:
	case LTH_LOOP_PERMUTE:
	case LTH_LOOP_REDUCE:
		return check_vector(v);
	case LTH_LOOP_OFFSET:
	case LTH_LOOP_LOAD:
	case LTH_LOOP_STORE:
	case LTH_LOOP_GATHER:
	case LTH_LOOP_SCATTER:
	case LTH_LOOP_PREFETCH:
		return check_memory(v);
	case LTH_LOOP_DOT4:
		return check_dot4(v);
	case LTH_LOOP_FOR:
		return check_for(v);
	case LTH_LOOP_IF:
		return operand(v, x->a, LTH_DTYPE_BOOL, 1) && open_block(v, LTH_LOOP_IF);
	case LTH_LOOP_ELSE:
	case LTH_LOOP_ENDFOR:
	case LTH_LOOP_ENDIF:
		return close_block(v);
	case LTH_LOOP_PHI:
	case LTH_LOOP_RESULT:
		return check_follower(v);
	default:
		return operand(v, x->a, LTH_DTYPE_BOOL, x->lanes) &&
		       ((x->i > LTH_KERNEL_OK && x->i < LTH_NUM_KERNEL_ERRORS) || wrong(v, "an error", "error %d", (int)x->i));
	}
}

enum lth_code lth_loop_verify_lines(const struct lth_loop_fn *fn, const uint32_t *lines, struct lth_diag *diag)
{
	struct verifier *v = lth_arena_alloc(fn->arena, sizeof(*v));
	bool *visible = lth_arena_array(fn->arena, fn->num_instrs, sizeof(*visible));
	if (!v || !visible)
		return lth_diag_fail(diag, LTH_OUT_OF_MEMORY, "loop IR", NULL, NULL, "no memory for %u values", fn->num_instrs);
	*v = (struct verifier){.fn = fn, .lines = lines, .diag = diag, .visible = visible};
	/* Entry values are valid from the start, wherever they stand. */
	for (lth_lv value = 0; value < fn->num_instrs; value++)
		visible[value] = lth_loop_is_entry(lth_loop_get(fn, value)->op);
	for (v->at = 0; v->at < fn->num_instrs; v->at++) {
		if (!check_instr(v))
			return diag->code;
		visible[v->at] = lth_loop_defines(lth_loop_get(fn, v->at)->op);
	}
	v->at = fn->num_instrs - 1;
	if (v->depth && !wrong(v, "every block closed", "%u open", v->depth))
		return diag->code;
	return LTH_OK;
}

enum lth_code lth_loop_verify(const struct lth_loop_fn *fn, struct lth_diag *diag)
{
	return lth_loop_verify_lines(fn, NULL, diag);
}
