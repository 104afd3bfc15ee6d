/* Reading the program's text form, by recursive descent, one function a kind of line. The grammar is in
 * docs/PROGRAM.md. A text that parses may still break a rule of lth_program_verify: parsing checks only what it needs
 * to build the program. */
#include "runtime/kernels/builtin.h"
#include "runtime/program/program_lex.h"
#include "runtime/program/program_text.h"

#include <stdio.h>
#include <string.h>

enum { MAX_OPERANDS = 1 << 16 };

struct parser {
	struct lth_lexer lexer;
	struct lth_program *program;
	uint32_t *expr_names; /* of eN: its id */
	uint32_t num_expr_names, cap_expr_names;
	uint32_t *list; /* operands of the line in hand */
	uint32_t num_list, cap_list;
	uint32_t *places; /* in the orientation in hand: a storage's position + 1, or 0 */
};

static bool next(struct parser *p)
{
	return lth_lexer_next(&p->lexer);
}

static bool is_text(const struct parser *p, const char *text)
{
	return (p->lexer.kind == LTH_TOKEN_WORD || p->lexer.kind == LTH_TOKEN_PUNCT) &&
	       strcmp(p->lexer.text, text) == 0;
}

/* Takes a word or mark that must be there. */
static bool take(struct parser *p, const char *text)
{
	if (!is_text(p, text)) {
		char expected[64];
		snprintf(expected, sizeof(expected), "'%s'", text);
		return lth_lexer_expected(&p->lexer, expected);
	}
	return next(p);
}

/* Takes a word or mark if it is there: *out_found says so. */
static bool take_optional(struct parser *p, const char *text, bool *out_found)
{
	*out_found = is_text(p, text);
	return !*out_found || next(p);
}

static bool take_int(struct parser *p, int64_t *out)
{
	if (p->lexer.kind != LTH_TOKEN_INT)
		return lth_lexer_expected(&p->lexer, "an integer");
	*out = p->lexer.value;
	return next(p);
}

static bool take_u32(struct parser *p, uint32_t *out)
{
	if (p->lexer.kind != LTH_TOKEN_INT || p->lexer.value < 0 || p->lexer.value >= LTH_NONE)
		return lth_lexer_expected(&p->lexer, "an integer of 32 bits");
	*out = (uint32_t)p->lexer.value;
	return next(p);
}

static bool take_string(struct parser *p, const char **out)
{
	if (p->lexer.kind != LTH_TOKEN_STRING)
		return lth_lexer_expected(&p->lexer, "a string");
	*out = p->lexer.text;
	return next(p);
}

static bool take_optional_string(struct parser *p, const char **out)
{
	*out = NULL;
	return p->lexer.kind != LTH_TOKEN_STRING || take_string(p, out);
}

/* WORD STRING, if the word is there. */
static bool take_tagged_string(struct parser *p, const char *word, const char **out)
{
	bool found;
	*out = NULL;
	return take_optional(p, word, &found) && (!found || take_string(p, out));
}

/* The number of a word such as t12; false without an error when it is none of this letter. */
static bool id_of(const char *word, char letter, uint32_t *out)
{
	uint64_t value = 0;
	if (word[0] != letter || !word[1] || (word[1] == '0' && word[2]))
		return false;
	for (const char *c = word + 1; *c; c++) {
		if (*c < '0' || *c > '9' || value >= LTH_NONE)
			return false;
		value = value * 10 + (uint64_t)(*c - '0');
	}
	*out = (uint32_t)value;
	return value < LTH_NONE;
}

/* An id of a thing of which there are `limit`. */
static bool take_id(struct parser *p, char letter, uint32_t limit, uint32_t *out)
{
	uint32_t id;
	if (p->lexer.kind == LTH_TOKEN_WORD && id_of(p->lexer.text, letter, &id) && id < limit) {
		*out = id;
		return next(p);
	}
	char expected[64];
	if (limit)
		snprintf(expected, sizeof(expected), "%c0 to %c%u", letter, letter, limit - 1);
	else
		snprintf(expected, sizeof(expected), "a declaration of %c0 before its use", letter);
	return lth_lexer_expected(&p->lexer, expected);
}

/* The id of a thing being declared: the next number. */
static bool take_new_id(struct parser *p, char letter, uint32_t number)
{
	uint32_t id;
	if (p->lexer.kind == LTH_TOKEN_WORD && id_of(p->lexer.text, letter, &id) && id == number)
		return next(p);
	char expected[64];
	snprintf(expected, sizeof(expected), "%c%u, the next number", letter, number);
	return lth_lexer_expected(&p->lexer, expected);
}

