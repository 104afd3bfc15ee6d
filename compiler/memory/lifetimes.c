/* ManifestLifetimes: kills each storage right after its exact last use.
 *
 * Backward dataflow over structured control flow. A storage allocated in a block is killed in that block. One that is
 * allocated before an if and last used inside it is killed in both arms: after its last use in an arm that uses it, at
 * the start of one that does not. Uses inside a loop of what was allocated before it count at the loop's end, since the
 * next turn may use it again. Storages that swap end together, behind the last use of any. Thread rule: as the
 * program's. */
#include "compiler/memory/memory.h"

#include <stdlib.h>
#include <string.h>

/* Kills to insert: behind instruction `at`, `storage`. */
struct kill {
	uint32_t at, storage;
};

struct lifetimes {
	struct lth_program *program;
	uint32_t *born;      /* by storage: its ALLOC, or LTH_NONE */
	uint32_t *last_use;  /* by class of those that swap, lifted to the block of its ALLOCs */
	uint32_t *classes;   /* by storage (lth_program_swap_classes) */
	bool *handed_out;    /* by class: an output is of it */
	uint32_t *parent;    /* by instruction: the IF, ELSE or LOOP that opens its block, or LTH_NONE */
	struct kill *kills;
	uint32_t num_kills, cap_kills;
	bool exhausted;
};

static bool opens(enum lth_instr_op op)
{
	return op == LTH_INSTR_IF || op == LTH_INSTR_LOOP || op == LTH_INSTR_ELSE;
}

static void find_blocks(struct lifetimes *l)
{
	uint32_t current = LTH_NONE;
	for (uint32_t i = 0; i < l->program->num_instrs; i++) {
		enum lth_instr_op op = l->program->instrs[i].op;
		if ((op == LTH_INSTR_ELSE || op == LTH_INSTR_ENDIF || op == LTH_INSTR_ENDLOOP) && current != LTH_NONE)
			current = l->parent[current];
		l->parent[i] = current;
		if (opens(op))
			current = i;
	}
}

/* The position behind which a use at `at` ends for a storage born in block `block`: the end of the outermost loop
 * between, else the use itself; climbing out of ifs is done by the caller. */
static uint32_t lift(const struct lifetimes *l, uint32_t at, uint32_t block)
{
	uint32_t result = at;
	for (uint32_t p = l->parent[at]; p != block && p != LTH_NONE; p = l->parent[p])
		if (l->program->instrs[p].op == LTH_INSTR_LOOP)
			result = l->program->instrs[p].target;
	return result;
}

static void use(struct lifetimes *l, uint32_t storage, uint32_t at)
{
	if (storage == LTH_NONE || l->born[storage] == LTH_NONE)
		return;
	uint32_t end = lift(l, at, l->parent[l->born[storage]]), class = l->classes[storage];
	if (l->last_use[class] == LTH_NONE || end > l->last_use[class])
		l->last_use[class] = end;
}

static void add_kill(struct lifetimes *l, uint32_t at, uint32_t storage)
{
	struct kill *kills =
		lth_arena_grow(l->program->arena, l->kills, &l->cap_kills, l->num_kills + 1, sizeof(*kills));
	if (!kills) {
		l->exhausted = true;
		return;
	}
	l->kills = kills;
	kills[l->num_kills++] = (struct kill){at, storage};
}

/* Last use of a class at positions [begin, end), lifted out of loops, or LTH_NONE. */
static uint32_t last_use_between(const struct lifetimes *l, uint32_t class, uint32_t begin, uint32_t end,
				 uint32_t block)
{
	const struct lth_program *program = l->program;
	uint32_t last = LTH_NONE;
	for (uint32_t i = begin; i < end; i++) {
		const struct lth_instr *instr = &program->instrs[i];
		bool uses = instr->op == LTH_INSTR_CALL && instr->scratch != LTH_NONE &&
			    l->classes[instr->scratch] == class;
		for (uint32_t k = 0; k < instr->num_tensors && !uses; k++)
			uses = instr->tensors[k] != LTH_NONE &&
			       l->classes[program->tensors[instr->tensors[k]].storage] == class;
		if (uses) {
			uint32_t at = lift(l, i, block);
			last = last == LTH_NONE || at > last ? at : last;
		}
	}
	return last;
}

