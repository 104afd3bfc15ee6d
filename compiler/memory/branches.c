/* ShareBranches: what the arms of an If may share, and loops without copies.
 *
 * Only one arm of an If runs, so storages of its two arms may lie on each other: their ranges in the linear list never
 * meet. Without the pass (lth_branches_add_up) they live for the whole If and add up. What is copied whole and read no
 * more is written at its place at once, where nobody reads what stood there any more: a loop's first and next states,
 * results of arms. States that cannot be written in place swap (swap.c). Thread rule: as the program's. */
#include "compiler/memory/memory.h"

#include "compiler/memory/spans.h"

#include <stdlib.h>

void lth_branches_add_up(struct lth_program *program)
{
	uint32_t depth = 0, begin = 0;
	for (uint32_t i = 0; i < program->num_instrs; i++) {
		enum lth_instr_op op = program->instrs[i].op;
		if (op == LTH_INSTR_IF && depth++ == 0)
			begin = i;
		if (op != LTH_INSTR_ENDIF || --depth > 0)
			continue;
		for (uint32_t k = begin; k < i;
		     k++) { /* the outermost If is complete: its own storages live through it */
			if (program->instrs[k].op != LTH_INSTR_ALLOC)
				continue;
			struct lth_storage *storage = &program->storages[program->instrs[k].storage];
			if (storage->first < begin)
				continue;
			storage->first = begin;
			storage->last = storage->last > i + 1 ? storage->last : i + 1;
		}
	}
}

/* What coalescing knows of each storage, and what it has become. */
struct coalescer {
	struct lth_program *program;
	struct lth_spans spans;
	uint32_t *now;	/* by storage: the one that it has become */
	bool *gone;	/* by instruction: to be taken out */
};

static uint32_t storage_of(const struct coalescer *c, uint32_t tensor)
{
	return tensor == LTH_NONE ? LTH_NONE : c->now[c->program->tensors[tensor].storage];
}

/* The same window on two storages of one size. */
static bool whole_copy(const struct coalescer *c, const struct lth_instr *copy)
{
	const struct lth_program *program = c->program;
	uint32_t to = storage_of(c, copy->tensors[0]), from = storage_of(c, copy->tensors[1]);
	const struct lth_storage *x = &program->storages[from], *y = &program->storages[to];
	return x->kind == LTH_STORAGE_ARENA && (y->kind == LTH_STORAGE_ARENA || y->kind == LTH_STORAGE_OUTPUT) &&
	       x->size == y->size && x->alignment <= y->alignment && from != to &&
	       lth_same_window(program, &program->tensors[copy->tensors[0]], &program->tensors[copy->tensors[1]]);
}

/* A storage that shows itself by one window only, copied to where the window stands in another: a turn's slice of what a
 * loop collects. */
static bool slice_copy(const struct coalescer *c, const struct lth_instr *copy)
{
	const struct lth_program *program = c->program;
	struct lth_tensor to = program->tensors[copy->tensors[0]];
	const struct lth_tensor *from = &program->tensors[copy->tensors[1]];
	uint32_t target = storage_of(c, copy->tensors[0]), source = storage_of(c, copy->tensors[1]);
	const struct lth_storage *x = &program->storages[source], *y = &program->storages[target];
	to.offset = from->offset;
	if (x->kind != LTH_STORAGE_ARENA || (y->kind != LTH_STORAGE_ARENA && y->kind != LTH_STORAGE_OUTPUT) ||
	    source == target || !lth_same_window(program, &to, from))
		return false;
	for (uint32_t t = 0; t < program->num_tensors; t++)
		if (c->now[program->tensors[t].storage] == source && !lth_same_window(program, &program->tensors[t], from))
			return false;
	return y->kind == LTH_STORAGE_OUTPUT || c->spans.born[target] < c->spans.born[source];
}

/* May the call write its result on `from` over its operands on `to`: does it read them only where it then writes? */
static bool writes_over(const struct coalescer *c, const struct lth_instr *call, uint32_t from, uint32_t to)
{
	const struct lth_program *program = c->program;
	if (call->op != LTH_INSTR_CALL || call->num_outputs != 1 || call->scratch == to ||
	    storage_of(c, call->tensors[0]) != from)
		return false;
	for (uint32_t k = 1; k < call->num_tensors; k++)
		if (storage_of(c, call->tensors[k]) == to &&
		    (k >= 32 || !(call->in_place & 1u << k) ||
		     !lth_same_window(program, &program->tensors[call->tensors[0]], &program->tensors[call->tensors[k]])))
			return false;
	return true;
}

static bool mentions(const struct coalescer *c, const struct lth_instr *instr, uint32_t storage)
{
	if (instr->op == LTH_INSTR_CALL && instr->scratch == storage)
		return true;
	for (uint32_t k = 0; k < instr->num_tensors; k++)
		if (storage_of(c, instr->tensors[k]) == storage)
			return true;
	return false;
}

