/* Running loop IR in this process: the engine of constant folding and the oracle of tests. The function is decoded once
 * into steps whose operands are addresses in a register file (a value is an array of its lanes), then the steps run one
 * after the other; the work is in lane functions (lanes.h), tight loops over a vector each. Math functions are expanded
 * first, so that results are those of compiled code, bit for bit. */
#include "compiler/lower/expand.h"
#include "compiler/lower/lanes.h"
#include "compiler/lower/loop_build.h"

#include <stdlib.h>
#include <string.h>

struct step {
	const struct lth_loop_instr *instr;
	lth_lanes_fn lanes_fn;   /* OP, REDUCE */
	void *to;
	const void *a, *b, *c;
	size_t bytes;            /* of one lane of the result, or of the value stored */
	bool plain;              /* loads and stores: memory and compute type are one */
	bool done;               /* the value is there already and stays */
	uint32_t first_target;   /* FOR: step behind its end; IF: behind its else, or its end; ELSE: its end; ENDFOR: its for */
	lth_lv results;          /* FOR, ENDFOR, ELSE, ENDIF: first PHI or RESULT to fill */
};

struct machine {
	const struct lth_loop_fn *fn;
	struct step *steps;
	unsigned char *registers;
	size_t *offsets;
	unsigned char *swap; /* room for the carried values of any loop */
	int error;
};

static void *reg(const struct machine *m, lth_lv value)
{
	return value == LTH_LV_NONE ? NULL : m->registers + m->offsets[value];
}

static size_t value_bytes(const struct lth_loop_instr *x)
{
	return lth_loop_defines(x->op) && x->op != LTH_LOOP_PREFETCH ? lth_lane_bytes(x->dtype) * x->lanes : 0;
}

/* Element access, by memory type. Codes of narrow floats are little-endian integers. */
static void load_element(const struct lth_loop_instr *x, const unsigned char *from, unsigned char *to)
{
	size_t bytes = lth_dtype_bits(x->memory) / 8;
	if (lth_is_narrow(x->memory)) {
		uint32_t code = 0;
		memcpy(&code, from, bytes);
		float value = lth_narrow_widen(x->memory, code);
		memcpy(to, &value, sizeof(value));
	} else if (x->memory == LTH_DTYPE_BOOL) {
		*to = *from != 0;
	} else {
		memcpy(to, from, bytes);
	}
}

static void store_element(const struct lth_loop_instr *x, const unsigned char *from, unsigned char *to)
{
	size_t bytes = lth_dtype_bits(x->memory) / 8;
	if (lth_is_narrow(x->memory)) {
		float value;
		memcpy(&value, from, sizeof(value));
		uint32_t code = lth_narrow_round(x->memory, value);
		memcpy(to, &code, bytes);
	} else {
		memcpy(to, from, bytes);
	}
}

static unsigned char *address(const void *pointer)
{
	unsigned char *p;
	memcpy(&p, pointer, sizeof(p));
	return p;
}

static bool all_set(const unsigned char *mask, size_t lanes)
{
	return !mask || !memchr(mask, 0, lanes);
}

static void run_load(const struct step *step)
{
	const struct lth_loop_instr *x = step->instr;
	const unsigned char *from = address(step->a), *mask = step->c;
	size_t width = lth_dtype_bits(x->memory) / 8;
	if (step->plain && all_set(mask, x->lanes)) {
		memcpy(step->to, from, width * x->lanes);
		return;
	}
	for (unsigned k = 0; k < x->lanes; k++) {
		unsigned char *to = (unsigned char *)step->to + k * step->bytes;
		if (!mask || mask[k])
			load_element(x, from + k * width, to);
		else
			memset(to, 0, step->bytes);
	}
}

static void run_store(const struct step *step)
{
	const struct lth_loop_instr *x = step->instr;
	unsigned char *to = address(step->a);
	const unsigned char *mask = step->c;
	size_t width = lth_dtype_bits(x->memory) / 8;
	if (step->plain && all_set(mask, x->lanes)) {
		memcpy(to, step->b, width * x->lanes);
		return;
	}
	for (unsigned k = 0; k < x->lanes; k++)
		if (!mask || mask[k])
			store_element(x, (const unsigned char *)step->b + k * step->bytes, to + k * width);
}

static void run_gather(const struct step *step)
{
	const struct lth_loop_instr *x = step->instr;
	const unsigned char *from = address(step->a), *mask = step->c;
	const int64_t *index = step->b;
	int64_t width = lth_dtype_bits(x->memory) / 8;
	for (unsigned k = 0; k < x->lanes; k++) {
		unsigned char *to = (unsigned char *)step->to + k * step->bytes;
		if (!mask || mask[k])
			load_element(x, from + index[k] * width, to);
		else
			memset(to, 0, step->bytes);
	}
}

