/* Building programs: appending to their arrays, and interning of expressions. Equal expressions get one id because
 * constants fold, neutral operands vanish, and the operands of commutative operators are put in one order: composed
 * expressions by id, then symbols, then constants. That order does not change when a program is printed and parsed
 * again, which keeps the text form stable. */
#include "runtime/program/program.h"
#include "runtime/base/hash.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

static const struct {
	const char *text;
	unsigned char operands, real, commutes;
} exprs[LTH_NUM_EXPRS] = {
#define LTH_EXPR(name, text, operands, real, commutes) [LTH_EXPR_##name] = {text, operands, real, commutes},
#include "runtime/program/exprs.def"
#undef LTH_EXPR
};

static const char *const instr_texts[LTH_NUM_INSTRS] = {
#define LTH_INSTR(name, text, description) [LTH_INSTR_##name] = text,
#include "runtime/program/instrs.def"
#undef LTH_INSTR
};

const char *lth_expr_text(enum lth_expr_op op)
{
	assert(op < LTH_NUM_EXPRS);
	return exprs[op].text;
}

unsigned lth_expr_operands(enum lth_expr_op op)
{
	assert(op < LTH_NUM_EXPRS);
	return exprs[op].operands;
}

bool lth_expr_is_real(enum lth_expr_op op)
{
	return exprs[op].real == 1 || op == LTH_EXPR_TOREAL;
}

bool lth_expr_takes_real(enum lth_expr_op op)
{
	return exprs[op].real == 1 || op == LTH_EXPR_TOINT;
}

const char *lth_instr_text(enum lth_instr_op op)
{
	assert(op < LTH_NUM_INSTRS);
	return instr_texts[op];
}

struct lth_program *lth_program_create(struct lth_arena *arena)
{
	struct lth_program *program = lth_arena_alloc(arena, sizeof(*program));
	if (!program)
		return NULL;
	program->arena = arena;
	program->fused_sizes = true;
	return program;
}

static const uint32_t *copy_ids(struct lth_arena *arena, const uint32_t *ids, uint32_t count)
{
	return count ? lth_arena_memdup(arena, ids, count * sizeof(*ids)) : NULL;
}

static uint64_t hash_expr(struct lth_expr e)
{
	return lth_hash_u64((uint64_t)e.value, lth_hash_u64((uint64_t)e.a << 32 | e.b, (uint64_t)e.op));
}

static bool same_expr(struct lth_expr x, struct lth_expr y)
{
	return x.op == y.op && x.a == y.a && x.b == y.b && x.value == y.value;
}

/* The slot of an expression: where it is, or where it would go. The table is never full. */
static uint32_t find_slot(const struct lth_program *program, struct lth_expr expr)
{
	uint32_t mask = program->cap_interned - 1, slot = (uint32_t)hash_expr(expr) & mask;
	for (uint32_t id; (id = program->interned[slot]) != 0; slot = (slot + 1) & mask)
		if (same_expr(program->exprs[id - 1], expr))
			break;
	return slot;
}

/* Entries are id + 1, so that zeroed memory is an empty table. */
static bool grow_table(struct lth_program *program)
{
	if (program->num_exprs + 1 <= program->cap_interned / 2)
		return true;
	if (program->cap_interned > UINT32_MAX / 4)
		return false;
	uint32_t capacity = program->cap_interned ? program->cap_interned * 2 : 64;
	uint32_t *table = lth_arena_array(program->arena, capacity, sizeof(*table));
	if (!table)
		return false;
	program->interned = table;
	program->cap_interned = capacity;
	for (uint32_t i = 0; i < program->num_exprs; i++) {
		uint32_t slot = find_slot(program, program->exprs[i]);
		if (!table[slot])
			table[slot] = i + 1;
	}
	return true;
}

uint32_t lth_program_append_expr(struct lth_program *program, struct lth_expr expr)
{
	struct lth_expr *grown = lth_arena_grow(program->arena, program->exprs, &program->cap_exprs,
						program->num_exprs + 1, sizeof(expr));
	if (!grown)
		return LTH_NONE;
	program->exprs = grown;
	if (!grow_table(program))
		return LTH_NONE;
	uint32_t id = program->num_exprs, slot = find_slot(program, expr);
	program->exprs[program->num_exprs++] = expr;
	if (!program->interned[slot])
		program->interned[slot] = id + 1;
	return id;
}

static bool is_const(const struct lth_program *program, uint32_t id, int64_t *out_value)
{
	const struct lth_expr *e = &program->exprs[id];
	if (e->op != LTH_EXPR_CONST)
		return false;
	*out_value = e->value;
	return true;
}

