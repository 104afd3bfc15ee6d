/* What liblathe-media computes at run time: RegexFullMatch and ImageDecoder, written as the internal forms that C kernels
 * take (runtime/kernels/media.c). An image is decoded once, into a string; what is known of its size only then gives the
 * tensor its shape. */
#include "compiler/ops/family.h"
#include "compiler/ops/strings.h"

/* ---- RegexFullMatch ---- */

static enum lth_code expand_regex_full_match(struct lth_infer *infer)
{
	const struct lth_attr *pattern = lth_node_attr(infer->node, "pattern");
	lth_value_id in[2] = {lth_node_input(infer->node, 0), LTH_NONE}, ends;
	lth_build_string_bytes(infer, &pattern->s, 1, &in[1], &ends);
	lth_build_output(infer, 0, lth_build(infer, LTH_OP_ID_RegexMatch, in, 2, NULL, 0));
	return LTH_OK;
}

static enum lth_code infer_regex_match(struct lth_infer *infer)
{
	return lth_infer_like(infer, 0, 0);
}

const struct lth_op_impl lth_impl_regex_full_match = {.expand = expand_regex_full_match};
const struct lth_op_impl lth_impl_regex_match = {.infer = infer_regex_match, .builtin = "regex_full_match"};

/* ---- ImageDecoder ---- */

static enum lth_code expand_image_decoder(struct lth_infer *infer)
{
	const struct lth_attr *format = lth_node_attr(infer->node, "pixel_format");
	lth_value_id bytes = lth_node_input(infer->node, 0), decoded[2];
	struct lth_attr channels = {.name = "channels", .kind = LTH_ATTR_INT, .count = 1};
	enum lth_code code = lth_infer_need_rank(infer, 0, 1, 1);
	if (code)
		return code;
	channels.i = lth_op_string_is(infer->node, "pixel_format", "Grayscale") ? 1 : 3;
	lth_build_many(infer, LTH_OP_ID_ImageDecode, &bytes, 1, format, format != NULL, (const bool[]){true, true},
		       decoded, 2);
	lth_build_output(infer, 0, lth_build(infer, LTH_OP_ID_StringBytes, decoded, 2, &channels, 1));
	return LTH_OK;
}

static enum lth_code infer_image_decode(struct lth_infer *infer)
{
	const lth_dim two = lth_dim_const(infer->dims, 2);
	enum lth_code code = lth_infer_output(infer, 0, LTH_NUM_DTYPES, 0, NULL);
	return code ? code : lth_infer_output(infer, 1, LTH_NUM_DTYPES, 1, &two);
}

static enum lth_code infer_string_bytes(struct lth_infer *infer)
{
	const lth_dim *size;
	uint32_t count;
	enum lth_code code = lth_infer_need_rank(infer, 0, 0, 0);
	if (!code)
		code = lth_infer_need_ints(infer, 1, 0, &size, &count);
	if (!code && count != 2)
		code = lth_infer_reject(infer, "height and width", "%u numbers", count);
	if (code)
		return code;
	const lth_dim dims[3] = {size[0], size[1],
				 lth_dim_const(infer->dims, lth_op_int(infer->node, "channels"))};
	return lth_infer_output(infer, 0, LTH_NUM_DTYPES, 3, dims);
}

const struct lth_op_impl lth_impl_image_decoder = {.expand = expand_image_decoder};
const struct lth_op_impl lth_impl_image_decode = {.infer = infer_image_decode, .builtin = "image_decode"};
const struct lth_op_impl lth_impl_string_bytes = {.infer = infer_string_bytes, .builtin = "string_bytes"};
