/* Reads the text form of graphs (docs/IR.md); what lth_graph_print wrote reads back to a graph that prints the same.
 * Values are defined before they are used, so one pass suffices. The result is verified. */
#include "compiler/ir/graph_parse.h"

#include "compiler/ops/op.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum lth_code lth_parse_fail(struct lth_graph_parser *parser, const char *expected)
{
	return lth_text_fail(&parser->text, expected, NULL);
}

enum lth_code lth_parse_memory(struct lth_graph_parser *parser)
{
	return lth_diag_fail(parser->text.diag, LTH_OUT_OF_MEMORY, "text", NULL, NULL, "no memory left");
}

enum lth_code lth_parse_expect(struct lth_graph_parser *parser, char c)
{
	char words[] = {'\'', c, '\'', 0};
	return lth_text_take(&parser->text, c) ? LTH_OK : lth_parse_fail(parser, words);
}

/* `%word` or `%"any name"`: the name, or NULL. */
static char *parse_name(struct lth_graph_parser *parser)
{
	struct lth_text *text = &parser->text;
	if (!lth_text_take(text, '%'))
		return NULL;
	if (text->at < text->size && text->text[text->at] == '"')
		return lth_text_quoted(text, parser->arena);
	size_t start = text->at;
	while (text->at < text->size && lth_text_word_char(text->text[text->at]))
		text->at++;
	return text->at > start ? lth_arena_strndup(parser->arena, text->text + start, text->at - start) : NULL;
}

/* A value that exists, or `_`. */
static enum lth_code parse_use(struct lth_graph_parser *parser, bool optional, lth_value_id *out)
{
	if (optional && lth_text_take_string(&parser->text, "_")) {
		*out = LTH_NONE;
		return LTH_OK;
	}
	char *name = parse_name(parser);
	if (!name)
		return lth_parse_fail(parser, "a value: %name");
	lth_value_id id = lth_graph_find_value(parser->graph, name);
	if (id == LTH_NONE)
		return lth_text_fail(&parser->text, "a value defined before", name);
	*out = id;
	return LTH_OK;
}

/* A new value's name; it must be free. */
static enum lth_code parse_fresh(struct lth_graph_parser *parser, char **out)
{
	char *name = parse_name(parser);
	if (!name || !*name)
		return lth_parse_fail(parser, "a new value: %name");
	if (lth_graph_find_value(parser->graph, name) != LTH_NONE)
		return lth_text_fail(&parser->text, "a name that is not taken", name);
	*out = name;
	return LTH_OK;
}

/* ---- types ---- */

static enum lth_code parse_inner_type(struct lth_graph_parser *parser, struct lth_type *out, unsigned depth);

static enum lth_code parse_container(struct lth_graph_parser *parser, enum lth_type_kind kind, struct lth_type *out,
				     unsigned depth)
{
	struct lth_type inner;
	char word[32];
	enum lth_code code = lth_parse_expect(parser, '(');
	enum lth_dtype key = LTH_DTYPE_F32;
	if (code == LTH_OK && kind == LTH_TYPE_MAP) {
		if (!lth_text_word(&parser->text, word, sizeof(word)) ||
		    ((key = lth_dtype_by_text(word)) != LTH_DTYPE_I64 && key != LTH_DTYPE_STRING))
			return lth_parse_fail(parser, "keys of type i64 or string");
		code = lth_parse_expect(parser, ',');
	}
	if (code == LTH_OK)
		code = depth >= LTH_MAX_TYPE_DEPTH ? lth_parse_fail(parser, "a type nested less deeply")
				 : parse_inner_type(parser, &inner, depth + 1);
	if (code == LTH_OK)
		code = lth_parse_expect(parser, ')');
	if (code)
		return code;
	*out = lth_type_object(parser->graph, kind, key, &inner);
	return out->element ? LTH_OK : lth_parse_memory(parser);
}