static uint32_t symbol_named(const struct lth_program *program, const char *name)
{
	for (uint32_t i = 0; i < program->num_symbols; i++)
		if (strcmp(program->symbols[i].name, name) == 0)
			return i;
	return LTH_NONE;
}

static bool take_symbol(struct parser *p, uint32_t *out)
{
	if (p->lexer.kind != LTH_TOKEN_SYMBOL)
		return lth_lexer_expected(&p->lexer, "a symbol");
	*out = symbol_named(p->program, p->lexer.text);
	if (*out == LTH_NONE)
		return lth_lexer_expected(&p->lexer, "a symbol that is declared above");
	return next(p);
}

static bool is_value(const struct parser *p)
{
	uint32_t number;
	enum lth_token_kind kind = p->lexer.kind;
	return kind == LTH_TOKEN_INT || kind == LTH_TOKEN_REAL || kind == LTH_TOKEN_SYMBOL ||
	       (kind == LTH_TOKEN_WORD && id_of(p->lexer.text, 'e', &number));
}

static bool out_of_memory(struct parser *p)
{
	lth_diag_fail(p->lexer.diag, LTH_OUT_OF_MEMORY, "program text", NULL, NULL, "a text that is too large");
	return false;
}

/* VALUE: integer, #real, $symbol or eN. */
static bool take_value(struct parser *p, uint32_t *out)
{
	uint32_t number;
	if (!is_value(p))
		return lth_lexer_expected(&p->lexer, "a value (integer, #real, $symbol or eN)");
	if (p->lexer.kind == LTH_TOKEN_WORD) {
		if (!take_id(p, 'e', p->num_expr_names, &number))
			return false;
		*out = p->expr_names[number];
		return true;
	}
	if (p->lexer.kind == LTH_TOKEN_SYMBOL) {
		if (!take_symbol(p, &number))
			return false;
		*out = lth_program_expr(p->program, LTH_EXPR_SYMBOL, number, LTH_NONE, 0);
		return *out != LTH_NONE || out_of_memory(p);
	}
	enum lth_expr_op op = p->lexer.kind == LTH_TOKEN_INT ? LTH_EXPR_CONST : LTH_EXPR_RCONST;
	*out = lth_program_expr(p->program, op, LTH_NONE, LTH_NONE, p->lexer.value);
	return *out != LTH_NONE ? next(p) : out_of_memory(p);
}

static bool take_optional_value(struct parser *p, uint32_t *out)
{
	bool absent;
	*out = LTH_NONE;
	return take_optional(p, "_", &absent) && (absent || take_value(p, out));
}

static bool push(struct parser *p, uint32_t id)
{
	uint32_t *list = lth_arena_grow(p->program->arena, p->list, &p->cap_list, p->num_list + 1, sizeof(*list));
	if (!list)
		return out_of_memory(p);
	if (p->num_list >= MAX_OPERANDS)
		return lth_lexer_fail(&p->lexer, NULL, "more than %d operands", MAX_OPERANDS);
	p->list = list;
	list[p->num_list++] = id;
	return true;
}

static bool take_value_item(struct parser *p)
{
	uint32_t id;
	return take_value(p, &id) && push(p, id);
}

static bool take_tensor_item(struct parser *p)
{
	uint32_t id = LTH_NONE;
	bool absent;
	return take_optional(p, "_", &absent) && (absent || take_id(p, 't', p->program->num_tensors, &id)) &&
	       push(p, id);
}

/* OPEN [ITEM {, ITEM}] CLOSE appended to p->list. */
static bool take_list(struct parser *p, const char *open, const char *close, bool (*item)(struct parser *))
{
	bool done, more = true;
	if (!take(p, open) || !take_optional(p, close, &done))
		return false;
	while (!done) {
		if (!item(p) || !take_optional(p, ",", &more))
			return false;
		if (!more) {
			if (!take(p, close))
				return false;
			done = true;
		}
	}
	return true;
}

static bool parse_fused_sizes(struct parser *p)
{
	bool yes;
	if (!take_optional(p, "true", &yes))
		return false;
	p->program->fused_sizes = yes;
	return yes || take(p, "false");
}

static bool parse_constants(struct parser *p)
{
	int64_t bytes = 0;
	if (!take_int(p, &bytes))
		return false;
	if (bytes < 0)
		return lth_lexer_fail(&p->lexer, "a number of bytes", "%lld", (long long)bytes);
	p->program->constants_bytes = (uint64_t)bytes;
	return true;
}

