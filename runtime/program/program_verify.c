/* The verifier of programs: what it lets through, the interpreter executes without looking again. Values that only a
 * shape signature decides (extents inside their storage, ranges of symbols) are checked when the signature is new; what
 * only data decides (an index of BIND, a trip count) where it is read.
 *
 * A broken rule is LTH_BAD_EXECUTABLE with the thing's number: programs come from the compiler, so it means a damaged
 * file or a defect of a pass. */
#include "runtime/program/program_verify.h"
#include "runtime/kernels/builtin.h"
#include "runtime/tensor/value_type.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_ALIGNMENT = 4096, MAX_CONSTANT_ALIGNMENT = 64 };

struct verifier {
	const struct lth_program *program;
	struct lth_diag *diag;
	bool *shape_only; /* of each expression: it depends on no DATA symbol */
};

enum lth_code lth_verify_fail(struct lth_diag *diag, const char *kind, uint32_t number, const char *expected,
			      const char *format, ...)
{
	char place[64], found[256];
	va_list args;
	va_start(args, format);
	vsnprintf(found, sizeof(found), format, args);
	va_end(args);
	snprintf(place, sizeof(place), "program: %s %u", kind, number);
	return lth_diag_fail(diag, LTH_BAD_EXECUTABLE, place, expected, NULL, "%s", found);
}

/* Whether an expression is there and an integer. */
static bool is_int(const struct verifier *v, uint32_t id)
{
	return id < v->program->num_exprs && !lth_expr_is_real(v->program->exprs[id].op);
}

static bool is_shape_int(const struct verifier *v, uint32_t id)
{
	return is_int(v, id) && v->shape_only[id];
}

static enum lth_code verify_expr(struct verifier *v, uint32_t id)
{
	const struct lth_expr *e = &v->program->exprs[id];
	if (e->op >= LTH_NUM_EXPRS)
		return lth_verify_fail(v->diag, "expression", id, "an operator", "operator %u", (unsigned)e->op);
	unsigned operands = lth_expr_operands(e->op);
	if (e->op == LTH_EXPR_SYMBOL && e->a >= v->program->num_symbols)
		return lth_verify_fail(v->diag, "expression", id, "a symbol", "symbol %u", e->a);
	if ((operands >= 1 && e->a >= id) || (operands == 2 && e->b >= id))
		return lth_verify_fail(v->diag, "expression", id, "operands before it", "operands %u and %u", e->a,
				       e->b);
	bool real = operands && lth_expr_takes_real(e->op);
	if ((operands >= 1 && lth_expr_is_real(v->program->exprs[e->a].op) != real) ||
	    (operands == 2 && lth_expr_is_real(v->program->exprs[e->b].op) != real))
		return lth_verify_fail(v->diag, "expression", id, real ? "real operands" : "integer operands",
				       "others");
	v->shape_only[id] = e->op == LTH_EXPR_SYMBOL
				    ? v->program->symbols[e->a].source == LTH_SOURCE_INPUT
				    : (operands < 1 || v->shape_only[e->a]) && (operands < 2 || v->shape_only[e->b]);
	return LTH_OK;
}

static int compare_names(const void *a, const void *b)
{
	const char *const *x = a, *const *y = b;
	return strcmp(*x, *y);
}

static enum lth_code verify_symbol_names(struct verifier *v)
{
	uint32_t n = v->program->num_symbols;
	const char **names = malloc((n + 1) * sizeof(*names));
	if (!names)
		return lth_diag_fail(v->diag, LTH_OUT_OF_MEMORY, "program", NULL, NULL, "%u symbols", n);
	enum lth_code code = LTH_OK;
	for (uint32_t i = 0; i < n && code == LTH_OK; i++) {
		names[i] = v->program->symbols[i].name;
		if (!names[i] || !names[i][0])
			code = lth_verify_fail(v->diag, "symbol", i, "a name", "none");
	}
	if (code == LTH_OK)
		qsort(names, n, sizeof(*names), compare_names);
	for (uint32_t i = 1; i < n && code == LTH_OK; i++)
		if (strcmp(names[i - 1], names[i]) == 0)
			code = lth_verify_fail(v->diag, "symbol", i, "names that differ", "two called '%.100s'",
					       names[i]);
	free(names);
	return code;
}