/* Ranks and dimensions of a container's elements may differ (`?`), or be those of none (`!`). */
static enum lth_code parse_shape(struct lth_graph_parser *parser, struct lth_type *out, bool element)
{
	lth_dim dims[LTH_MAX_RANK];
	uint32_t rank = 0;
	enum lth_code code = lth_parse_expect(parser, '[');
	if (code)
		return code;
	if (lth_text_take(&parser->text, '*')) {
		out->rank = LTH_RANK_UNKNOWN;
		return lth_parse_expect(parser, ']');
	}
	if (element && lth_text_take(&parser->text, '!')) {
		out->rank = LTH_RANK_NONE;
		return lth_parse_expect(parser, ']');
	}
	if (!lth_text_take(&parser->text, ']')) {
		do {
			if (rank == LTH_MAX_RANK)
				return lth_parse_fail(parser, "at most 16 dimensions");
			if (element && lth_text_take(&parser->text, '?'))
				dims[rank++] = LTH_DIM_NONE;
			else if ((code = lth_dim_parse_text(parser->graph->dims, &parser->text, &dims[rank++])))
				return code;
		} while (lth_text_take(&parser->text, ','));
		if ((code = lth_parse_expect(parser, ']')))
			return code;
	}
	*out = lth_type_tensor(parser->graph, out->dtype, rank, dims);
	return out->dims ? LTH_OK : lth_parse_memory(parser);
}

static enum lth_code parse_inner_type(struct lth_graph_parser *parser, struct lth_type *out, unsigned depth)
{
	static const char *const words[] = {"seq", "optional", "map"};
	static const enum lth_type_kind kinds[] = {LTH_TYPE_SEQUENCE, LTH_TYPE_OPTIONAL, LTH_TYPE_MAP};
	char word[32];
	*out = (struct lth_type){.kind = LTH_TYPE_TENSOR, .dtype = LTH_NUM_DTYPES, .rank = LTH_RANK_UNKNOWN};
	for (int i = 0; i < 3; i++)
		if (lth_text_take_string(&parser->text, words[i]))
			return parse_container(parser, kinds[i], out, depth);
	if (!lth_text_take(&parser->text, '?') && (!lth_text_word(&parser->text, word, sizeof(word)) ||
						   (out->dtype = lth_dtype_by_text(word)) == LTH_NUM_DTYPES))
		return lth_parse_fail(parser, "an element type");
	return parse_shape(parser, out, depth > 0);
}

enum lth_code lth_parse_type(struct lth_graph_parser *parser, struct lth_type *out)
{
	return parse_inner_type(parser, out, 0);
}

/* A type, and the memory order of axes where it is not row-major. */
static enum lth_code parse_value_type(struct lth_graph_parser *parser, struct lth_type *out, const uint8_t **out_layout)
{
	enum lth_code code = lth_parse_type(parser, out);
	uint8_t order[LTH_MAX_RANK];
	unsigned seen = 0;
	*out_layout = NULL;
	if (code || !lth_text_take_string(&parser->text, "layout"))
		return code;
	if (out->kind != LTH_TYPE_TENSOR || out->rank > LTH_MAX_RANK)
		return lth_parse_fail(parser, "a layout of a tensor whose rank is known");
	if ((code = lth_parse_expect(parser, '(')))
		return code;
	for (uint32_t i = 0; i < out->rank; i++) {
		int64_t axis;
		if ((i && !lth_text_take(&parser->text, ',')) || !lth_text_int(&parser->text, &axis) || axis < 0 ||
		    axis >= out->rank || (seen >> axis & 1))
			return lth_parse_fail(parser, "each axis once");
		seen |= 1u << axis;
		order[i] = (uint8_t)axis;
	}
	*out_layout = lth_arena_memdup(parser->arena, order, out->rank);
	return *out_layout ? lth_parse_expect(parser, ')') : lth_parse_memory(parser);
}

/* ---- the lines before the nodes ---- */

/* Passes over a bound, to the line's end. */
static bool note_bound(struct lth_graph_parser *parser, lth_dim symbol)
{
	struct lth_text *text = &parser->text;
	struct lth_graph_bound *bounds = lth_arena_grow(parser->arena, parser->bounds, &parser->cap_bounds,
							parser->num_bounds + 1, sizeof(*bounds));
	if (!bounds)
		return false;
	const char *from = text->text + text->at, *end = memchr(from, '\n', text->size - text->at);
	parser->bounds = bounds;
	bounds[parser->num_bounds] = (struct lth_graph_bound){symbol, *text};
	text->at = end ? (size_t)(end - text->text) : text->size;
	bounds[parser->num_bounds++].text.size = text->at;
	return true;
}