static bool is_leaf(enum lth_expr_op op)
{
	return exprs[op].operands == 0;
}

/* The order of commutative operands: see the head of this file. */
static bool operands_in_order(const struct lth_program *program, uint32_t a, uint32_t b)
{
	struct lth_expr x = program->exprs[a], y = program->exprs[b];
	unsigned rank_x = !is_leaf(x.op) ? 0 : x.op == LTH_EXPR_SYMBOL ? 1 : 2;
	unsigned rank_y = !is_leaf(y.op) ? 0 : y.op == LTH_EXPR_SYMBOL ? 1 : 2;
	if (rank_x != rank_y)
		return rank_x < rank_y;
	return rank_x == 0 ? a <= b : rank_x == 1 ? x.a <= y.a : x.value <= y.value;
}

enum reduced { REDUCED_NOT, REDUCED_TO_ID, REDUCED_TO_CONST, REDUCED_TO_REAL };

/* Folds an operator whose operands are constants. */
static enum reduced fold(const struct lth_program *program, const struct lth_expr *e, int64_t *out_value)
{
	unsigned operands = exprs[e->op].operands;
	enum lth_expr_op wanted = lth_expr_takes_real(e->op) ? LTH_EXPR_RCONST : LTH_EXPR_CONST;
	if (operands == 0 || program->exprs[e->a].op != wanted ||
	    (operands == 2 && program->exprs[e->b].op != wanted))
		return REDUCED_NOT;
	int64_t b = operands == 2 ? program->exprs[e->b].value : 0;
	if (!lth_expr_apply(e->op, program->exprs[e->a].value, b, out_value))
		return REDUCED_NOT;
	return lth_expr_is_real(e->op) ? REDUCED_TO_REAL : REDUCED_TO_CONST;
}

/* Operators that a neutral, absorbing or equal operand makes vanish. Never drops an operand that may fail. */
static enum reduced simplify(const struct lth_program *program, const struct lth_expr *e, uint32_t *out_id)
{
	int64_t b = 0;
	bool constant = exprs[e->op].operands == 2 && is_const(program, e->b, &b);
	switch (e->op) {
	case LTH_EXPR_ADD:
		*out_id = e->a;
		return constant && b == 0 ? REDUCED_TO_ID : REDUCED_NOT;
	case LTH_EXPR_MUL:
	case LTH_EXPR_FLOORDIV:
	case LTH_EXPR_CEILDIV:
		*out_id = e->a;
		return constant && b == 1 ? REDUCED_TO_ID : REDUCED_NOT;
	case LTH_EXPR_OPAQUE: /* nothing is multiplied out here */
		*out_id = e->a;
		return REDUCED_TO_ID;
	case LTH_EXPR_MIN:
	case LTH_EXPR_MAX:
		*out_id = e->a;
		return e->a == e->b ? REDUCED_TO_ID : REDUCED_NOT;
	default:
		return REDUCED_NOT;
	}
}

/* Puts an expression into its one form: returns REDUCED_TO_ID when an operand is the answer. */
static enum reduced normalise(const struct lth_program *program, struct lth_expr *e, uint32_t *out_id)
{
	unsigned operands = exprs[e->op].operands;
	if (operands < 2)
		e->b = LTH_NONE;
	if (operands == 0) {
		e->a = e->op == LTH_EXPR_SYMBOL ? e->a : LTH_NONE;
		e->value = e->op == LTH_EXPR_SYMBOL ? 0 : e->value;
		return REDUCED_NOT;
	}
	e->value = 0;
	if (exprs[e->op].commutes && !operands_in_order(program, e->a, e->b)) {
		uint32_t swap = e->a;
		e->a = e->b;
		e->b = swap;
	}
	int64_t value;
	enum reduced kind = fold(program, e, &value);
	if (kind != REDUCED_NOT) {
		enum lth_expr_op op = kind == REDUCED_TO_REAL ? LTH_EXPR_RCONST : LTH_EXPR_CONST;
		*e = (struct lth_expr){.op = op, .a = LTH_NONE, .b = LTH_NONE, .value = value};
		return kind;
	}
	return simplify(program, e, out_id);
}

uint32_t lth_program_expr(struct lth_program *program, enum lth_expr_op op, uint32_t a, uint32_t b, int64_t value)
{
	assert(op < LTH_NUM_EXPRS);
	unsigned operands = exprs[op].operands;
	if (!lth_arena_ok(program->arena) || (operands > 0 && a == LTH_NONE) || (operands > 1 && b == LTH_NONE))
		return LTH_NONE; /* an operand that was lost to exhaustion */
	assert(operands < 1 || a < program->num_exprs);
	assert(operands < 2 || b < program->num_exprs);
	struct lth_expr e = {.op = op, .a = a, .b = b, .value = value};
	uint32_t id;
	if (normalise(program, &e, &id) == REDUCED_TO_ID)
		return id;
	if (program->cap_interned && (id = program->interned[find_slot(program, e)]) != 0)
		return id - 1;
	return lth_program_append_expr(program, e);
}

