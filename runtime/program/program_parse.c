/* Reading the program's text form, by recursive descent, one function a kind of line. The grammar is in
 * docs/PROGRAM.md. A text that parses may still break a rule of lth_program_verify: parsing checks only what it needs
 * to build the program. */
#include "runtime/program/program_parse.h"

#include <stdio.h>
#include <string.h>

static bool parse_fused_sizes(struct lth_text_parser *p)
{
	bool yes;
	if (!lth_take_optional(p, "true", &yes))
		return false;
	p->program->fused_sizes = yes;
	return yes || lth_take(p, "false");
}

static bool parse_constants(struct lth_text_parser *p)
{
	int64_t bytes = 0;
	if (!lth_take_int(p, &bytes))
		return false;
	if (bytes < 0)
		return lth_lexer_fail(&p->lexer, "a number of bytes", "%lld", (long long)bytes);
	p->program->constants_bytes = (uint64_t)bytes;
	return true;
}

static bool parse_certificate(struct lth_text_parser *p)
{
	return lth_take_string(p, &p->program->certificate);
}

static bool take_source(struct lth_text_parser *p, struct lth_symbol *symbol)
{
	bool data;
	symbol->source = LTH_SOURCE_DATA;
	symbol->input = symbol->axis = symbol->bound = LTH_NONE;
	if (!lth_take_optional(p, "data", &data) || data)
		return data;
	symbol->source = LTH_SOURCE_INPUT;
	return lth_take(p, "input") && lth_take_u32(p, &symbol->input) && lth_take(p, "axis") &&
	       lth_take_u32(p, &symbol->axis);
}

static bool parse_symbol(struct lth_text_parser *p)
{
	struct lth_symbol symbol = {.max = INT64_MAX, .multiple = 1};
	bool unbounded, found;
	if (p->lexer.kind != LTH_TOKEN_SYMBOL)
		return lth_lexer_expected(&p->lexer, "a symbol");
	if (lth_text_symbol_named(p->program, p->lexer.text) != LTH_NONE)
		return lth_lexer_expected(&p->lexer, "a name that no other symbol has");
	symbol.name = p->lexer.text;
	if (!lth_take_next(p) || !lth_take(p, "in") || !lth_take(p, "[") || !lth_take_int(p, &symbol.min) ||
	    !lth_take(p, ",") || !lth_take_optional(p, "inf", &unbounded) ||
	    (!unbounded && !lth_take_int(p, &symbol.max)) || !lth_take(p, "]"))
		return false;
	symbol.hint = symbol.min;
	if (!lth_take_optional(p, "multiple", &found) || (found && !lth_take_int(p, &symbol.multiple)) ||
	    !lth_take_optional(p, "hint", &found) || (found && !lth_take_int(p, &symbol.hint)) ||
	    !take_source(p, &symbol))
		return false;
	return lth_program_symbol(p->program, &symbol) != LTH_NONE || lth_text_out_of_memory(p);
}

static bool parse_bound(struct lth_text_parser *p)
{
	uint32_t symbol, bound;
	if (!lth_take_symbol(p, &symbol) || !lth_take_value(p, &bound))
		return false;
	p->program->symbols[symbol].bound = bound;
	return true;
}

/* The operator of the given arity with this text, or LTH_NUM_EXPRS. */
static enum lth_expr_op operator_named(const char *text, unsigned operands)
{
	for (int op = 0; op < LTH_NUM_EXPRS; op++)
		if (lth_expr_operands((enum lth_expr_op)op) == operands &&
		    strcmp(lth_expr_text((enum lth_expr_op)op), text) == 0)
			return (enum lth_expr_op)op;
	return LTH_NUM_EXPRS;
}

