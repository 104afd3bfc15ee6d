/* How templates want constant weights laid out: plain data, so that whoever writes the executable can do it there and
 * then, in parts and on all threads, instead of holding a second copy of all weights (compiler/emit/constants.c).
 * Thread rule: pure functions. */
#ifndef LTH_LOWER_PACK_H
#define LTH_LOWER_PACK_H

#include "runtime/tensor/dtype.h"

#include <stdbool.h>
#include <stdint.h>

enum { LTH_MAX_TEMPLATE_AXES = 8 };

/* Panels of columns, k-major inside, so that a kernel streams them.
 *   for g in groups, for p in panels, for k (axes outermost first), for c in the panel's width: one element,
 * zero where the column does not exist. With `gates` > 1 a panel holds width / gates units of each gate side by side.
 * Bytes less their zero points: DIFFERENCES are panels of them as f32, QUADS panels of i32 whose elements are four
 * bytes, neighbours along the last k axis, behind the columns' sums (bytes.c). */
enum lth_pack_kind { LTH_PACK_NONE, LTH_PACK_PANELS, LTH_PACK_WINOGRAD, LTH_PACK_QUADS, LTH_PACK_DIFFERENCES };
struct lth_pack {
	enum lth_pack_kind kind;
	enum lth_dtype dtype;  /* of what is packed */
	enum lth_dtype source; /* QUADS, DIFFERENCES: u8 or i8 */
	int64_t groups, group_stride;   /* strides in elements of the dense source */
	int64_t columns, column_stride; /* of one group; with gates: units of one gate */
	int64_t gates, gate_stride;     /* 1, 0 without gates */
	uint32_t num_k;
	struct {
		int64_t extent, stride;
	} k[LTH_MAX_TEMPLATE_AXES]; /* negative strides are allowed with source_offset */
	int64_t source_offset;
	int64_t panel, tail; /* width of full panels; of the last one, 0 when none is partial */
	const void *zeros;   /* QUADS, DIFFERENCES: zero points, of the source's type; NULL: 0 */
	int64_t zero_stride, zero_group_stride;
	bool wide; /* QUADS: as in lth_zero_points */
};

/* Bytes of the packed weights; false when they overflow int64. */
bool lth_pack_bytes(const struct lth_pack *pack, int64_t *out_bytes);
void lth_pack_run(const struct lth_pack *pack, const void *source, void *packed);

/* The same in parts, which follow one another without a gap: whole panels, some ten kilobytes where they are small. */
int64_t lth_pack_num_parts(const struct lth_pack *pack);
void lth_pack_part_place(const struct lth_pack *pack, int64_t part, int64_t *out_offset, int64_t *out_bytes);
void lth_pack_part(const struct lth_pack *pack, const void *source, int64_t part, void *out);

#endif