static bool parse_certificate(struct parser *p)
{
	return take_string(p, &p->program->certificate);
}

static bool take_source(struct parser *p, struct lth_symbol *symbol)
{
	bool data;
	symbol->source = LTH_SOURCE_DATA;
	symbol->input = symbol->axis = symbol->bound = LTH_NONE;
	if (!take_optional(p, "data", &data) || data)
		return data;
	symbol->source = LTH_SOURCE_INPUT;
	return take(p, "input") && take_u32(p, &symbol->input) && take(p, "axis") && take_u32(p, &symbol->axis);
}

static bool parse_symbol(struct parser *p)
{
	struct lth_symbol symbol = {.max = INT64_MAX, .multiple = 1};
	bool unbounded, found;
	if (p->lexer.kind != LTH_TOKEN_SYMBOL)
		return lth_lexer_expected(&p->lexer, "a symbol");
	if (symbol_named(p->program, p->lexer.text) != LTH_NONE)
		return lth_lexer_expected(&p->lexer, "a name that no other symbol has");
	symbol.name = p->lexer.text;
	if (!next(p) || !take(p, "in") || !take(p, "[") || !take_int(p, &symbol.min) || !take(p, ",") ||
	    !take_optional(p, "inf", &unbounded) || (!unbounded && !take_int(p, &symbol.max)) || !take(p, "]"))
		return false;
	symbol.hint = symbol.min;
	if (!take_optional(p, "multiple", &found) || (found && !take_int(p, &symbol.multiple)) ||
	    !take_optional(p, "hint", &found) || (found && !take_int(p, &symbol.hint)) || !take_source(p, &symbol))
		return false;
	return lth_program_symbol(p->program, &symbol) != LTH_NONE || out_of_memory(p);
}

