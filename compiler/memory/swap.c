/* ShareBranches: a loop's state that its turn cannot write in place is held by two storages in turn.
 *
 * What is copied over a state at the end of a turn and read no more is swapped with it instead: the names exchange their
 * places, and no byte moves. Copies among states (a rotation, a delay line) are swaps, too, where what is overwritten goes
 * elsewhere. Both storages then live as long as either, where the source of a copy lives for a part of the turn only. So
 * a swap is made where no sample of the box has a live bound that is higher for it by more than a 32nd, and under a budget
 * by nothing: a copy takes about the time that so much more memory would.
 *
 * Copies that stand together are read as one assignment (what each storage holds in the end of what was there before),
 * which as few swaps as possible then make. States of one size share their second storage where they are written one after
 * the other. Thread rule: as the program's. */
#include "compiler/memory/swap.h"

#include <stdlib.h>
#include <string.h>

/* A rewriting of one loop's end on trial. */
struct swapper {
	const struct lth_program *program; /* as it is */
	struct lth_arena *arena;           /* of what it becomes */
	struct lth_spans spans;
	bool *chosen; /* by instruction: a copy to be made a swap */
	uint32_t loop, end; /* the LOOP, its ENDLOOP */
	/* The assignment in hand: storages that move, a tensor on each, and whose contents each then holds. */
	uint32_t *moved, *tensors, *holds, num_moved;
	struct lth_instr *out;
	uint32_t num_out;
	uint32_t *became; /* by storage: the one that stands in for it */
	uint32_t *until;  /* by storage that stands in for others: the last swap of them in the turn; else 0 */
	bool shares;      /* they may do so */
};

static enum lth_code no_memory(struct lth_diag *diag)
{
	return lth_diag_fail(diag, LTH_OUT_OF_MEMORY, "ShareBranches", NULL, NULL, "no memory");
}

/* Does the storage begin anew in each turn, so that no turn finds what the one before left? */
static bool born_in_turn(const struct swapper *w, uint32_t storage)
{
	uint32_t born = w->spans.born[storage];
	return born < w->program->num_instrs && w->spans.opener[born] == w->loop;
}

static bool is_fixed(const struct lth_program *program, uint32_t expr, int64_t value)
{
	return program->exprs[expr].op == LTH_EXPR_CONST && program->exprs[expr].value == value;
}

/* The same window, from the start, on two storages that may swap. */
static bool whole_copy(const struct swapper *w, const struct lth_instr *copy)
{
	const struct lth_program *program = w->program;
	if (copy->op != LTH_INSTR_COPY)
		return false;
	const struct lth_tensor *to = &program->tensors[copy->tensors[0]], *from = &program->tensors[copy->tensors[1]];
	const struct lth_storage *x = &program->storages[to->storage], *y = &program->storages[from->storage];
	bool kinds = (x->kind == LTH_STORAGE_ARENA || x->kind == LTH_STORAGE_OUTPUT) &&
		     (y->kind == LTH_STORAGE_ARENA || y->kind == LTH_STORAGE_OUTPUT);
	return kinds && to->storage != from->storage && x->size == y->size && x->alignment == y->alignment &&
	       is_fixed(program, to->offset, 0) && lth_same_window(program, to, from);
}

/* What a storage holds in front of instruction `at` of the turn: does nobody read it any more? */
static bool is_dead(const struct swapper *w, uint32_t storage, uint32_t at)
{
	const struct lth_program *program = w->program;
	for (uint32_t i = at; i < w->end; i++) {
		const struct lth_instr *instr = &program->instrs[i];
		if (lth_instr_mentions(program, instr, storage))
			return whole_copy(w, instr) && w->spans.opener[i] == w->loop &&
			       lth_tensor_storage(program, instr->tensors[0]) == storage;
	}
	return born_in_turn(w, storage) && (w->spans.last[storage] == LTH_NONE || w->spans.last[storage] < w->end);
}

static bool known_birth(const struct swapper *w, uint32_t storage)
{
	return w->program->storages[storage].kind == LTH_STORAGE_OUTPUT || w->spans.born[storage] < w->program->num_instrs;
}

/* May the copy be a swap: is what it leaves behind never read? */
static bool may_swap(const struct swapper *w, uint32_t at)
{
	const struct lth_instr *instr = &w->program->instrs[at];
	if (w->spans.opener[at] != w->loop || !whole_copy(w, instr))
		return false;
	uint32_t to = lth_tensor_storage(w->program, instr->tensors[0]), from = lth_tensor_storage(w->program, instr->tensors[1]);
	return known_birth(w, to) && known_birth(w, from) && (!born_in_turn(w, to) || !born_in_turn(w, from)) &&
	       is_dead(w, from, at + 1);
}