/* An INPUT symbol is one dimension of an input, as it stands. */
static bool names_its_dimension(const struct verifier *v, uint32_t id)
{
	const struct lth_symbol *s = &v->program->symbols[id];
	if (s->input >= v->program->num_inputs)
		return false;
	const struct lth_tensor *t = &v->program->tensors[v->program->inputs[s->input].tensor];
	if (s->axis >= t->rank)
		return false;
	const struct lth_expr *e = &v->program->exprs[t->dims[s->axis]];
	return e->op == LTH_EXPR_SYMBOL && e->a == id;
}

static enum lth_code verify_symbol(struct verifier *v, uint32_t id)
{
	const struct lth_symbol *s = &v->program->symbols[id];
	if (s->min > s->max || s->multiple < 1 || s->hint < s->min || s->hint > s->max)
		return lth_verify_fail(v->diag, "symbol", id, "min <= hint <= max and a multiple of 1 or more",
				       "min %lld, max %lld, hint %lld, multiple %lld", (long long)s->min,
				       (long long)s->max, (long long)s->hint, (long long)s->multiple);
	if (s->source == LTH_SOURCE_DATA) {
		if (s->bound != LTH_NONE && !is_shape_int(v, s->bound))
			return lth_verify_fail(v->diag, "symbol", id, "a bound over input dimensions", "another");
		return LTH_OK;
	}
	if (s->min < 0 || !names_its_dimension(v, id))
		return lth_verify_fail(v->diag, "symbol", id, "a dimension of an input that is this symbol",
				       "axis %u of input %u", s->axis, s->input);
	return LTH_OK;
}

static bool is_power_of_two(int64_t value)
{
	return value > 0 && (value & (value - 1)) == 0;
}

static enum lth_code verify_constant(struct verifier *v, uint32_t id)
{
	const struct lth_storage *s = &v->program->storages[id];
	const struct lth_expr *size = &v->program->exprs[s->size];
	uint64_t total = v->program->constants_bytes;
	if (size->op != LTH_EXPR_CONST || size->value < 0 || s->index < 0 || (uint64_t)s->index > total ||
	    (uint64_t)size->value > total - (uint64_t)s->index)
		return lth_verify_fail(v->diag, "storage", id, "a range inside the constants",
				       "a range at %lld of %llu bytes", (long long)s->index,
				       (unsigned long long)total);
	if (s->alignment > MAX_CONSTANT_ALIGNMENT || s->index % s->alignment != 0)
		return lth_verify_fail(v->diag, "storage", id, "an aligned place", "%lld", (long long)s->index);
	return LTH_OK;
}

static enum lth_code verify_storage(struct verifier *v, uint32_t id)
{
	const struct lth_storage *s = &v->program->storages[id];
	if (s->kind >= LTH_NUM_STORAGES || !is_int(v, s->size))
		return lth_verify_fail(v->diag, "storage", id, "a kind and an integer size", "kind %u, size e%u",
				       (unsigned)s->kind, s->size);
	if (!is_power_of_two(s->alignment) || s->alignment > MAX_ALIGNMENT)
		return lth_verify_fail(v->diag, "storage", id, "a power of two up to 4096", "alignment %lld",
				       (long long)s->alignment);
	if (s->first > s->last || s->last > v->program->num_instrs)
		return lth_verify_fail(v->diag, "storage", id, "a live range inside the program", "[%u, %u)",
				       s->first, s->last);
	uint32_t ports = s->kind == LTH_STORAGE_INPUT ? v->program->num_inputs : v->program->num_outputs;
	if ((s->kind == LTH_STORAGE_INPUT || s->kind == LTH_STORAGE_OUTPUT) && (s->index < 0 || s->index >= ports))
		return lth_verify_fail(v->diag, "storage", id, "an input or output", "number %lld of %u",
				       (long long)s->index, ports);
	if (s->kind != LTH_STORAGE_POOL && !v->shape_only[s->size])
		return lth_verify_fail(v->diag, "storage", id, "a size over input dimensions",
				       "one that depends on data");
	return s->kind == LTH_STORAGE_CONSTANT ? verify_constant(v, id) : LTH_OK;
}

static enum lth_code verify_tensor(struct verifier *v, uint32_t id)
{
	const struct lth_tensor *t = &v->program->tensors[id];
	if (t->dtype >= LTH_NUM_DTYPES || t->rank > LTH_MAX_RANK)
		return lth_verify_fail(v->diag, "tensor", id, "a type and a rank up to 16", "type %u, rank %u",
				       (unsigned)t->dtype, t->rank);
	if (t->dtype == LTH_DTYPE_OBJECT && t->rank != 0)
		return lth_verify_fail(v->diag, "tensor", id, "objects one by one", "a tensor of rank %u", t->rank);
	if (t->storage >= v->program->num_storages || !is_int(v, t->offset))
		return lth_verify_fail(v->diag, "tensor", id, "a storage and an integer offset", "storage %u, e%u",
				       t->storage, t->offset);
	for (uint32_t axis = 0; axis < t->rank; axis++)
		if (!is_int(v, t->dims[axis]) || !is_int(v, t->strides[axis]))
			return lth_verify_fail(v->diag, "tensor", id, "integer dims and strides", "axis %u", axis);
	return LTH_OK;
}

