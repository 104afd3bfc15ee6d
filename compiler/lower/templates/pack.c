/* Packing of constant weights at compile time. Elements are moved, not converted, but for bytes (bytes.c): any type of
 * 1, 2, 4 or 8 bytes. */
#include "compiler/lower/templates/internal.h"
#include "runtime/base/checked.h"

#include <string.h>

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

/* Some rows of a panel, the elements of which are `step` apart in a column: the gates side by side, zero behind the
 * last column. Columns that are far apart are read some elements at a time, so that a line of the cache is read once:
 * their strides are often such that lines of a few columns drive each other out. */
enum { ROWS_AT_ONCE = 16 };
#define ROWS_FUNCTION(name, type)                                                                                      \
	static void name(const struct lth_pack *pack, const void *source, int64_t at, int64_t step, int64_t rows,      \
			 int64_t first, int64_t width, void *out)                                                      \
	{                                                                                                              \
		int64_t units = width / pack->gates, stride = pack->column_stride;                                     \
		int64_t count = pack->columns - first < units ? pack->columns - first : units;                         \
		for (int64_t gate = 0; gate < pack->gates; gate++) {                                                   \
			const type *from = (const type *)source + at + gate * pack->gate_stride + first * stride;      \
			type *to = (type *)out + gate * units;                                                         \
			for (int64_t r = 0; stride == 1 && r < rows; r++)                                              \
				memcpy(to + r * width, from + r * step, (size_t)count * sizeof(type));                 \
			for (int64_t c = 0; stride != 1 && c < count; c++)                                             \
				for (int64_t r = 0; r < rows; r++)                                                     \
					to[r * width + c] = from[c * stride + r * step];                               \
			for (int64_t r = 0; r < rows; r++)                                                             \
				for (int64_t c = count; c < units; c++)                                                \
					to[r * width + c] = 0;                                                         \
		}                                                                                                      \
	}
ROWS_FUNCTION(pack_rows8, uint8_t)
ROWS_FUNCTION(pack_rows16, uint16_t)
ROWS_FUNCTION(pack_rows32, uint32_t)
ROWS_FUNCTION(pack_rows64, uint64_t)

typedef void (*rows_fn)(const struct lth_pack *pack, const void *source, int64_t at, int64_t step, int64_t rows,
			int64_t first, int64_t width, void *out);

static rows_fn rows_function(int64_t size)
{
	return size == 4 ? pack_rows32 : size == 8 ? pack_rows64 : size == 2 ? pack_rows16 : pack_rows8;
}

/* The innermost k axis by ROWS_AT_ONCE, the others around it. */
static void pack_columns(const struct lth_pack *pack, const void *source, int64_t group, int64_t first, int64_t width,
			 char *out)
{
	int64_t size = lth_dtype_bits(pack->dtype) / 8, at = pack->source_offset + group * pack->group_stride;
	int64_t index[LTH_MAX_TEMPLATE_AXES] = {0}, depth = pack_depth(pack);
	uint32_t outer = pack->num_k ? pack->num_k - 1 : 0;
	int64_t extent = pack->num_k ? pack->k[outer].extent : 1, step = pack->num_k ? pack->k[outer].stride : 0;
	rows_fn rows = rows_function(size);
	for (int64_t done = 0; done < depth; done += extent) {
		for (int64_t k = 0, count; k < extent; k += count, out += count * width * size) {
			count = extent - k < ROWS_AT_ONCE ? extent - k : ROWS_AT_ONCE;
			rows(pack, source, at + k * step, step, count, first, width, out);
		}
		for (uint32_t axis = outer; axis-- > 0;) {
			at += pack->k[axis].stride;
			if (++index[axis] < pack->k[axis].extent)
				break;
			at -= pack->k[axis].stride * index[axis];
			index[axis] = 0;
		}
	}
}