static enum lth_code parse_symbol(struct lth_graph_parser *parser)
{
	struct lth_dim_symbol symbol = {.multiple = 1, .max = INT64_MAX, .bound = LTH_DIM_NONE};
	struct lth_text *text = &parser->text;
	char word[256];
	int64_t axis;
	bool bounded = false;
	if (lth_text_peek(text) == '"') {
		symbol.name = lth_text_quoted(text, parser->arena);
	} else if (lth_text_word(text, word, sizeof(word))) {
		bool indexed = lth_text_take(text, '[') && lth_text_int(text, &axis) && lth_text_take(text, ']');
		symbol.name = indexed ? lth_arena_printf(parser->arena, "%s[%" PRId64 "]", word, axis)
				      : lth_arena_strdup(parser->arena, word);
	}
	if (!symbol.name || lth_dim_find_symbol(parser->graph->dims, symbol.name) != LTH_DIM_NONE)
		return lth_parse_fail(parser, "the name of a new symbol");
	if (!lth_text_take_string(text, "in") || !lth_text_take(text, '[') || !lth_text_int(text, &symbol.min) ||
	    !lth_text_take(text, ',') || !(lth_text_take(text, '*') || lth_text_int(text, &symbol.max)) ||
	    !lth_text_take(text, ']'))
		return lth_parse_fail(parser, "a range: in [MIN, MAX]");
	if (symbol.min > symbol.max)
		return lth_parse_fail(parser, "a range that is not empty");
	symbol.hint = symbol.min;
	if (lth_text_take_string(text, "hint") && !lth_text_int(text, &symbol.hint))
		return lth_parse_fail(parser, "a hint");
	if (lth_text_take_string(text, "multiple") && (!lth_text_int(text, &symbol.multiple) || symbol.multiple < 1))
		return lth_parse_fail(parser, "a multiple of at least 1");
	if (lth_text_take_string(text, "from")) {
		symbol.from_data = true;
		if (!(symbol.node = lth_text_quoted(text, parser->arena)))
			return lth_parse_fail(parser, "the name of a node in quotes");
		bounded = lth_text_take_string(text, "bound");
	}
	lth_dim id = lth_dim_symbol(parser->graph->dims, &symbol);
	return id == LTH_DIM_NONE || (bounded && !note_bound(parser, id)) ? lth_parse_memory(parser) : LTH_OK;
}

static enum lth_code parse_bounds(struct lth_graph_parser *parser)
{
	struct lth_text after = parser->text;
	enum lth_code code = LTH_OK;
	for (uint32_t i = 0; i < parser->num_bounds && code == LTH_OK; i++) {
		lth_dim bound;
		parser->text = parser->bounds[i].text;
		code = lth_dim_parse_text(parser->graph->dims, &parser->text, &bound);
		if (code == LTH_OK && lth_text_peek(&parser->text))
			code = lth_parse_fail(parser, "the line's end");
		if (code == LTH_OK)
			lth_dim_tighten(parser->graph->dims, parser->bounds[i].symbol, bound, INT64_MAX);
	}
	parser->text = after;
	return code;
}

static enum lth_code parse_input(struct lth_graph_parser *parser, lth_region_id region)
{
	struct lth_type type;
	const uint8_t *layout;
	char *name;
	enum lth_code code = parse_fresh(parser, &name);
	if (code || (code = lth_parse_expect(parser, ':')) || (code = parse_value_type(parser, &type, &layout)))
		return code;
	lth_value_id id = lth_graph_input(parser->graph, region, name, &type);
	if (id == LTH_NONE)
		return lth_parse_memory(parser);
	parser->graph->values[id].layout = layout;
	return LTH_OK;
}

static enum lth_code parse_constant_line(struct lth_graph_parser *parser)
{
	struct lth_type type;
	const uint8_t *layout;
	struct lth_constant constant;
	int64_t shape[LTH_MAX_RANK];
	char *name;
	enum lth_code code = parse_fresh(parser, &name);
	if (code || (code = lth_parse_expect(parser, ':')) || (code = parse_value_type(parser, &type, &layout)) ||
	    (code = lth_parse_expect(parser, '=')))
		return code;
	if (type.dtype == LTH_NUM_DTYPES || !lth_type_static(parser->graph, &type, shape))
		return lth_parse_fail(parser, "a constant of a static type");
	if ((code = lth_parse_constant(parser, &type, shape, &constant)))
		return code;
	lth_value_id id =
		lth_graph_constant(parser->graph, name, type.dtype, type.rank, shape, constant.data, constant.bytes);
	if (id == LTH_NONE)
		return lth_parse_memory(parser);
	parser->graph->values[id].constant = constant;
	parser->graph->values[id].layout = layout;
	return LTH_OK;
}

