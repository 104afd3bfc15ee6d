/* OrderForMemory on a program. Calls, C kernels and copies between two instructions that nothing may cross (binds,
 * guards, control flow) form a run; order_search.c finds the order of each that keeps the least alive. A call comes
 * behind the writers of what it reads; ALLOCs move to the first use. Thread rule: as the program's. */
#include "compiler/memory/memory.h"

#include "compiler/memory/order_search.h"

#include <stdlib.h>
#include <string.h>

/* Longer runs are cut: a window of this many calls is ordered at a time. */
enum { MAX_TASKS = 1024 };

struct access {
	uint32_t storage, task;
	uint32_t tensor; /* LTH_NONE: scratch */
	bool writes;
};

struct orderer {
	struct lth_program *program;
	struct lth_diag *diag;
	int64_t effort, all_calls;     /* effort is shared out by calls */
	int64_t *sizes;		       /* by storage, at the hint, as taken; 0 where it does not count */
	int64_t *values;	       /* of expressions at the hint, */
	bool *defined;		       /* where they have one before the run */
	uint32_t *born, *last, *block; /* by storage: its ALLOC, last use, the opener of the ALLOC's block */
	uint32_t *item;		       /* by storage: scratch of one run */
	uint32_t *alloc_at;	       /* by storage: behind its ALLOC in the run that is rewritten; else 0 */
	struct lth_order_report report;

	/* the run in hand */
	uint32_t begin, end; /* instructions */
	uint32_t run_block;
	uint32_t *calls, num_calls; /* instruction of each task */
	struct access *accesses;
	uint32_t num_accesses, cap_accesses;
	struct lth_order_item *items;
	uint32_t *item_storage, *item_tasks;
	uint32_t num_items;
};

static enum lth_code no_memory(struct orderer *o)
{
	return lth_diag_fail(o->diag, LTH_OUT_OF_MEMORY, "OrderForMemory", NULL, NULL, "no memory");
}

static bool movable(enum lth_instr_op op)
{
	return op == LTH_INSTR_ALLOC || op == LTH_INSTR_CALL || op == LTH_INSTR_BUILTIN || op == LTH_INSTR_COPY;
}

/* --- facts of the whole program */
static void note_use(struct orderer *o, uint32_t storage, uint32_t at)
{
	if (storage != LTH_NONE)
		o->last[storage] = at;
}

static void find_facts(struct orderer *o, uint32_t *opener)
{
	const struct lth_program *program = o->program;
	uint32_t current = LTH_NONE;
	for (uint32_t i = 0; i < program->num_instrs; i++) {
		const struct lth_instr *instr = &program->instrs[i];
		enum lth_instr_op op = instr->op;
		if ((op == LTH_INSTR_ELSE || op == LTH_INSTR_ENDIF || op == LTH_INSTR_ENDLOOP) && current != LTH_NONE)
			current = opener[current];
		opener[i] = current;
		if (op == LTH_INSTR_IF || op == LTH_INSTR_ELSE || op == LTH_INSTR_LOOP)
			current = i;
		if (op == LTH_INSTR_ALLOC && o->born[instr->storage] == LTH_NONE) {
			o->born[instr->storage] = i;
			o->block[instr->storage] = opener[i];
		}
		if (op == LTH_INSTR_CALL)
			note_use(o, instr->scratch, i);
		for (uint32_t k = 0; k < instr->num_tensors; k++)
			if (instr->tensors[k] != LTH_NONE)
				note_use(o, program->tensors[instr->tensors[k]].storage, i);
	}
	for (uint32_t i = 0; i < program->num_outputs; i++)
		note_use(o, program->tensors[program->outputs[i].tensor].storage, program->num_instrs);
}

