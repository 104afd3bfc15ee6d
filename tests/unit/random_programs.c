/* Random programs and a model of their runs. See random_programs.h. */
#include "random_programs.h"
#include "runtime/base/hash.h"
#include "runtime/memory/figures.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

enum { CELLS = 4, MAX_VALUES = 64 };

struct lth_arena *random_arena;
struct lth_diag random_diag;
uint64_t random_first_seed;
static uint64_t random_state, seed_now;

void random_setup(void)
{
	const char *seed = getenv("LTH_TEST_SEED");
	random_first_seed = seed ? strtoull(seed, NULL, 10) : 1;
	random_arena = lth_arena_create(0);
	random_diag = (struct lth_diag){0};
}

void random_teardown(void)
{
	lth_arena_destroy(&random_arena);
}

uint32_t random_below(uint32_t limit)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return (uint32_t)((random_state >> 20) % limit);
}

void random_must(enum lth_code code)
{
	char line[4096];
	ck_assert_msg(code == LTH_OK, "seed %llu: %s", (unsigned long long)seed_now,
		      lth_diag_line(&random_diag, line, sizeof(line)));
}

/* --- random programs */
struct maker {
	struct lth_program *program;
	uint32_t one, zero;
	uint32_t storages[MAX_VALUES], num_storages; /* that hold a whole value */
	uint32_t kernels[5];			     /* by number of operands */
	uint32_t outputs[2];			     /* storages that are the caller's, or LTH_NONE */
	unsigned depth;
};

/* Elements of a storage: CELLS times a small polynomial of the symbols. */
static uint32_t cell_elements(struct maker *m)
{
	struct lth_program *p = m->program;
	uint32_t a = lth_program_const(p, 16 * (1 + (int64_t)random_below(8)));
	uint32_t batch = lth_program_expr(p, LTH_EXPR_SYMBOL, 0, LTH_NONE, 0);
	uint32_t seq = lth_program_expr(p, LTH_EXPR_SYMBOL, 1, LTH_NONE, 0);
	switch (random_below(5)) {
	case 0:
		return a;
	case 1:
		return lth_program_expr(p, LTH_EXPR_MUL, a, batch, 0);
	case 2:
		return lth_program_expr(p, LTH_EXPR_MUL, a, seq, 0);
	case 3:
		return lth_program_expr(p, LTH_EXPR_MUL, batch, lth_program_expr(p, LTH_EXPR_MUL, a, seq, 0), 0);
	default:
		return lth_program_expr(p, LTH_EXPR_MUL, seq, lth_program_expr(p, LTH_EXPR_ADD, a, seq, 0), 0);
	}
}

/* A window of cells [first, first + count) on a storage, one byte an element. */
static uint32_t window(struct maker *m, uint32_t storage, uint32_t first, uint32_t count)
{
	struct lth_program *p = m->program;
	struct lth_tensor tensor = {.dtype = LTH_DTYPE_U8, .rank = 1, .storage = storage};
	uint32_t cell =
		lth_program_expr(p, LTH_EXPR_FLOORDIV, p->storages[storage].size, lth_program_const(p, CELLS), 0);
	tensor.dims[0] = lth_program_expr(p, LTH_EXPR_MUL, cell, lth_program_const(p, count), 0);
	tensor.strides[0] = m->one;
	tensor.offset = first ? lth_program_expr(p, LTH_EXPR_MUL, cell, lth_program_const(p, first), 0) : m->zero;
	return lth_program_tensor(p, &tensor);
}

static uint32_t new_storage(struct maker *m, uint32_t size)
{
	struct lth_program *p = m->program;
	if (size == LTH_NONE)
		size = lth_program_expr(p, LTH_EXPR_MUL, cell_elements(m), lth_program_const(p, CELLS), 0);
	struct lth_storage storage = {.kind = LTH_STORAGE_ARENA, .size = size, .alignment = 64};
	return lth_program_storage(p, &storage);
}

static void alloc(struct maker *m, uint32_t storage)
{
	struct lth_instr instr = {.op = LTH_INSTR_ALLOC, .storage = storage};
	lth_program_instr(m->program, &instr);
}

static uint32_t some_value(struct maker *m)
{
	return m->storages[random_below(4) == 0 ? random_below(m->num_storages)
					 : m->num_storages - 1 - random_below(m->num_storages < 4 ? m->num_storages : 4)];
}