static enum lth_code parse_guard(struct lth_graph_parser *parser)
{
	/* the region is settled when the nodes are known; until then no two guards are of one region */
	struct lth_guard guard = {.region = LTH_NONE - parser->graph->num_guards, .relation = LTH_REL_EQ};
	struct lth_text *text = &parser->text;
	enum lth_code code = lth_dim_parse_text(parser->graph->dims, text, &guard.a);
	if (code)
		return code;
	if (lth_text_take_string(text, "<="))
		guard.relation = LTH_REL_LE;
	else if (lth_text_take_string(text, "divides"))
		guard.relation = LTH_REL_DIVIDES;
	else if (!lth_text_take_string(text, "=="))
		return lth_parse_fail(parser, "==, <= or divides");
	if ((code = lth_dim_parse_text(parser->graph->dims, text, &guard.b)))
		return code;
	if (!lth_text_take_string(text, "node") || !(guard.node = lth_text_quoted(text, parser->arena)) ||
	    !lth_text_take_string(text, "rule") || !(guard.what = lth_text_quoted(text, parser->arena)))
		return lth_parse_fail(parser, "node \"NAME\" rule \"TEXT\"");
	lth_graph_guard(parser->graph, &guard);
	return LTH_OK;
}

/* ---- nodes ---- */

static enum lth_code parse_nodes(struct lth_graph_parser *parser, lth_region_id region);

static enum lth_code parse_region(struct lth_graph_parser *parser, struct lth_attr *out)
{
	lth_region_id region = lth_graph_region(parser->graph, LTH_NONE);
	enum lth_code code = lth_parse_expect(parser, '(');
	if (region == LTH_NONE)
		return lth_parse_memory(parser);
	if (++parser->depth > LTH_MAX_REGION_DEPTH)
		return lth_parse_fail(parser, "regions nested less deeply");
	if (code == LTH_OK && !lth_text_take(&parser->text, ')')) {
		do
			code = parse_input(parser, region);
		while (code == LTH_OK && lth_text_take(&parser->text, ','));
		if (code == LTH_OK)
			code = lth_parse_expect(parser, ')');
	}
	if (code || (code = lth_parse_expect(parser, '{')) || (code = parse_nodes(parser, region)) ||
	    (code = lth_parse_expect(parser, '}')))
		return code;
	parser->depth--;
	out->kind = LTH_ATTR_REGION;
	out->id = region;
	return LTH_OK;
}

static enum lth_code parse_attr(struct lth_graph_parser *parser, struct lth_attr *out)
{
	struct lth_text *text = &parser->text;
	char word[128];
	*out = (struct lth_attr){.count = 1};
	if (lth_text_peek(text) == '"')
		out->name = lth_text_quoted(text, parser->arena);
	else if (lth_text_word(text, word, sizeof(word)))
		out->name = lth_arena_strdup(parser->arena, word);
	if (!out->name)
		return lth_parse_fail(parser, "the name of an attribute");
	enum lth_code code = lth_parse_expect(parser, ':');
	if (code)
		return code;
	if (lth_text_peek(text) == '%') {
		out->kind = LTH_ATTR_TENSOR;
		return parse_use(parser, false, &out->id);
	}
	if (lth_text_take_string(text, "region"))
		return parse_region(parser, out);
	if (lth_text_take_string(text, "type")) {
		struct lth_type type;
		if ((code = lth_parse_type(parser, &type)))
			return code;
		out->kind = LTH_ATTR_TYPE;
		out->type = lth_arena_memdup(parser->arena, &type, sizeof(type));
		return out->type ? LTH_OK : lth_parse_memory(parser);
	}
	return lth_parse_attr_value(parser, out);
}

/* A node under construction: lists on the heap of the arena. */
struct node {
	char **names; /* of outputs; NULL where nobody asked */
	lth_value_id *inputs, *outputs;
	struct lth_attr *attrs;
	uint32_t num_outputs, num_inputs, num_attrs, cap_names, cap_inputs, cap_attrs;
	const struct lth_op *op;
};

