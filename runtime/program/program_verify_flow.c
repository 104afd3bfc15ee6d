/* The verifier's walk along the instructions: nesting of blocks, storages alive and symbols bound where they are used.
 *
 * One array of facts, true or false, holds both "storage s is alive" and "expression e has a value"; changes are
 * logged, so that leaving a block undoes what it did. Behind an if, a fact holds when it holds at the end of both arms;
 * behind a loop, which may run no turn, when it held in front of it. A storage that lives when a loop begins must live
 * at the end of each turn. Storages of the arena that swap begin and end to live together. The work is linear in the instructions and in the changes of each arm. */
#include "runtime/program/program_verify.h"

#include <stdlib.h>
#include <string.h>

struct change {
	uint32_t fact;
	bool value; /* in the log: before the change; in an arm's outcome: at its end */
};

struct changes {
	struct change *items;
	size_t count, capacity;
};

struct block {
	enum lth_instr_op op; /* IF, ELSE or LOOP */
	uint32_t position;
	size_t log_start;
	struct changes arm; /* ELSE: the outcome of the first arm */
};

struct flow {
	const struct lth_program *program;
	struct lth_diag *diag;
	bool *facts;               /* of each storage, then of each expression */
	bool *then_facts, *merged; /* for merging arms; false between merges */
	struct changes log;
	struct block *blocks;
	size_t num_blocks, cap_blocks;
	uint32_t *users_start, *users; /* of each expression: those that have it as operand */
	uint32_t *work;                /* expressions to look at */
	uint32_t *class_of;            /* of each storage: those that swap are of one class */
	uint32_t *next, *previous;     /* of each storage: its class as a ring */
	bool *has_output;              /* of each class: one of it is the caller's */
	bool exhausted;
};

static void push_change(struct flow *f, struct changes *list, uint32_t fact, bool value)
{
	if (list->count == list->capacity) {
		size_t capacity = list->capacity ? list->capacity * 2 : 64;
		struct change *items = realloc(list->items, capacity * sizeof(*items));
		if (!items) {
			f->exhausted = true;
			return;
		}
		list->items = items;
		list->capacity = capacity;
	}
	list->items[list->count++] = (struct change){fact, value};
}

static void set_fact(struct flow *f, uint32_t fact, bool value)
{
	if (f->facts[fact] == value)
		return;
	push_change(f, &f->log, fact, f->facts[fact]);
	f->facts[fact] = value;
}

static uint32_t expr_fact(const struct flow *f, uint32_t expr)
{
	return f->program->num_storages + expr;
}

static bool has_value(const struct flow *f, uint32_t expr)
{
	return f->facts[expr_fact(f, expr)];
}

static bool operands_have_values(const struct flow *f, const struct lth_expr *e)
{
	unsigned operands = lth_expr_operands(e->op);
	return (operands < 1 || has_value(f, e->a)) && (operands < 2 || has_value(f, e->b));
}

/* The rings of those that swap in the arena; those of the pool carry their blocks along, each for itself. */
static void find_rings(struct flow *f)
{
	const struct lth_program *program = f->program;
	lth_program_swap_classes(program, f->class_of);
	for (uint32_t s = 0; s < program->num_storages; s++)
		f->next[s] = f->previous[s] = s;
	for (uint32_t s = 0; s < program->num_storages; s++) {
		uint32_t class = f->class_of[s], behind = f->next[class];
		f->has_output[class] |= program->storages[s].kind == LTH_STORAGE_OUTPUT;
		if (s == class || program->storages[s].kind == LTH_STORAGE_POOL)
			continue;
		f->next[class] = f->previous[behind] = s;
		f->next[s] = behind;
		f->previous[s] = class;
	}
}

/* Behind the last of the allocs and kills that stand together at `at`: do those that swap agree, and those that swap with an
 * output live on every path, to the end? */
static enum lth_code check_rings(struct flow *f, uint32_t at)
{
	for (uint32_t i = at + 1; i-- > 0;) {
		const struct lth_instr *instr = &f->program->instrs[i];
		if (instr->op != LTH_INSTR_ALLOC && instr->op != LTH_INSTR_KILL)
			break;
		uint32_t s = instr->storage;
		if (f->next[s] == s)
			continue;
		bool alive = f->facts[s];
		if (f->facts[f->next[s]] != alive || f->facts[f->previous[s]] != alive ||
		    (f->has_output[f->class_of[s]] && f->num_blocks))
			return lth_verify_fail(f->diag, "instruction", i, "storages that swap to live together",
					       "storage %u for itself", s);
	}
	return LTH_OK;
}