uint32_t lth_program_find_expr(const struct lth_program *program, enum lth_expr_op op, uint32_t a, uint32_t b,
			       int64_t value)
{
	struct lth_expr e = {.op = op, .a = a, .b = b, .value = value};
	uint32_t id;
	if (normalise(program, &e, &id) == REDUCED_TO_ID)
		return id;
	id = program->cap_interned ? program->interned[find_slot(program, e)] : 0;
	return id ? id - 1 : LTH_NONE;
}

uint32_t lth_program_const(struct lth_program *program, int64_t value)
{
	return lth_program_expr(program, LTH_EXPR_CONST, LTH_NONE, LTH_NONE, value);
}

/* Room for one more element in one of the program's arrays: the array, or NULL when the arena is exhausted. */
static void *grow(struct lth_program *program, void *array, uint32_t count, uint32_t *capacity, size_t size)
{
	if (count >= LTH_NONE - 1 || !lth_arena_ok(program->arena))
		return NULL;
	return lth_arena_grow(program->arena, array, capacity, count + 1, size);
}

bool lth_program_reserve(struct lth_program *program, uint32_t tensors, uint32_t instrs)
{
	struct lth_tensor *more_tensors = grow(program, program->tensors, tensors, &program->cap_tensors,
					       sizeof(*more_tensors));
	struct lth_storage *more_storages = grow(program, program->storages, tensors, &program->cap_storages,
						 sizeof(*more_storages));
	struct lth_instr *more_instrs = grow(program, program->instrs, instrs, &program->cap_instrs,
					     sizeof(*more_instrs));
	if (!more_tensors || !more_storages || !more_instrs)
		return false;
	program->tensors = more_tensors;
	program->storages = more_storages;
	program->instrs = more_instrs;
	return true;
}

uint32_t lth_program_symbol(struct lth_program *program, const struct lth_symbol *symbol)
{
	struct lth_symbol *grown = grow(program, program->symbols, program->num_symbols, &program->cap_symbols,
					sizeof(*grown));
	if (!grown)
		return LTH_NONE;
	program->symbols = grown;
	grown[program->num_symbols] = *symbol;
	return program->num_symbols++;
}

uint32_t lth_program_storage(struct lth_program *program, const struct lth_storage *storage)
{
	struct lth_storage *grown = grow(program, program->storages, program->num_storages, &program->cap_storages,
					sizeof(*grown));
	if (!grown)
		return LTH_NONE;
	program->storages = grown;
	grown[program->num_storages] = *storage;
	return program->num_storages++;
}

uint32_t lth_program_tensor(struct lth_program *program, const struct lth_tensor *tensor)
{
	assert(tensor->rank <= LTH_MAX_RANK);
	struct lth_tensor *grown = grow(program, program->tensors, program->num_tensors, &program->cap_tensors,
					sizeof(*grown));
	if (!grown)
		return LTH_NONE;
	program->tensors = grown;
	grown[program->num_tensors] = *tensor;
	return program->num_tensors++;
}

uint32_t lth_program_kernel(struct lth_program *program, const struct lth_kernel *kernel)
{
	struct lth_kernel *grown = grow(program, program->kernels, program->num_kernels, &program->cap_kernels,
					sizeof(*grown));
	if (!grown)
		return LTH_NONE;
	program->kernels = grown;
	grown[program->num_kernels] = *kernel;
	return program->num_kernels++;
}

uint32_t lth_program_instr(struct lth_program *program, const struct lth_instr *instr)
{
	struct lth_instr *grown = grow(program, program->instrs, program->num_instrs, &program->cap_instrs,
					sizeof(*grown));
	if (!grown)
		return LTH_NONE;
	program->instrs = grown;
	struct lth_instr *slot = &grown[program->num_instrs];
	*slot = *instr;
	slot->tensors = copy_ids(program->arena, instr->tensors, instr->num_tensors);
	slot->ints = copy_ids(program->arena, instr->ints, instr->num_ints);
	return program->num_instrs++;
}