/* A call that writes `out` from up to three values; one of the same size may be written over. */
static void call(struct maker *m, uint32_t out)
{
	struct lth_program *p = m->program;
	uint32_t tensors[4] = {out}, count = 1 + 1 + random_below(3), scratch = LTH_NONE;
	struct lth_instr instr = {.op = LTH_INSTR_CALL,
				  .tensors = tensors,
				  .num_tensors = count,
				  .num_outputs = 1,
				  .callee = m->kernels[count],
				  .range = m->one,
				  .grain = 1,
				  .scratch = LTH_NONE,
				  .scratch_bytes = LTH_NONE};
	for (uint32_t k = 1; k < count; k++) {
		uint32_t storage = some_value(m);
		tensors[k] = window(m, storage, 0, CELLS);
		if (p->storages[storage].size == p->storages[p->tensors[out].storage].size && random_below(2))
			instr.in_place |= 1u << k;
	}
	if (random_below(4) == 0) {
		scratch = new_storage(m, LTH_NONE);
		alloc(m, scratch);
		instr.scratch = scratch;
		instr.scratch_bytes = p->storages[scratch].size;
	}
	lth_program_instr(p, &instr);
}

static void add_value(struct maker *m, uint32_t storage)
{
	if (m->num_storages < MAX_VALUES)
		m->storages[m->num_storages++] = storage;
}

static void body(struct maker *m, uint32_t steps);

/* A value that two or four calls write in parts, as the operands of a Concat do. */
static void concat(struct maker *m)
{
	uint32_t storage = new_storage(m, LTH_NONE), parts = random_below(2) ? 2 : 4;
	alloc(m, storage);
	for (uint32_t part = 0; part < parts; part++)
		call(m, window(m, storage, part * CELLS / parts, CELLS / parts));
	add_value(m, storage);
}

static void copy(struct maker *m, uint32_t to, uint32_t from)
{
	uint32_t tensors[2] = {window(m, to, 0, CELLS), window(m, from, 0, CELLS)};
	struct lth_instr instr = {.op = LTH_INSTR_COPY, .tensors = tensors, .num_tensors = 2, .num_outputs = 1};
	lth_program_instr(m->program, &instr);
}

/* A value in a storage of its own, of so many bytes; now and then, outside of blocks, in one of the caller's. */
static uint32_t written_value(struct maker *m, uint32_t size)
{
	uint32_t storage = new_storage(m, size), k = random_below(2);
	if (m->depth == 1 && m->outputs[k] == LTH_NONE && random_below(2)) {
		m->program->storages[storage].kind = LTH_STORAGE_OUTPUT;
		m->program->storages[storage].index = k;
		m->outputs[k] = storage;
	} else {
		alloc(m, storage);
	}
	return storage;
}

/* An If whose arms write one value. */
static void branches(struct maker *m)
{
	struct lth_program *p = m->program;
	uint32_t result = written_value(m, LTH_NONE), known = m->num_storages;
	struct lth_tensor scalar = {.dtype = LTH_DTYPE_BOOL, .storage = some_value(m), .offset = m->zero};
	uint32_t condition = lth_program_tensor(p, &scalar);
	struct lth_instr head = {.op = LTH_INSTR_IF, .tensors = &condition, .num_tensors = 1};
	lth_program_instr(p, &head);
	for (int arm = 0; arm < 2; arm++) {
		struct lth_instr end = {.op = arm ? LTH_INSTR_ENDIF : LTH_INSTR_ELSE};
		body(m, 1 + random_below(4));
		call(m, window(m, result, 0, CELLS));
		m->num_storages = known;
		lth_program_instr(p, &end);
	}
	add_value(m, result);
}

enum { MAX_STATES = 4 };

