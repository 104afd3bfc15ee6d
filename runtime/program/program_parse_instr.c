/* Reading the program's text form: instructions. See program_parse.h. */
#include "runtime/program/program_parse.h"

#include "runtime/kernels/builtin.h"

/* writes (T, ...) reads (T, ...) [ints (V, ...)]: the tensors, then the ints, in p->list. */
static bool take_call_operands(struct lth_text_parser *p, struct lth_instr *instr)
{
	bool found;
	if (!lth_take(p, "writes") || !lth_take_list(p, "(", ")", lth_take_tensor_item))
		return false;
	instr->num_outputs = p->num_list;
	if (!lth_take(p, "reads") || !lth_take_list(p, "(", ")", lth_take_tensor_item))
		return false;
	instr->num_tensors = p->num_list;
	if (!lth_take_optional(p, "ints", &found) || (found && !lth_take_list(p, "(", ")", lth_take_value_item)))
		return false;
	instr->num_ints = p->num_list - instr->num_tensors;
	return true;
}

static bool operands_call(struct lth_text_parser *p, struct lth_instr *instr)
{
	bool found;
	if (!lth_take_id(p, 'k', p->program->num_kernels, &instr->callee) || !take_call_operands(p, instr) ||
	    !lth_take(p, "range") || !lth_take_value(p, &instr->range) || !lth_take(p, "grain") ||
	    !lth_take_u32(p, &instr->grain) || !lth_take_optional(p, "scratch", &found))
		return false;
	if (found && (!lth_take_id(p, 's', p->program->num_storages, &instr->scratch) || !lth_take(p, "bytes") ||
		      !lth_take_value(p, &instr->scratch_bytes)))
		return false;
	return lth_take_optional(p, "flops", &found) && (!found || lth_take_value(p, &instr->flops));
}

static bool operands_builtin(struct lth_text_parser *p, struct lth_instr *instr)
{
	if (p->lexer.kind == LTH_TOKEN_STRING)
		instr->callee = lth_builtin_by_text(p->lexer.text);
	if (p->lexer.kind != LTH_TOKEN_STRING || instr->callee == LTH_NUM_BUILTINS)
		return lth_lexer_expected(&p->lexer, "the name of a builtin as a string");
	return lth_take_next(p) && take_call_operands(p, instr) &&
	       lth_take_tagged_string(p, "attributes", &instr->text);
}

/* One tensor that must be there. */
static bool take_tensor(struct lth_text_parser *p, struct lth_instr *instr)
{
	uint32_t id;
	instr->num_tensors++;
	return lth_take_id(p, 't', p->program->num_tensors, &id) && lth_text_push(p, id);
}

static bool operands_copy(struct lth_text_parser *p, struct lth_instr *instr)
{
	instr->num_outputs = 1;
	return take_tensor(p, instr) && lth_take(p, "from") && take_tensor(p, instr);
}

static bool operands_swap(struct lth_text_parser *p, struct lth_instr *instr)
{
	bool found;
	uint32_t times = LTH_NONE;
	instr->num_outputs = 2;
	instr->num_ints = 1;
	if (!take_tensor(p, instr) || !lth_take(p, "with") || !take_tensor(p, instr) ||
	    !lth_take_optional(p, "times", &found))
		return false;
	return (!found || lth_take_value(p, &times)) && lth_text_push(p, times);
}

static bool operands_bind(struct lth_text_parser *p, struct lth_instr *instr)
{
	instr->num_ints = 1;
	return lth_take_symbol(p, &instr->symbol) && lth_take(p, "from") && take_tensor(p, instr) &&
	       lth_take(p, "at") && lth_take_value_item(p);
}

static bool operands_set(struct lth_text_parser *p, struct lth_instr *instr)
{
	instr->num_ints = 1;
	return lth_take_symbol(p, &instr->symbol) && lth_take(p, "to") && lth_take_value_item(p);
}

static bool operands_grow(struct lth_text_parser *p, struct lth_instr *instr)
{
	instr->num_outputs = instr->num_ints = 1;
	return take_tensor(p, instr) && lth_take(p, "to") && lth_take_value_item(p);
}

static bool operands_guard(struct lth_text_parser *p, struct lth_instr *instr)
{
	unsigned relation = 0;
	instr->num_ints = 2;
	if (!lth_take_value_item(p) ||
	    !lth_take_choice(p, lth_relation_texts, LTH_NUM_RELATIONS, "a relation", &relation) ||
	    !lth_take_value_item(p))
		return false;
	instr->relation = (enum lth_relation)relation;
	return lth_take_optional_string(p, &instr->text);
}

static bool operands_loop(struct lth_text_parser *p, struct lth_instr *instr)
{
	bool found;
	uint32_t trips;
	instr->num_tensors = instr->num_ints = 1;
	if (!lth_take(p, "while") || !lth_take_tensor_item(p) || !lth_take(p, "trips") ||
	    !lth_take_optional_value(p, &trips) || !lth_text_push(p, trips) || !lth_take_optional(p, "turn", &found))
		return false;
	return !found || lth_take_symbol(p, &instr->symbol);
}

static bool take_operands(struct lth_text_parser *p, struct lth_instr *instr)
{
	switch (instr->op) {
	case LTH_INSTR_ALLOC:
	case LTH_INSTR_KILL:
		return lth_take_id(p, 's', p->program->num_storages, &instr->storage);
	case LTH_INSTR_CALL:
		return operands_call(p, instr);
	case LTH_INSTR_BUILTIN:
		return operands_builtin(p, instr);
	case LTH_INSTR_COPY:
		return operands_copy(p, instr);
	case LTH_INSTR_SWAP:
		return operands_swap(p, instr);
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

bool lth_text_parse_instr(struct lth_text_parser *p, enum lth_instr_op op)
{
	struct lth_instr instr = lth_instr_of(op);
	p->num_list = 0;
	if (!take_operands(p, &instr) || !lth_take_tagged_string(p, "node", &instr.node))
		return false;
	instr.tensors = p->list;
	instr.ints = instr.num_ints ? p->list + instr.num_tensors : NULL;
	return lth_program_instr(p->program, &instr) != LTH_NONE || lth_text_out_of_memory(p);
}
