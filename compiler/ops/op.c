/* The operator table and what its rows say: lookup by name, attribute schemas and defaults. */
#include "compiler/ops/op.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define LTH_OP(id, domain, name, kind, flags, min_in, max_in, min_out, max_out, attrs, types, impl, summary) \
	extern const struct lth_op_impl lth_impl_##impl;
#include "compiler/ops/ops.def"
#undef LTH_OP

const struct lth_op lth_ops[LTH_NUM_OPS] = {
#define LTH_OP(id, domain, name, kind, flags, min_in, max_in, min_out, max_out, attrs, types, impl, summary)          \
	[LTH_OP_ID_##id] = {domain,  name,    LTH_OP_##kind, flags, min_in, max_in, min_out,                           \
			    max_out, attrs,   types,         &lth_impl_##impl, summary},
#include "compiler/ops/ops.def"
#undef LTH_OP
};

const struct lth_op *lth_op_find(const char *domain, const char *name)
{
	if (strcmp(domain, "ai.onnx") == 0)
		domain = "";
	for (int i = 0; i < LTH_NUM_OPS; i++)
		if (strcmp(lth_ops[i].name, name) == 0 && strcmp(lth_ops[i].domain, domain) == 0)
			return &lth_ops[i];
	return NULL;
}

static const char *const kind_texts[LTH_NUM_ATTR_KINDS] = {
	[LTH_ATTR_INT] = "int",       [LTH_ATTR_FLOAT] = "float", [LTH_ATTR_STRING] = "string",
	[LTH_ATTR_TENSOR] = "tensor", [LTH_ATTR_REGION] = "region", [LTH_ATTR_TYPE] = "type",
	[LTH_ATTR_INTS] = "ints",     [LTH_ATTR_FLOATS] = "floats", [LTH_ATTR_STRINGS] = "strings",
};

const char *lth_attr_kind_text(enum lth_attr_kind kind)
{
	assert(kind < LTH_NUM_ATTR_KINDS);
	return kind_texts[kind];
}

static bool slice_is(const char *slice, size_t size, const char *text)
{
	return strlen(text) == size && memcmp(slice, text, size) == 0;
}

bool lth_attr_rule_next(const char **cursor, struct lth_attr_rule *out)
{
	const char *at = *cursor + strspn(*cursor, " ");
	if (!*at)
		return false;
	struct lth_attr_rule rule = {.name = at, .name_size = strcspn(at, ":")};
	at += rule.name_size;
	assert(*at == ':'); /* schemas are ours */
	at++;
	size_t kind_size = strcspn(at, "?=( ");
	int kind = 0;
	while (kind < LTH_NUM_ATTR_KINDS && !slice_is(at, kind_size, kind_texts[kind]))
		kind++;
	assert(kind < LTH_NUM_ATTR_KINDS);
	rule.kind = (enum lth_attr_kind)kind;
	at += kind_size;
	rule.required = *at != '?' && *at != '=';
	if (*at == '?')
		at++;
	if (*at == '=') {
		rule.preset = ++at;
		rule.preset_size = strcspn(at, " (");
		at += rule.preset_size;
	}
	if (*at == '(') {
		rule.allowed = ++at;
		rule.allowed_size = strcspn(at, ")");
		at += rule.allowed_size + 1;
	}
	*cursor = at;
	*out = rule;
	return true;
}

/* The rule of an attribute that the caller knows to exist. */
static struct lth_attr_rule rule_of(const struct lth_op *op, const char *name)
{
	const char *cursor = op->attrs;
	struct lth_attr_rule rule;
	while (lth_attr_rule_next(&cursor, &rule))
		if (slice_is(rule.name, rule.name_size, name))
			return rule;
	assert(!"attribute is not in the operator's row");
	return (struct lth_attr_rule){.name = ""};
}

int64_t lth_op_int(const struct lth_node *node, const char *name)
{
	const struct lth_attr *attr = lth_node_attr(node, name);
	if (attr)
		return attr->i;
	struct lth_attr_rule rule = rule_of(node->op, name);
	return rule.preset ? strtoll(rule.preset, NULL, 10) : 0;
}

double lth_op_float(const struct lth_node *node, const char *name)
{
	const struct lth_attr *attr = lth_node_attr(node, name);
	if (attr)
		return attr->f;
	struct lth_attr_rule rule = rule_of(node->op, name);
	/* Attributes are float32 in ONNX: the default is rounded as a written value would have been. */
	return rule.preset ? (double)strtof(rule.preset, NULL) : 0;
}

bool lth_op_string_is(const struct lth_node *node, const char *name, const char *text)
{
	const struct lth_attr *attr = lth_node_attr(node, name);
	if (attr)
		return slice_is(attr->s.data, attr->s.size, text);
	struct lth_attr_rule rule = rule_of(node->op, name);
	return rule.preset && slice_is(rule.preset, rule.preset_size, text);
}