static void run_scatter(const struct machine *m, const struct step *step)
{
	const struct lth_loop_instr *x = step->instr;
	unsigned char *to = address(step->a);
	const unsigned char *mask = step->c;
	const int64_t *index = reg(m, x->list[0]);
	int64_t width = lth_dtype_bits(x->memory) / 8;
	for (unsigned k = 0; k < x->lanes; k++)
		if (!mask || mask[k])
			store_element(x, (const unsigned char *)step->b + k * step->bytes, to + index[k] * width);
}

static void run_dot4(const struct step *step)
{
	const uint32_t *sum = step->a;
	const uint8_t *u = step->b;
	const int8_t *s = step->c;
	uint32_t *to = step->to;
	for (unsigned k = 0; k < step->instr->lanes; k++) {
		uint32_t total = sum[k];
		for (unsigned n = 0; n < 4; n++)
			total += (uint32_t)(u[4 * k + n] * s[4 * k + n]);
		to[k] = total;
	}
}

static void run_permute(const struct step *step)
{
	const uint32_t *lanes = step->b;
	unsigned count = step->instr->lanes;
	for (unsigned k = 0; k < count; k++)
		memcpy((unsigned char *)step->to + k * step->bytes,
		       (const unsigned char *)step->a + lanes[k] % count * step->bytes, step->bytes);
}

/* Halves onto each other down to one lane, then lane by lane where the count is odd: as llvm_emit.c does. */
static void run_reduce(const struct machine *m, const struct step *step)
{
	unsigned char buffers[2][LTH_MAX_LANES * 8];
	unsigned lanes = lth_loop_get(m->fn, step->instr->a)->lanes, turn = 0;
	const unsigned char *from = step->a;
	for (; lanes > 1 && lanes % 2 == 0; lanes /= 2, turn ^= 1) {
		step->lanes_fn(buffers[turn], from, from + lanes / 2 * step->bytes, NULL, lanes / 2);
		from = buffers[turn];
	}
	memcpy(step->to, from, step->bytes);
	for (unsigned k = 1; k < lanes; k++) { /* `from` is the other buffer or the operand */
		step->lanes_fn(buffers[turn], step->to, from + k * step->bytes, NULL, 1);
		memcpy(step->to, buffers[turn], step->bytes);
	}
}

static void run_shuffle(const struct machine *m, const struct step *step)
{
	const struct lth_loop_instr *x = step->instr;
	unsigned lanes = lth_loop_get(m->fn, x->a)->lanes;
	for (uint32_t k = 0; k < x->count; k++) {
		uint32_t lane = x->list[k];
		const unsigned char *from = lane < lanes ? (const unsigned char *)step->a + lane * step->bytes :
							   (const unsigned char *)step->b + (lane - lanes) * step->bytes;
		memcpy((unsigned char *)step->to + k * step->bytes, from, step->bytes);
	}
}

/* By doubling what is there already. */
static void run_splat(const struct step *step)
{
	unsigned char *to = step->to;
	size_t total = step->bytes * step->instr->lanes;
	memcpy(to, step->a, step->bytes);
	for (size_t done = step->bytes; done < total; done *= 2)
		memcpy(to + done, to, done < total - done ? done : total - done);
}

static int64_t number(const void *from)
{
	int64_t value;
	memcpy(&value, from, sizeof(value));
	return value;
}

static void run_ramp(const struct step *step)
{
	uint64_t first = (uint64_t)number(step->a), *to = step->to;
	for (unsigned k = 0; k < step->instr->lanes; k++)
		to[k] = first + k;
}

static void run_mask(const struct step *step)
{
	int64_t count = number(step->a);
	uint8_t *to = step->to;
	for (unsigned k = 0; k < step->instr->lanes; k++)
		to[k] = (int64_t)k < count;
}

static void run_offset(const struct step *step)
{
	uint64_t bytes = (uint64_t)number(step->b) * (lth_dtype_bits(step->instr->memory) / 8);
	uint64_t to = (uint64_t)(uintptr_t)address(step->a) + bytes;
	memcpy(step->to, &to, sizeof(to));
}

/* Fills the values from `first` on with those of the list, all at once: a loop may exchange its carried values. */
static void assign(const struct machine *m, lth_lv first, const uint32_t *list, uint32_t count)
{
	size_t at = 0;
	for (uint32_t k = 0; k < count; k++) {
		size_t bytes = value_bytes(lth_loop_get(m->fn, list[k]));
		memcpy(m->swap + at, reg(m, list[k]), bytes);
		at += bytes;
	}
	at = 0;
	for (uint32_t k = 0; k < count; k++) {
		size_t bytes = value_bytes(lth_loop_get(m->fn, list[k]));
		memcpy(reg(m, first + k), m->swap + at, bytes);
		at += bytes;
	}
}