static enum lth_code find_sizes(struct orderer *o)
{
	const struct lth_program *program = o->program;
	int64_t *symbols = lth_arena_array(program->arena, program->num_symbols + 1, sizeof(*symbols));
	bool *known = lth_arena_array(program->arena, program->num_symbols + 1, sizeof(*known));
	if (!symbols || !known)
		return no_memory(o);
	lth_symbols_at_hint(program, symbols);
	for (uint32_t i = 0; i < program->num_symbols; i++)
		known[i] = program->symbols[i].source == LTH_SOURCE_INPUT;
	enum lth_code code = lth_program_eval(program, symbols, known, o->values, o->defined, o->diag);
	for (uint32_t s = 0; s < program->num_storages && code == LTH_OK; s++) {
		const struct lth_storage *storage = &program->storages[s];
		int64_t unit = storage->alignment, size = o->defined[storage->size] ? o->values[storage->size] : -1;
		size = size > 0 ? size : 1;
		bool counts = storage->kind == LTH_STORAGE_ARENA && o->born[s] != LTH_NONE &&
			      size < INT64_MAX / 4 / ((int64_t)program->num_storages + 1);
		o->sizes[s] = counts ? (size + unit - 1) / unit * unit : 0;
	}
	return code;
}

/* --- one run */
static int by_storage(const void *a, const void *b)
{
	const struct access *x = a, *y = b;
	if (x->storage != y->storage)
		return x->storage < y->storage ? -1 : 1;
	if (x->task != y->task)
		return x->task < y->task ? -1 : 1;
	return x->writes != y->writes ? (x->writes ? -1 : 1) : (x->tensor > y->tensor) - (x->tensor < y->tensor);
}

static bool add_access(struct orderer *o, struct access access)
{
	struct access *grown =
		lth_arena_grow(o->program->arena, o->accesses, &o->cap_accesses, o->num_accesses + 1, sizeof(*grown));
	if (!grown)
		return false;
	o->accesses = grown;
	grown[o->num_accesses++] = access;
	return true;
}

static bool collect(struct orderer *o)
{
	const struct lth_program *program = o->program;
	o->num_calls = o->num_accesses = 0;
	for (uint32_t i = o->begin; i < o->end; i++) {
		const struct lth_instr *instr = &program->instrs[i];
		if (instr->op == LTH_INSTR_ALLOC)
			continue;
		for (uint32_t k = 0; k < instr->num_tensors; k++) {
			uint32_t tensor = instr->tensors[k];
			if (tensor != LTH_NONE &&
			    !add_access(o, (struct access){program->tensors[tensor].storage, o->num_calls, tensor,
							   k < instr->num_outputs}))
				return false;
		}
		if (instr->op == LTH_INSTR_CALL && instr->scratch != LTH_NONE &&
		    !add_access(o, (struct access){instr->scratch, o->num_calls, LTH_NONE, true}))
			return false;
		o->calls[o->num_calls++] = i;
	}
	if (o->num_accesses)
		qsort(o->accesses, o->num_accesses, sizeof(*o->accesses), by_storage);
	return true;
}

/* Two windows with the same strides, the second of which begins where the first ends along some axis, or behind: parts
 * of a Concat, whose operands are written in any order. */
static bool different_parts(const struct orderer *o, const struct access *a, const struct access *b)
{
	const struct lth_program *program = o->program;
	if (!a->writes || !b->writes || a->tensor == LTH_NONE || b->tensor == LTH_NONE)
		return false;
	const struct lth_tensor *x = &program->tensors[a->tensor], *y = &program->tensors[b->tensor];
	if (x->rank != y->rank || x->dtype != y->dtype || !o->defined[x->offset] || !o->defined[y->offset] ||
	    memcmp(x->strides, y->strides, x->rank * sizeof(x->strides[0])) != 0)
		return false;
	if (o->values[x->offset] > o->values[y->offset]) {
		const struct lth_tensor *swap = x;
		x = y;
		y = swap;
	}
	int64_t bytes = (int64_t)lth_dtype_bits(x->dtype) / 8, apart = o->values[y->offset] - o->values[x->offset];
	for (uint32_t axis = 0; axis < x->rank && bytes > 0; axis++) {
		uint32_t dim = x->dims[axis], stride = x->strides[axis];
		if (!o->defined[dim] || !o->defined[stride] || o->values[stride] <= 0 || apart == 0)
			continue;
		int64_t step = o->values[stride] * bytes;
		if (apart % step == 0 && apart / step >= o->values[dim])
			return true;
	}
	return false;
}