/* The states for the next turn: new values, other states, or what they were. Most are read before any is written. */
static void next_states(struct maker *m, const uint32_t *states, uint32_t count)
{
	uint32_t from[MAX_STATES];
	for (uint32_t i = 0; i < count; i++)
		add_value(m, states[i]);
	for (uint32_t i = 0; i < count; i++) {
		from[i] = LTH_NONE;
		if (random_below(5) == 0)
			continue;
		if (random_below(2)) {
			from[i] = new_storage(m, m->program->storages[states[i]].size);
			alloc(m, from[i]);
			call(m, window(m, from[i], 0, CELLS));
			if (random_below(3) == 0) {
				copy(m, states[i], from[i]);
				from[i] = states[i];
			} else if (random_below(3) == 0) {
				add_value(m, from[i]);
			}
		}
	}
	for (uint32_t i = 0; i < count; i++) {
		uint32_t other = states[random_below(2) ? (i + 1) % count : random_below(count)];
		if (from[i] == LTH_NONE && other != states[i] &&
		    m->program->storages[other].size == m->program->storages[states[i]].size) {
			from[i] = new_storage(m, m->program->storages[other].size);
			alloc(m, from[i]);
			copy(m, from[i], other);
		}
	}
	for (uint32_t i = 0; i < count; i++)
		if (from[i] != LTH_NONE && from[i] != states[i])
			copy(m, states[i], from[i]);
}

/* A loop of no to five turns over some states, which may end when one of them says so. */
static void loop(struct maker *m)
{
	struct lth_program *p = m->program;
	uint32_t states[MAX_STATES], count = 1 + random_below(MAX_STATES), none = LTH_NONE, size = LTH_NONE;
	uint32_t trips = lth_program_const(p, random_below(6)), known;
	for (uint32_t i = 0; i < count; i++) {
		states[i] = written_value(m, random_below(4) ? size : LTH_NONE);
		size = p->storages[states[i]].size;
		call(m, window(m, states[i], 0, CELLS));
	}
	known = m->num_storages;
	struct lth_tensor scalar = {.dtype = LTH_DTYPE_BOOL, .storage = states[random_below(count)], .offset = m->zero};
	uint32_t condition = lth_program_tensor(p, &scalar);
	struct lth_instr head = {.op = LTH_INSTR_LOOP,
				 .tensors = random_below(3) ? &none : &condition,
				 .num_tensors = 1,
				 .ints = &trips,
				 .num_ints = 1,
				 .symbol = LTH_NONE};
	lth_program_instr(p, &head);
	body(m, random_below(3));
	if (random_below(6) == 0) /* a state that is written where it stands */
		call(m, window(m, states[random_below(count)], 0, CELLS));
	next_states(m, states, count);
	m->num_storages = known;
	struct lth_instr end = {.op = LTH_INSTR_ENDLOOP};
	lth_program_instr(p, &end);
	for (uint32_t i = 0; i < count; i++)
		add_value(m, states[i]);
}

static void body(struct maker *m, uint32_t steps)
{
	for (uint32_t i = 0; i < steps; i++) {
		uint32_t choice = random_below(8);
		if (choice == 0 && m->depth < 3) {
			m->depth++;
			random_below(3) ? loop(m) : branches(m);
			m->depth--;
		} else if (choice == 1) {
			concat(m);
		} else {
			uint32_t size = random_below(2) ? m->program->storages[some_value(m)].size : LTH_NONE;
			uint32_t storage = new_storage(m, size);
			alloc(m, storage);
			call(m, window(m, storage, 0, CELLS));
			add_value(m, storage);
		}
	}
}