static bool take_operator(struct lth_text_parser *p, unsigned operands, enum lth_expr_op *out)
{
	bool word = p->lexer.kind == LTH_TOKEN_WORD || p->lexer.kind == LTH_TOKEN_PUNCT;
	*out = word ? operator_named(p->lexer.text, operands) : LTH_NUM_EXPRS;
	if (*out == LTH_NUM_EXPRS)
		return lth_lexer_expected(&p->lexer, "an operator on expressions");
	return lth_take_next(p);
}

/* eN = VALUE OP VALUE | OP VALUE; the name is in hand. */
static bool parse_expr(struct lth_text_parser *p)
{
	enum lth_expr_op op;
	uint32_t a, b = LTH_NONE;
	if (!lth_take_new_id(p, 'e', p->num_expr_names) || !lth_take(p, "="))
		return false;
	bool binary = lth_text_is_value(p);
	if (binary ? !lth_take_value(p, &a) || !take_operator(p, 2, &op) || !lth_take_value(p, &b)
		   : !take_operator(p, 1, &op) || !lth_take_value(p, &a))
		return false;
	uint32_t id = lth_program_expr(p->program, op, a, b, 0);
	uint32_t *names = lth_arena_grow(p->program->arena, p->expr_names, &p->cap_expr_names, p->num_expr_names + 1,
					 sizeof(*names));
	if (id == LTH_NONE || !names)
		return lth_text_out_of_memory(p);
	p->expr_names = names;
	names[p->num_expr_names++] = id;
	return true;
}

static bool parse_storage(struct lth_text_parser *p)
{
	struct lth_storage storage = {.alignment = 64};
	unsigned kind = 0;
	bool found;
	if (!lth_take_new_id(p, 's', p->program->num_storages) || !lth_take_optional_string(p, &storage.name) ||
	    !lth_take_choice(p, lth_storage_texts, LTH_NUM_STORAGES, "a kind of storage", &kind))
		return false;
	storage.kind = (enum lth_storage_kind)kind;
	bool indexed = kind != LTH_STORAGE_ARENA && kind != LTH_STORAGE_POOL;
	if ((indexed && !lth_take_int(p, &storage.index)) || !lth_take(p, "bytes") ||
	    !lth_take_value(p, &storage.size) || !lth_take_optional(p, "align", &found) ||
	    (found && !lth_take_int(p, &storage.alignment)) || !lth_take_optional(p, "live", &found))
		return false;
	if (found && (!lth_take(p, "[") || !lth_take_u32(p, &storage.first) || !lth_take(p, ",") ||
		      !lth_take_u32(p, &storage.last) || !lth_take(p, ")")))
		return false;
	return lth_program_storage(p->program, &storage) != LTH_NONE || lth_text_out_of_memory(p);
}

static bool parse_kernel(struct lth_text_parser *p)
{
	struct lth_kernel kernel = {0};
	if (!lth_take_new_id(p, 'k', p->program->num_kernels) || !lth_take_string(p, &kernel.name) ||
	    !lth_take_optional_string(p, &kernel.description) || !lth_take(p, "pointers") ||
	    !lth_take_u32(p, &kernel.num_pointers) || !lth_take(p, "ints") || !lth_take_u32(p, &kernel.num_ints))
		return false;
	return lth_program_kernel(p->program, &kernel) != LTH_NONE || lth_text_out_of_memory(p);
}

static bool take_dims(struct lth_text_parser *p, uint32_t dims[LTH_MAX_RANK], uint32_t *out_rank)
{
	p->num_list = 0;
	if (!lth_take_list(p, "[", "]", lth_take_value_item))
		return false;
	if (p->num_list > LTH_MAX_RANK)
		return lth_lexer_fail(&p->lexer, "at most 16", "%u dimensions", p->num_list);
	for (uint32_t i = 0; i < p->num_list; i++)
		dims[i] = p->list[i];
	*out_rank = p->num_list;
	return true;
}

