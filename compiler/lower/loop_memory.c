/* Building loop IR: addresses and accesses. See loop.h. */
#include "compiler/lower/loop_build.h"

#include "compiler/lower/lanes.h"

lth_lv lth_loop_offset(struct lth_loop_fn *fn, lth_lv pointer, lth_lv elements, enum lth_dtype memory)
{
	const struct lth_loop_instr *p = lth_loop_get(fn, pointer), *n = lth_loop_get(fn, elements);
	LTH_LOOP_REQUIRE(fn, p->dtype == LTH_POINTER_TYPE && n->dtype == LTH_DTYPE_I64 && n->lanes == 1);
	LTH_LOOP_REQUIRE(fn, lth_dtype_bits(memory) >= 8);
	if (n->op == LTH_LOOP_CONST && n->i == 0)
		return pointer;
	if (n->op == LTH_LOOP_CONST && p->op == LTH_LOOP_OFFSET && p->memory == memory &&
	    lth_loop_get(fn, p->b)->op == LTH_LOOP_CONST) {
		lth_lv base = p->a, sum = lth_loop_op2(fn, LTH_SCALAR_ADD, p->b, elements);
		return lth_loop_offset(fn, base, sum, memory);
	}
	struct lth_loop_instr instr = lth_loop_instr_of(LTH_LOOP_OFFSET, LTH_POINTER_TYPE, 1);
	instr.a = pointer;
	instr.b = elements;
	instr.memory = memory;
	return lth_loop_intern(fn, &instr);
}

/* An access; a mask of all ones is none. */
static struct lth_loop_instr access(struct lth_loop_fn *fn, enum lth_loop_op op, lth_lv pointer, enum lth_dtype memory,
				    unsigned lanes, lth_lv mask)
{
	struct lth_loop_instr instr = lth_loop_instr_of(op, lth_compute_dtype(memory), lanes);
	LTH_LOOP_REQUIRE(fn, lth_loop_get(fn, pointer)->dtype == LTH_POINTER_TYPE);
	LTH_LOOP_REQUIRE(fn, lth_dtype_bits(memory) >= 8 && lth_is_compute_dtype(instr.dtype));
	LTH_LOOP_REQUIRE(fn, lanes >= 1 && lanes <= LTH_MAX_LANES);
	if (mask != LTH_LV_NONE) {
		mask = lth_loop_splat(fn, mask, lanes);
		LTH_LOOP_REQUIRE(fn, lth_loop_get(fn, mask)->dtype == LTH_DTYPE_BOOL);
		const struct lth_loop_instr *m = lth_loop_get(fn, mask);
		m = m->op == LTH_LOOP_SPLAT ? lth_loop_get(fn, m->a) : m;
		if (m->op == LTH_LOOP_CONST && m->i)
			mask = LTH_LV_NONE;
	}
	instr.a = pointer;
	instr.memory = memory;
	instr.c = mask;
	return instr;
}

lth_lv lth_loop_load(struct lth_loop_fn *fn, lth_lv pointer, enum lth_dtype memory, unsigned lanes, lth_lv mask)
{
	struct lth_loop_instr instr = access(fn, LTH_LOOP_LOAD, pointer, memory, lanes, mask);
	return lth_loop_append(fn, &instr);
}

void lth_loop_store(struct lth_loop_fn *fn, lth_lv pointer, lth_lv value, enum lth_dtype memory, lth_lv mask)
{
	struct lth_loop_instr instr = access(fn, LTH_LOOP_STORE, pointer, memory, lth_loop_get(fn, value)->lanes, mask);
	LTH_LOOP_REQUIRE(fn, lth_loop_get(fn, value)->dtype == instr.dtype);
	instr.b = value;
	lth_loop_append(fn, &instr);
}

lth_lv lth_loop_gather(struct lth_loop_fn *fn, lth_lv pointer, lth_lv index, enum lth_dtype memory, lth_lv mask)
{
	const struct lth_loop_instr *x = lth_loop_get(fn, index);
	LTH_LOOP_REQUIRE(fn, x->dtype == LTH_DTYPE_I64);
	unsigned lanes = x->lanes;
	if (lanes == 1)
		return lth_loop_load(fn, lth_loop_offset(fn, pointer, index, memory), memory, 1, mask);
	if (x->op == LTH_LOOP_RAMP) {
		lth_lv first = x->a;
		return lth_loop_load(fn, lth_loop_offset(fn, pointer, first, memory), memory, lanes, mask);
	}
	struct lth_loop_instr instr = access(fn, LTH_LOOP_GATHER, pointer, memory, lanes, mask);
	instr.b = index;
	return lth_loop_append(fn, &instr);
}

void lth_loop_scatter(struct lth_loop_fn *fn, lth_lv pointer, lth_lv index, lth_lv value, enum lth_dtype memory,
		      lth_lv mask)
{
	const struct lth_loop_instr *x = lth_loop_get(fn, index);
	LTH_LOOP_REQUIRE(fn, x->dtype == LTH_DTYPE_I64);
	unsigned lanes = x->lanes;
	if (lanes == 1) {
		lth_loop_store(fn, lth_loop_offset(fn, pointer, index, memory), value, memory, mask);
		return;
	}
	if (x->op == LTH_LOOP_RAMP) {
		lth_lv at = lth_loop_offset(fn, pointer, x->a, memory);
		lth_loop_store(fn, at, lth_loop_splat(fn, value, lanes), memory, mask);
		return;
	}
	struct lth_loop_instr instr = access(fn, LTH_LOOP_SCATTER, pointer, memory, lanes, mask);
	instr.b = lth_loop_splat(fn, value, lanes);
	LTH_LOOP_REQUIRE(fn, lth_loop_get(fn, instr.b)->dtype == instr.dtype);
	instr.count = 1;
	instr.list = &index;
	lth_loop_append(fn, &instr);
}

void lth_loop_prefetch(struct lth_loop_fn *fn, lth_lv pointer, bool write)
{
	struct lth_loop_instr instr = lth_loop_instr_of(LTH_LOOP_PREFETCH, LTH_NUM_DTYPES, 1);
	LTH_LOOP_REQUIRE(fn, lth_loop_get(fn, pointer)->dtype == LTH_POINTER_TYPE);
	instr.a = pointer;
	instr.i = write;
	lth_loop_append(fn, &instr);
}