/* The symbol has a value from here on, and with it the expressions over it. */
static void bind_symbol(struct flow *f, uint32_t symbol)
{
	uint32_t count = 0;
	for (uint32_t i = f->users_start[f->program->num_exprs + symbol];
	     i < f->users_start[f->program->num_exprs + symbol + 1]; i++) {
		set_fact(f, expr_fact(f, f->users[i]), true);
		f->work[count++] = f->users[i];
	}
	while (count) {
		uint32_t expr = f->work[--count];
		for (uint32_t i = f->users_start[expr]; i < f->users_start[expr + 1]; i++) {
			uint32_t user = f->users[i];
			if (has_value(f, user) || !operands_have_values(f, &f->program->exprs[user]))
				continue;
			set_fact(f, expr_fact(f, user), true);
			f->work[count++] = user;
		}
	}
}

/* The operands of an expression as sources of edges: expressions, and behind them symbols. */
static unsigned sources_of(const struct lth_program *program, uint32_t id, uint32_t out_sources[2])
{
	const struct lth_expr *e = &program->exprs[id];
	unsigned operands = lth_expr_operands(e->op);
	out_sources[0] = e->op == LTH_EXPR_SYMBOL ? program->num_exprs + e->a : e->a;
	out_sources[1] = e->b;
	return e->op == LTH_EXPR_SYMBOL ? 1 : operands;
}

static void build_users(struct flow *f)
{
	const struct lth_program *program = f->program;
	uint32_t sources[2], num_sources = program->num_exprs + program->num_symbols;
	for (uint32_t i = 0; i < program->num_exprs; i++)
		for (unsigned k = sources_of(program, i, sources); k-- > 0;)
			f->users_start[sources[k] + 1]++;
	for (uint32_t i = 0; i < num_sources; i++)
		f->users_start[i + 1] += f->users_start[i];
	/* Entry k + 1 is the end of k's users; filling from the back moves it to their start, one place too high. */
	uint32_t total = f->users_start[num_sources];
	for (uint32_t i = program->num_exprs; i-- > 0;)
		for (unsigned k = sources_of(program, i, sources); k-- > 0;)
			f->users[--f->users_start[sources[k] + 1]] = i;
	memmove(f->users_start, f->users_start + 1, num_sources * sizeof(*f->users_start));
	f->users_start[num_sources] = total;
}

static void set_initial_facts(struct flow *f)
{
	const struct lth_program *program = f->program;
	for (uint32_t i = 0; i < program->num_storages; i++)
		f->facts[i] = program->storages[i].kind != LTH_STORAGE_ARENA &&
			      program->storages[i].kind != LTH_STORAGE_POOL;
	for (uint32_t i = 0; i < program->num_exprs; i++) {
		const struct lth_expr *e = &program->exprs[i];
		f->facts[expr_fact(f, i)] = e->op == LTH_EXPR_SYMBOL
						    ? program->symbols[e->a].source == LTH_SOURCE_INPUT
						    : operands_have_values(f, e);
	}
}

/* Takes the changes since `start` off the log into `out`, with the values they ended at, and undoes them. */
static void take_outcome(struct flow *f, size_t start, struct changes *out)
{
	for (size_t i = start; i < f->log.count; i++)
		push_change(f, out, f->log.items[i].fact, f->facts[f->log.items[i].fact]);
	while (f->log.count > start) {
		struct change *last = &f->log.items[--f->log.count];
		f->facts[last->fact] = last->value;
	}
}

/* Behind an if: what both arms agree on. */
static void merge_arms(struct flow *f, const struct changes *first, const struct changes *second)
{
	for (size_t i = 0; i < second->count; i++)
		f->then_facts[second->items[i].fact] = f->facts[second->items[i].fact];
	for (size_t i = 0; i < first->count; i++)
		f->then_facts[first->items[i].fact] = first->items[i].value;
	for (size_t i = 0; i < second->count; i++) {
		uint32_t fact = second->items[i].fact;
		if (!f->merged[fact])
			set_fact(f, fact, second->items[i].value && f->then_facts[fact]);
		f->merged[fact] = true;
	}
	for (size_t i = 0; i < first->count; i++) {
		uint32_t fact = first->items[i].fact;
		if (!f->merged[fact])
			set_fact(f, fact, first->items[i].value && f->facts[fact]);
		f->merged[fact] = true;
	}
	for (size_t i = 0; i < first->count; i++)
		f->merged[first->items[i].fact] = false;
	for (size_t i = 0; i < second->count; i++)
		f->merged[second->items[i].fact] = false;
}