static bool take_dtype(struct lth_text_parser *p, enum lth_dtype *out)
{
	*out = p->lexer.kind == LTH_TOKEN_WORD ? lth_dtype_by_text(p->lexer.text) : LTH_NUM_DTYPES;
	if (p->lexer.kind == LTH_TOKEN_WORD && strcmp(p->lexer.text, lth_dtype_text(LTH_DTYPE_OBJECT)) == 0)
		*out = LTH_DTYPE_OBJECT;
	return *out != LTH_NUM_DTYPES ? lth_take_next(p) : lth_lexer_expected(&p->lexer, "an element type");
}

static bool parse_tensor(struct lth_text_parser *p)
{
	struct lth_tensor tensor = {0};
	uint32_t rank;
	bool found;
	if (!lth_take_new_id(p, 't', p->program->num_tensors) || !lth_take_optional_string(p, &tensor.name) ||
	    !take_dtype(p, &tensor.dtype) || !take_dims(p, tensor.dims, &tensor.rank) ||
	    !lth_take_optional(p, "strides", &found))
		return false;
	if (!found)
		lth_program_dense_strides(p->program, tensor.rank, tensor.dims, tensor.strides);
	else if (!take_dims(p, tensor.strides, &rank))
		return false;
	else if (rank != tensor.rank)
		return lth_lexer_fail(&p->lexer, "a stride for each dimension", "%u strides for %u dimensions", rank,
				      tensor.rank);
	tensor.offset = lth_program_const(p->program, 0);
	if (!lth_take_optional(p, "at", &found) || (found && !lth_take_value(p, &tensor.offset)) ||
	    !lth_take(p, "in") || !lth_take_id(p, 's', p->program->num_storages, &tensor.storage))
		return false;
	return lth_program_tensor(p->program, &tensor) != LTH_NONE || lth_text_out_of_memory(p);
}

static bool take_port(struct lth_text_parser *p, const char **out_name, uint32_t *out_tensor, const char **out_type)
{
	return lth_take_optional_string(p, out_name) && lth_take_id(p, 't', p->program->num_tensors, out_tensor) &&
	       lth_take_tagged_string(p, "is", out_type);
}

static bool parse_input(struct lth_text_parser *p)
{
	const char *name, *type;
	uint32_t tensor;
	return take_port(p, &name, &tensor, &type) &&
	       (lth_program_input(p->program, name, tensor, type) != LTH_NONE || lth_text_out_of_memory(p));
}

static bool parse_output(struct lth_text_parser *p)
{
	const char *name, *type;
	uint32_t tensor;
	return take_port(p, &name, &tensor, &type) &&
	       (lth_program_output(p->program, name, tensor, type) != LTH_NONE || lth_text_out_of_memory(p));
}

/* A storage that has its place already: its position is appended to p->list. */
static bool take_place_item(struct lth_text_parser *p)
{
	uint32_t id;
	if (p->lexer.kind == LTH_TOKEN_WORD && lth_text_id_of(p->lexer.text, 's', &id) &&
	    id < p->program->num_storages && p->places[id])
		return lth_text_push(p, p->places[id] - 1) && lth_take_next(p);
	return lth_lexer_expected(&p->lexer, "a storage that has its place above");
}

/* One entry of an orientation: sN base INT [over (sN, ...)]. */
static bool parse_place(struct lth_text_parser *p, struct lth_orientation *o, uint32_t *storages, int64_t *base,
			uint32_t *edges)
{
	uint32_t storage, k = o->num_storages;
	bool over;
	if (!lth_take_id(p, 's', p->program->num_storages, &storage))
		return false;
	if (p->places[storage])
		return lth_lexer_fail(&p->lexer, "each storage once", "s%u for the second time", storage);
	if (!lth_take(p, "base") || !lth_take_int(p, &base[k]) || !lth_take_optional(p, "over", &over) ||
	    (over && !lth_take_list(p, "(", ")", take_place_item)))
		return false;
	storages[k] = storage;
	p->places[storage] = ++o->num_storages;
	edges[o->num_storages] = p->num_list;
	return true;
}