static bool is_const(const struct lth_program *program, uint32_t id, int64_t value)
{
	return program->exprs[id].op == LTH_EXPR_CONST && program->exprs[id].value == value;
}

/* An input's tensor is a whole INPUT storage of its own number, an output's on OUTPUT storage a whole one of its own.
 * That they are dense is checked with each signature, since strides may be any expressions. */
static enum lth_code verify_port(struct verifier *v, const struct lth_port *port, uint32_t number, bool is_input)
{
	const char *kind = is_input ? "input" : "output";
	if (port->tensor >= v->program->num_tensors)
		return lth_verify_fail(v->diag, kind, number, "a tensor", "tensor %u", port->tensor);
	const struct lth_tensor *t = &v->program->tensors[port->tensor];
	const struct lth_storage *s = &v->program->storages[t->storage];
	struct lth_value_type type;
	if ((t->dtype == LTH_DTYPE_OBJECT) != (port->type != NULL) ||
	    (port->type && !lth_value_type_parse(port->type, &type)))
		return lth_verify_fail(v->diag, kind, number, "the type of an object where it is one", "%s",
				       port->type ? port->type : "none");
	if (port->type && !is_input && s->kind == LTH_STORAGE_OUTPUT)
		return lth_verify_fail(v->diag, kind, number, "an object that is handed out by the runtime",
				       "the caller's storage");
	if (!is_input && (s->kind != LTH_STORAGE_OUTPUT || s->index != (int64_t)number))
		return LTH_OK; /* copied out */
	if ((is_input && s->kind != LTH_STORAGE_INPUT) || s->index != (int64_t)number ||
	    !is_const(v->program, t->offset, 0))
		return lth_verify_fail(v->diag, kind, number, "the start of its own storage", "tensor %u",
				       port->tensor);
	for (uint32_t axis = 0; axis < t->rank && is_input; axis++)
		if (!v->shape_only[t->dims[axis]])
			return lth_verify_fail(v->diag, kind, number, "dims known before the run", "axis %u", axis);
	return LTH_OK;
}

static enum lth_code verify_orientation(struct verifier *v, uint32_t number, bool *placed)
{
	const struct lth_orientation *o = &v->program->orientations[number], *first = v->program->orientations;
	memset(placed, 0, v->program->num_storages * sizeof(*placed));
	if (o->num_storages != first->num_storages || o->edges[0] != 0 || o->edges[o->num_storages] != o->num_edges)
		return lth_verify_fail(v->diag, "orientation", number, "the storages of the first, and their edges",
				       "%u storages, %u edges", o->num_storages, o->num_edges);
	for (uint32_t i = 0; i < o->num_storages; i++) {
		uint32_t id = o->storages[i];
		if (id >= v->program->num_storages || v->program->storages[id].kind != LTH_STORAGE_ARENA || placed[id])
			return lth_verify_fail(v->diag, "orientation", number, "each arena storage at most once",
					       "storage %u at place %u", id, i);
		placed[id] = true;
		if (o->base[i] < 0 || o->base[i] % v->program->storages[id].alignment != 0)
			return lth_verify_fail(v->diag, "orientation", number, "an aligned base", "%lld at place %u",
					       (long long)o->base[i], i);
		if (o->edges[i + 1] < o->edges[i] || o->edges[i + 1] > o->num_edges)
			return lth_verify_fail(v->diag, "orientation", number, "edges in order", "place %u", i);
		for (uint32_t e = o->edges[i]; e < o->edges[i + 1]; e++)
			if (o->below[e] >= i)
				return lth_verify_fail(v->diag, "orientation", number, "edges to smaller places",
						       "%u below %u", o->below[e], i);
	}
	for (uint32_t i = 0; i < first->num_storages; i++)
		if (!placed[first->storages[i]])
			return lth_verify_fail(v->diag, "orientation", number, "the storages of the first",
					       "storage %u missing", first->storages[i]);
	return LTH_OK;
}