/* Does all of the copied storage's life lie between its ALLOC and the copy in a straight line, and is the target not
 * touched there from the first use on, but by the call that is it? It may begin there: then it begins earlier. */
static bool may_coalesce(const struct coalescer *c, uint32_t copy)
{
	const struct lth_instr *instrs = c->program->instrs;
	uint32_t to = storage_of(c, instrs[copy].tensors[0]), from = storage_of(c, instrs[copy].tensors[1]);
	bool begun = false;
	uint32_t born = c->spans.born[from];
	if (born >= copy || c->spans.last[from] != copy)
		return false;
	for (uint32_t i = born + 1; i < copy; i++) {
		enum lth_instr_op op = instrs[i].op;
		bool straight = op == LTH_INSTR_CALL || op == LTH_INSTR_BUILTIN || op == LTH_INSTR_COPY ||
				op == LTH_INSTR_ALLOC || op == LTH_INSTR_KILL || op == LTH_INSTR_GUARD;
		bool first = !begun && mentions(c, &instrs[i], from);
		if (c->gone[i])
			continue;
		if (!straight || (op == LTH_INSTR_KILL && instrs[i].storage == to) ||
		    (op == LTH_INSTR_ALLOC && instrs[i].storage == to && c->spans.born[to] != i))
			return false;
		begun |= first;
		if (begun && mentions(c, &instrs[i], to) && !(first && writes_over(c, &instrs[i], from, to)))
			return false;
	}
	return begun;
}

/* The copied storage becomes the target, or its one window there; its ALLOC, its KILL and the copy go. */
static void coalesce(struct coalescer *c, uint32_t copy)
{
	uint32_t to = storage_of(c, c->program->instrs[copy].tensors[0]);
	uint32_t from = storage_of(c, c->program->instrs[copy].tensors[1]);
	struct lth_tensor *tensors = c->program->tensors;
	uint32_t place = tensors[c->program->instrs[copy].tensors[0]].offset;
	bool slice = tensors[c->program->instrs[copy].tensors[1]].offset != place;
	for (uint32_t t = 0; slice && t < c->program->num_tensors; t++)
		if (c->now[tensors[t].storage] == from)
			tensors[t].offset = place;
	for (uint32_t s = 0; s < c->program->num_storages; s++)
		c->now[s] = c->now[s] == from ? to : c->now[s];
	uint32_t born = c->spans.born[from];
	c->gone[copy] = true;
	if (c->spans.born[to] > born && c->spans.born[to] < copy) {
		c->gone[c->spans.born[to]] = true;
		c->program->instrs[born].storage = to;
		c->spans.born[to] = born;
	} else {
		c->gone[born] = true;
	}
	for (uint32_t i = copy + 1; i < c->program->num_instrs && c->program->instrs[i].op == LTH_INSTR_KILL; i++)
		c->gone[i] |= c->program->instrs[i].storage == from;
}

static void rewrite(struct coalescer *c)
{
	struct lth_program *program = c->program;
	uint32_t out = 0;
	for (uint32_t t = 0; t < program->num_tensors; t++)
		program->tensors[t].storage = c->now[program->tensors[t].storage];
	for (uint32_t i = 0; i < program->num_instrs; i++) {
		const struct lth_instr *instr = &program->instrs[i];
		bool ends = instr->op == LTH_INSTR_KILL && c->now[instr->storage] != instr->storage;
		if (!c->gone[i] && !ends)
			program->instrs[out++] = *instr;
	}
	program->num_instrs = out;
}

static void coalesce_all(struct coalescer *c)
{
	lth_spans_find(&c->spans, c->program);
	for (uint32_t s = 0; s < c->program->num_storages; s++)
		c->now[s] = s;
	for (uint32_t i = 0; i < c->program->num_instrs; i++) {
		const struct lth_instr *instr = &c->program->instrs[i];
		if (instr->op == LTH_INSTR_COPY && (whole_copy(c, instr) || slice_copy(c, instr)) &&
		    may_coalesce(c, i))
			coalesce(c, i);
	}
	rewrite(c);
}

enum lth_code lth_share_branches(struct lth_program *program, bool tight, struct lth_diag *diag)
{
	struct coalescer c = {.program = program};
	enum lth_code code = LTH_OK;
	c.now = calloc(program->num_storages + 1, sizeof(*c.now));
	c.gone = calloc(program->num_instrs + 1, sizeof(*c.gone));
	if (c.now && c.gone && lth_spans_init(&c.spans, program)) {
		coalesce_all(&c);
		code = lth_program_link_blocks(program, diag);
		lth_lifetimes_set_ranges(program);
	} else {
		code = lth_diag_fail(diag, LTH_OUT_OF_MEMORY, "ShareBranches", NULL, NULL, "no memory");
	}
	lth_spans_free(&c.spans);
	free(c.now);
	free(c.gone);
	return code == LTH_OK ? lth_swap_states(program, tight, diag) : code;
}