static enum lth_code open_block(struct flow *f, enum lth_instr_op op, uint32_t at)
{
	if (f->num_blocks == f->cap_blocks) {
		size_t capacity = f->cap_blocks ? f->cap_blocks * 2 : 16;
		struct block *blocks = realloc(f->blocks, capacity * sizeof(*blocks));
		if (!blocks) {
			f->exhausted = true;
			return LTH_OK;
		}
		f->blocks = blocks;
		f->cap_blocks = capacity;
	}
	f->blocks[f->num_blocks++] = (struct block){.op = op, .position = at, .log_start = f->log.count};
	return LTH_OK;
}

static enum lth_code misplaced(struct flow *f, uint32_t at)
{
	return lth_verify_fail(f->diag, "instruction", at, "blocks that nest, and targets that say so", "%s",
			       lth_instr_text(f->program->instrs[at].op));
}

static enum lth_code step_else(struct flow *f, uint32_t at)
{
	struct block *top = f->num_blocks ? &f->blocks[f->num_blocks - 1] : NULL;
	if (!top || top->op != LTH_INSTR_IF || f->program->instrs[top->position].target != at)
		return misplaced(f, at);
	take_outcome(f, top->log_start, &top->arm);
	top->op = LTH_INSTR_ELSE;
	top->position = at;
	return LTH_OK;
}

static enum lth_code step_endif(struct flow *f, uint32_t at)
{
	struct block *top = f->num_blocks ? &f->blocks[f->num_blocks - 1] : NULL;
	if (!top || top->op == LTH_INSTR_LOOP || f->program->instrs[top->position].target != at)
		return misplaced(f, at);
	struct changes last = {0};
	take_outcome(f, top->log_start, &last);
	merge_arms(f, &top->arm, &last);
	free(last.items);
	free(top->arm.items);
	f->num_blocks--;
	return LTH_OK;
}

static enum lth_code step_endloop(struct flow *f, uint32_t at)
{
	struct block *top = f->num_blocks ? &f->blocks[f->num_blocks - 1] : NULL;
	if (!top || top->op != LTH_INSTR_LOOP || f->program->instrs[top->position].target != at ||
	    f->program->instrs[at].target != top->position)
		return misplaced(f, at);
	struct changes turn = {0};
	take_outcome(f, top->log_start, &turn);
	enum lth_code code = LTH_OK;
	for (size_t i = 0; i < turn.count && code == LTH_OK; i++)
		if (turn.items[i].fact < f->program->num_storages && f->facts[turn.items[i].fact] &&
		    !turn.items[i].value)
			code = lth_verify_fail(f->diag, "instruction", at,
					       "storages of the outside to outlive a turn", "storage %u killed",
					       turn.items[i].fact);
	free(turn.items);
	f->num_blocks--;
	return code;
}

static enum lth_code use_tensor(struct flow *f, uint32_t at, uint32_t id)
{
	if (id == LTH_NONE)
		return LTH_OK;
	const struct lth_tensor *t = &f->program->tensors[id];
	if (!f->facts[t->storage])
		return lth_verify_fail(f->diag, "instruction", at, "storages that are alive", "storage %u of tensor %u",
				       t->storage, id);
	bool known = has_value(f, t->offset);
	for (uint32_t axis = 0; axis < t->rank; axis++)
		known = known && has_value(f, t->dims[axis]) && has_value(f, t->strides[axis]);
	if (!known)
		return lth_verify_fail(f->diag, "instruction", at, "symbols that are bound", "dims of tensor %u", id);
	return LTH_OK;
}

static enum lth_code use_operands(struct flow *f, uint32_t at)
{
	const struct lth_instr *instr = &f->program->instrs[at];
	enum lth_code code = LTH_OK;
	for (uint32_t i = 0; i < instr->num_tensors && code == LTH_OK; i++)
		code = use_tensor(f, at, instr->tensors[i]);
	for (uint32_t i = 0; i < instr->num_ints && code == LTH_OK; i++)
		if (instr->ints[i] != LTH_NONE && !has_value(f, instr->ints[i]))
			code = lth_verify_fail(f->diag, "instruction", at, "symbols that are bound", "int %u", i);
	if (code != LTH_OK || instr->op != LTH_INSTR_CALL)
		return code;
	bool scratch = instr->scratch != LTH_NONE;
	if (!has_value(f, instr->range) || (scratch && !has_value(f, instr->scratch_bytes)))
		return lth_verify_fail(f->diag, "instruction", at, "symbols that are bound", "its range or scratch");
	if (instr->flops != LTH_NONE && !has_value(f, instr->flops))
		return lth_verify_fail(f->diag, "instruction", at, "symbols that are bound", "its flops");
	if (scratch && !f->facts[instr->scratch])
		return lth_verify_fail(f->diag, "instruction", at, "storages that are alive", "scratch storage %u",
				       instr->scratch);
	return LTH_OK;
}

