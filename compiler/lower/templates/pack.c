/* Packing of constant weights at compile time. Elements are moved, not converted, but for bytes (bytes.c): any type of
 * 1, 2, 4 or 8 bytes. */
#include "compiler/lower/templates/internal.h"
#include "runtime/base/checked.h"

static int64_t pack_depth(const struct lth_pack *pack)
{
	int64_t depth = 1;
	for (uint32_t i = 0; i < pack->num_k; i++)
		depth *= pack->k[i].extent;
	return depth;
}

/* Columns of a group with padding, the gates together. */
static int64_t pack_width(const struct lth_pack *pack)
{
	int64_t units = pack->panel / pack->gates;
	return pack->columns / units * pack->panel + pack->tail;
}

bool lth_pack_bytes(const struct lth_pack *pack, int64_t *out_bytes)
{
	int64_t bytes = lth_dtype_bits(pack->dtype) / 8;
	bool quads = pack->kind == LTH_PACK_QUADS;
	if (quads && !lth_mul_i64(bytes, lth_bytes_pack_depth(pack), &bytes))
		return false;
	/* Winograd: the taps are inside the groups. */
	for (uint32_t i = quads ? pack->num_k : pack->kind == LTH_PACK_WINOGRAD ? 2 : 0; i < pack->num_k; i++)
		if (!lth_mul_i64(bytes, pack->k[i].extent, &bytes))
			return false;
	if (pack->columns > INT64_MAX - pack->panel - pack->tail || !lth_mul_i64(bytes, pack_width(pack), &bytes) ||
	    !lth_mul_i64(bytes, pack->groups, &bytes))
		return false;
	*out_bytes = bytes;
	return true;
}

/* One row of a panel: `width` columns, the gates side by side, zero behind the last column. */
#define ROW_FUNCTION(name, type)                                                                                       \
	static void name(const struct lth_pack *pack, const void *source, int64_t at, int64_t first, int64_t width,    \
			 void *out)                                                                                    \
	{                                                                                                              \
		const type *from = (const type *)source + at;                                                          \
		type *to = out;                                                                                        \
		int64_t units = width / pack->gates, stride = pack->column_stride;                                     \
		int64_t count = pack->columns - first < units ? pack->columns - first : units;                         \
		for (int64_t gate = 0; gate < pack->gates; gate++, to += units, from += pack->gate_stride) {           \
			for (int64_t c = 0; c < count; c++)                                                            \
				to[c] = from[(first + c) * stride];                                                    \
			for (int64_t c = count; c < units; c++)                                                        \
				to[c] = 0;                                                                             \
		}                                                                                                      \
	}
ROW_FUNCTION(pack_row8, uint8_t)
ROW_FUNCTION(pack_row16, uint16_t)
ROW_FUNCTION(pack_row32, uint32_t)
ROW_FUNCTION(pack_row64, uint64_t)

static char *pack_panel(const struct lth_pack *pack, const void *source, int64_t group, int64_t first, int64_t width,
			char *out)
{
	int64_t size = lth_dtype_bits(pack->dtype) / 8;
	int64_t index[LTH_MAX_TEMPLATE_AXES] = {0}, at = pack->source_offset + group * pack->group_stride;
	for (int64_t k = 0, depth = pack_depth(pack); k < depth; k++, out += width * size) {
		if (size == 4)
			pack_row32(pack, source, at, first, width, out);
		else if (size == 8)
			pack_row64(pack, source, at, first, width, out);
		else if (size == 2)
			pack_row16(pack, source, at, first, width, out);
		else
			pack_row8(pack, source, at, first, width, out);
		for (uint32_t axis = pack->num_k; axis-- > 0;) {
			at += pack->k[axis].stride;
			if (++index[axis] < pack->k[axis].extent)
				break;
			at -= pack->k[axis].stride * index[axis];
			index[axis] = 0;
		}
	}
	return out;
}

void lth_pack_run(const struct lth_pack *pack, const void *source, void *packed)
{
	char *out = packed;
	int64_t units = pack->panel / pack->gates;
	if (pack->kind == LTH_PACK_WINOGRAD) {
		lth_winograd_pack(pack, source, packed);
		return;
	}
	if (pack->kind == LTH_PACK_QUADS || pack->kind == LTH_PACK_DIFFERENCES) {
		lth_bytes_pack_run(pack, source, packed);
		return;
	}
	for (int64_t group = 0; group < pack->groups; group++) {
		int64_t first = 0;
		for (; first + units <= pack->columns; first += units)
			out = pack_panel(pack, source, group, first, pack->panel, out);
		if (pack->tail)
			out = pack_panel(pack, source, group, first, pack->tail, out);
	}
}