/* How many operands an instruction takes; UINT32_MAX: any number. */
struct shape_of_instr {
	uint32_t tensors, ints;
	bool optional_tensor, optional_int;
};

static struct shape_of_instr operands_of(enum lth_instr_op op)
{
	switch (op) {
	case LTH_INSTR_CALL:
	case LTH_INSTR_BUILTIN:
		return (struct shape_of_instr){UINT32_MAX, UINT32_MAX, true, false};
	case LTH_INSTR_COPY:
		return (struct shape_of_instr){2, 0, false, false};
	case LTH_INSTR_SWAP:
		return (struct shape_of_instr){2, 1, false, true};
	case LTH_INSTR_BIND:
	case LTH_INSTR_GROW:
		return (struct shape_of_instr){1, 1, false, false};
	case LTH_INSTR_SET:
		return (struct shape_of_instr){0, 1, false, false};
	case LTH_INSTR_GUARD:
		return (struct shape_of_instr){0, 2, false, false};
	case LTH_INSTR_IF:
		return (struct shape_of_instr){1, 0, false, false};
	case LTH_INSTR_LOOP:
		return (struct shape_of_instr){1, 1, true, true};
	default:
		return (struct shape_of_instr){0, 0, false, false};
	}
}

static enum lth_code verify_operands(struct verifier *v, uint32_t at)
{
	const struct lth_instr *instr = &v->program->instrs[at];
	struct shape_of_instr want = operands_of(instr->op);
	if ((want.tensors != UINT32_MAX && want.tensors != instr->num_tensors) ||
	    (want.ints != UINT32_MAX && want.ints != instr->num_ints) || instr->num_outputs > instr->num_tensors)
		return lth_verify_fail(v->diag, "instruction", at, "the operands it takes",
				       "%u tensors of which %u outputs, %u ints", instr->num_tensors,
				       instr->num_outputs, instr->num_ints);
	for (uint32_t i = 0; i < instr->num_tensors; i++) {
		uint32_t id = instr->tensors[i];
		if (id >= v->program->num_tensors && !(id == LTH_NONE && want.optional_tensor))
			return lth_verify_fail(v->diag, "instruction", at, "a tensor", "operand %u", i);
		if (id == LTH_NONE || i >= instr->num_outputs)
			continue;
		enum lth_storage_kind kind = v->program->storages[v->program->tensors[id].storage].kind;
		if (kind == LTH_STORAGE_INPUT || kind == LTH_STORAGE_CONSTANT)
			return lth_verify_fail(v->diag, "instruction", at, "an output that may be written",
					       "tensor %u", id);
	}
	for (uint32_t i = 0; i < instr->num_ints; i++)
		if (!is_int(v, instr->ints[i]) && !(instr->ints[i] == LTH_NONE && want.optional_int))
			return lth_verify_fail(v->diag, "instruction", at, "an integer expression", "int %u", i);
	return LTH_OK;
}

static enum lth_code verify_call(struct verifier *v, uint32_t at)
{
	const struct lth_instr *instr = &v->program->instrs[at];
	if (instr->callee >= v->program->num_kernels)
		return lth_verify_fail(v->diag, "instruction", at, "a kernel", "kernel %u", instr->callee);
	const struct lth_kernel *kernel = &v->program->kernels[instr->callee];
	if (kernel->num_pointers != instr->num_tensors || kernel->num_ints != instr->num_ints)
		return lth_verify_fail(v->diag, "instruction", at, "the operands of its kernel",
				       "%u tensors and %u ints for %u and %u", instr->num_tensors, instr->num_ints,
				       kernel->num_pointers, kernel->num_ints);
	if (!is_int(v, instr->range) || instr->grain == 0)
		return lth_verify_fail(v->diag, "instruction", at, "an integer range and a grain of 1 or more",
				       "grain %u", instr->grain);
	if (instr->flops != LTH_NONE && !is_int(v, instr->flops))
		return lth_verify_fail(v->diag, "instruction", at, "an integer number of operations", "flops");
	if (instr->scratch == LTH_NONE)
		return LTH_OK;
	if (instr->scratch >= v->program->num_storages || !is_int(v, instr->scratch_bytes) ||
	    (v->program->storages[instr->scratch].kind != LTH_STORAGE_ARENA &&
	     v->program->storages[instr->scratch].kind != LTH_STORAGE_POOL))
		return lth_verify_fail(v->diag, "instruction", at, "a scratch storage and its size",
				       "storage %u", instr->scratch);
	return LTH_OK;
}