struct lth_program *random_make_program(uint64_t seed)
{
	struct maker m = {.program = lth_program_create(random_arena), .outputs = {LTH_NONE, LTH_NONE}};
	struct lth_program *p = m.program;
	seed_now = seed;
	random_state = seed * 0x9e3779b97f4a7c15u + 1;
	struct lth_symbol batch = {
		.name = "batch", .min = 1, .max = 1 + random_below(16), .multiple = 1, .hint = 1, .bound = LTH_NONE};
	struct lth_symbol seq = {
		.name = "seq", .min = 1, .max = 64, .multiple = 1, .hint = 8, .axis = 1, .bound = LTH_NONE};
	lth_program_symbol(p, &batch);
	lth_program_symbol(p, &seq);
	m.zero = lth_program_const(p, 0);
	m.one = lth_program_const(p, 1);
	for (uint32_t k = 2; k <= 4; k++) {
		struct lth_kernel kernel = {
			.name = lth_arena_printf(random_arena, "%016u", k), .description = "mix", .num_pointers = k};
		m.kernels[k] = lth_program_kernel(p, &kernel);
	}
	struct lth_tensor input = {.dtype = LTH_DTYPE_U8, .rank = 3, .offset = m.zero};
	input.dims[0] = lth_program_expr(p, LTH_EXPR_SYMBOL, 0, LTH_NONE, 0);
	input.dims[1] = lth_program_expr(p, LTH_EXPR_SYMBOL, 1, LTH_NONE, 0);
	input.dims[2] = lth_program_const(p, 16 * CELLS);
	lth_program_dense_strides(p, 3, input.dims, input.strides);
	struct lth_storage given = {.kind = LTH_STORAGE_INPUT, .alignment = 64};
	given.size = lth_program_expr(p, LTH_EXPR_MUL, input.dims[0], input.dims[1], 0);
	given.size = lth_program_expr(p, LTH_EXPR_MUL, given.size, input.dims[2], 0);
	input.storage = lth_program_storage(p, &given);
	lth_program_input(p, "x", lth_program_tensor(p, &input), NULL);
	add_value(&m, input.storage);
	body(&m, 5 + random_below(30));
	for (unsigned i = 0; i < 2; i++) {
		uint32_t storage = m.outputs[i] != LTH_NONE ? m.outputs[i] : m.storages[m.num_storages - 1 - i];
		lth_program_output(p, i ? "y" : "z", window(&m, storage, 0, CELLS), NULL);
	}
	struct lth_instr end = {.op = LTH_INSTR_RETURN};
	lth_program_instr(p, &end);
	random_must(lth_program_link_blocks(p, &random_diag));
	return p;
}

/* --- the model of a run: each cell is a stretch of bytes, all of which hold what was written */
struct model {
	const struct lth_program *program;
	char **bases; /* by storage; those of a plan lie in `memory` */
	uint64_t values[8192];
};

static int64_t cell_bytes(const struct model *m, uint32_t storage)
{
	return (int64_t)m->values[m->program->storages[storage].size] / CELLS;
}

static void write_cell(const struct model *m, uint32_t storage, uint32_t cell, uint64_t value)
{
	int64_t bytes = cell_bytes(m, storage);
	for (int64_t i = 0; i + 8 <= bytes; i += 8)
		memcpy(m->bases[storage] + cell * bytes + i, &value, 8);
}

/* The first and the last eight bytes are the same, unless something else wrote there. */
static uint64_t read_cell(const struct model *m, uint32_t storage, uint32_t cell)
{
	uint64_t first, last;
	int64_t bytes = cell_bytes(m, storage);
	memcpy(&first, m->bases[storage] + cell * bytes, 8);
	memcpy(&last, m->bases[storage] + cell * bytes + bytes / 8 * 8 - 8, 8);
	return first == last ? first : lth_hash_u64(first, last);
}

static void window_cells(const struct model *m, uint32_t tensor, uint32_t *out_first, uint32_t *out_count)
{
	const struct lth_tensor *t = &m->program->tensors[tensor];
	int64_t cell = cell_bytes(m, t->storage);
	*out_first = cell ? (uint32_t)((int64_t)m->values[t->offset] / cell) : 0;
	*out_count = t->rank == 1 && cell ? (uint32_t)((int64_t)m->values[t->dims[0]] / cell) : CELLS;
}

static uint64_t read_tensor(const struct model *m, uint32_t tensor)
{
	uint32_t first, count, storage = m->program->tensors[tensor].storage;
	uint64_t hash = 1;
	if (m->program->storages[storage].kind == LTH_STORAGE_INPUT)
		return hash;
	window_cells(m, tensor, &first, &count);
	for (uint32_t i = first; i < first + count; i++)
		hash = lth_hash_u64(read_cell(m, storage, i), hash);
	return hash;
}

static void run_call(struct model *m, const struct lth_instr *instr)
{
	uint64_t hash = 3;
	uint32_t first, count;
	for (uint32_t k = 1; k < instr->num_tensors; k++)
		hash = lth_hash_u64(read_tensor(m, instr->tensors[k]), hash);
	if (instr->scratch != LTH_NONE)
		for (uint32_t i = 0; i < CELLS; i++)
			write_cell(m, instr->scratch, i, 99);
	window_cells(m, instr->tensors[0], &first, &count);
	for (uint32_t i = first; i < first + count; i++)
		write_cell(m, m->program->tensors[instr->tensors[0]].storage, i, lth_hash_u64(i, hash));
}