/* Places the kill of a storage whose last use is `at`, seen from block `block`. */
static void place(struct lifetimes *l, uint32_t storage, uint32_t at, uint32_t block)
{
	const struct lth_program *program = l->program;
	uint32_t inner = LTH_NONE; /* the outermost if arm between the block and the use */
	for (uint32_t p = l->parent[at]; p != block && p != LTH_NONE; p = l->parent[p])
		inner = p;
	enum lth_instr_op op = inner == LTH_NONE ? LTH_INSTR_RETURN : program->instrs[inner].op;
	if (inner == LTH_NONE || op == LTH_INSTR_LOOP) {
		/* an IF's own condition is read before its arms begin: kill at the start of both arms is the kill
		 * behind the IF; a LOOP's condition is read each turn, so it ends with the loop */
		const struct lth_instr *instr = &program->instrs[at];
		if (instr->op == LTH_INSTR_LOOP) {
			add_kill(l, instr->target, storage);
		} else if (instr->op == LTH_INSTR_IF) {
			add_kill(l, at, storage);
			uint32_t other = instr->target;
			if (program->instrs[other].op == LTH_INSTR_ELSE)
				add_kill(l, other, storage);
		} else {
			add_kill(l, at, storage);
		}
		return;
	}
	/* find the IF and its ELSE and ENDIF */
	uint32_t if_at = inner, else_at = LTH_NONE, end_at;
	if (op == LTH_INSTR_ELSE) {
		else_at = inner;
		for (if_at = inner; if_at-- > 0;)
			if (program->instrs[if_at].op == LTH_INSTR_IF && program->instrs[if_at].target == inner)
				break;
		end_at = program->instrs[inner].target;
	} else {
		end_at = program->instrs[inner].target;
		if (program->instrs[end_at].op == LTH_INSTR_ELSE) {
			else_at = end_at;
			end_at = program->instrs[else_at].target;
		}
	}
	if (else_at == LTH_NONE) { /* one arm only: behind the whole if, where both ways meet */
		add_kill(l, end_at, storage);
		return;
	}
	uint32_t then_last = last_use_between(l, l->classes[storage], if_at + 1, else_at, if_at);
	uint32_t else_last = last_use_between(l, l->classes[storage], else_at + 1, end_at, else_at);
	if (then_last == LTH_NONE)
		add_kill(l, if_at, storage);
	else
		place(l, storage, then_last, if_at);
	if (else_last == LTH_NONE)
		add_kill(l, else_at, storage);
	else
		place(l, storage, else_last, else_at);
}

static int by_position(const void *a, const void *b)
{
	const struct kill *x = a, *y = b;
	if (x->at != y->at)
		return x->at < y->at ? -1 : 1;
	return x->storage < y->storage ? -1 : x->storage > y->storage;
}

/* Rewrites the list with the kills in it; targets of control flow move along. */
static void insert_kills(struct lifetimes *l)
{
	struct lth_program *program = l->program;
	uint32_t total = program->num_instrs + l->num_kills, next = 0, out = 0;
	struct lth_instr *instrs = lth_arena_array(program->arena, total, sizeof(*instrs));
	uint32_t *moved = lth_arena_array(program->arena, program->num_instrs + 1, sizeof(*moved));
	if (!instrs || !moved)
		return;
	if (l->num_kills)
		qsort(l->kills, l->num_kills, sizeof(*l->kills), by_position);
	for (uint32_t i = 0; i < program->num_instrs; i++) {
		moved[i] = out;
		instrs[out++] = program->instrs[i];
		for (; next < l->num_kills && l->kills[next].at == i; next++) {
			instrs[out] = lth_instr_of(LTH_INSTR_KILL);
			instrs[out++].storage = l->kills[next].storage;
		}
	}
	for (uint32_t i = 0; i < out; i++)
		if (opens(instrs[i].op) || instrs[i].op == LTH_INSTR_ENDLOOP)
			instrs[i].target = moved[instrs[i].target];
	program->instrs = instrs;
	program->num_instrs = program->cap_instrs = total;
}

