/* The text form of graphs (docs/IR.md). Only what is used prints: symbols, inputs, constants that something reads,
 * nodes in order, outputs. What inference derives (contents) does not print; it is derived again. */
#include "compiler/ir/text.h"
#include "compiler/ops/op.h"

#include "runtime/base/hash.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_INLINE = 16 }; /* elements of a constant that print as values */

struct printer {
	const struct lth_graph *graph;
	struct lth_buf *out;
	bool with_data;
};

static void print_name(struct printer *printer, lth_value_id id)
{
	if (id == LTH_NONE) {
		lth_buf_putc(printer->out, '_');
		return;
	}
	const char *name = printer->graph->values[id].name;
	bool bare = *name != 0;
	for (const char *c = name; *c; c++)
		bare &= lth_text_word_char(*c);
	lth_buf_putc(printer->out, '%');
	if (bare)
		lth_buf_puts(printer->out, name);
	else
		lth_buf_quote(printer->out, name);
}

/* Any bytes, unlike lth_buf_quote. */
static void print_string(struct lth_buf *out, struct lth_string string)
{
	lth_buf_putc(out, '"');
	for (size_t i = 0; i < string.size; i++) {
		unsigned char c = (unsigned char)string.data[i];
		if (c < ' ' || c == '"' || c == '\\' || c == 0x7f)
			lth_buf_printf(out, "\\u%04x", c);
		else
			lth_buf_putc(out, (char)c);
	}
	lth_buf_putc(out, '"');
}

/* With a point, so that it reads as a float. */
static void print_float(struct lth_buf *out, double value)
{
	size_t start = out->size;
	lth_buf_double(out, value);
	if (lth_buf_ok(out) && strspn(out->data + start, "-0123456789") == out->size - start)
		lth_buf_puts(out, ".0");
}

/* The fewest digits that read back as the same float. */
static void print_float32(struct lth_buf *out, float value)
{
	char digits[32];
	int precision = 6;
	if (!isfinite(value)) {
		print_float(out, (double)value);
		return;
	}
	do
		snprintf(digits, sizeof(digits), "%.*g", precision, (double)value);
	while ((float)strtod(digits, NULL) != value && precision++ < 17);
	lth_buf_puts(out, digits);
	lth_buf_puts(out, strspn(digits, "-0123456789") == strlen(digits) ? ".0" : "");
}

void lth_type_print(const struct lth_graph *graph, const struct lth_type *type, struct lth_buf *out)
{
	static const char *const words[] = {
		[LTH_TYPE_SEQUENCE] = "seq", [LTH_TYPE_OPTIONAL] = "optional", [LTH_TYPE_MAP] = "map"};
	if (type->kind != LTH_TYPE_TENSOR) {
		lth_buf_printf(out, "%s(", words[type->kind]);
		if (type->kind == LTH_TYPE_MAP)
			lth_buf_printf(out, "%s, ", lth_dtype_text(type->key));
		lth_type_print(graph, type->element, out);
		lth_buf_putc(out, ')');
		return;
	}
	lth_buf_puts(out, lth_dtype_text(type->dtype));
	lth_buf_putc(out, '[');
	if (type->rank > LTH_MAX_RANK)
		lth_buf_putc(out, type->rank == LTH_RANK_NONE ? '!' : '*');
	for (uint32_t i = 0; type->rank <= LTH_MAX_RANK && i < type->rank; i++) {
		lth_buf_puts(out, i ? ", " : "");
		if (type->dims[i] == LTH_DIM_NONE)
			lth_buf_putc(out, '?');
		else
			lth_dim_print(graph->dims, type->dims[i], out);
	}
	lth_buf_putc(out, ']');
}

static void print_value_type(struct printer *printer, lth_value_id id)
{
	if (id == LTH_NONE) {
		lth_buf_putc(printer->out, '_');
		return;
	}
	const struct lth_value *value = &printer->graph->values[id];
	lth_type_print(printer->graph, &value->type, printer->out);
	if (value->layout && value->type.rank <= LTH_MAX_RANK) {
		lth_buf_puts(printer->out, " layout(");
		for (uint32_t i = 0; i < value->type.rank; i++)
			lth_buf_printf(printer->out, "%s%u", i ? ", " : "", value->layout[i]);
		lth_buf_putc(printer->out, ')');
	}
}

/* ---- constants ---- */

