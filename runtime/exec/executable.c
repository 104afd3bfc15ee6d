/* Loading: decode, verify, and work out once what every run would otherwise ask again: which expressions a shape
 * signature decides, what each data symbol changes, which checks a run makes of its inputs. */
#include "runtime/exec/executable.h"

#include <stdio.h>
#include <string.h>

static enum lth_code no_memory(struct lth_diag *diag)
{
	return lth_diag_fail(diag, LTH_OUT_OF_MEMORY, "executable", NULL, NULL, "no memory to load it");
}

/* The image against the program that came out of it. */
static enum lth_code check_image(const struct lth_image *image, const struct lth_program *program,
				 struct lth_diag *diag)
{
	if (image->num_kernels != program->num_kernels)
		return lth_diag_fail(diag, LTH_BAD_EXECUTABLE, "executable", NULL, NULL,
				     "%llu kernels for a program of %u", (unsigned long long)image->num_kernels,
				     program->num_kernels);
	if (image->constants_bytes < program->constants_bytes)
		return lth_diag_fail(diag, LTH_BAD_EXECUTABLE, "executable", NULL, NULL,
				     "%llu bytes of constants for a program of %llu",
				     (unsigned long long)image->constants_bytes,
				     (unsigned long long)program->constants_bytes);
	if (program->constants_bytes && (uintptr_t)image->constants % LTH_IMAGE_ALIGNMENT != 0)
		return lth_diag_fail(diag, LTH_BAD_EXECUTABLE, "executable", "constants aligned to 64", NULL, "others");
	return LTH_OK;
}

static bool index_inputs(struct lathe_executable *x)
{
	const struct lth_program *program = x->program;
	uint32_t count = 0;
	for (uint32_t i = 0; i < program->num_inputs; i++)
		count += program->tensors[program->inputs[i].tensor].rank;
	x->input_dims = lth_arena_array(x->arena, count, sizeof(*x->input_dims));
	x->shape_symbols = lth_arena_array(x->arena, program->num_symbols, sizeof(*x->shape_symbols));
	if (!x->input_dims || !x->shape_symbols)
		return false;
	for (uint32_t i = 0; i < program->num_inputs; i++) {
		const struct lth_tensor *t = &program->tensors[program->inputs[i].tensor];
		for (uint32_t axis = 0; axis < t->rank; axis++) {
			const struct lth_expr *e = &program->exprs[t->dims[axis]];
			x->input_dims[x->num_input_dims++] = (struct lth_input_dim){
				.input = i, .axis = axis, .expr = t->dims[axis],
				.symbol = e->op == LTH_EXPR_SYMBOL ? e->a : LTH_NONE,
			};
		}
	}
	for (uint32_t i = 0; i < program->num_symbols; i++) {
		if (program->symbols[i].source == LTH_SOURCE_INPUT)
			x->shape_symbols[x->num_shape_symbols++] = i;
		else
			x->has_data_symbols = true;
	}
	return true;
}

static bool find_shape_only(struct lathe_executable *x)
{
	const struct lth_program *program = x->program;
	x->shape_only = lth_arena_array(x->arena, program->num_exprs, sizeof(*x->shape_only));
	x->tensor_shape_only = lth_arena_array(x->arena, program->num_tensors, sizeof(*x->tensor_shape_only));
	if (!x->shape_only || !x->tensor_shape_only)
		return false;
	for (uint32_t i = 0; i < program->num_exprs; i++) {
		const struct lth_expr *e = &program->exprs[i];
		unsigned operands = lth_expr_operands(e->op);
		x->shape_only[i] = e->op == LTH_EXPR_SYMBOL
					   ? program->symbols[e->a].source == LTH_SOURCE_INPUT
					   : (operands < 1 || x->shape_only[e->a]) &&
						     (operands < 2 || x->shape_only[e->b]);
	}
	for (uint32_t i = 0; i < program->num_tensors; i++) {
		const struct lth_tensor *t = &program->tensors[i];
		bool known = x->shape_only[t->offset] && x->shape_only[program->storages[t->storage].size];
		for (uint32_t axis = 0; axis < t->rank; axis++)
			known = known && x->shape_only[t->dims[axis]] && x->shape_only[t->strides[axis]];
		x->tensor_shape_only[i] = known;
	}
	return true;
}

static bool group_push(struct lathe_executable *x, struct lth_groups *groups, uint32_t *count, uint32_t *capacity,
		       uint32_t id)
{
	uint32_t *items = lth_arena_grow(x->arena, groups->items, capacity, *count + 1, sizeof(*items));
	if (!items)
		return false;
	groups->items = items;
	items[(*count)++] = id;
	return true;
}

/* Whether any expression of a tensor is marked. */
static bool tensor_marked(const struct lth_program *program, uint32_t id, const bool *marks)
{
	const struct lth_tensor *t = &program->tensors[id];
	bool marked = marks[t->offset] || marks[program->storages[t->storage].size];
	for (uint32_t axis = 0; axis < t->rank; axis++)
		marked = marked || marks[t->dims[axis]] || marks[t->strides[axis]];
	return marked;
}