struct edges {
	uint32_t *start, *list; /* start: num_calls + 1 */
	uint32_t count, capacity;
	struct pair {
		uint32_t after, before;
	} *pairs;
};

static int by_after(const void *a, const void *b)
{
	const struct pair *x = a, *y = b;
	if (x->after != y->after)
		return x->after < y->after ? -1 : 1;
	return (x->before > y->before) - (x->before < y->before);
}

/* What must come before what: two accesses of one storage, one of which writes. */
static bool find_edges(struct orderer *o, struct edges *edges)
{
	struct lth_arena *arena = o->program->arena;
	edges->count = 0;
	for (uint32_t first = 0, last; first < o->num_accesses; first = last) {
		bool written = false;
		for (last = first; last < o->num_accesses && o->accesses[last].storage == o->accesses[first].storage;
		     last++)
			written |= o->accesses[last].writes;
		for (uint32_t b = first; b < last && written; b++)
			for (uint32_t a = first; a < b; a++) {
				const struct access *x = &o->accesses[a], *y = &o->accesses[b];
				if (x->task == y->task || (!x->writes && !y->writes) || different_parts(o, x, y))
					continue;
				struct pair *grown = lth_arena_grow(arena, edges->pairs, &edges->capacity,
								    edges->count + 1, sizeof(*grown));
				if (!grown)
					return false;
				edges->pairs = grown;
				grown[edges->count++] = (struct pair){y->task, x->task};
			}
	}
	if (edges->count)
		qsort(edges->pairs, edges->count, sizeof(*edges->pairs), by_after);
	edges->start = lth_arena_array(arena, o->num_calls + 1, sizeof(uint32_t));
	edges->list = lth_arena_array(arena, edges->count + 1, sizeof(uint32_t));
	if (!edges->start || !edges->list)
		return false;
	uint32_t unique = 0, next = 0;
	for (uint32_t task = 0; task <= o->num_calls; task++) {
		edges->start[task] = unique;
		for (; task < o->num_calls && next < edges->count && edges->pairs[next].after == task; next++)
			if (unique == edges->start[task] || edges->list[unique - 1] != edges->pairs[next].before)
				edges->list[unique++] = edges->pairs[next].before;
	}
	return true;
}

/* Items: the arena storages that begin or end in the run. The others weigh the same in every order. */
static bool find_items(struct orderer *o)
{
	struct lth_arena *arena = o->program->arena;
	o->items = lth_arena_array(arena, o->num_accesses + 1, sizeof(*o->items));
	o->item_storage = lth_arena_array(arena, o->num_accesses + 1, sizeof(uint32_t));
	o->item_tasks = lth_arena_array(arena, o->num_accesses + 1, sizeof(uint32_t));
	o->num_items = 0;
	if (!o->items || !o->item_storage || !o->item_tasks)
		return false;
	for (uint32_t first = 0, last; first < o->num_accesses; first = last) {
		uint32_t storage = o->accesses[first].storage, count = 0, *tasks = o->item_tasks + first;
		for (last = first; last < o->num_accesses && o->accesses[last].storage == storage; last++)
			if (count == 0 || tasks[count - 1] != o->accesses[last].task)
				tasks[count++] = o->accesses[last].task;
		bool enters = o->born[storage] < o->begin;
		bool leaves = o->last[storage] >= o->end || o->block[storage] != o->run_block;
		o->item[storage] = LTH_NONE;
		if (o->sizes[storage] == 0 || (enters && leaves))
			continue;
		o->item[storage] = o->num_items;
		o->item_storage[o->num_items] = storage;
		o->items[o->num_items++] = (struct lth_order_item){.bytes = o->sizes[storage],
								   .enters = enters,
								   .leaves = leaves,
								   .tasks = tasks,
								   .num_tasks = count};
	}
	return true;
}