static enum lth_code parse_output_names(struct lth_graph_parser *parser, struct node *node)
{
	if (lth_text_peek(&parser->text) == '=')
		return lth_parse_expect(parser, '=');
	do {
		char **names = lth_arena_grow(parser->arena, node->names, &node->cap_names, node->num_outputs + 1,
					      sizeof(*names));
		if (!names)
			return lth_parse_memory(parser);
		node->names = names;
		names[node->num_outputs] = NULL;
		if (!lth_text_take_string(&parser->text, "_")) {
			enum lth_code code = parse_fresh(parser, &names[node->num_outputs]);
			if (code)
				return code;
		}
		node->num_outputs++;
	} while (lth_text_take(&parser->text, ','));
	return lth_parse_expect(parser, '=');
}

static enum lth_code parse_operator(struct lth_graph_parser *parser, struct node *node)
{
	char word[160], *dot;
	if (!lth_text_word(&parser->text, word, sizeof(word)))
		return lth_parse_fail(parser, "an operator");
	dot = strrchr(word, '.');
	if (dot)
		*dot = 0;
	node->op = lth_op_find(dot ? word : "", dot ? dot + 1 : word);
	if (!node->op && dot)
		*dot = '.';
	return node->op ? LTH_OK : lth_text_fail(&parser->text, "a known operator", word);
}

static enum lth_code parse_operands(struct lth_graph_parser *parser, struct node *node)
{
	enum lth_code code = lth_parse_expect(parser, '(');
	if (code || lth_text_take(&parser->text, ')'))
		return code;
	do {
		lth_value_id *inputs = lth_arena_grow(parser->arena, node->inputs, &node->cap_inputs,
						      node->num_inputs + 1, sizeof(*inputs));
		if (!inputs)
			return lth_parse_memory(parser);
		node->inputs = inputs;
		if ((code = parse_use(parser, true, &inputs[node->num_inputs])))
			return code;
		node->num_inputs++;
	} while (lth_text_take(&parser->text, ','));
	return lth_parse_expect(parser, ')');
}

static enum lth_code parse_attrs(struct lth_graph_parser *parser, struct node *node)
{
	enum lth_code code = LTH_OK;
	if (!lth_text_take(&parser->text, '{'))
		return LTH_OK;
	do {
		struct lth_attr attr, *attrs;
		if ((code = parse_attr(parser, &attr)))
			return code;
		attrs = lth_arena_grow(parser->arena, node->attrs, &node->cap_attrs, node->num_attrs + 1,
				       sizeof(*attrs));
		if (!attrs)
			return lth_parse_memory(parser);
		node->attrs = attrs;
		attrs[node->num_attrs++] = attr;
	} while (lth_text_take(&parser->text, ','));
	return lth_parse_expect(parser, '}');
}

/* Types of the outputs; the values come into being here, so that a node cannot read its own. */
static enum lth_code parse_output_types(struct lth_graph_parser *parser, struct node *node)
{
	enum lth_code code = node->num_outputs ? lth_parse_expect(parser, ':') : LTH_OK;
	node->outputs = lth_arena_array(parser->arena, node->num_outputs, sizeof(*node->outputs));
	for (uint32_t i = 0; i < node->num_outputs && code == LTH_OK && node->outputs; i++) {
		struct lth_type type;
		const uint8_t *layout = NULL;
		node->outputs[i] = LTH_NONE;
		if (i && (code = lth_parse_expect(parser, ',')))
			return code;
		if (!node->names[i]) {
			if (!lth_text_take_string(&parser->text, "_"))
				return lth_parse_fail(parser, "'_'");
			continue;
		}
		if ((code = parse_value_type(parser, &type, &layout)))
			return code;
		if (lth_graph_find_value(parser->graph, node->names[i]) != LTH_NONE)
			return lth_text_fail(&parser->text, "a name that is not taken", node->names[i]);
		node->outputs[i] = lth_graph_value(parser->graph, node->names[i], &type);
		if (node->outputs[i] == LTH_NONE)
			return lth_parse_memory(parser);
		parser->graph->values[node->outputs[i]].layout = layout;
	}
	return code ? code : node->outputs ? LTH_OK : lth_parse_memory(parser);
}

