/* Resampling and the experimental image operators of the first versions. */
#include "compiler/import/upgrade.h"

#include <stdlib.h>
#include <string.h>

/* Both scales as attributes: the form before the list of scales. */
enum lth_code lth_up_upsample_axes(struct lth_importer *importer, struct lth_draft *draft, const char *detail)
{
	static const char *const names[] = {"height_scale", "width_scale"};
	double scales[4] = {1, 1, 1, 1};
	const int64_t shape[1] = {4};
	(void)detail;
	if (!lth_draft_find(draft, names[0]) || !lth_draft_find(draft, names[1]))
		return LTH_OK;
	for (int i = 0; i < 2; i++) {
		scales[2 + i] = lth_up_float_attr(draft, names[i], 1);
		lth_draft_drop(draft, names[i]);
	}
	return lth_up_set_input(importer, draft, 1, lth_up_floats(importer, draft, "scales", 1, shape, scales, 4));
}

static enum lth_code as_resize(struct lth_importer *importer, struct lth_draft *draft, const char *nearest_mode)
{
	enum lth_code code;
	lth_value_id scales = lth_up_input(draft, 1);
	draft->op = "Resize";
	draft->num_inputs = 1;
	if ((code = lth_up_set_input(importer, draft, 2, scales)) ||
	    (code = lth_up_set_text(importer, draft, "coordinate_transformation_mode", "asymmetric")))
		return code;
	return lth_up_set_text(importer, draft, "nearest_mode", nearest_mode);
}

/* Upsample is a Resize from the upper left corner that rounds down. */
enum lth_code lth_up_upsample(struct lth_importer *importer, struct lth_draft *draft, const char *detail)
{
	struct lth_attr *scales = lth_draft_find(draft, "scales"), *mode = lth_draft_find(draft, "mode");
	(void)detail;
	if (scales) {
		if (scales->kind != LTH_ATTR_FLOATS)
			return lth_up_fail(importer, draft, "a list of floats", "scales");
		const int64_t shape[1] = {scales->count};
		lth_value_id list = lth_up_floats(importer, draft, "scales", 1, shape, scales->floats, scales->count);
		lth_draft_drop(draft, "scales");
		enum lth_code code = lth_up_set_input(importer, draft, 1, list);
		if (code)
			return code;
		mode = lth_draft_find(draft, "mode");
	}
	if (draft->num_inputs < 2)
		return lth_up_fail(importer, draft, "scales", "none");
	if (mode && mode->kind == LTH_ATTR_STRING && strcmp(mode->s.data, "bilinear") == 0) {
		enum lth_code code = lth_up_set_text(importer, draft, "mode", "linear");
		if (code)
			return code;
	}
	return as_resize(importer, draft, "floor");
}

/* Resize 10: scales alone; nearest rounds down when it grows, up when it shrinks. */
enum lth_code lth_up_resize_scales(struct lth_importer *importer, struct lth_draft *draft, const char *detail)
{
	const double *scales = NULL;
	uint32_t count = 0;
	bool shrinks = false;
	(void)detail;
	if (draft->num_inputs < 2)
		return lth_up_fail(importer, draft, "scales", "none");
	if (lth_value_const_floats(importer->graph, draft->inputs[1], &scales, &count))
		for (uint32_t i = 0; i < count; i++)
			shrinks |= scales[i] < 1;
	return as_resize(importer, draft, shrinks ? "ceil" : "floor");
}

/* detail: attributes of the factor and of the summand ("-": none). */
enum lth_code lth_up_affine(struct lth_importer *importer, struct lth_draft *draft, const char *detail)
{
	char factor[LTH_UP_WORD], summand[LTH_UP_WORD];
	lth_value_id pair[2] = {lth_up_input(draft, 0), LTH_NONE};
	if (!lth_up_word(&detail, factor) || !lth_up_word(&detail, summand))
		return LTH_OK;
	double alpha = lth_up_float_attr(draft, factor, 1), beta = lth_up_float_attr(draft, summand, 0);
	pair[1] = lth_up_floats(importer, draft, factor, 0, NULL, &alpha, 1);
	if (strcmp(summand, "-") == 0)
		return lth_up_finish(importer, draft, "Mul", pair, 2, NULL, 0);
	enum lth_code code = lth_up_emit(importer, draft, "Mul", pair, 2, NULL, 0, &pair[0]);
	pair[1] = lth_up_floats(importer, draft, summand, 0, NULL, &beta, 1);
	return code ? code : lth_up_finish(importer, draft, "Add", pair, 2, NULL, 0);
}