/* ReuseInPlace comes later; what it will do counts already. */
static void find_in_place(const struct orderer *o, uint32_t task, uint32_t *out_from, uint32_t *out_to)
{
	const struct lth_program *program = o->program;
	const struct lth_instr *instr = &program->instrs[o->calls[task]];
	*out_from = *out_to = LTH_NONE;
	if (instr->op != LTH_INSTR_CALL || instr->num_outputs != 1)
		return;
	uint32_t to = program->tensors[instr->tensors[0]].storage;
	for (uint32_t k = 1; k < instr->num_tensors && k < 32; k++) {
		if (!(instr->in_place & 1u << k) || instr->tensors[k] == LTH_NONE)
			continue;
		uint32_t from = program->tensors[instr->tensors[k]].storage;
		if (from != to && program->storages[from].size == program->storages[to].size) {
			*out_from = o->item[from];
			*out_to = o->item[to];
			return;
		}
	}
}

/* Writes the run's instructions in the new order: ALLOCs before their first use, those without one at the end. */
static bool rewrite(struct orderer *o, const uint32_t *order)
{
	struct lth_program *program = o->program;
	uint32_t count = o->end - o->begin, out = 0;
	struct lth_instr *made = lth_arena_array(program->arena, count, sizeof(*made));
	uint32_t *alloc_at = o->alloc_at;
	if (!made)
		return false;
	for (uint32_t i = o->begin; i < o->end; i++)
		if (program->instrs[i].op == LTH_INSTR_ALLOC)
			alloc_at[program->instrs[i].storage] = i + 1;
	for (uint32_t t = 0; t < o->num_calls; t++) {
		const struct lth_instr *instr = &program->instrs[o->calls[order[t]]];
		for (uint32_t k = 0; k <= instr->num_tensors; k++) {
			uint32_t storage = LTH_NONE;
			if (k < instr->num_tensors && instr->tensors[k] != LTH_NONE)
				storage = program->tensors[instr->tensors[k]].storage;
			else if (k == instr->num_tensors && instr->op == LTH_INSTR_CALL)
				storage = instr->scratch;
			if (storage == LTH_NONE || !alloc_at[storage])
				continue;
			made[out++] = program->instrs[alloc_at[storage] - 1];
			alloc_at[storage] = 0;
		}
		made[out++] = *instr;
	}
	for (uint32_t i = o->begin; i < o->end; i++)
		if (program->instrs[i].op == LTH_INSTR_ALLOC && alloc_at[program->instrs[i].storage]) {
			made[out++] = program->instrs[i];
			alloc_at[program->instrs[i].storage] = 0;
		}
	memcpy(program->instrs + o->begin, made, count * sizeof(*made));
	return true;
}

static void note(struct orderer *o, const struct lth_order *order, bool changed)
{
	o->report.blocks++;
	o->report.changed += changed;
	o->report.proved &= order->bound_bytes == order->peak_bytes;
	if (order->peak_bytes > o->report.peak_bytes) {
		o->report.peak_bytes = order->peak_bytes;
		o->report.bound_bytes = order->bound_bytes;
	}
}