static bool parse_orientation(struct lth_text_parser *p)
{
	struct lth_arena *arena = p->program->arena;
	uint32_t n = p->program->num_storages;
	uint32_t *storages = lth_arena_array(arena, n, sizeof(*storages));
	uint32_t *edges = lth_arena_array(arena, (size_t)n + 1, sizeof(*edges));
	int64_t *base = lth_arena_array(arena, n, sizeof(*base));
	p->places = lth_arena_array(arena, n, sizeof(*p->places));
	struct lth_orientation o = {.storages = storages, .base = base, .edges = edges};
	if (!p->places)
		return lth_text_out_of_memory(p);
	p->num_list = 0;
	if (!lth_take(p, "{"))
		return false;
	while (!lth_text_is_text(p, "}"))
		if (!parse_place(p, &o, storages, base, edges))
			return false;
	o.below = p->list;
	o.num_edges = p->num_list;
	return lth_take_next(p) && (lth_program_orientation(p->program, &o) != LTH_NONE || lth_text_out_of_memory(p));
}

static const struct {
	const char *word;
	bool (*parse)(struct lth_text_parser *p);
} lines[] = {
	{"fused_sizes", parse_fused_sizes},
	{"constants", parse_constants},
	{"certificate", parse_certificate},
	{"symbol", parse_symbol},
	{"bound", parse_bound},
	{"storage", parse_storage},
	{"kernel", parse_kernel},
	{"tensor", parse_tensor},
	{"input", parse_input},
	{"output", parse_output},
	{"orientation", parse_orientation},
};

static bool parse_line(struct lth_text_parser *p)
{
	uint32_t number;
	if (p->lexer.kind == LTH_TOKEN_INT) /* an instruction's position, for people */
		if (!lth_take_next(p) || !lth_take(p, ":"))
			return false;
	if (p->lexer.kind != LTH_TOKEN_WORD)
		return lth_lexer_expected(&p->lexer, "a line of a program");
	if (lth_text_id_of(p->lexer.text, 'e', &number))
		return parse_expr(p);
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
		if (lth_text_is_text(p, lines[i].word))
			return lth_take_next(p) && lines[i].parse(p);
	for (int op = 0; op < LTH_NUM_INSTRS; op++)
		if (lth_text_is_text(p, lth_instr_text((enum lth_instr_op)op)))
			return lth_take_next(p) && lth_text_parse_instr(p, (enum lth_instr_op)op);
	return lth_lexer_expected(&p->lexer, "a line of a program");
}

static bool parse_program(struct lth_text_parser *p)
{
	if (!lth_take_next(p) || !lth_take(p, "program") || !lth_take_string(p, &p->program->name) || !lth_take(p, "{"))
		return false;
	while (!lth_text_is_text(p, "}"))
		if (!parse_line(p))
			return false;
	if (!lth_take_next(p))
		return false;
	return p->lexer.kind == LTH_TOKEN_END || lth_lexer_expected(&p->lexer, "nothing behind the program");
}

enum lth_code lth_program_parse(const char *text, size_t size, struct lth_arena *arena,
				struct lth_program **out_program, struct lth_diag *diag)
{
	struct lth_text_parser p = {.program = lth_program_create(arena)};
	if (!p.program)
		return lth_diag_fail(diag, LTH_OUT_OF_MEMORY, "program text", NULL, NULL, "no memory left");
	lth_lexer_init(&p.lexer, text, size, arena, diag);
	if (!parse_program(&p))
		return diag->code;
	enum lth_code code = lth_program_link_blocks(p.program, diag);
	if (code == LTH_OK && !lth_arena_ok(arena))
		code = lth_diag_fail(diag, LTH_OUT_OF_MEMORY, "program text", NULL, NULL, "no memory left");
	if (code == LTH_OK)
		*out_program = p.program;
	return code;
}