uint32_t lth_program_input(struct lth_program *program, const char *name, uint32_t tensor, const char *type)
{
	struct lth_port *grown = grow(program, program->inputs, program->num_inputs, &program->cap_inputs,
				      sizeof(*grown));
	if (!grown)
		return LTH_NONE;
	program->inputs = grown;
	grown[program->num_inputs] = (struct lth_port){name, tensor, type};
	return program->num_inputs++;
}

uint32_t lth_program_output(struct lth_program *program, const char *name, uint32_t tensor, const char *type)
{
	struct lth_port *grown = grow(program, program->outputs, program->num_outputs, &program->cap_outputs,
				      sizeof(*grown));
	if (!grown)
		return LTH_NONE;
	program->outputs = grown;
	grown[program->num_outputs] = (struct lth_port){name, tensor, type};
	return program->num_outputs++;
}

uint32_t lth_program_orientation(struct lth_program *program, const struct lth_orientation *orientation)
{
	struct lth_orientation *grown = grow(program, program->orientations, program->num_orientations,
					     &program->cap_orientations, sizeof(*grown));
	if (!grown)
		return LTH_NONE;
	program->orientations = grown;
	struct lth_orientation *slot = &grown[program->num_orientations];
	uint32_t n = orientation->num_storages;
	*slot = *orientation;
	slot->storages = copy_ids(program->arena, orientation->storages, n);
	slot->base = lth_arena_memdup(program->arena, orientation->base, n * sizeof(*orientation->base));
	slot->edges = copy_ids(program->arena, orientation->edges, n + 1);
	slot->below = copy_ids(program->arena, orientation->below, orientation->num_edges);
	return program->num_orientations++;
}

void lth_program_dense_strides(struct lth_program *program, uint32_t rank, const uint32_t *dims, uint32_t *strides)
{
	uint32_t stride = lth_program_const(program, 1);
	for (uint32_t axis = rank; axis-- > 0;) {
		strides[axis] = stride;
		if (axis)
			stride = lth_program_expr(program, LTH_EXPR_MUL, stride, dims[axis], 0);
	}
}

static enum lth_code block_error(struct lth_diag *diag, uint32_t at, const char *expected, const char *found)
{
	char place[64];
	snprintf(place, sizeof(place), "instruction %u", at);
	return lth_diag_fail(diag, LTH_INVALID_GRAPH, place, expected, NULL, "%s", found);
}

static uint32_t class_root(uint32_t *classes, uint32_t storage)
{
	while (classes[storage] != storage)
		storage = classes[storage] = classes[classes[storage]];
	return storage;
}

void lth_program_swap_classes(const struct lth_program *program, uint32_t *out_class)
{
	for (uint32_t s = 0; s < program->num_storages; s++)
		out_class[s] = s;
	for (uint32_t i = 0; i < program->num_instrs; i++) {
		const struct lth_instr *instr = &program->instrs[i];
		if (instr->op == LTH_INSTR_SWAP)
			out_class[class_root(out_class, program->tensors[instr->tensors[0]].storage)] =
				class_root(out_class, program->tensors[instr->tensors[1]].storage);
	}
	for (uint32_t s = 0; s < program->num_storages; s++)
		out_class[s] = class_root(out_class, s);
}

enum lth_code lth_program_link_blocks(struct lth_program *program, struct lth_diag *diag)
{
	/* The open blocks form a stack threaded through the targets themselves. */
	uint32_t open = LTH_NONE;
	for (uint32_t i = 0; i < program->num_instrs; i++) {
		struct lth_instr *instr = &program->instrs[i], *top = open == LTH_NONE ? NULL : &program->instrs[open];
		uint32_t outer;
		switch (instr->op) {
		case LTH_INSTR_IF:
		case LTH_INSTR_LOOP:
			instr->target = open;
			open = i;
			break;
		case LTH_INSTR_ELSE:
			if (!top || top->op != LTH_INSTR_IF)
				return block_error(diag, i, "an else inside an if", "an else that belongs to none");
			instr->target = top->target;
			top->target = i;
			open = i;
			break;
		case LTH_INSTR_ENDIF:
			if (!top || top->op == LTH_INSTR_LOOP)
				return block_error(diag, i, "an endif inside an if", "an endif that belongs to none");
			outer = top->target;
			top->target = i;
			open = outer;
			break;
		case LTH_INSTR_ENDLOOP:
			if (!top || top->op != LTH_INSTR_LOOP)
				return block_error(diag, i, "an endloop inside a loop",
						   "an endloop that belongs to none");
			outer = top->target;
			top->target = i;
			instr->target = open;
			open = outer;
			break;
		default:
			break;
		}
	}
	if (open != LTH_NONE)
		return block_error(diag, open, "an end for every block", "a block that is never closed");
	return LTH_OK;
}
