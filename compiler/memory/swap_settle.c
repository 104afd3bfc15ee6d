/* A list of instructions with swaps becomes a program's. See swap.h. Storages that swap must all begin where the first
 * of them is needed, and outside of all blocks where one is an output. Thread rule: as the program's. */
#include "compiler/memory/swap.h"

#include <stdlib.h>

/* What a rewritten list says of its classes. */
struct classes {
	struct lth_spans spans;
	uint32_t *of, *size; /* by storage: its class; by class: how many */
	uint32_t *site;      /* by class: the instruction in front of which all of it begins, or LTH_NONE */
	bool *here;          /* by instruction: the site of some class */
};

/* The instruction outside of all blocks that holds this one. */
static uint32_t outermost(const struct lth_program *program, const struct lth_spans *spans, uint32_t at)
{
	const struct lth_instr *instrs = program->instrs;
	while (spans->opener[at] != LTH_NONE)
		at = spans->opener[at];
	if (instrs[at].op == LTH_INSTR_ELSE)
		for (uint32_t end = at; instrs[at].op != LTH_INSTR_IF || instrs[at].target != end;)
			at--;
	return at;
}

/* At the first ALLOC; with an output, outside of all blocks and before anything touches it. */
static void find_sites(const struct lth_program *program, struct classes *c)
{
	lth_spans_find(&c->spans, program);
	lth_program_swap_classes(program, c->of);
	for (uint32_t s = 0; s < program->num_storages; s++) {
		c->size[c->of[s]]++;
		c->site[s] = LTH_NONE;
	}
	for (uint32_t i = 0; i < program->num_instrs; i++) {
		const struct lth_instr *instr = &program->instrs[i];
		if (instr->op == LTH_INSTR_ALLOC && c->site[c->of[instr->storage]] == LTH_NONE)
			c->site[c->of[instr->storage]] = i;
		for (uint32_t k = 0; k < instr->num_tensors; k++) {
			uint32_t s = lth_tensor_storage(program, instr->tensors[k]);
			if (s != LTH_NONE && c->site[c->of[s]] == LTH_NONE)
				c->site[c->of[s]] = i;
		}
	}
	for (uint32_t s = 0; s < program->num_storages; s++)
		if (program->storages[s].kind == LTH_STORAGE_OUTPUT && c->site[c->of[s]] != LTH_NONE)
			c->site[c->of[s]] = outermost(program, &c->spans, c->site[c->of[s]]);
	for (uint32_t s = 0; s < program->num_storages; s++)
		if (c->size[s] < 2)
			c->site[s] = LTH_NONE;
		else if (c->site[s] != LTH_NONE)
			c->here[c->site[s]] = true;
}

/* Those that swap begin side by side; storages of the arena that nothing mentions any more do not begin. */
static void gather_allocs(struct lth_program *program, const struct classes *c, struct lth_instr *out)
{
	uint32_t count = 0;
	for (uint32_t i = 0; i < program->num_instrs; i++) {
		const struct lth_instr *instr = &program->instrs[i];
		bool alloc = instr->op == LTH_INSTR_ALLOC;
		for (uint32_t s = 0; c->here[i] && s < program->num_storages; s++)
			if (c->site[c->of[s]] == i && c->spans.born[s] != LTH_NONE && c->spans.last[s] != LTH_NONE) {
				out[count] = lth_instr_of(LTH_INSTR_ALLOC);
				out[count++].storage = s;
			}
		bool idle = alloc && program->storages[instr->storage].kind == LTH_STORAGE_ARENA &&
			    c->spans.last[instr->storage] == LTH_NONE;
		if (!alloc || (c->size[c->of[instr->storage]] < 2 && !idle))
			out[count++] = *instr;
	}
	program->instrs = out;
	program->num_instrs = program->cap_instrs = count;
}

/* What swaps with outputs ends with the program and must not be one that the runtime copies out. */
static bool classes_hold(const struct lth_program *program, const struct classes *c, bool *has_output)
{
	for (uint32_t s = 0; s < program->num_storages; s++)
		has_output[c->of[s]] |= program->storages[s].kind == LTH_STORAGE_OUTPUT;
	for (uint32_t s = 0; s < program->num_storages; s++)
		if (has_output[c->of[s]] && program->storages[s].kind != LTH_STORAGE_OUTPUT &&
		    c->spans.last[s] == program->num_instrs)
			return false;
	return true;
}

enum lth_swap_outcome lth_swap_settle(struct lth_program *program, struct lth_instr *instrs, uint32_t num_instrs,
				      bool kills, struct lth_diag *diag)
{
	struct classes c = {0};
	bool *has_output = calloc(program->num_storages + 1, sizeof(*has_output));
	enum lth_swap_outcome outcome = LTH_SWAP_FAILED;
	program->instrs = instrs;
	program->num_instrs = program->cap_instrs = num_instrs;
	struct lth_instr *list = lth_arena_array(program->arena, num_instrs + 1, sizeof(*list));
	c.of = calloc(program->num_storages + 1, sizeof(*c.of));
	c.size = calloc(program->num_storages + 1, sizeof(*c.size));
	c.site = calloc(program->num_storages + 1, sizeof(*c.site));
	c.here = calloc(program->num_instrs + 1, sizeof(*c.here));
	if (!has_output || !list || !c.of || !c.size || !c.site || !c.here || !lth_spans_init(&c.spans, program)) {
		lth_diag_fail(diag, LTH_OUT_OF_MEMORY, "ShareBranches", NULL, NULL, "no memory");
	} else if (lth_program_link_blocks(program, diag) == LTH_OK) {
		find_sites(program, &c);
		outcome = classes_hold(program, &c, has_output) ? LTH_SWAP_MADE : LTH_SWAP_REFUSED;
		gather_allocs(program, &c, list);
		if (lth_program_link_blocks(program, diag) != LTH_OK ||
		    (kills && lth_manifest_lifetimes(program, diag) != LTH_OK))
			outcome = LTH_SWAP_FAILED;
		lth_lifetimes_set_ranges(program);
	}
	lth_spans_free(&c.spans);
	free(c.of);
	free(c.size);
	free(c.site);
	free(c.here);
	free(has_output);
	return outcome;
}