/* --- one assignment */
static uint32_t place_of(const struct swapper *w, uint32_t storage)
{
	uint32_t k = 0;
	while (k < w->num_moved && w->moved[k] != storage)
		k++;
	return k;
}

static uint32_t join(struct swapper *w, uint32_t tensor)
{
	uint32_t storage = lth_tensor_storage(w->program, tensor), k = place_of(w, storage);
	if (k == w->num_moved) {
		w->moved[k] = storage;
		w->tensors[k] = tensor;
		w->holds[k] = k;
		w->num_moved++;
	}
	return k;
}

/* Writes the assignment that was gathered, in front of instruction `at`, as swaps. */
static void write_swaps(struct swapper *w, uint32_t at)
{
	uint32_t *now = w->holds + w->program->num_storages; /* whose contents each holds by now */
	for (uint32_t k = 0; k < w->num_moved; k++)
		now[k] = k;
	for (uint32_t k = 0; k < w->num_moved; k++) {
		uint32_t from = 0, none = LTH_NONE;
		if (is_dead(w, w->moved[k], at))
			continue;
		while (now[from] != w->holds[k])
			from++;
		if (from == k)
			continue;
		uint32_t pair[2] = {w->tensors[k], w->tensors[from]}, held = now[k];
		struct lth_instr swap = lth_instr_of(LTH_INSTR_SWAP);
		swap.tensors = lth_arena_memdup(w->arena, pair, sizeof(pair));
		swap.ints = lth_arena_memdup(w->arena, &none, sizeof(none));
		swap.num_tensors = swap.num_outputs = 2;
		swap.num_ints = 1;
		swap.node = w->program->instrs[w->loop].node;
		w->out[w->num_out++] = swap;
		now[k] = now[from];
		now[from] = held;
	}
	w->num_moved = 0;
}

/* Storages that begin in a turn and end in a swap stand in for each other where one is swapped before the next is written:
 * each then finds the place that the swap before has freed. Says so in `w->became`. */
static void share_spares(struct swapper *w)
{
	const struct lth_program *program = w->program;
	for (uint32_t s = 0; s < program->num_storages; s++) {
		w->became[s] = s;
		w->until[s] = 0;
	}
	for (uint32_t i = w->loop; i < w->end && w->shares; i++) {
		uint32_t spare = w->chosen[i] ? lth_tensor_storage(program, program->instrs[i].tensors[1]) : LTH_NONE;
		if (spare == LTH_NONE || !born_in_turn(w, spare) || w->spans.last[spare] != i)
			continue;
		uint32_t begin = w->spans.born[spare], other = 0;
		while (!lth_instr_mentions(program, &program->instrs[begin], spare))
			begin++;
		while (other < program->num_storages &&
		       (!w->until[other] || w->until[other] >= begin ||
			program->storages[other].size != program->storages[spare].size ||
			program->storages[other].alignment != program->storages[spare].alignment))
			other++;
		w->became[spare] = other < program->num_storages ? other : spare;
		w->until[w->became[spare]] = i;
	}
}

/* Does the instruction touch what the assignment moves, or stand in another block than what follows? */
static bool interferes(const struct swapper *w, const struct lth_instr *instr)
{
	enum lth_instr_op op = instr->op;
	if (op == LTH_INSTR_IF || op == LTH_INSTR_ELSE || op == LTH_INSTR_ENDIF || op == LTH_INSTR_LOOP ||
	    op == LTH_INSTR_ENDLOOP)
		return true;
	for (uint32_t k = 0; k < w->num_moved; k++)
		for (uint32_t t = 0; t < instr->num_tensors; t++)
			if (instr->tensors[t] != LTH_NONE &&
			    w->became[w->program->tensors[instr->tensors[t]].storage] == w->became[w->moved[k]])
				return true;
	return false;
}

/* The list with the chosen copies as swaps and without KILLs. */
static void rewrite(struct swapper *w)
{
	const struct lth_program *program = w->program;
	w->num_out = w->num_moved = 0;
	for (uint32_t i = 0; i < program->num_instrs; i++) {
		const struct lth_instr *instr = &program->instrs[i];
		if (w->num_moved && !w->chosen[i] && interferes(w, instr))
			write_swaps(w, i);
		if (w->chosen[i]) {
			uint32_t to = join(w, instr->tensors[0]), from = join(w, instr->tensors[1]);
			w->holds[to] = w->holds[from];
		} else if (instr->op != LTH_INSTR_KILL) {
			w->out[w->num_out++] = *instr;
		}
	}
}