/* Control flow: returns the next step. */
static uint32_t run_block(const struct machine *m, uint32_t at)
{
	const struct step *step = &m->steps[at];
	const struct lth_loop_instr *x = step->instr;
	switch (x->op) {
	case LTH_LOOP_FOR:
		memcpy(step->to, step->a, sizeof(int64_t));
		if (number(step->a) < number(step->b)) {
			assign(m, at + 1, x->list, x->count);
			return at + 1;
		}
		assign(m, step->results, x->list, x->count);
		return step->first_target;
	case LTH_LOOP_ENDFOR: {
		const struct step *loop = &m->steps[step->first_target];
		int64_t next;
		bool more = !__builtin_add_overflow(number(loop->to), number(loop->c), &next) && next < number(loop->b);
		assign(m, more ? step->first_target + 1 : at + 1, x->list, x->count);
		if (more) /* after the carried values, one of which may be the index */
			memcpy(loop->to, &next, sizeof(next));
		return more ? step->first_target + 1 : at + 1;
	}
	case LTH_LOOP_IF:
		return *(const uint8_t *)step->a ? at + 1 : step->first_target;
	case LTH_LOOP_ELSE:
		assign(m, step->results, x->list, x->count);
		return step->first_target;
	default:
		assign(m, at + 1, x->list, x->count);
		return at + 1;
	}
}

static void run_fail(struct machine *m, const struct step *step)
{
	const uint8_t *failed = step->a;
	for (unsigned k = 0; k < step->instr->lanes; k++)
		if (failed[k] && m->error == 0)
			m->error = (int)step->instr->i;
}

static void run(struct machine *m)
{
	for (uint32_t at = 0; at < m->fn->num_instrs;) {
		const struct step *step = &m->steps[at];
		if (step->done) {
			at++;
			continue;
		}
		switch (step->instr->op) {
		case LTH_LOOP_OP:
			step->lanes_fn(step->to, step->a, step->b, step->c, step->instr->lanes);
			break;
		case LTH_LOOP_SPLAT:
			run_splat(step);
			break;
		case LTH_LOOP_RAMP:
			run_ramp(step);
			break;
		case LTH_LOOP_MASK:
			run_mask(step);
			break;
		case LTH_LOOP_EXTRACT:
			memcpy(step->to, (const unsigned char *)step->a + (size_t)step->instr->i * step->bytes, step->bytes);
			break;
		case LTH_LOOP_SHUFFLE:
			run_shuffle(m, step);
			break;
		case LTH_LOOP_PERMUTE:
			run_permute(step);
			break;
		case LTH_LOOP_REDUCE:
			run_reduce(m, step);
			break;
		case LTH_LOOP_OFFSET:
			run_offset(step);
			break;
		case LTH_LOOP_LOAD:
			run_load(step);
			break;
		case LTH_LOOP_STORE:
			run_store(step);
			break;
		case LTH_LOOP_GATHER:
			run_gather(step);
			break;
		case LTH_LOOP_SCATTER:
			run_scatter(m, step);
			break;
		case LTH_LOOP_DOT4:
			run_dot4(step);
			break;
		case LTH_LOOP_FAIL:
			run_fail(m, step);
			break;
		case LTH_LOOP_FOR:
		case LTH_LOOP_ENDFOR:
		case LTH_LOOP_IF:
		case LTH_LOOP_ELSE:
		case LTH_LOOP_ENDIF:
			at = run_block(m, at);
			continue;
		default: /* entry values are set, PHIs and RESULTs are filled by their blocks, a prefetch does nothing */
			break;
		}
		at++;
	}
}

/* Where blocks lead. */
static void link_block(struct machine *m, lth_lv value)
{
	const struct lth_loop_instr *x = lth_loop_get(m->fn, value);
	struct step *opening = &m->steps[x->id];
	switch (x->op) {
	case LTH_LOOP_ENDFOR:
		opening->results = value + 1;
		opening->first_target = value + 1;
		m->steps[value].first_target = x->id;
		break;
	case LTH_LOOP_ELSE:
		opening->first_target = value + 1;
		opening->results = value; /* the else, for its end to find */
		break;
	case LTH_LOOP_ENDIF:
		if (opening->results != LTH_LV_NONE) {
			m->steps[opening->results].first_target = value + 1;
			m->steps[opening->results].results = value + 1;
		} else {
			opening->first_target = value + 1;
		}
		break;
	default:
		break;
	}
}