/* Live ranges from the instructions: from the ALLOC to behind the last KILL. */
void lth_lifetimes_set_ranges(struct lth_program *program)
{
	for (uint32_t i = 0; i < program->num_storages; i++)
		program->storages[i].first = program->storages[i].last = LTH_NONE;
	for (uint32_t i = 0; i < program->num_instrs; i++) {
		const struct lth_instr *instr = &program->instrs[i];
		if (instr->op == LTH_INSTR_ALLOC && program->storages[instr->storage].first == LTH_NONE)
			program->storages[instr->storage].first = i;
		if (instr->op == LTH_INSTR_KILL)
			program->storages[instr->storage].last = i;
	}
	for (uint32_t i = 0; i < program->num_storages; i++) {
		struct lth_storage *storage = &program->storages[i];
		bool lives = storage->kind == LTH_STORAGE_ARENA || storage->kind == LTH_STORAGE_POOL;
		if (!lives || storage->first == LTH_NONE)
			storage->first = storage->last = 0;
		else if (storage->last == LTH_NONE)
			storage->last = program->num_instrs;
	}
}

void lth_lifetimes_to_the_end(struct lth_program *program)
{
	lth_lifetimes_set_ranges(program);
}

enum lth_code lth_manifest_lifetimes(struct lth_program *program, struct lth_diag *diag)
{
	struct lifetimes l = {.program = program};
	l.parent = lth_arena_array(program->arena, program->num_instrs + 1, sizeof(*l.parent));
	l.born = lth_arena_array(program->arena, program->num_storages + 1, sizeof(*l.born));
	l.last_use = lth_arena_array(program->arena, program->num_storages + 1, sizeof(*l.last_use));
	l.classes = lth_arena_array(program->arena, program->num_storages + 1, sizeof(*l.classes));
	l.handed_out = lth_arena_array(program->arena, program->num_storages + 1, sizeof(*l.handed_out));
	if (!l.parent || !l.born || !l.last_use || !l.classes || !l.handed_out)
		goto exhausted;
	memset(l.born, 0xff, program->num_storages * sizeof(*l.born));
	memset(l.last_use, 0xff, program->num_storages * sizeof(*l.last_use));
	lth_program_swap_classes(program, l.classes);
	for (uint32_t s = 0; s < program->num_storages; s++)
		l.handed_out[l.classes[s]] |= program->storages[s].kind == LTH_STORAGE_OUTPUT;
	find_blocks(&l);
	for (uint32_t i = 0; i < program->num_instrs; i++) {
		const struct lth_instr *instr = &program->instrs[i];
		if (instr->op == LTH_INSTR_ALLOC)
			l.born[instr->storage] = l.last_use[l.classes[instr->storage]] = i;
		if (instr->op == LTH_INSTR_CALL)
			use(&l, instr->scratch, i);
		for (uint32_t k = 0; k < instr->num_tensors; k++)
			if (instr->tensors[k] != LTH_NONE)
				use(&l, program->tensors[instr->tensors[k]].storage, i);
	}
	for (uint32_t i = 0; i < program->num_outputs; i++)
		use(&l, program->tensors[program->outputs[i].tensor].storage, program->num_instrs - 1);
	for (uint32_t s = 0; s < program->num_storages; s++)
		if (l.born[s] != LTH_NONE && l.last_use[l.classes[s]] != program->num_instrs - 1 &&
		    !l.handed_out[l.classes[s]])
			place(&l, s, l.last_use[l.classes[s]], l.parent[l.born[s]]);
	insert_kills(&l);
	if (l.exhausted || !lth_arena_ok(program->arena))
		goto exhausted;
	lth_lifetimes_set_ranges(program);
	return LTH_OK;
exhausted:
	return lth_diag_fail(diag, LTH_OUT_OF_MEMORY, "", NULL, NULL, "the compile's memory is exhausted");
}