static void swap(struct model *m, const struct lth_instr *instr)
{
	uint32_t a = m->program->tensors[instr->tensors[0]].storage, b = m->program->tensors[instr->tensors[1]].storage;
	int64_t times = instr->ints[0] == LTH_NONE ? 1 : (int64_t)m->values[instr->ints[0]];
	char *held = m->bases[a];
	if (times > 0 && times % 2) {
		m->bases[a] = m->bases[b];
		m->bases[b] = held;
	}
}

static bool is_true(const struct model *m, uint32_t tensor)
{
	const struct lth_tensor *t = &m->program->tensors[tensor];
	return m->program->storages[t->storage].kind == LTH_STORAGE_INPUT || read_cell(m, t->storage, 0) & 1;
}

/* Runs [begin, end); ifs and loops go by what their condition holds, so that both ways agree between programs. */
static void run_range(struct model *m, uint32_t begin, uint32_t end)
{
	const struct lth_program *p = m->program;
	for (uint32_t i = begin; i < end; i++) {
		const struct lth_instr *instr = &p->instrs[i];
		switch (instr->op) {
		case LTH_INSTR_ALLOC:
		case LTH_INSTR_KILL:
			for (uint32_t c = 0; c < CELLS; c++)
				write_cell(m, instr->storage, c, 0xdead);
			break;
		case LTH_INSTR_CALL:
			run_call(m, instr);
			break;
		case LTH_INSTR_COPY:
			for (uint32_t c = 0; c < CELLS; c++)
				write_cell(m, p->tensors[instr->tensors[0]].storage, c,
					   read_cell(m, p->tensors[instr->tensors[1]].storage, c));
			break;
		case LTH_INSTR_SWAP:
			swap(m, instr);
			break;
		case LTH_INSTR_IF: {
			uint32_t other = instr->target;
			bool has_else = p->instrs[other].op == LTH_INSTR_ELSE;
			uint32_t last = has_else ? p->instrs[other].target : other;
			if (is_true(m, instr->tensors[0]))
				run_range(m, i + 1, other);
			else
				run_range(m, other + 1, last);
			i = last;
			break;
		}
		case LTH_INSTR_LOOP:
			for (uint64_t turn = 0; turn < m->values[instr->ints[0]] &&
						(instr->tensors[0] == LTH_NONE || is_true(m, instr->tensors[0]));
			     turn++)
				run_range(m, i + 1, instr->target);
			i = instr->target;
			break;
		default:
			break;
		}
	}
}

/* With a plan, storages lie where it puts them; else each by itself. */
void random_run_model(const struct lth_program *program, uint64_t out[2])
{
	struct model m = {.program = program};
	struct lth_memory_figures figures;
	int64_t symbols[2] = {2, 3}, total = 64, *offsets = calloc(program->num_storages, sizeof(*offsets));
	m.bases = calloc(program->num_storages + 1, sizeof(*m.bases));
	ck_assert(m.bases && offsets && program->num_exprs <= 8192);
	random_must(lth_program_eval(program, symbols, NULL, (int64_t *)m.values, NULL, &random_diag));
	random_must(lth_memory_figures(program, symbols, &figures, &random_diag));
	random_must(lth_memory_offsets(program, symbols, offsets, &random_diag));
	for (uint32_t s = 0; s < program->num_storages; s++)
		total += (int64_t)m.values[program->storages[s].size] + 64;
	char *memory = calloc(1, (size_t)(total + (figures.arena_bytes > 0 ? figures.arena_bytes : 0)));
	char *next = memory + (figures.arena_bytes > 0 ? figures.arena_bytes : 0);
	for (uint32_t s = 0; s < program->num_storages; s++) {
		m.bases[s] = offsets[s] >= 0 ? memory + offsets[s] : next;
		next += offsets[s] >= 0 ? 0 : (int64_t)m.values[program->storages[s].size];
	}
	run_range(&m, 0, program->num_instrs);
	for (int i = 0; i < 2; i++)
		out[i] = read_tensor(&m, program->outputs[i].tensor);
	free(memory);
	free(offsets);
	free(m.bases);
}