static bool parse_bound(struct parser *p)
{
	uint32_t symbol, bound;
	if (!take_symbol(p, &symbol) || !take_value(p, &bound))
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

static bool take_operator(struct parser *p, unsigned operands, enum lth_expr_op *out)
{
	bool word = p->lexer.kind == LTH_TOKEN_WORD || p->lexer.kind == LTH_TOKEN_PUNCT;
	*out = word ? operator_named(p->lexer.text, operands) : LTH_NUM_EXPRS;
	if (*out == LTH_NUM_EXPRS)
		return lth_lexer_expected(&p->lexer, "an operator on expressions");
	return next(p);
}

/* eN = VALUE OP VALUE | OP VALUE; the name is in hand. */
static bool parse_expr(struct parser *p)
{
	enum lth_expr_op op;
	uint32_t a, b = LTH_NONE;
	if (!take_new_id(p, 'e', p->num_expr_names) || !take(p, "="))
		return false;
	bool binary = is_value(p);
	if (binary ? !take_value(p, &a) || !take_operator(p, 2, &op) || !take_value(p, &b)
		   : !take_operator(p, 1, &op) || !take_value(p, &a))
		return false;
	uint32_t id = lth_program_expr(p->program, op, a, b, 0);
	uint32_t *names = lth_arena_grow(p->program->arena, p->expr_names, &p->cap_expr_names, p->num_expr_names + 1,
					 sizeof(*names));
	if (id == LTH_NONE || !names)
		return out_of_memory(p);
	p->expr_names = names;
	names[p->num_expr_names++] = id;
	return true;
}

/* The index of a word among texts. */
static bool take_choice(struct parser *p, const char *const *texts, unsigned count, const char *what, unsigned *out)
{
	for (unsigned i = 0; i < count; i++)
		if (is_text(p, texts[i])) {
			*out = i;
			return next(p);
		}
	return lth_lexer_expected(&p->lexer, what);
}

static bool parse_storage(struct parser *p)
{
	struct lth_storage storage = {.alignment = 64};
	unsigned kind = 0;
	bool found;
	if (!take_new_id(p, 's', p->program->num_storages) || !take_optional_string(p, &storage.name) ||
	    !take_choice(p, lth_storage_texts, LTH_NUM_STORAGES, "a kind of storage", &kind))
		return false;
	storage.kind = (enum lth_storage_kind)kind;
	bool indexed = kind != LTH_STORAGE_ARENA && kind != LTH_STORAGE_POOL;
	if ((indexed && !take_int(p, &storage.index)) || !take(p, "bytes") || !take_value(p, &storage.size) ||
	    !take_optional(p, "align", &found) || (found && !take_int(p, &storage.alignment)) ||
	    !take_optional(p, "live", &found))
		return false;
	if (found && (!take(p, "[") || !take_u32(p, &storage.first) || !take(p, ",") || !take_u32(p, &storage.last) ||
		      !take(p, ")")))
		return false;
	return lth_program_storage(p->program, &storage) != LTH_NONE || out_of_memory(p);
}

static bool parse_kernel(struct parser *p)
{
	struct lth_kernel kernel = {0};
	if (!take_new_id(p, 'k', p->program->num_kernels) || !take_string(p, &kernel.name) ||
	    !take_optional_string(p, &kernel.description) || !take(p, "pointers") ||
	    !take_u32(p, &kernel.num_pointers) || !take(p, "ints") || !take_u32(p, &kernel.num_ints))
		return false;
	return lth_program_kernel(p->program, &kernel) != LTH_NONE || out_of_memory(p);
}

static bool take_dims(struct parser *p, uint32_t dims[LTH_MAX_RANK], uint32_t *out_rank)
{
	p->num_list = 0;
	if (!take_list(p, "[", "]", take_value_item))
		return false;
	if (p->num_list > LTH_MAX_RANK)
		return lth_lexer_fail(&p->lexer, "at most 16", "%u dimensions", p->num_list);
	for (uint32_t i = 0; i < p->num_list; i++)
		dims[i] = p->list[i];
	*out_rank = p->num_list;
	return true;
}

static bool take_dtype(struct parser *p, enum lth_dtype *out)
{
	*out = p->lexer.kind == LTH_TOKEN_WORD ? lth_dtype_by_text(p->lexer.text) : LTH_NUM_DTYPES;
	if (p->lexer.kind == LTH_TOKEN_WORD && strcmp(p->lexer.text, lth_dtype_text(LTH_DTYPE_OBJECT)) == 0)
		*out = LTH_DTYPE_OBJECT;
	return *out != LTH_NUM_DTYPES ? next(p) : lth_lexer_expected(&p->lexer, "an element type");
}

static bool parse_tensor(struct parser *p)
{
	struct lth_tensor tensor = {0};
	uint32_t rank;
	bool found;
	if (!take_new_id(p, 't', p->program->num_tensors) || !take_optional_string(p, &tensor.name) ||
	    !take_dtype(p, &tensor.dtype) || !take_dims(p, tensor.dims, &tensor.rank) ||
	    !take_optional(p, "strides", &found))
		return false;
	if (!found)
		lth_program_dense_strides(p->program, tensor.rank, tensor.dims, tensor.strides);
	else if (!take_dims(p, tensor.strides, &rank))
		return false;
	else if (rank != tensor.rank)
		return lth_lexer_fail(&p->lexer, "a stride for each dimension", "%u strides for %u dimensions", rank,
				      tensor.rank);
	tensor.offset = lth_program_const(p->program, 0);
	if (!take_optional(p, "at", &found) || (found && !take_value(p, &tensor.offset)) || !take(p, "in") ||
	    !take_id(p, 's', p->program->num_storages, &tensor.storage))
		return false;
	return lth_program_tensor(p->program, &tensor) != LTH_NONE || out_of_memory(p);
}

static bool take_port(struct parser *p, const char **out_name, uint32_t *out_tensor, const char **out_type)
{
	return take_optional_string(p, out_name) && take_id(p, 't', p->program->num_tensors, out_tensor) &&
	       take_tagged_string(p, "is", out_type);
}

static bool parse_input(struct parser *p)
{
	const char *name, *type;
	uint32_t tensor;
	return take_port(p, &name, &tensor, &type) &&
	       (lth_program_input(p->program, name, tensor, type) != LTH_NONE || out_of_memory(p));
}

static bool parse_output(struct parser *p)
{
	const char *name, *type;
	uint32_t tensor;
	return take_port(p, &name, &tensor, &type) &&
	       (lth_program_output(p->program, name, tensor, type) != LTH_NONE || out_of_memory(p));
}

/* writes (T, ...) reads (T, ...) [ints (V, ...)]: the tensors, then the ints, in p->list. */
static bool take_call_operands(struct parser *p, struct lth_instr *instr)
{
	bool found;
	if (!take(p, "writes") || !take_list(p, "(", ")", take_tensor_item))
		return false;
	instr->num_outputs = p->num_list;
	if (!take(p, "reads") || !take_list(p, "(", ")", take_tensor_item))
		return false;
	instr->num_tensors = p->num_list;
	if (!take_optional(p, "ints", &found) || (found && !take_list(p, "(", ")", take_value_item)))
		return false;
	instr->num_ints = p->num_list - instr->num_tensors;
	return true;
}

static bool operands_call(struct parser *p, struct lth_instr *instr)
{
	bool found;
	if (!take_id(p, 'k', p->program->num_kernels, &instr->callee) || !take_call_operands(p, instr) ||
	    !take(p, "range") || !take_value(p, &instr->range) || !take(p, "grain") || !take_u32(p, &instr->grain) ||
	    !take_optional(p, "scratch", &found))
		return false;
	if (found && (!take_id(p, 's', p->program->num_storages, &instr->scratch) || !take(p, "bytes") ||
		      !take_value(p, &instr->scratch_bytes)))
		return false;
	return take_optional(p, "flops", &found) && (!found || take_int(p, &instr->flops));
}

static bool operands_builtin(struct parser *p, struct lth_instr *instr)
{
	if (p->lexer.kind == LTH_TOKEN_STRING)
		instr->callee = lth_builtin_by_text(p->lexer.text);
	if (p->lexer.kind != LTH_TOKEN_STRING || instr->callee == LTH_NUM_BUILTINS)
		return lth_lexer_expected(&p->lexer, "the name of a builtin as a string");
	return next(p) && take_call_operands(p, instr) && take_tagged_string(p, "attributes", &instr->text);
}

/* One tensor that must be there. */
static bool take_tensor(struct parser *p, struct lth_instr *instr)
{
	uint32_t id;
	instr->num_tensors++;
	return take_id(p, 't', p->program->num_tensors, &id) && push(p, id);
}

static bool operands_copy(struct parser *p, struct lth_instr *instr)
{
	instr->num_outputs = 1;
	return take_tensor(p, instr) && take(p, "from") && take_tensor(p, instr);
}

static bool operands_bind(struct parser *p, struct lth_instr *instr)
{
	instr->num_ints = 1;
	return take_symbol(p, &instr->symbol) && take(p, "from") && take_tensor(p, instr) && take(p, "at") &&
	       take_value_item(p);
}

static bool operands_set(struct parser *p, struct lth_instr *instr)
{
	instr->num_ints = 1;
	return take_symbol(p, &instr->symbol) && take(p, "to") && take_value_item(p);
}

static bool operands_grow(struct parser *p, struct lth_instr *instr)
{
	instr->num_outputs = instr->num_ints = 1;
	return take_tensor(p, instr) && take(p, "to") && take_value_item(p);
}

static bool operands_guard(struct parser *p, struct lth_instr *instr)
{
	unsigned relation = 0;
	instr->num_ints = 2;
	if (!take_value_item(p) || !take_choice(p, lth_relation_texts, LTH_NUM_RELATIONS, "a relation", &relation) ||
	    !take_value_item(p))
		return false;
	instr->relation = (enum lth_relation)relation;
	return take_optional_string(p, &instr->text);
}

static bool operands_loop(struct parser *p, struct lth_instr *instr)
{
	bool found;
	uint32_t trips;
	instr->num_tensors = instr->num_ints = 1;
	if (!take(p, "while") || !take_tensor_item(p) || !take(p, "trips") || !take_optional_value(p, &trips) ||
	    !push(p, trips) || !take_optional(p, "turn", &found))
		return false;
	return !found || take_symbol(p, &instr->symbol);
}

static bool take_operands(struct parser *p, struct lth_instr *instr)
{
	switch (instr->op) {
	case LTH_INSTR_ALLOC:
	case LTH_INSTR_KILL:
		return take_id(p, 's', p->program->num_storages, &instr->storage);
	case LTH_INSTR_CALL:
		return operands_call(p, instr);
	case LTH_INSTR_BUILTIN:
		return operands_builtin(p, instr);
	case LTH_INSTR_COPY:
		return operands_copy(p, instr);
	case LTH_INSTR_GROW:
		return operands_grow(p, instr);
	case LTH_INSTR_BIND:
		return operands_bind(p, instr);
	case LTH_INSTR_SET:
		return operands_set(p, instr);
	case LTH_INSTR_GUARD:
		return operands_guard(p, instr);
	case LTH_INSTR_IF:
		return take_tensor(p, instr);
	case LTH_INSTR_LOOP:
		return operands_loop(p, instr);
	default:
		return true;
	}
}

static bool parse_instr(struct parser *p, enum lth_instr_op op)
{
	struct lth_instr instr = {
		.op = op, .callee = LTH_NONE, .storage = LTH_NONE, .symbol = LTH_NONE, .target = LTH_NONE,
		.range = LTH_NONE, .scratch = LTH_NONE, .scratch_bytes = LTH_NONE,
	};
	p->num_list = 0;
	if (!take_operands(p, &instr) || !take_tagged_string(p, "node", &instr.node))
		return false;
	instr.tensors = p->list;
	instr.ints = instr.num_ints ? p->list + instr.num_tensors : NULL;
	return lth_program_instr(p->program, &instr) != LTH_NONE || out_of_memory(p);
}

/* A storage that has its place already: its position is appended to p->list. */
static bool take_place_item(struct parser *p)
{
	uint32_t id;
	if (p->lexer.kind == LTH_TOKEN_WORD && id_of(p->lexer.text, 's', &id) && id < p->program->num_storages &&
	    p->places[id])
		return push(p, p->places[id] - 1) && next(p);
	return lth_lexer_expected(&p->lexer, "a storage that has its place above");
}

/* One entry of an orientation: sN base INT [over (sN, ...)]. */
static bool parse_place(struct parser *p, struct lth_orientation *o, uint32_t *storages, int64_t *base, uint32_t *edges)
{
	uint32_t storage, k = o->num_storages;
	bool over;
	if (!take_id(p, 's', p->program->num_storages, &storage))
		return false;
	if (p->places[storage])
		return lth_lexer_fail(&p->lexer, "each storage once", "s%u for the second time", storage);
	if (!take(p, "base") || !take_int(p, &base[k]) || !take_optional(p, "over", &over) ||
	    (over && !take_list(p, "(", ")", take_place_item)))
		return false;
	storages[k] = storage;
	p->places[storage] = ++o->num_storages;
	edges[o->num_storages] = p->num_list;
	return true;
}

static bool parse_orientation(struct parser *p)
{
	struct lth_arena *arena = p->program->arena;
	uint32_t n = p->program->num_storages;
	uint32_t *storages = lth_arena_array(arena, n, sizeof(*storages));
	uint32_t *edges = lth_arena_array(arena, (size_t)n + 1, sizeof(*edges));
	int64_t *base = lth_arena_array(arena, n, sizeof(*base));
	p->places = lth_arena_array(arena, n, sizeof(*p->places));
	struct lth_orientation o = {.storages = storages, .base = base, .edges = edges};
	if (!p->places)
		return out_of_memory(p);
	p->num_list = 0;
	if (!take(p, "{"))
		return false;
	while (!is_text(p, "}"))
		if (!parse_place(p, &o, storages, base, edges))
			return false;
	o.below = p->list;
	o.num_edges = p->num_list;
	return next(p) && (lth_program_orientation(p->program, &o) != LTH_NONE || out_of_memory(p));
}

static const struct {
	const char *word;
	bool (*parse)(struct parser *p);
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

static bool parse_line(struct parser *p)
{
	uint32_t number;
	if (p->lexer.kind == LTH_TOKEN_INT) /* an instruction's position, for people */
		if (!next(p) || !take(p, ":"))
			return false;
	if (p->lexer.kind != LTH_TOKEN_WORD)
		return lth_lexer_expected(&p->lexer, "a line of a program");
	if (id_of(p->lexer.text, 'e', &number))
		return parse_expr(p);
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
		if (is_text(p, lines[i].word))
			return next(p) && lines[i].parse(p);
	for (int op = 0; op < LTH_NUM_INSTRS; op++)
		if (is_text(p, lth_instr_text((enum lth_instr_op)op)))
			return next(p) && parse_instr(p, (enum lth_instr_op)op);
	return lth_lexer_expected(&p->lexer, "a line of a program");
}

static bool parse_program(struct parser *p)
{
	if (!next(p) || !take(p, "program") || !take_string(p, &p->program->name) || !take(p, "{"))
		return false;
	while (!is_text(p, "}"))
		if (!parse_line(p))
			return false;
	if (!next(p))
		return false;
	return p->lexer.kind == LTH_TOKEN_END || lth_lexer_expected(&p->lexer, "nothing behind the program");
}

enum lth_code lth_program_parse(const char *text, size_t size, struct lth_arena *arena,
				struct lth_program **out_program, struct lth_diag *diag)
{
	struct parser p = {.program = lth_program_create(arena)};
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