static bool prints_as_values(enum lth_dtype dtype)
{
	enum lth_dtype_class class = lth_dtype_class(dtype);
	bool integer = class == LTH_CLASS_INT || class == LTH_CLASS_UINT || class == LTH_CLASS_BOOL;
	return (integer && lth_dtype_bits(dtype) >= 8 && dtype != LTH_DTYPE_U64) || dtype == LTH_DTYPE_F32 ||
	       dtype == LTH_DTYPE_F64 || dtype == LTH_DTYPE_STRING;
}

static void print_element(struct printer *printer, const struct lth_value *value, uint32_t index)
{
	enum lth_dtype dtype = value->type.dtype;
	size_t width = lth_dtype_bits(dtype) / 8;
	const char *at = (const char *)value->constant.data + index * width;
	if (dtype == LTH_DTYPE_STRING) {
		struct lth_string string;
		memcpy(&string, at, sizeof(string));
		print_string(printer->out, string);
	} else if (dtype == LTH_DTYPE_F32) {
		float number;
		memcpy(&number, at, sizeof(number));
		print_float32(printer->out, number);
	} else if (dtype == LTH_DTYPE_F64) {
		double number;
		memcpy(&number, at, sizeof(number));
		print_float(printer->out, number);
	} else {
		uint64_t raw = 0;
		memcpy(&raw, at, width);
		unsigned shift = (unsigned)(64 - width * 8);
		if (lth_dtype_class(dtype) == LTH_CLASS_INT)
			lth_buf_printf(printer->out, "%" PRId64, (int64_t)(raw << shift) >> shift);
		else
			lth_buf_printf(printer->out, "%" PRIu64, raw);
	}
}

/* A hash over the bytes; of strings, over lengths and characters. */
static uint64_t constant_hash(const struct lth_value *value)
{
	if (value->type.dtype != LTH_DTYPE_STRING)
		return lth_hash_bytes(value->constant.data, (size_t)value->constant.bytes, 0);
	const struct lth_string *strings = value->constant.data;
	uint64_t hash = 0;
	for (size_t i = 0; i < (size_t)value->constant.bytes / sizeof(*strings); i++)
		hash = lth_hash_bytes(strings[i].data, strings[i].size, lth_hash_u64(strings[i].size, hash));
	return hash;
}

static void print_constant(struct printer *printer, lth_value_id id)
{
	const struct lth_value *value = &printer->graph->values[id];
	int64_t shape[LTH_MAX_RANK], count = 1;
	bool fixed = lth_type_static(printer->graph, &value->type, shape);
	for (uint32_t i = 0; fixed && i < value->type.rank; i++)
		count = __builtin_mul_overflow(count, shape[i], &count) ? INT64_MAX : count;
	lth_buf_puts(printer->out, "const ");
	print_name(printer, id);
	lth_buf_puts(printer->out, " : ");
	print_value_type(printer, id);
	lth_buf_puts(printer->out, " = ");
	if (value->constant.digest) {
		lth_buf_printf(printer->out, "digest %s\n", value->constant.digest);
	} else if (prints_as_values(value->type.dtype) &&
		   (count <= MAX_INLINE || (printer->with_data && value->type.dtype == LTH_DTYPE_STRING))) {
		lth_buf_puts(printer->out, value->type.rank ? "[" : "");
		for (uint32_t i = 0; i < count; i++) {
			lth_buf_puts(printer->out, i ? ", " : "");
			print_element(printer, value, i);
		}
		lth_buf_puts(printer->out, value->type.rank ? "]\n" : "\n");
	} else if ((printer->with_data || count <= MAX_INLINE) && value->type.dtype != LTH_DTYPE_STRING) {
		lth_buf_puts(printer->out, "hex ");
		for (int64_t i = 0; i < value->constant.bytes; i++)
			lth_buf_printf(printer->out, "%02x", ((const uint8_t *)value->constant.data)[i]);
		lth_buf_putc(printer->out, '\n');
	} else {
		lth_buf_printf(printer->out, "digest %016" PRIx64 "\n", constant_hash(value));
	}
}

/* ---- nodes ---- */

static void print_region(struct printer *printer, lth_region_id id, unsigned depth);