/* --- a trial */

static enum lth_swap_outcome apply(struct swapper *w, struct lth_program *program, bool kills, struct lth_diag *diag)
{
	w->arena = program->arena;
	w->out = lth_arena_array(w->arena, w->program->num_instrs + 1, sizeof(*w->out));
	if (!w->out) {
		no_memory(diag);
		return LTH_SWAP_FAILED;
	}
	share_spares(w);
	rewrite(w);
	for (uint32_t t = 0; t < program->num_tensors; t++)
		program->tensors[t].storage = w->became[program->tensors[t].storage];
	return lth_swap_settle(program, w->out, w->num_out, kills, diag);
}

/* Live bounds at the named samples; where sizes overflow there is none. */
static void find_bounds(const struct lth_program *program, int64_t *symbols, int64_t out[LTH_NAMED_SAMPLES])
{
	for (uint32_t i = 0; i < LTH_NAMED_SAMPLES; i++) {
		struct lth_memory_figures figures;
		struct lth_diag ignored = {0};
		lth_symbols_sample(program, i, symbols);
		bool known = lth_memory_figures(program, symbols, &figures, &ignored) == LTH_OK;
		out[i] = known ? figures.live_bound_bytes : INT64_MAX;
	}
}

/* What the chosen swaps make of a copy of the program: no sample may have a higher bound. */
static enum lth_swap_outcome try_swaps(struct swapper *w, bool kills, int64_t *symbols, const int64_t *allowed,
			      struct lth_diag *diag)
{
	struct lth_program trial = *w->program;
	int64_t bounds[LTH_NAMED_SAMPLES];
	enum lth_swap_outcome outcome = LTH_SWAP_FAILED;
	trial.arena = lth_arena_create(0);
	if (trial.arena) {
		trial.storages = lth_arena_memdup(trial.arena, trial.storages,
						  trial.num_storages * sizeof(*trial.storages));
		trial.tensors = lth_arena_memdup(trial.arena, trial.tensors, trial.num_tensors * sizeof(*trial.tensors));
	}
	if (!trial.arena || !trial.storages || !trial.tensors)
		no_memory(diag);
	else
		outcome = apply(w, &trial, kills, diag);
	if (outcome == LTH_SWAP_MADE) {
		find_bounds(&trial, symbols, bounds);
		for (uint32_t i = 0; i < LTH_NAMED_SAMPLES; i++)
			if (bounds[i] > allowed[i])
				outcome = LTH_SWAP_REFUSED;
	}
	lth_arena_destroy(&trial.arena);
	return outcome;
}

/* The loop that is number `number` to end. */
static bool find_loop(struct swapper *w, uint32_t number)
{
	for (w->end = 0; w->end < w->program->num_instrs; w->end++)
		if (w->program->instrs[w->end].op == LTH_INSTR_ENDLOOP && number-- == 0) {
			w->loop = w->program->instrs[w->end].target;
			return true;
		}
	return false;
}

/* All that may be swapped in one loop, or what of it costs no memory, one after the other. */
static enum lth_swap_outcome choose(struct swapper *w, bool kills, int64_t *symbols, const int64_t *allowed, struct lth_diag *diag)
{
	uint32_t count = 0, made = 0;
	for (uint32_t i = w->loop; i < w->end; i++)
		count += w->chosen[i] = may_swap(w, i);
	enum lth_swap_outcome outcome = count ? try_swaps(w, kills, symbols, allowed, diag) : LTH_SWAP_REFUSED;
	if (outcome != LTH_SWAP_REFUSED || count < 2)
		return outcome;
	memset(w->chosen, 0, w->program->num_instrs * sizeof(*w->chosen));
	for (uint32_t i = w->loop; i < w->end && outcome != LTH_SWAP_FAILED; i++) {
		if (!may_swap(w, i))
			continue;
		w->chosen[i] = true;
		outcome = try_swaps(w, kills, symbols, allowed, diag);
		w->chosen[i] = outcome == LTH_SWAP_MADE;
		made += outcome == LTH_SWAP_MADE;
	}
	return outcome == LTH_SWAP_FAILED ? LTH_SWAP_FAILED : made ? LTH_SWAP_MADE : LTH_SWAP_REFUSED;
}