static enum lth_code order_run(struct orderer *o)
{
	struct lth_arena *arena = o->program->arena;
	struct edges edges = {0};
	struct lth_order order;
	if (!collect(o))
		return no_memory(o);
	if (o->num_calls < 3)
		return LTH_OK; /* producer and consumer: there is no other order that could help */
	uint32_t *from = lth_arena_array(arena, o->num_calls, sizeof(*from));
	uint32_t *to = lth_arena_array(arena, o->num_calls, sizeof(*to));
	if (!from || !to || !find_edges(o, &edges) || !find_items(o))
		return no_memory(o);
	for (uint32_t t = 0; t < o->num_calls; t++)
		find_in_place(o, t, &from[t], &to[t]);
	struct lth_order_problem problem = {.num_tasks = o->num_calls,
					    .num_items = o->num_items,
					    .items = o->items,
					    .before_start = edges.start,
					    .before = edges.list,
					    .in_place_from = from,
					    .in_place_to = to,
					    .effort = 32 * (int64_t)o->num_calls +
						      o->effort * o->num_calls / o->all_calls};
	enum lth_code code = lth_order_search(&problem, &order, o->diag);
	if (code != LTH_OK)
		return code;
	bool changed = false;
	for (uint32_t t = 0; t < o->num_calls; t++)
		changed |= order.tasks[t] != t;
	note(o, &order, changed);
	if (changed && !rewrite(o, order.tasks))
		code = no_memory(o);
	free(order.tasks);
	return code;
}

static enum lth_code order_all(struct orderer *o, const uint32_t *opener)
{
	const struct lth_program *program = o->program;
	enum lth_code code = LTH_OK;
	for (uint32_t i = 0; i < program->num_instrs && code == LTH_OK;) {
		if (!movable(program->instrs[i].op)) {
			i++;
			continue;
		}
		uint32_t calls = 0;
		o->begin = i;
		o->run_block = opener[i];
		for (; i < program->num_instrs && movable(program->instrs[i].op) && calls < MAX_TASKS; i++)
			calls += program->instrs[i].op != LTH_INSTR_ALLOC;
		o->end = i;
		code = order_run(o);
	}
	return code;
}

enum lth_code lth_order_for_memory(struct lth_program *program, int64_t effort, struct lth_order_report *out,
				   struct lth_diag *diag)
{
	struct orderer o = {.program = program, .diag = diag, .effort = effort, .report = {.proved = true}};
	struct lth_arena *arena = program->arena;
	size_t storages = program->num_storages + 1;
	uint32_t *opener = lth_arena_array(arena, program->num_instrs + 1, sizeof(*opener));
	o.sizes = lth_arena_array(arena, storages, sizeof(*o.sizes));
	o.born = lth_arena_array(arena, storages, sizeof(uint32_t));
	o.last = lth_arena_array(arena, storages, sizeof(uint32_t));
	o.block = lth_arena_array(arena, storages, sizeof(uint32_t));
	o.item = lth_arena_array(arena, storages, sizeof(uint32_t));
	o.alloc_at = lth_arena_array(arena, storages, sizeof(uint32_t));
	o.values = lth_arena_array(arena, program->num_exprs + 1, sizeof(int64_t));
	o.defined = lth_arena_array(arena, program->num_exprs + 1, sizeof(bool));
	o.calls = lth_arena_array(arena, program->num_instrs + 1, sizeof(uint32_t));
	if (!opener || !o.sizes || !o.born || !o.last || !o.block || !o.item || !o.alloc_at || !o.values ||
	    !o.defined || !o.calls)
		return no_memory(&o);
	memset(o.born, 0xff, storages * sizeof(uint32_t));
	memset(o.block, 0xff, storages * sizeof(uint32_t));
	memset(o.item, 0xff, storages * sizeof(uint32_t));
	find_facts(&o, opener);
	for (uint32_t i = 0; i < program->num_instrs; i++)
		o.all_calls += movable(program->instrs[i].op) && program->instrs[i].op != LTH_INSTR_ALLOC;
	enum lth_code code = find_sizes(&o);
	if (code == LTH_OK)
		code = order_all(&o, opener);
	if (code == LTH_OK)
		*out = o.report;
	return code;
}