static enum lth_code parse_node(struct lth_graph_parser *parser, lth_region_id region)
{
	struct node node = {.op = NULL};
	const char *name = NULL;
	int64_t group = -1;
	enum lth_code code;
	if ((code = parse_output_names(parser, &node)) || (code = parse_operator(parser, &node)) ||
	    (code = parse_operands(parser, &node)) || (code = parse_attrs(parser, &node)) ||
	    (code = parse_output_types(parser, &node)))
		return code;
	if (lth_text_take_string(&parser->text, "node") && (!(name = lth_text_quoted(&parser->text, parser->arena)) ||
							    lth_graph_find_node(parser->graph, name) != LTH_NONE))
		return lth_parse_fail(parser, "the name of a new node in quotes");
	if (lth_text_take_string(&parser->text, "group") &&
	    (!lth_text_int(&parser->text, &group) || group < 0 || group >= UINT32_MAX))
		return lth_parse_fail(parser, "the number of a group");
	lth_node_id id = lth_graph_node(parser->graph, region, node.op, name, node.inputs, node.num_inputs,
					node.outputs, node.num_outputs, node.attrs, node.num_attrs);
	if (id == LTH_NONE)
		return lth_parse_memory(parser);
	if (group >= 0) {
		parser->graph->nodes[id].group = (uint32_t)group;
		if (group >= parser->graph->num_groups)
			parser->graph->num_groups = (uint32_t)group + 1;
	}
	return LTH_OK;
}

/* Nodes up to and with the line of outputs. */
static enum lth_code parse_nodes(struct lth_graph_parser *parser, lth_region_id region)
{
	enum lth_code code = LTH_OK;
	while (code == LTH_OK && !lth_text_take_string(&parser->text, "output"))
		code = parse_node(parser, region);
	char next = lth_text_peek(&parser->text);
	while (code == LTH_OK && (next == '%' || next == ',')) {
		lth_value_id value;
		code = parse_use(parser, false, &value);
		if (code == LTH_OK && !lth_graph_output(parser->graph, region, value))
			code = lth_parse_memory(parser);
		next = code == LTH_OK && lth_text_take(&parser->text, ',') ? ',' : 0;
	}
	return code;
}

/* A guard belongs to the region of its node, or to the main one when the node is gone. */
static void settle_guards(struct lth_graph *graph)
{
	for (uint32_t i = 0; i < graph->num_guards; i++) {
		lth_node_id node = graph->guards[i].node ? lth_graph_find_node(graph, graph->guards[i].node) : LTH_NONE;
		graph->guards[i].region = node == LTH_NONE ? 0 : graph->nodes[node].region;
	}
}

static enum lth_code parse_graph(struct lth_graph_parser *parser)
{
	struct lth_text *text = &parser->text;
	enum lth_code code = LTH_OK;
	if (!lth_text_take_string(text, "graph") || !(parser->graph->name = lth_text_quoted(text, parser->arena)) ||
	    !lth_text_take_string(text, "opset") || !lth_text_int(text, &parser->graph->opset))
		return lth_parse_fail(parser, "graph \"NAME\" opset NUMBER");
	for (;;) {
		if (lth_text_take_string(text, "symbol"))
			code = parse_symbol(parser);
		else if (lth_text_take_string(text, "input"))
			code = parse_input(parser, 0);
		else if (lth_text_take_string(text, "const"))
			code = parse_constant_line(parser);
		else if (lth_text_take_string(text, "guard"))
			code = parse_guard(parser);
		else
			break;
		if (code)
			return code;
	}
	code = parse_bounds(parser);
	if (code == LTH_OK)
		code = parse_nodes(parser, 0);
	settle_guards(parser->graph);
	if (code == LTH_OK && lth_text_peek(text))
		code = lth_parse_fail(parser, "the end of the text");
	return code;
}

enum lth_code lth_graph_parse(const char *text, size_t size, struct lth_arena *arena, struct lth_graph **out_graph,
			      struct lth_diag *diag)
{
	struct lth_graph_parser parser = {.text = {.text = text, .size = size, .line = 1, .diag = diag},
					  .arena = arena};
	parser.graph = lth_graph_create(arena);
	if (!parser.graph)
		return lth_parse_memory(&parser);
	enum lth_code code = parse_graph(&parser);
	if (code == LTH_OK && !lth_arena_ok(arena))
		code = lth_parse_memory(&parser);
	if (code == LTH_OK)
		code = lth_graph_verify(parser.graph, diag);
	if (code == LTH_OK)
		*out_graph = parser.graph;
	return code;
}