static void print_list(struct printer *printer, const struct lth_attr *attr)
{
	static const char *const empty[] = {
		[LTH_ATTR_INTS] = "ints", [LTH_ATTR_FLOATS] = "floats", [LTH_ATTR_STRINGS] = "strings"};
	lth_buf_puts(printer->out, attr->count ? "[" : empty[attr->kind]);
	for (uint32_t i = 0; i < attr->count; i++) {
		lth_buf_puts(printer->out, i ? ", " : "");
		if (attr->kind == LTH_ATTR_INTS)
			lth_buf_printf(printer->out, "%" PRId64, attr->ints[i]);
		else if (attr->kind == LTH_ATTR_FLOATS)
			print_float(printer->out, attr->floats[i]);
		else
			print_string(printer->out, attr->strings[i]);
	}
	lth_buf_puts(printer->out, attr->count ? "]" : "[]");
}

static void print_attr(struct printer *printer, const struct lth_attr *attr, unsigned depth)
{
	lth_text_symbol(printer->out, attr->name);
	lth_buf_puts(printer->out, ": ");
	switch (attr->kind) {
	case LTH_ATTR_INT: lth_buf_printf(printer->out, "%" PRId64, attr->i); break;
	case LTH_ATTR_FLOAT: print_float(printer->out, attr->f); break;
	case LTH_ATTR_STRING: print_string(printer->out, attr->s); break;
	case LTH_ATTR_TENSOR: print_name(printer, attr->id); break;
	case LTH_ATTR_REGION: print_region(printer, attr->id, depth); break;
	case LTH_ATTR_TYPE:
		lth_buf_puts(printer->out, "type ");
		lth_type_print(printer->graph, attr->type, printer->out);
		break;
	default: print_list(printer, attr); break;
	}
}

static void print_operator(struct printer *printer, const struct lth_op *op)
{
	if (*op->domain)
		lth_buf_printf(printer->out, "%s.", op->domain);
	lth_buf_puts(printer->out, op->name);
}

static void print_node(struct printer *printer, const struct lth_node *node, unsigned depth)
{
	lth_buf_printf(printer->out, "%*s", (int)depth * 2, "");
	for (uint32_t i = 0; i < node->num_outputs; i++) {
		lth_buf_puts(printer->out, i ? ", " : "");
		print_name(printer, node->outputs[i]);
	}
	lth_buf_puts(printer->out, node->num_outputs ? " = " : "= ");
	print_operator(printer, node->op);
	lth_buf_putc(printer->out, '(');
	for (uint32_t i = 0; i < node->num_inputs; i++) {
		lth_buf_puts(printer->out, i ? ", " : "");
		print_name(printer, node->inputs[i]);
	}
	lth_buf_putc(printer->out, ')');
	for (uint32_t i = 0; i < node->num_attrs; i++) {
		lth_buf_puts(printer->out, i ? ", " : " {");
		print_attr(printer, &node->attrs[i], depth);
	}
	lth_buf_puts(printer->out, node->num_attrs ? "}" : "");
	for (uint32_t i = 0; i < node->num_outputs; i++) {
		lth_buf_puts(printer->out, i ? ", " : " : ");
		print_value_type(printer, node->outputs[i]);
	}
	bool named = node->num_outputs == 0 || node->outputs[0] == LTH_NONE ||
		     strcmp(node->name, printer->graph->values[node->outputs[0]].name) != 0;
	if (named) {
		lth_buf_puts(printer->out, " node ");
		lth_buf_quote(printer->out, node->name);
	}
	if (node->group != LTH_NONE)
		lth_buf_printf(printer->out, " group %u", node->group);
	lth_buf_putc(printer->out, '\n');
}

static void print_nodes(struct printer *printer, const struct lth_region *region, unsigned depth)
{
	for (uint32_t i = 0; i < region->num_nodes; i++)
		if (!printer->graph->nodes[region->nodes[i]].deleted)
			print_node(printer, &printer->graph->nodes[region->nodes[i]], depth);
	lth_buf_printf(printer->out, "%*soutput", (int)depth * 2, "");
	for (uint32_t i = 0; i < region->num_outputs; i++) {
		lth_buf_puts(printer->out, i ? ", " : " ");
		print_name(printer, region->outputs[i]);
	}
	lth_buf_putc(printer->out, '\n');
}

static void print_region(struct printer *printer, lth_region_id id, unsigned depth)
{
	const struct lth_region *region = &printer->graph->regions[id];
	lth_buf_puts(printer->out, "region(");
	for (uint32_t i = 0; i < region->num_inputs; i++) {
		lth_buf_puts(printer->out, i ? ", " : "");
		print_name(printer, region->inputs[i]);
		lth_buf_puts(printer->out, " : ");
		print_value_type(printer, region->inputs[i]);
	}
	lth_buf_puts(printer->out, ") {\n");
	print_nodes(printer, region, depth + 1);
	lth_buf_printf(printer->out, "%*s}", (int)depth * 2, "");
}