static enum lth_swap_outcome swap_loop(struct swapper *w, struct lth_program *program, bool kills, int64_t *symbols,
			      const int64_t *allowed, struct lth_diag *diag)
{
	enum lth_swap_outcome outcome = LTH_SWAP_REFUSED;
	for (int apart = 0; apart < 2 && outcome == LTH_SWAP_REFUSED; apart++) {
		w->shares = !apart;
		outcome = choose(w, kills, symbols, allowed, diag);
	}
	return outcome == LTH_SWAP_MADE ? apply(w, program, kills, diag) : outcome;
}

/* Facts of the program as it is by now. */
static bool look(struct swapper *w)
{
	lth_spans_free(&w->spans);
	free(w->chosen);
	w->chosen = calloc(w->program->num_instrs + 1, sizeof(*w->chosen));
	if (!w->chosen || !lth_spans_init(&w->spans, w->program))
		return false;
	lth_spans_find(&w->spans, w->program);
	return true;
}

static enum lth_code swap_arena(struct swapper *w, struct lth_program *program, bool tight, int64_t *symbols,
				struct lth_diag *diag)
{
	enum { SLACK = 32 };
	int64_t allowed[LTH_NAMED_SAMPLES];
	bool kills = false;
	for (uint32_t i = 0; i < program->num_instrs; i++)
		kills |= program->instrs[i].op == LTH_INSTR_KILL;
	for (uint32_t loop = 0; find_loop(w, loop); loop++) {
		if (loop == 0)
			find_bounds(program, symbols, allowed);
		for (uint32_t i = 0; loop == 0 && i < LTH_NAMED_SAMPLES; i++)
			allowed[i] += tight || allowed[i] > INT64_MAX / 2 ? 0 : allowed[i] / SLACK;
		if (!look(w))
			return no_memory(diag);
		if (swap_loop(w, program, kills, symbols, allowed, diag) == LTH_SWAP_FAILED)
			return diag->code;
	}
	return LTH_OK;
}

/* --- states of the pool, whose blocks go where they are swapped to */

static bool is_dense(struct lth_program *program, const struct lth_tensor *tensor)
{
	uint32_t strides[LTH_MAX_RANK];
	lth_program_dense_strides(program, tensor->rank, tensor->dims, strides);
	return is_fixed(program, tensor->offset, 0) &&
	       memcmp(strides, tensor->strides, tensor->rank * sizeof(strides[0])) == 0;
}

/* Is the copy all of a block that ends here, into one that was made large enough for it? */
static bool takes_block(struct lth_program *program, const struct lth_spans *spans, uint32_t at)
{
	const struct lth_instr *copy = &program->instrs[at], *grow = at ? copy - 1 : copy;
	if (copy->op != LTH_INSTR_COPY || grow->op != LTH_INSTR_GROW || grow->tensors[0] != copy->tensors[0])
		return false;
	const struct lth_tensor *to = &program->tensors[copy->tensors[0]], *from = &program->tensors[copy->tensors[1]];
	uint32_t born = spans->born[from->storage];
	return program->storages[from->storage].kind == LTH_STORAGE_POOL && to->storage != from->storage &&
	       born < program->num_instrs && spans->last[from->storage] == at &&
	       spans->opener[born] == spans->opener[at] && is_dense(program, to) && is_dense(program, from);
}

static enum lth_code swap_pool(struct swapper *w, struct lth_program *program, struct lth_diag *diag)
{
	uint32_t count = 0, *once = lth_arena_array(program->arena, 1, sizeof(*once));
	if (!once || !look(w))
		return no_memory(diag);
	*once = LTH_NONE;
	for (uint32_t i = 0; i < program->num_instrs; i++)
		w->chosen[i] = takes_block(program, &w->spans, i);
	for (uint32_t i = 0; i < program->num_instrs; i++) {
		struct lth_instr instr = program->instrs[i];
		if (i + 1 < program->num_instrs && w->chosen[i + 1])
			continue; /* the GROW */
		if (w->chosen[i]) {
			instr.op = LTH_INSTR_SWAP;
			instr.num_outputs = 2;
			instr.num_ints = 1;
			instr.ints = once;
		}
		program->instrs[count++] = instr;
	}
	program->num_instrs = count;
	return lth_program_link_blocks(program, diag);
}

/* --- outputs */