/* For each data symbol, the expressions and tensors that depend on it. */
static bool group_dependents(struct lathe_executable *x)
{
	const struct lth_program *program = x->program;
	uint32_t num_exprs = 0, cap_exprs = 0, num_tensors = 0, cap_tensors = 0;
	bool *marks = lth_arena_array(x->arena, program->num_exprs, sizeof(*marks));
	x->symbol_exprs.start = lth_arena_array(x->arena, (size_t)program->num_symbols + 1, sizeof(uint32_t));
	x->symbol_tensors.start = lth_arena_array(x->arena, (size_t)program->num_symbols + 1, sizeof(uint32_t));
	if (!marks || !x->symbol_exprs.start || !x->symbol_tensors.start)
		return false;
	for (uint32_t s = 0; s < program->num_symbols; s++) {
		bool data = program->symbols[s].source == LTH_SOURCE_DATA;
		for (uint32_t i = 0; data && i < program->num_exprs; i++) {
			const struct lth_expr *e = &program->exprs[i];
			unsigned operands = lth_expr_operands(e->op);
			marks[i] = e->op == LTH_EXPR_SYMBOL ? e->a == s
							    : (operands >= 1 && marks[e->a]) ||
								      (operands == 2 && marks[e->b]);
			if (marks[i] && !group_push(x, &x->symbol_exprs, &num_exprs, &cap_exprs, i))
				return false;
		}
		for (uint32_t i = 0; data && i < program->num_tensors; i++)
			if (tensor_marked(program, i, marks) &&
			    !group_push(x, &x->symbol_tensors, &num_tensors, &cap_tensors, i))
				return false;
		x->symbol_exprs.start[s + 1] = num_exprs;
		x->symbol_tensors.start[s + 1] = num_tensors;
	}
	return true;
}

/* A guard outside all blocks over shapes only holds for all runs at a signature or for none. */
static bool index_instrs(struct lathe_executable *x)
{
	const struct lth_program *program = x->program;
	uint32_t blocks = 0, loops = 0;
	x->guard_done = lth_arena_array(x->arena, program->num_instrs, sizeof(*x->guard_done));
	x->planned = lth_arena_array(x->arena, program->num_storages, sizeof(*x->planned));
	x->allocated = lth_arena_array(x->arena, program->num_storages, sizeof(*x->allocated));
	if (!x->guard_done || !x->planned || !x->allocated)
		return false;
	for (uint32_t i = 0; i < program->num_instrs; i++) {
		const struct lth_instr *instr = &program->instrs[i];
		x->max_tensors = instr->num_tensors > x->max_tensors ? instr->num_tensors : x->max_tensors;
		x->max_ints = instr->num_ints > x->max_ints ? instr->num_ints : x->max_ints;
		if (instr->op == LTH_INSTR_ALLOC)
			x->allocated[instr->storage] = true;
		if (instr->op == LTH_INSTR_GUARD)
			x->guard_done[i] = blocks == 0 && x->shape_only[instr->ints[0]] &&
					   x->shape_only[instr->ints[1]];
		blocks += instr->op == LTH_INSTR_IF || instr->op == LTH_INSTR_LOOP;
		blocks -= instr->op == LTH_INSTR_ENDIF || instr->op == LTH_INSTR_ENDLOOP;
		loops += instr->op == LTH_INSTR_LOOP;
		loops -= instr->op == LTH_INSTR_ENDLOOP;
		x->max_depth = loops > x->max_depth ? loops : x->max_depth;
	}
	for (uint32_t i = 0; program->num_orientations && i < program->orientations[0].num_storages; i++)
		x->planned[program->orientations[0].storages[i]] = true;
	return true;
}

static bool find_swapped_outputs(struct lathe_executable *x)
{
	const struct lth_program *program = x->program;
	x->swap_class = lth_arena_array(x->arena, program->num_storages + 1, sizeof(uint32_t));
	x->swapped_outputs = lth_arena_array(x->arena, program->num_storages + 1, sizeof(uint32_t));
	bool *seen = lth_arena_array(x->arena, program->num_storages + 1, sizeof(*seen));
	if (!x->swap_class || !x->swapped_outputs || !seen)
		return false;
	lth_program_swap_classes(program, x->swap_class);
	for (uint32_t i = 0; i < program->num_instrs; i++)
		for (uint32_t k = 0; program->instrs[i].op == LTH_INSTR_SWAP && k < 2; k++) {
			uint32_t id = program->tensors[program->instrs[i].tensors[k]].storage;
			if (program->storages[id].kind == LTH_STORAGE_OUTPUT && !seen[id])
				x->swapped_outputs[x->num_swapped_outputs++] = id;
			seen[id] = true;
		}
	return true;
}

enum lth_code lth_executable_load(const struct lth_image *image, struct lathe_executable **out_executable,
				  struct lth_diag *diag)
{
	struct lth_arena *arena = lth_arena_create(0);
	struct lathe_executable *x = arena ? lth_arena_alloc(arena, sizeof(*x)) : NULL;
	if (!x) {
		lth_arena_destroy(&arena);
		return no_memory(diag);
	}
	struct lth_program *program;
	x->arena = arena;
	x->image = *image;
	enum lth_code code = lth_program_decode(image->program, image->program_bytes, arena, &program, diag);
	if (code == LTH_OK)
		code = lth_program_verify(program, diag);
	if (code == LTH_OK)
		code = check_image(image, program, diag);
	if (code != LTH_OK)
		goto failed;
	x->program = program;
	if (!index_inputs(x) || !find_shape_only(x) || !group_dependents(x) || !index_instrs(x) ||
	    !find_swapped_outputs(x)) {
		code = no_memory(diag);
		goto failed;
	}
	code = lth_executable_describe(x, diag);
	if (code != LTH_OK)
		goto failed;
	*out_executable = x;
	return LTH_OK;
failed:
	lth_arena_destroy(&arena);
	return code;
}

void lth_executable_unload(struct lathe_executable **executable)
{
	if (!*executable)
		return;
	struct lth_arena *arena = (*executable)->arena; /* which holds the executable itself */
	lth_arena_destroy(&arena);
	*executable = NULL;
}

int lth_error_set(struct lathe_error *error, const struct lth_diag *diag)
{
	if (error) {
		error->code = diag->code;
		lth_diag_line(diag, error->text, sizeof(error->text));
	}
	return (int)diag->code;
}