static bool is_data_symbol(const struct verifier *v, uint32_t id)
{
	return id < v->program->num_symbols && v->program->symbols[id].source == LTH_SOURCE_DATA;
}

static enum lth_dtype operand_dtype(const struct verifier *v, uint32_t at, uint32_t operand)
{
	return v->program->tensors[v->program->instrs[at].tensors[operand]].dtype;
}

static enum lth_code verify_copy(struct verifier *v, uint32_t at)
{
	const struct lth_instr *instr = &v->program->instrs[at];
	const struct lth_tensor *to = &v->program->tensors[instr->tensors[0]];
	const struct lth_tensor *from = &v->program->tensors[instr->tensors[1]];
	if (instr->num_outputs != 1 || to->dtype != from->dtype || to->rank != from->rank)
		return lth_verify_fail(v->diag, "instruction", at, "tensors of one type and rank",
				       "%s of rank %u from %s of rank %u", lth_dtype_text(to->dtype), to->rank,
				       lth_dtype_text(from->dtype), from->rank);
	return LTH_OK;
}

/* Places are exchanged: what one storage holds must fit the other's, and belong to the same pool. */
static enum lth_code verify_swap(struct verifier *v, uint32_t at)
{
	const struct lth_instr *instr = &v->program->instrs[at];
	const struct lth_storage *a = &v->program->storages[v->program->tensors[instr->tensors[0]].storage];
	const struct lth_storage *b = &v->program->storages[v->program->tensors[instr->tensors[1]].storage];
	bool pools = a->kind == LTH_STORAGE_POOL && b->kind == LTH_STORAGE_POOL;
	bool planned = (a->kind == LTH_STORAGE_ARENA || a->kind == LTH_STORAGE_OUTPUT) &&
		       (b->kind == LTH_STORAGE_ARENA || b->kind == LTH_STORAGE_OUTPUT);
	if (instr->num_outputs != 2 || a == b || (!pools && !planned))
		return lth_verify_fail(v->diag, "instruction", at, "two storages of the pool, or of the arena and outputs",
				       "others");
	if (!pools && (a->size != b->size || a->alignment != b->alignment))
		return lth_verify_fail(v->diag, "instruction", at, "storages of one size and alignment", "others");
	return LTH_OK;
}

/* What an instruction needs beyond its operands being there. */
static enum lth_code verify_rules(struct verifier *v, uint32_t at)
{
	const struct lth_instr *instr = &v->program->instrs[at];
	enum lth_dtype_class class;
	switch (instr->op) {
	case LTH_INSTR_ALLOC:
	case LTH_INSTR_KILL:
		if (instr->storage >= v->program->num_storages ||
		    (v->program->storages[instr->storage].kind != LTH_STORAGE_ARENA &&
		     v->program->storages[instr->storage].kind != LTH_STORAGE_POOL))
			return lth_verify_fail(v->diag, "instruction", at, "an arena or pool storage", "storage %u",
					       instr->storage);
		return LTH_OK;
	case LTH_INSTR_CALL:
		return verify_call(v, at);
	case LTH_INSTR_BUILTIN:
		if (instr->callee >= LTH_NUM_BUILTINS)
			return lth_verify_fail(v->diag, "instruction", at, "a builtin of this runtime", "another");
		return LTH_OK;
	case LTH_INSTR_COPY:
		return verify_copy(v, at);
	case LTH_INSTR_SWAP:
		return verify_swap(v, at);
	case LTH_INSTR_BIND:
		class = lth_dtype_class(operand_dtype(v, at, 0));
		if (!is_data_symbol(v, instr->symbol) || lth_dtype_bits(operand_dtype(v, at, 0)) < 8 ||
		    (class != LTH_CLASS_INT && class != LTH_CLASS_UINT && class != LTH_CLASS_BOOL))
			return lth_verify_fail(v->diag, "instruction", at, "a data symbol and an integer tensor",
					       "others");
		return LTH_OK;
	case LTH_INSTR_GROW:
		if (v->program->storages[v->program->tensors[instr->tensors[0]].storage].kind != LTH_STORAGE_POOL)
			return lth_verify_fail(v->diag, "instruction", at, "a pool storage", "another");
		return LTH_OK;
	case LTH_INSTR_SET:
		if (!is_data_symbol(v, instr->symbol))
			return lth_verify_fail(v->diag, "instruction", at, "a data symbol", "another");
		return LTH_OK;
	case LTH_INSTR_GUARD:
		if (instr->relation >= LTH_NUM_RELATIONS)
			return lth_verify_fail(v->diag, "instruction", at, "a relation", "another");
		return LTH_OK;
	case LTH_INSTR_IF:
		if (operand_dtype(v, at, 0) != LTH_DTYPE_BOOL)
			return lth_verify_fail(v->diag, "instruction", at, "a bool condition", "another type");
		return LTH_OK;
	case LTH_INSTR_LOOP:
		if ((instr->tensors[0] == LTH_NONE && instr->ints[0] == LTH_NONE) ||
		    (instr->tensors[0] != LTH_NONE && operand_dtype(v, at, 0) != LTH_DTYPE_BOOL) ||
		    (instr->symbol != LTH_NONE && !is_data_symbol(v, instr->symbol)))
			return lth_verify_fail(v->diag, "instruction", at,
					       "a bool condition or a trip count, and a data symbol or none", "others");
		return LTH_OK;
	default:
		return LTH_OK;
	}
}