/* Is the value of an expression the same at both places, for no symbol of it is set between? */
static bool holds_between(const struct lth_program *program, uint32_t expr, uint32_t begin, uint32_t end, bool *changes)
{
	memset(changes, 0, (expr + 1) * sizeof(*changes));
	for (uint32_t i = 0; i <= expr; i++) {
		const struct lth_expr *e = &program->exprs[i];
		unsigned operands = lth_expr_operands(e->op);
		for (uint32_t k = begin; e->op == LTH_EXPR_SYMBOL && k < end; k++)
			changes[i] |= (program->instrs[k].op == LTH_INSTR_SET || program->instrs[k].op == LTH_INSTR_BIND) &&
				      program->instrs[k].symbol == e->a;
		changes[i] |= (operands > 0 && changes[e->a]) || (operands > 1 && changes[e->b]);
	}
	return !changes[expr];
}

/* Where an output swaps with one other once a turn, and the turns are known before it is first written: the instruction in
 * front of which a swap of so many times lets the last turn end in the caller's buffer. LTH_NONE where that is not so. */
static uint32_t find_start(const struct lth_program *program, const struct lth_spans *spans, uint32_t swap,
			   bool *changes)
{
	const struct lth_instr *instr = &program->instrs[swap];
	uint32_t a = lth_tensor_storage(program, instr->tensors[0]), b = lth_tensor_storage(program, instr->tensors[1]);
	uint32_t loop = spans->opener[swap], other = program->storages[a].kind == LTH_STORAGE_OUTPUT ? b : a;
	if ((program->storages[a].kind == LTH_STORAGE_OUTPUT) == (program->storages[b].kind == LTH_STORAGE_OUTPUT) ||
	    loop == LTH_NONE || program->instrs[loop].op != LTH_INSTR_LOOP || spans->opener[loop] != LTH_NONE)
		return LTH_NONE;
	for (uint32_t i = 0; i < program->num_instrs; i++)
		if (i != swap && program->instrs[i].op == LTH_INSTR_SWAP &&
		    (lth_instr_mentions(program, &program->instrs[i], a) ||
		     lth_instr_mentions(program, &program->instrs[i], b)))
			return LTH_NONE;
	const struct lth_instr *head = &program->instrs[loop];
	uint32_t start = spans->born[other] + 1;
	bool known = head->tensors[0] == LTH_NONE && head->ints[0] != LTH_NONE && start <= loop &&
		     holds_between(program, head->ints[0], start, loop, changes);
	return known ? start : LTH_NONE;
}

static enum lth_code start_outputs(struct swapper *w, struct lth_program *program, struct lth_diag *diag)
{
	bool *changes = lth_arena_array(program->arena, program->num_exprs + 1, sizeof(*changes));
	for (uint32_t i = 0; i < program->num_instrs; i++) {
		if (program->instrs[i].op != LTH_INSTR_SWAP)
			continue;
		if (!changes || !look(w))
			return no_memory(diag);
		uint32_t start = find_start(program, &w->spans, i, changes);
		if (start == LTH_NONE)
			continue;
		struct lth_instr swap = program->instrs[i];
		swap.ints = program->instrs[w->spans.opener[i]].ints; /* the trip count */
		if (lth_program_instr(program, &swap) == LTH_NONE)
			return no_memory(diag);
		memmove(program->instrs + start + 1, program->instrs + start,
			(program->num_instrs - 1 - start) * sizeof(swap));
		swap.tensors = program->instrs[++i].tensors;
		program->instrs[start] = swap;
	}
	return lth_program_link_blocks(program, diag);
}

enum lth_code lth_swap_states(struct lth_program *program, bool tight, struct lth_diag *diag)
{
	struct swapper w = {.program = program};
	int64_t *symbols = calloc(program->num_symbols + 1, sizeof(*symbols));
	w.moved = calloc(program->num_storages + 1, sizeof(*w.moved));
	w.tensors = calloc(program->num_storages + 1, sizeof(*w.tensors));
	w.became = calloc(program->num_storages + 1, sizeof(*w.became));
	w.until = calloc(program->num_storages + 1, sizeof(*w.until));
	w.holds = calloc(2 * (size_t)program->num_storages + 1, sizeof(*w.holds));
	bool ready = symbols && w.moved && w.tensors && w.holds && w.became && w.until;
	enum lth_code code = ready ? swap_arena(&w, program, tight, symbols, diag) : no_memory(diag);
	if (code == LTH_OK)
		code = swap_pool(&w, program, diag);
	if (code == LTH_OK)
		code = start_outputs(&w, program, diag);
	lth_lifetimes_set_ranges(program);
	lth_spans_free(&w.spans);
	free(symbols);
	free(w.moved);
	free(w.tensors);
	free(w.holds);
	free(w.became);
	free(w.until);
	free(w.chosen);
	return code;
}
