/* Building loop IR: loops, branches, and what ends a kernel early. See loop.h. */
#include "compiler/lower/loop_build.h"

#include <string.h>

static struct lth_loop_block *push_block(struct lth_loop_fn *fn, struct lth_loop_block block)
{
	struct lth_loop_builder *builder = fn->builder;
	struct lth_loop_block *blocks = lth_arena_grow(fn->arena, builder->blocks, &builder->cap_blocks,
						       builder->num_blocks + 1, sizeof(*blocks));
	if (!blocks)
		return NULL;
	builder->blocks = blocks;
	blocks[builder->num_blocks] = block;
	return &blocks[builder->num_blocks++];
}

static struct lth_loop_block *top_block(struct lth_loop_fn *fn)
{
	LTH_LOOP_REQUIRE(fn, fn->builder->num_blocks > 0);
	return fn->builder->num_blocks ? &fn->builder->blocks[fn->builder->num_blocks - 1] : NULL;
}

static void append_results(struct lth_loop_fn *fn, enum lth_loop_op op, lth_lv parent, const lth_lv *like,
			   uint32_t count, lth_lv *out)
{
	for (uint32_t k = 0; k < count; k++) {
		const struct lth_loop_instr *x = lth_loop_get(fn, like[k]);
		struct lth_loop_instr instr = lth_loop_instr_of(op, x->dtype, x->lanes);
		instr.i = k;
		instr.id = parent;
		out[k] = lth_loop_append(fn, &instr);
	}
}

/* A loop that certainly runs exactly once. */
static bool runs_once(const struct lth_loop_fn *fn, lth_lv begin, lth_lv end, int64_t step)
{
	const struct lth_loop_instr *b = lth_loop_get(fn, begin), *e = lth_loop_get(fn, end);
	return b->op == LTH_LOOP_CONST && e->op == LTH_LOOP_CONST && b->i < e->i &&
	       (uint64_t)e->i - (uint64_t)b->i <= (uint64_t)step;
}

lth_lv lth_loop_for(struct lth_loop_fn *fn, lth_lv begin, lth_lv end, int64_t step, const lth_lv *initial,
		    uint32_t count, lth_lv *out_phis)
{
	LTH_LOOP_REQUIRE(fn, step > 0);
	LTH_LOOP_REQUIRE(fn, lth_loop_get(fn, begin)->dtype == LTH_DTYPE_I64 && lth_loop_get(fn, begin)->lanes == 1);
	LTH_LOOP_REQUIRE(fn, lth_loop_get(fn, end)->dtype == LTH_DTYPE_I64 && lth_loop_get(fn, end)->lanes == 1);
	if (runs_once(fn, begin, end, step)) {
		push_block(fn, (struct lth_loop_block){.op = LTH_LOOP_CONST, .count = count, .first = fn->num_instrs});
		if (count)
			memmove(out_phis, initial, count * sizeof(*initial));
		return begin;
	}
	struct lth_loop_instr instr = lth_loop_instr_of(LTH_LOOP_FOR, LTH_DTYPE_I64, 1);
	instr.a = begin;
	instr.b = end;
	instr.c = lth_loop_i64(fn, step);
	instr.list = initial;
	instr.count = count;
	lth_lv index = lth_loop_append(fn, &instr);
	push_block(fn, (struct lth_loop_block){
			       .opening = index, .op = LTH_LOOP_FOR, .count = count, .first = fn->num_instrs});
	if (lth_arena_ok(fn->arena))
		append_results(fn, LTH_LOOP_PHI, index, fn->instrs[index].list, count, out_phis);
	else if (count)
		memset(out_phis, 0, count * sizeof(*out_phis));
	return index;
}