static enum lth_code verify_instr(struct verifier *v, uint32_t at)
{
	const struct lth_instr *instr = &v->program->instrs[at];
	if (instr->op >= LTH_NUM_INSTRS)
		return lth_verify_fail(v->diag, "instruction", at, "an instruction", "number %u", (unsigned)instr->op);
	if ((instr->op == LTH_INSTR_RETURN) != (at + 1 == v->program->num_instrs))
		return lth_verify_fail(v->diag, "instruction", at, "one return, at the end", "%s",
				       lth_instr_text(instr->op));
	enum lth_code code = verify_operands(v, at);
	return code != LTH_OK ? code : verify_rules(v, at);
}

/* Calls a check for each of a number of things until one fails. */
static enum lth_code for_each(struct verifier *v, uint32_t count, enum lth_code (*check)(struct verifier *, uint32_t))
{
	enum lth_code code = LTH_OK;
	for (uint32_t i = 0; i < count && code == LTH_OK; i++)
		code = check(v, i);
	return code;
}

static enum lth_code verify_ports(struct verifier *v)
{
	enum lth_code code = LTH_OK;
	for (uint32_t i = 0; i < v->program->num_inputs && code == LTH_OK; i++)
		code = verify_port(v, &v->program->inputs[i], i, true);
	for (uint32_t i = 0; i < v->program->num_outputs && code == LTH_OK; i++)
		code = verify_port(v, &v->program->outputs[i], i, false);
	return code;
}

static enum lth_code verify_orientations(struct verifier *v)
{
	bool *placed = calloc(v->program->num_storages + 1, sizeof(*placed));
	if (!placed)
		return lth_diag_fail(v->diag, LTH_OUT_OF_MEMORY, "program", NULL, NULL, "its storages");
	enum lth_code code = LTH_OK;
	for (uint32_t i = 0; i < v->program->num_orientations && code == LTH_OK; i++)
		code = verify_orientation(v, i, placed);
	free(placed);
	return code;
}

/* In an order in which each check may rely on those before it. */
static enum lth_code verify_all(struct verifier *v)
{
	const struct lth_program *program = v->program;
	enum lth_code code = verify_symbol_names(v);
	if (code == LTH_OK)
		code = for_each(v, program->num_exprs, verify_expr);
	if (code == LTH_OK)
		code = for_each(v, program->num_storages, verify_storage);
	if (code == LTH_OK)
		code = for_each(v, program->num_tensors, verify_tensor);
	if (code == LTH_OK)
		code = verify_ports(v);
	if (code == LTH_OK)
		code = for_each(v, program->num_symbols, verify_symbol);
	if (code == LTH_OK && program->num_instrs == 0)
		code = lth_diag_fail(v->diag, LTH_BAD_EXECUTABLE, "program", "a return at the end", NULL,
				     "no instructions");
	if (code == LTH_OK)
		code = for_each(v, program->num_instrs, verify_instr);
	if (code == LTH_OK)
		code = verify_orientations(v);
	return code != LTH_OK ? code : lth_verify_flow(program, v->diag);
}

enum lth_code lth_program_verify(const struct lth_program *program, struct lth_diag *diag)
{
	struct verifier v = {.program = program, .diag = diag};
	v.shape_only = calloc(program->num_exprs + 1, sizeof(*v.shape_only));
	if (!v.shape_only)
		return lth_diag_fail(diag, LTH_OUT_OF_MEMORY, "program", NULL, NULL, "its expressions");
	enum lth_code code = verify_all(&v);
	free(v.shape_only);
	return code;
}
