/* Attributes that became inputs, were renamed, respelled or dropped. */
#include "compiler/import/upgrade.h"

#include "compiler/ops/op.h"
#include "runtime/tensor/dtype.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* detail: names of attributes without meaning. */
enum lth_code lth_up_drop(struct lth_importer *importer, struct lth_draft *draft, const char *detail)
{
	char name[LTH_UP_WORD];
	(void)importer;
	while (lth_up_word(&detail, name))
		lth_draft_drop(draft, name);
	return LTH_OK;
}

/* detail: the operator's new name. */
enum lth_code lth_up_rename(struct lth_importer *importer, struct lth_draft *draft, const char *detail)
{
	(void)importer;
	draft->op = detail;
	return LTH_OK;
}

/* detail: old and new name of an attribute. */
enum lth_code lth_up_rename_attr(struct lth_importer *importer, struct lth_draft *draft, const char *detail)
{
	char name[LTH_UP_WORD];
	if (!lth_up_word(&detail, name))
		return LTH_OK;
	struct lth_attr *attr = lth_draft_find(draft, name);
	if (attr && !lth_draft_find(draft, detail))
		attr->name = detail;
	(void)importer;
	return LTH_OK;
}

/* detail: attribute, value: set where it is absent. Digits are an integer. */
enum lth_code lth_up_preset(struct lth_importer *importer, struct lth_draft *draft, const char *detail)
{
	char name[LTH_UP_WORD];
	if (!lth_up_word(&detail, name) || lth_draft_find(draft, name))
		return LTH_OK;
	const char *kept = lth_arena_strdup(importer->arena, name);
	if (!kept)
		return lth_importer_memory(importer);
	bool number = *detail >= '0' && *detail <= '9';
	return number ? lth_up_set_int(importer, draft, kept, strtoll(detail, NULL, 10))
		      : lth_up_set_text(importer, draft, kept, detail);
}

/* detail: attribute, then pairs of an old and a new spelling. */
enum lth_code lth_up_spelling(struct lth_importer *importer, struct lth_draft *draft, const char *detail)
{
	char name[LTH_UP_WORD], old[LTH_UP_WORD], fresh[LTH_UP_WORD];
	if (!lth_up_word(&detail, name))
		return LTH_OK;
	struct lth_attr *attr = lth_draft_find(draft, name);
	while (attr && attr->kind == LTH_ATTR_STRING && lth_up_word(&detail, old) && lth_up_word(&detail, fresh))
		if (strcmp(attr->s.data, old) == 0)
			return lth_up_set_text(importer, draft, attr->name, fresh);
	return LTH_OK;
}

/* detail: an attribute that was written as a float. */
enum lth_code lth_up_whole_number(struct lth_importer *importer, struct lth_draft *draft, const char *detail)
{
	struct lth_attr *attr = lth_draft_find(draft, detail);
	if (!attr || attr->kind != LTH_ATTR_FLOAT)
		return LTH_OK;
	if (!(attr->f == floor(attr->f) && fabs(attr->f) < 1e9))
		return lth_up_fail(importer, draft, "a whole number", detail);
	return lth_up_set_int(importer, draft, attr->name, (int64_t)attr->f);
}

/* detail: attribute. Cast's `to` was the name of the type. */
enum lth_code lth_up_type_name(struct lth_importer *importer, struct lth_draft *draft, const char *detail)
{
	static const struct {
		const char *name;
		enum lth_dtype dtype;
	} names[] = {
		{"FLOAT", LTH_DTYPE_F32},   {"UINT8", LTH_DTYPE_U8},      {"INT8", LTH_DTYPE_I8},
		{"UINT16", LTH_DTYPE_U16},  {"INT16", LTH_DTYPE_I16},     {"INT32", LTH_DTYPE_I32},
		{"INT64", LTH_DTYPE_I64},   {"STRING", LTH_DTYPE_STRING}, {"BOOL", LTH_DTYPE_BOOL},
		{"FLOAT16", LTH_DTYPE_F16}, {"DOUBLE", LTH_DTYPE_F64},    {"UINT32", LTH_DTYPE_U32},
		{"UINT64", LTH_DTYPE_U64},  {"COMPLEX64", LTH_DTYPE_C64}, {"COMPLEX128", LTH_DTYPE_C128},
	};
	const struct lth_attr *attr = lth_draft_find(draft, detail);
	if (!attr || attr->kind != LTH_ATTR_STRING)
		return LTH_OK;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strcmp(names[i].name, attr->s.data) == 0)
			return lth_up_set_int(importer, draft, attr->name, lth_dtype_onnx(names[i].dtype));
	return lth_up_fail(importer, draft, "the name of a data type", attr->s.data);
}