/* The panels of all groups in order. */
struct panels {
	int64_t full, in_group; /* panels of full width, and all, of a group */
	int64_t size, depth;    /* bytes of an element, elements of a column */
	int64_t group_bytes;
};

static struct panels panels_of(const struct lth_pack *pack)
{
	struct panels panels = {.full = pack->columns / (pack->panel / pack->gates),
				.size = lth_dtype_bits(pack->dtype) / 8,
				.depth = pack->kind == LTH_PACK_QUADS ? lth_bytes_pack_depth(pack) : pack_depth(pack)};
	panels.in_group = panels.full + (pack->tail > 0);
	panels.group_bytes = pack_width(pack) * panels.depth * panels.size;
	return panels;
}

static int64_t panel_offset(const struct lth_pack *pack, const struct panels *panels, int64_t panel)
{
	int64_t column = panel % panels->in_group * pack->panel; /* a tail is the last of its group */
	return panel / panels->in_group * panels->group_bytes + column * panels->depth * panels->size;
}

static void pack_panel(const struct lth_pack *pack, const struct panels *panels, const void *source, int64_t panel,
		       char *out)
{
	int64_t group = panel / panels->in_group, place = panel % panels->in_group;
	int64_t first = place * (pack->panel / pack->gates), width = place < panels->full ? pack->panel : pack->tail;
	if (pack->kind == LTH_PACK_PANELS)
		pack_columns(pack, source, group, first, width, out);
	else
		lth_bytes_pack_panel(pack, source, group, first, width, out);
}

/* Panels of one part: as many as make it worth handing to a thread. */
static int64_t panels_a_part(const struct lth_pack *pack, const struct panels *panels)
{
	enum { PART_BYTES = 1 << 16 };
	int64_t bytes = pack->panel * panels->depth * panels->size;
	return bytes > 0 && bytes < PART_BYTES ? PART_BYTES / bytes : 1;
}

int64_t lth_pack_num_parts(const struct lth_pack *pack)
{
	if (pack->kind == LTH_PACK_WINOGRAD)
		return 1;
	struct panels panels = panels_of(pack);
	int64_t each = panels_a_part(pack, &panels), all = panels.in_group * pack->groups;
	return all / each + (all % each != 0);
}

static int64_t first_panel(const struct lth_pack *pack, const struct panels *panels, int64_t part)
{
	int64_t panel = part * panels_a_part(pack, panels), all = panels->in_group * pack->groups;
	return panel < all ? panel : all;
}

void lth_pack_part_place(const struct lth_pack *pack, int64_t part, int64_t *out_offset, int64_t *out_bytes)
{
	if (pack->kind == LTH_PACK_WINOGRAD) {
		*out_offset = 0;
		(void)lth_pack_bytes(pack, out_bytes);
		return;
	}
	struct panels panels = panels_of(pack);
	*out_offset = panel_offset(pack, &panels, first_panel(pack, &panels, part));
	*out_bytes = panel_offset(pack, &panels, first_panel(pack, &panels, part + 1)) - *out_offset;
}

void lth_pack_part(const struct lth_pack *pack, const void *source, int64_t part, void *out)
{
	if (pack->kind == LTH_PACK_WINOGRAD) {
		lth_winograd_pack(pack, source, out);
		return;
	}
	struct panels panels = panels_of(pack);
	int64_t begin = first_panel(pack, &panels, part), end = first_panel(pack, &panels, part + 1);
	int64_t offset = panel_offset(pack, &panels, begin);
	for (int64_t panel = begin; panel < end; panel++)
		pack_panel(pack, &panels, source, panel,
			   (char *)out + panel_offset(pack, &panels, panel) - offset);
}

void lth_pack_run(const struct lth_pack *pack, const void *source, void *packed)
{
	for (int64_t part = 0, parts = lth_pack_num_parts(pack); part < parts; part++) {
		int64_t offset, bytes;
		lth_pack_part_place(pack, part, &offset, &bytes);
		lth_pack_part(pack, source, part, (char *)packed + offset);
	}
}