static enum lth_code step_alloc(struct flow *f, uint32_t at, bool begins)
{
	uint32_t id = f->program->instrs[at].storage;
	if (f->facts[id] == begins)
		return lth_verify_fail(f->diag, "instruction", at, begins ? "a storage that is not alive"
									  : "a storage that is alive",
				       "storage %u", id);
	if (begins && !has_value(f, f->program->storages[id].size))
		return lth_verify_fail(f->diag, "instruction", at, "symbols that are bound", "size of storage %u", id);
	set_fact(f, id, begins);
	return LTH_OK;
}

static enum lth_code step(struct flow *f, uint32_t at)
{
	const struct lth_instr *instr = &f->program->instrs[at];
	enum lth_code code = use_operands(f, at);
	if (code != LTH_OK)
		return code;
	switch (instr->op) {
	case LTH_INSTR_ALLOC:
		return step_alloc(f, at, true);
	case LTH_INSTR_KILL:
		return step_alloc(f, at, false);
	case LTH_INSTR_BIND:
	case LTH_INSTR_SET:
		bind_symbol(f, instr->symbol);
		return LTH_OK;
	case LTH_INSTR_IF:
		return open_block(f, LTH_INSTR_IF, at);
	case LTH_INSTR_ELSE:
		return step_else(f, at);
	case LTH_INSTR_ENDIF:
		return step_endif(f, at);
	case LTH_INSTR_LOOP:
		code = open_block(f, LTH_INSTR_LOOP, at);
		if (instr->symbol != LTH_NONE)
			bind_symbol(f, instr->symbol);
		return code;
	case LTH_INSTR_ENDLOOP:
		return step_endloop(f, at);
	case LTH_INSTR_RETURN:
		for (uint32_t i = 0; i < f->program->num_outputs && code == LTH_OK; i++)
			code = use_tensor(f, at, f->program->outputs[i].tensor);
		return code == LTH_OK && f->num_blocks ? misplaced(f, at) : code;
	default:
		return LTH_OK;
	}
}

static bool begins_or_ends(const struct lth_program *program, uint32_t at)
{
	return at < program->num_instrs &&
	       (program->instrs[at].op == LTH_INSTR_ALLOC || program->instrs[at].op == LTH_INSTR_KILL);
}

enum lth_code lth_verify_flow(const struct lth_program *program, struct lth_diag *diag)
{
	struct flow f = {.program = program, .diag = diag};
	size_t storages = (size_t)program->num_storages + 1;
	size_t facts = storages + program->num_exprs;
	size_t sources = (size_t)program->num_exprs + program->num_symbols + 2;
	f.facts = calloc(3 * facts, sizeof(*f.facts));
	f.users_start = calloc(sources, sizeof(*f.users_start));
	f.users = calloc(2 * (size_t)program->num_exprs + 1, sizeof(*f.users));
	f.work = calloc((size_t)program->num_exprs + 1, sizeof(*f.work));
	f.class_of = calloc(3 * storages, sizeof(*f.class_of));
	f.has_output = calloc(storages, sizeof(*f.has_output));
	f.exhausted = !f.facts || !f.users_start || !f.users || !f.work || !f.class_of || !f.has_output;
	enum lth_code code = LTH_OK;
	if (!f.exhausted) {
		f.then_facts = f.facts + facts;
		f.merged = f.then_facts + facts;
		f.next = f.class_of + storages;
		f.previous = f.next + storages;
		build_users(&f);
		set_initial_facts(&f);
		find_rings(&f);
	}
	for (uint32_t at = 0; at < program->num_instrs && code == LTH_OK && !f.exhausted; at++) {
		code = step(&f, at);
		if (code == LTH_OK && begins_or_ends(program, at) && !begins_or_ends(program, at + 1))
			code = check_rings(&f, at);
	}
	if (code == LTH_OK && f.exhausted)
		code = lth_diag_fail(diag, LTH_OUT_OF_MEMORY, "program", NULL, NULL, "its control flow");
	for (size_t i = 0; i < f.num_blocks; i++)
		free(f.blocks[i].arm.items);
	free(f.blocks);
	free(f.log.items);
	free(f.has_output);
	free(f.class_of);
	free(f.work);
	free(f.users);
	free(f.users_start);
	free(f.facts);
	return code;
}