void lth_loop_end_for(struct lth_loop_fn *fn, const lth_lv *next, uint32_t count, lth_lv *out_results)
{
	struct lth_loop_block *block = top_block(fn);
	if (!block || !lth_arena_ok(fn->arena)) {
		if (count)
			memset(out_results, 0, count * sizeof(*out_results));
		return;
	}
	assert((block->op == LTH_LOOP_FOR || block->op == LTH_LOOP_CONST) && block->count == count);
	fn->builder->num_blocks--;
	if (block->op == LTH_LOOP_CONST) {
		if (count)
			memmove(out_results, next, count * sizeof(*next));
		return;
	}
	struct lth_loop_instr instr = lth_loop_instr_of(LTH_LOOP_ENDFOR, LTH_NUM_DTYPES, 1);
	instr.id = block->opening;
	instr.list = next;
	instr.count = count;
	const uint32_t *initial = fn->instrs[block->opening].list;
	for (uint32_t k = 0; k < count; k++)
		assert(lth_loop_get(fn, next[k])->dtype == lth_loop_get(fn, initial[k])->dtype &&
		       lth_loop_get(fn, next[k])->lanes == lth_loop_get(fn, initial[k])->lanes);
	lth_lv end = lth_loop_append(fn, &instr);
	lth_loop_pop_scope(fn, block->first);
	append_results(fn, LTH_LOOP_RESULT, end, initial, count, out_results);
}

void lth_loop_if(struct lth_loop_fn *fn, lth_lv condition)
{
	LTH_LOOP_REQUIRE(fn, lth_loop_get(fn, condition)->dtype == LTH_DTYPE_BOOL &&
				     lth_loop_get(fn, condition)->lanes == 1);
	struct lth_loop_instr instr = lth_loop_instr_of(LTH_LOOP_IF, LTH_NUM_DTYPES, 1);
	instr.a = condition;
	lth_lv opening = lth_loop_append(fn, &instr);
	push_block(fn, (struct lth_loop_block){.opening = opening, .op = LTH_LOOP_IF, .first = fn->num_instrs});
}

void lth_loop_else(struct lth_loop_fn *fn, const lth_lv *yields, uint32_t count)
{
	struct lth_loop_block *block = top_block(fn);
	if (!block || !lth_arena_ok(fn->arena))
		return;
	assert(block->op == LTH_LOOP_IF);
	struct lth_loop_instr instr = lth_loop_instr_of(LTH_LOOP_ELSE, LTH_NUM_DTYPES, 1);
	instr.id = block->opening;
	instr.list = yields;
	instr.count = count;
	lth_lv arm = lth_loop_append(fn, &instr);
	lth_loop_pop_scope(fn, block->first);
	*block = (struct lth_loop_block){.opening = block->opening,
					 .op = LTH_LOOP_ELSE,
					 .count = count,
					 .list = fn->instrs[arm].list,
					 .first = fn->num_instrs};
}

void lth_loop_end_if(struct lth_loop_fn *fn, const lth_lv *yields, uint32_t count, lth_lv *out_results)
{
	struct lth_loop_block *block = top_block(fn);
	if (!block || !lth_arena_ok(fn->arena)) {
		if (count)
			memset(out_results, 0, count * sizeof(*out_results));
		return;
	}
	assert(block->op == LTH_LOOP_ELSE || (block->op == LTH_LOOP_IF && count == 0));
	assert(block->count == count);
	fn->builder->num_blocks--;
	struct lth_loop_instr instr = lth_loop_instr_of(LTH_LOOP_ENDIF, LTH_NUM_DTYPES, 1);
	instr.id = block->opening;
	instr.list = yields;
	instr.count = count;
	for (uint32_t k = 0; k < count; k++)
		assert(lth_loop_get(fn, yields[k])->dtype == lth_loop_get(fn, block->list[k])->dtype &&
		       lth_loop_get(fn, yields[k])->lanes == lth_loop_get(fn, block->list[k])->lanes);
	lth_lv end = lth_loop_append(fn, &instr);
	lth_loop_pop_scope(fn, block->first);
	append_results(fn, LTH_LOOP_RESULT, end, fn->instrs[end].list, count, out_results);
}

void lth_loop_fail(struct lth_loop_fn *fn, lth_lv condition, enum lth_kernel_error error)
{
	const struct lth_loop_instr *x = lth_loop_get(fn, condition);
	LTH_LOOP_REQUIRE(fn, x->dtype == LTH_DTYPE_BOOL && error > LTH_KERNEL_OK && error < LTH_NUM_KERNEL_ERRORS);
	if (x->op == LTH_LOOP_CONST && !x->i)
		return;
	struct lth_loop_instr instr = lth_loop_instr_of(LTH_LOOP_FAIL, LTH_NUM_DTYPES, 1);
	instr.lanes = x->lanes;
	instr.a = condition;
	instr.i = error;
	lth_loop_append(fn, &instr);
}