enum lth_code lth_up_image_scaler(struct lth_importer *importer, struct lth_draft *draft, const char *detail)
{
	const struct lth_attr *bias = lth_draft_find(draft, "bias");
	double scale = lth_up_float_attr(draft, "scale", 1);
	lth_value_id pair[2] = {lth_up_input(draft, 0), lth_up_floats(importer, draft, "scale", 0, NULL, &scale, 1)};
	(void)detail;
	if (!bias || bias->kind != LTH_ATTR_FLOATS)
		return lth_up_finish(importer, draft, "Mul", pair, 2, NULL, 0);
	const int64_t shape[3] = {bias->count, 1, 1};
	enum lth_code code = lth_up_emit(importer, draft, "Mul", pair, 2, NULL, 0, &pair[0]);
	pair[1] = lth_up_floats(importer, draft, "bias", 3, shape, bias->floats, bias->count);
	return code ? code : lth_up_finish(importer, draft, "Add", pair, 2, NULL, 0);
}

/* alpha * f(beta * x); detail: f. */
enum lth_code lth_up_scaled(struct lth_importer *importer, struct lth_draft *draft, const char *detail)
{
	double alpha = lth_up_float_attr(draft, "alpha", 1), beta = lth_up_float_attr(draft, "beta", 1);
	lth_value_id pair[2] = {lth_up_input(draft, 0), lth_up_floats(importer, draft, "beta", 0, NULL, &beta, 1)};
	enum lth_code code;
	if ((code = lth_up_emit(importer, draft, "Mul", pair, 2, NULL, 0, &pair[0])) ||
	    (code = lth_up_emit(importer, draft, detail, pair, 1, NULL, 0, &pair[0])))
		return code;
	pair[1] = lth_up_floats(importer, draft, "alpha", 0, NULL, &alpha, 1);
	return lth_up_finish(importer, draft, "Mul", pair, 2, NULL, 0);
}

/* Crop cuts (left, top, right, bottom) off the last two axes, or a given size behind left and top. */
enum lth_code lth_up_crop(struct lth_importer *importer, struct lth_draft *draft, const char *detail)
{
	const struct lth_attr *border = lth_draft_find(draft, "border"), *scale = lth_draft_find(draft, "scale");
	const int64_t axes[2] = {2, 3};
	(void)detail;
	bool sized = scale && scale->kind == LTH_ATTR_INTS && scale->count == 2;
	if (!border || border->kind != LTH_ATTR_INTS || border->count != 4)
		return lth_up_fail(importer, draft, "a border of four numbers", "another");
	const int64_t *cut = border->ints, starts[2] = {cut[1], cut[0]};
	int64_t ends[2] = {cut[3] ? -cut[3] : INT64_MAX, cut[2] ? -cut[2] : INT64_MAX};
	for (int i = 0; i < 2 && sized; i++)
		if (__builtin_add_overflow(starts[i], scale->ints[i], &ends[i]))
			return lth_up_fail(importer, draft, "a size within 64 bits", "a larger one");
	lth_value_id first = lth_up_ints(importer, draft, "starts", starts, 2);
	lth_value_id last = lth_up_ints(importer, draft, "ends", ends, 2);
	lth_value_id along = lth_up_ints(importer, draft, "axes", axes, 2);
	const lth_value_id inputs[4] = {lth_up_input(draft, 0), first, last, along};
	return lth_up_finish(importer, draft, "Slice", inputs, 4, NULL, 0);
}

enum lth_code lth_up_given_tensor(struct lth_importer *importer, struct lth_draft *draft, const char *detail)
{
	const struct lth_attr *values = lth_draft_find(draft, "values"), *shape = lth_draft_find(draft, "shape");
	int64_t count, bytes;
	(void)detail;
	if (!values || values->kind != LTH_ATTR_FLOATS || !shape || shape->kind != LTH_ATTR_INTS ||
	    shape->count > LTH_MAX_RANK)
		return lth_up_unsupported(importer, draft, "values or shape that are not attributes");
	enum lth_code code = lth_importer_tensor_bytes(importer, draft->name, LTH_DTYPE_F32, shape->ints, shape->count,
						       &count, &bytes);
	if (code == LTH_OK && count != values->count)
		code = lth_up_fail(importer, draft, "as many values as the shape has", "another number");
	if (code)
		return code;
	lth_value_id value =
		lth_up_floats(importer, draft, "values", shape->count, shape->ints, values->floats, values->count);
	return lth_up_finish(importer, draft, "Identity", &value, 1, NULL, 0);
}