static void decode(struct machine *m, lth_lv value)
{
	const struct lth_loop_instr *x = lth_loop_get(m->fn, value);
	struct step *step = &m->steps[value];
	*step = (struct step){.instr = x, .to = reg(m, value), .results = LTH_LV_NONE};
	step->a = reg(m, x->a);
	step->b = reg(m, x->b);
	step->c = reg(m, x->c);
	bool stores = x->op == LTH_LOOP_STORE || x->op == LTH_LOOP_SCATTER;
	step->plain = !lth_is_narrow(x->memory) && x->memory != LTH_DTYPE_BOOL;
	step->bytes = lth_loop_defines(x->op) || stores ? lth_lane_bytes(x->dtype) : 0;
	if (x->op == LTH_LOOP_OP) {
		enum lth_dtype operand = lth_loop_get(m->fn, x->scalar == LTH_SCALAR_SELECT ? x->b : x->a)->dtype;
		step->lanes_fn = lth_lanes(x->scalar, operand, x->scalar == LTH_SCALAR_ROUND_TO ? x->memory : x->dtype);
	} else if (x->op == LTH_LOOP_REDUCE) {
		step->lanes_fn = lth_lanes(x->scalar, x->dtype, x->dtype);
	}
	/* A splat of a constant is filled once, here; constants have been set, wherever they stand. */
	step->done = lth_loop_is_entry(x->op) || (x->op == LTH_LOOP_SPLAT && lth_loop_is_entry(lth_loop_get(m->fn, x->a)->op));
	if (x->op == LTH_LOOP_SPLAT && step->done)
		run_splat(step);
	link_block(m, value);
}

static void set_entry(const struct machine *m, lth_lv value, const struct lathe_kernel_call *call, int64_t begin, int64_t end)
{
	const struct lth_loop_instr *x = lth_loop_get(m->fn, value);
	float single;
	switch (x->op) {
	case LTH_LOOP_CONST:
		if (x->dtype == LTH_DTYPE_F32) {
			single = (float)x->f;
			memcpy(reg(m, value), &single, sizeof(single));
		} else { /* little-endian: the low bytes are the narrow integer */
			memcpy(reg(m, value), &x->i, lth_lane_bytes(x->dtype));
		}
		break;
	case LTH_LOOP_INT:
		memcpy(reg(m, value), &call->ints[x->id], sizeof(int64_t));
		break;
	case LTH_LOOP_POINTER:
		memcpy(reg(m, value), &call->pointers[x->id], sizeof(void *));
		break;
	case LTH_LOOP_SCRATCH:
		memcpy(reg(m, value), &call->scratch, sizeof(void *));
		break;
	case LTH_LOOP_BEGIN:
	case LTH_LOOP_END:
		memcpy(reg(m, value), x->op == LTH_LOOP_BEGIN ? &begin : &end, sizeof(int64_t));
		break;
	default:
		break;
	}
}

/* Lays the registers out and allocates; false when memory runs out. */
static bool prepare(struct machine *m, struct lth_arena *arena)
{
	uint32_t count = m->fn->num_instrs;
	size_t total = 0;
	m->offsets = lth_arena_array(arena, count, sizeof(*m->offsets));
	m->steps = lth_arena_array(arena, count, sizeof(*m->steps));
	if (!m->offsets || !m->steps)
		return false;
	for (lth_lv value = 0; value < count; value++) {
		m->offsets[value] = total;
		total += (value_bytes(lth_loop_get(m->fn, value)) + 63) & ~(size_t)63;
	}
	m->registers = lth_arena_alloc(arena, total);
	m->swap = lth_arena_alloc(arena, total);
	return m->registers && m->swap;
}

enum lth_code lth_loop_interpret(const struct lth_loop_fn *fn, const struct lathe_kernel_call *call, int64_t begin,
				 int64_t end, int *out_error, struct lth_diag *diag)
{
	struct lth_arena *arena = lth_arena_create(0);
	struct machine m = {.fn = arena ? lth_loop_expand(fn, LTH_EXPAND_MATH, arena) : NULL};
	bool ready = m.fn && prepare(&m, arena);
	if (ready) {
		for (lth_lv value = 0; value < m.fn->num_instrs; value++)
			set_entry(&m, value, call, begin, end);
		for (lth_lv value = 0; value < m.fn->num_instrs; value++)
			decode(&m, value);
		run(&m);
		*out_error = m.error;
	}
	lth_arena_destroy(&arena);
	if (!ready)
		return lth_diag_fail(diag, LTH_OUT_OF_MEMORY, "interpreter", NULL, NULL, "no memory for %u values",
				     fn->num_instrs);
	return LTH_OK;
}