/* ---- the graph ---- */

static void print_symbols(struct printer *printer)
{
	const struct lth_dims *dims = printer->graph->dims;
	for (uint32_t i = 0; i < lth_dims_num_symbols(dims); i++) {
		const struct lth_dim_symbol *symbol = lth_dims_symbol(dims, i);
		lth_buf_puts(printer->out, "symbol ");
		lth_text_symbol(printer->out, symbol->name);
		lth_buf_printf(printer->out, " in [%" PRId64 ", ", symbol->min);
		if (symbol->max == INT64_MAX)
			lth_buf_putc(printer->out, '*');
		else
			lth_buf_printf(printer->out, "%" PRId64, symbol->max);
		lth_buf_printf(printer->out, "] hint %" PRId64, symbol->hint);
		if (symbol->multiple > 1)
			lth_buf_printf(printer->out, " multiple %" PRId64, symbol->multiple);
		if (symbol->from_data) {
			lth_buf_puts(printer->out, " from ");
			lth_buf_quote(printer->out, symbol->node ? symbol->node : "");
			if (symbol->bound != LTH_DIM_NONE) {
				lth_buf_puts(printer->out, " bound ");
				lth_dim_print(dims, symbol->bound, printer->out);
			}
		}
		lth_buf_putc(printer->out, '\n');
	}
}

static void print_guards(struct printer *printer)
{
	static const char *const relations[] = {
		[LTH_REL_EQ] = "==", [LTH_REL_LE] = "<=", [LTH_REL_DIVIDES] = "divides"};
	for (uint32_t i = 0; i < printer->graph->num_guards; i++) {
		const struct lth_guard *guard = &printer->graph->guards[i];
		lth_buf_puts(printer->out, "guard ");
		lth_dim_print(printer->graph->dims, guard->a, printer->out);
		lth_buf_printf(printer->out, " %s ", relations[guard->relation]);
		lth_dim_print(printer->graph->dims, guard->b, printer->out);
		lth_buf_puts(printer->out, " node ");
		lth_buf_quote(printer->out, guard->node ? guard->node : "");
		lth_buf_puts(printer->out, " rule ");
		lth_buf_quote(printer->out, guard->what ? guard->what : "");
		lth_buf_putc(printer->out, '\n');
	}
}

static void mark(bool *used, const lth_value_id *list, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		if (list[i] != LTH_NONE)
			used[list[i]] = true;
}

static void print_constants(struct printer *printer)
{
	const struct lth_graph *graph = printer->graph;
	bool *used = lth_arena_array(graph->arena, graph->num_values, sizeof(*used));
	if (!used)
		return;
	for (uint32_t i = 0; i < graph->num_nodes; i++) {
		const struct lth_node *node = &graph->nodes[i];
		if (node->deleted)
			continue;
		mark(used, node->inputs, node->num_inputs);
		for (uint32_t k = 0; k < node->num_attrs; k++)
			if (node->attrs[k].kind == LTH_ATTR_TENSOR)
				used[node->attrs[k].id] = true;
	}
	for (uint32_t i = 0; i < graph->num_regions; i++)
		mark(used, graph->regions[i].outputs, graph->regions[i].num_outputs);
	for (lth_value_id id = 0; id < graph->num_values; id++)
		if (used[id] && graph->values[id].def == LTH_DEF_CONSTANT)
			print_constant(printer, id);
}

void lth_graph_print(const struct lth_graph *graph, bool with_data, struct lth_buf *out)
{
	struct printer printer = {graph, out, with_data};
	const struct lth_region *main = &graph->regions[0];
	lth_buf_puts(out, "graph ");
	lth_buf_quote(out, graph->name);
	lth_buf_printf(out, " opset %" PRId64 "\n", graph->opset);
	print_symbols(&printer);
	for (uint32_t i = 0; i < main->num_inputs; i++) {
		lth_buf_puts(out, "input ");
		print_name(&printer, main->inputs[i]);
		lth_buf_puts(out, " : ");
		print_value_type(&printer, main->inputs[i]);
		lth_buf_putc(out, '\n');
	}
	print_constants(&printer);
	print_guards(&printer);
	print_nodes(&printer, main, 0);
	if (!lth_arena_ok(graph->arena))
		out->failed = true;
}