/* detail: pairs of an attribute (an integer or a list) and the input that it becomes. */
enum lth_code lth_up_list_input(struct lth_importer *importer, struct lth_draft *draft, const char *detail)
{
	char name[LTH_UP_WORD], position[LTH_UP_WORD];
	enum lth_code code = LTH_OK;
	while (code == LTH_OK && lth_up_word(&detail, name) && lth_up_word(&detail, position)) {
		const struct lth_attr *attr = lth_draft_find(draft, name);
		lth_value_id value;
		if (!attr)
			continue;
		if (attr->kind == LTH_ATTR_INTS)
			value = lth_up_ints(importer, draft, name, attr->ints, attr->count);
		else if (attr->kind == LTH_ATTR_INT)
			value = lth_up_ints(importer, draft, name, &attr->i, 1);
		else
			return lth_up_fail(importer, draft, "a list of integers", name);
		lth_draft_drop(draft, name);
		code = lth_up_set_input(importer, draft, (uint32_t)atoi(position), value);
	}
	return code;
}

/* detail: pairs of a float attribute and the input, a scalar of the first input's type, that it becomes. */
enum lth_code lth_up_scalar_input(struct lth_importer *importer, struct lth_draft *draft, const char *detail)
{
	char name[LTH_UP_WORD], position[LTH_UP_WORD];
	enum lth_code code = LTH_OK;
	lth_value_id like = lth_up_input(draft, 0);
	while (code == LTH_OK && lth_up_word(&detail, name) && lth_up_word(&detail, position)) {
		if (!lth_draft_find(draft, name))
			continue;
		double number = lth_up_float_attr(draft, name, 0);
		lth_value_id value = lth_up_floats(importer, draft, name, 0, NULL, &number, 1);
		enum lth_dtype dtype = like == LTH_NONE ? LTH_NUM_DTYPES : importer->graph->values[like].type.dtype;
		lth_draft_drop(draft, name);
		if (value == LTH_NONE)
			return lth_importer_memory(importer);
		if (dtype != LTH_DTYPE_F32 && like != LTH_NONE) {
			const lth_value_id pair[2] = {value, like};
			code = lth_up_emit(importer, draft, "CastLike", pair, 2, NULL, 0, &value);
		}
		if (code == LTH_OK)
			code = lth_up_set_input(importer, draft, (uint32_t)atoi(position), value);
	}
	return code;
}

/* Before 18 the number of outputs said how many parts to make. */
enum lth_code lth_up_split_count(struct lth_importer *importer, struct lth_draft *draft, const char *detail)
{
	(void)detail;
	if (lth_up_input(draft, 1) != LTH_NONE)
		return LTH_OK;
	return lth_up_set_int(importer, draft, "num_outputs", draft->num_outputs);
}

/* Inputs without elements stand for absent ones (Resize's roi and scales). */
enum lth_code lth_up_empty_inputs(struct lth_importer *importer, struct lth_draft *draft, const char *detail)
{
	(void)detail;
	for (uint32_t i = 1; i < draft->num_inputs; i++) {
		if (draft->inputs[i] == LTH_NONE)
			continue;
		const struct lth_value *value = &importer->graph->values[draft->inputs[i]];
		if (value->def == LTH_DEF_CONSTANT && value->constant.bytes == 0)
			draft->inputs[i] = LTH_NONE;
	}
	return LTH_OK;
}

/* Before 20 the axis of DFT was an attribute with another default. */
enum lth_code lth_up_dft_axis(struct lth_importer *importer, struct lth_draft *draft, const char *detail)
{
	(void)detail;
	lth_value_id axis = lth_up_int(importer, draft, "axis", lth_up_int_attr(draft, "axis", 1));
	lth_draft_drop(draft, "axis");
	return lth_up_set_input(importer, draft, 2, axis);
}
