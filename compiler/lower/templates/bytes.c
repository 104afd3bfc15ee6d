/* Products of bytes in register tiles: four neighbours along k are one element of a panel (a quad), multiplied and
 * added by dot4, which takes unsigned bytes of A and signed bytes of B. What is not so in memory is shifted by half the
 * range, and the zero points are taken off the sums:
 *
 *   sum (a - za)(b - zb) = sum a b' - za * sum (b - zb) - zb' * sum a,   b' = b - middle, zb' = zb - middle
 *
 * where the middle is 0 for signed bytes and 128 for unsigned ones. The columns' sums stand in front of each panel; if
 * some zb' is not 0 (wide), the zb' follow them, and the rows' sums are added up beside the products. All of it is
 * exact modulo 2^32, as the plain sums are. */
#include "compiler/lower/templates/internal.h"

#include <string.h>

enum { MOST_ROWS = 4 };

static bool is_byte(enum lth_dtype dtype)
{
	return dtype == LTH_DTYPE_U8 || dtype == LTH_DTYPE_I8;
}

bool lth_bytes_plan(struct lth_dims *dims, const struct lth_problem *problem, const struct lth_operand *a,
		    const struct lth_operand *b, lth_dim a_k_stride)
{
	return problem->compute == LTH_DTYPE_I32 && is_byte(a->memory) && is_byte(b->memory) &&
	       lth_t_is(dims, a_k_stride, 1);
}

bool lth_bytes_known(const struct lth_problem *problem, const struct lth_operand *b)
{
	return b->constant && problem->zero_points.b_read.constant;
}

/* ---- packing ---- */

static void pack_bytes(const struct lth_problem *problem, enum lth_pack_kind kind, enum lth_dtype dtype,
		       struct lth_pack *pack)
{
	pack->kind = kind;
	pack->source = pack->dtype;
	pack->dtype = dtype;
	pack->zeros = problem->zero_points.b;
	pack->zero_stride = problem->zero_points.b_by_column;
	pack->wide = problem->zero_points.wide;
}

void lth_bytes_pack(const struct lth_problem *problem, int64_t zero_group_stride, struct lth_pack *pack)
{
	pack_bytes(problem, LTH_PACK_QUADS, LTH_DTYPE_I32, pack);
	pack->zero_group_stride = problem->zero_points.b_by_column ? zero_group_stride : 0;
}

void lth_bytes_pack_differences(const struct lth_problem *problem, struct lth_pack *pack)
{
	pack_bytes(problem, LTH_PACK_DIFFERENCES, LTH_DTYPE_F32, pack);
}

int64_t lth_bytes_header(bool wide)
{
	return wide ? 2 : 1;
}

int64_t lth_bytes_pack_depth(const struct lth_pack *pack)
{
	int64_t depth = 1;
	for (uint32_t i = 0; i < pack->num_k; i++)
		depth *= i + 1 == pack->num_k ? (pack->k[i].extent + LTH_QUAD - 1) / LTH_QUAD : pack->k[i].extent;
	return lth_bytes_header(pack->wide) + depth;
}

lth_dim lth_bytes_depth(struct lth_dims *dims, const struct lth_problem *problem, lth_dim k)
{
	lth_dim header = lth_dim_const(dims, lth_bytes_header(problem->zero_points.wide));
	return lth_dim_add(dims, header, lth_dim_ceildiv(dims, k, lth_dim_const(dims, LTH_QUAD)));
}

static int32_t byte_at(const struct lth_pack *pack, const void *source, int64_t at)
{
	return pack->source == LTH_DTYPE_U8 ? ((const uint8_t *)source)[at] : ((const int8_t *)source)[at];
}

static int32_t zero_of(const struct lth_pack *pack, int64_t group, int64_t column)
{
	return pack->zeros ? byte_at(pack, pack->zeros, group * pack->zero_group_stride + column * pack->zero_stride)
			   : 0;
}

/* Moves to the next place of the k axes but the last `inner`; returns the change of the source's offset. */
static int64_t next_tap(const struct lth_pack *pack, uint32_t inner, int64_t *index)
{
	int64_t moved = 0;
	for (uint32_t axis = pack->num_k - inner; axis-- > 0;) {
		moved += pack->k[axis].stride;
		if (++index[axis] < pack->k[axis].extent)
			break;
		moved -= pack->k[axis].stride * index[axis];
		index[axis] = 0;
	}
	return moved;
}

/* One column of a panel of quads: its bytes, `width` quads apart, its sum and its zero point. */
static void pack_column(const struct lth_pack *pack, const void *source, int64_t at, int32_t zero, int64_t width,
			int32_t *out)
{
	int32_t middle = pack->source == LTH_DTYPE_U8 ? LTH_UNSIGNED_MIDDLE : 0;
	int64_t index[LTH_MAX_TEMPLATE_AXES] = {0}, last = pack->num_k - 1, taps = 1;
	uint32_t sum = 0;
	int32_t *quad = out + lth_bytes_header(pack->wide) * width;
	for (uint32_t axis = 0; axis < last; axis++)
		taps *= pack->k[axis].extent;
	for (int64_t tap = 0; tap < taps; tap++) {
		for (int64_t k = 0; k < pack->k[last].extent; k++) {
			int32_t value = byte_at(pack, source, at + k * pack->k[last].stride);
			((int8_t *)(quad + k / LTH_QUAD * width))[k % LTH_QUAD] = (int8_t)(value - middle);
			sum += (uint32_t)(value - zero);
		}
		quad += (pack->k[last].extent + LTH_QUAD - 1) / LTH_QUAD * width;
		at += next_tap(pack, 1, index);
	}
	out[0] = (int32_t)sum;
	if (pack->wide)
		out[width] = zero - middle;
}

static void pack_quads(const struct lth_pack *pack, const void *source, int64_t group, int64_t first, int64_t width,
		       int32_t *out)
{
	memset(out, 0, (size_t)(lth_bytes_pack_depth(pack) * width) * sizeof(*out));
	for (int64_t c = 0; c < width && first + c < pack->columns; c++) {
		int64_t at = pack->source_offset + group * pack->group_stride + (first + c) * pack->column_stride;
		pack_column(pack, source, at, zero_of(pack, group, first + c), width, out + c);
	}
}

static void pack_differences(const struct lth_pack *pack, const void *source, int64_t group, int64_t first,
			     int64_t width, int64_t depth, float *out)
{
	int64_t index[LTH_MAX_TEMPLATE_AXES] = {0}, at = pack->source_offset + group * pack->group_stride;
	for (int64_t k = 0; k < depth; k++, out += width, at += next_tap(pack, 0, index))
		for (int64_t c = 0; c < width; c++) {
			int64_t column = first + c;
			out[c] = column >= pack->columns
					 ? 0
					 : (float)(byte_at(pack, source, at + column * pack->column_stride) -
						   zero_of(pack, group, column));
		}
}

void lth_bytes_pack_panel(const struct lth_pack *pack, const void *source, int64_t group, int64_t first, int64_t width,
			  void *out)
{
	int64_t depth = 1;
	if (pack->kind == LTH_PACK_QUADS) {
		pack_quads(pack, source, group, first, width, out);
		return;
	}
	for (uint32_t i = 0; i < pack->num_k; i++)
		depth *= pack->k[i].extent;
	pack_differences(pack, source, group, first, width, depth, out);
}

/* ---- loops ---- */

void lth_bytes_begin(struct lth_emit *emit, const struct lth_problem *problem, enum lth_dtype a_memory, int64_t depth,
		     struct lth_bytes *out)
{
	struct lth_loop_fn *fn = emit->fn;
	lth_lv zero = lth_loop_const_i(fn, a_memory, 0);
	if (problem->zero_points.a.pointer != LTH_LV_NONE)
		zero = lth_loop_load(fn, problem->zero_points.a.pointer, a_memory, 1, LTH_LV_NONE);
	lth_lv shift = lth_loop_const_i(fn, LTH_DTYPE_I32, a_memory == LTH_DTYPE_I8 ? LTH_UNSIGNED_MIDDLE : 0);
	*out = (struct lth_bytes){.zero_points = &problem->zero_points,
				  .a_memory = a_memory,
				  .depth = depth,
				  .a_zero = t_add(fn, lth_loop_cast(fn, zero, LTH_DTYPE_I32), shift),
				  .padding = zero};
}

/* Without dot4 an instruction of its own, each vector of B takes two registers, and each product two more. */
unsigned lth_bytes_rows(const struct lth_machine *machine, unsigned vectors, bool wide)
{
	unsigned others = (machine->dot4 ? vectors + 1 : 2 * vectors + 3) + wide, rows = MOST_ROWS;
	while (rows > 1 && rows * (vectors + wide) + others > machine->registers)
		rows--;
	return rows;
}

/* The row `row` in front of the panel's quads. */
static lth_lv load_header(struct lth_tiles *tiles, const struct lth_tile *tile, int64_t row, unsigned vector)
{
	struct lth_loop_fn *fn = tiles->emit->fn;
	int64_t back = lth_bytes_header(tiles->bytes->zero_points->wide) - row;
	int64_t at = (int64_t)vector * tile->lanes - back * lth_tile_width(tile);
	return lth_loop_load(fn, lth_loop_offset(fn, tiles->panel, lth_loop_i64(fn, at), LTH_DTYPE_I32), LTH_DTYPE_I32,
			     tile->lanes, LTH_LV_NONE);
}

/* Sums begin at what A's zero point takes off them. */
void lth_bytes_start(struct lth_tiles *tiles, const struct lth_tile *tile, unsigned rows, lth_lv *acc)
{
	struct lth_loop_fn *fn = tiles->emit->fn;
	lth_lv minus = lth_loop_op1(fn, LTH_SCALAR_NEG, tiles->bytes->a_zero);
	for (unsigned v = 0; v < tile->vectors; v++) {
		lth_lv start = t_mul(fn, load_header(tiles, tile, 0, v), minus);
		for (unsigned r = 0; r < rows; r++)
			acc[r * tile->vectors + v] = start;
	}
	for (unsigned i = rows * tile->vectors; i < lth_tile_sums(tiles, tile, rows); i++)
		acc[i] = lth_t_zero(fn, LTH_DTYPE_I32, tile->lanes);
}

/* Takes B's zero points times the rows' sums off. */
void lth_bytes_settle(struct lth_tiles *tiles, const struct lth_tile *tile, unsigned rows, lth_lv *acc)
{
	struct lth_loop_fn *fn = tiles->emit->fn;
	unsigned count = rows * tile->vectors;
	if (!tiles->bytes->zero_points->wide)
		return;
	for (unsigned v = 0; v < tile->vectors; v++) {
		lth_lv zero = load_header(tiles, tile, 1, v);
		for (unsigned r = 0; r < rows; r++) {
			unsigned i = r * tile->vectors + v;
			acc[i] = t_sub(fn, acc[i], t_mul(fn, zero, acc[count + r]));
		}
	}
}

/* A vector of four lanes, over and over. */
static lth_lv repeat(struct lth_loop_fn *fn, lth_lv quad, unsigned lanes)
{
	uint32_t order[LTH_MAX_LANES];
	for (unsigned k = 0; k < LTH_QUAD * lanes; k++)
		order[k] = k % LTH_QUAD;
	return lth_loop_shuffle(fn, quad, quad, order, LTH_QUAD * lanes);
}

/* The quad at `place` in every lane, as unsigned bytes; only the first `left` are read, the others are something. */
static lth_lv load_quad(struct lth_tiles *tiles, lth_lv place, lth_lv left, unsigned lanes)
{
	struct lth_loop_fn *fn = tiles->emit->fn;
	enum lth_dtype memory = tiles->bytes->a_memory;
	lth_lv mask = left == LTH_LV_NONE ? LTH_LV_NONE : lth_loop_mask(fn, left, LTH_QUAD);
	lth_lv quad = repeat(fn, lth_loop_load(fn, place, memory, LTH_QUAD, mask), lanes);
	if (memory == LTH_DTYPE_U8)
		return quad;
	lth_lv middle = lth_loop_const_i(fn, LTH_DTYPE_U8, LTH_UNSIGNED_MIDDLE);
	return lth_loop_op2(fn, LTH_SCALAR_XOR, lth_loop_bitcast(fn, quad, LTH_DTYPE_U8), middle);
}

/* One quad of each row times the panel's; `left` bytes of it exist, LTH_LV_NONE: all four. */
static void multiply_quads(struct lth_tiles *tiles, const struct lth_tile *tile, unsigned rows, const lth_lv *a,
			   lth_lv at, lth_lv left, lth_lv panel, lth_lv *acc)
{
	struct lth_loop_fn *fn = tiles->emit->fn;
	bool wide = tiles->bytes->zero_points->wide;
	lth_lv b[LTH_MAX_TILE_VECTORS], ones = lth_loop_const_i(fn, LTH_DTYPE_I8, 1);
	for (unsigned v = 0; v < tile->vectors; v++) {
		lth_lv place = lth_loop_offset(fn, panel, lth_loop_i64(fn, (int64_t)v * tile->lanes), LTH_DTYPE_I32);
		b[v] = lth_loop_load(fn, place, LTH_DTYPE_I8, LTH_QUAD * tile->lanes, LTH_LV_NONE);
	}
	if (left != LTH_LV_NONE) {
		lth_lv exists = lth_loop_mask(fn, left, LTH_QUAD);
		ones = repeat(fn, t_select(fn, exists, ones, lth_loop_const_i(fn, LTH_DTYPE_I8, 0)), tile->lanes);
	}
	for (unsigned r = 0; r < rows; r++) {
		lth_lv place = lth_loop_offset(fn, a[r], at, tiles->bytes->a_memory);
		lth_lv quad = load_quad(tiles, place, left, tile->lanes);
		for (unsigned v = 0; v < tile->vectors; v++)
			acc[r * tile->vectors + v] = lth_loop_dot4(fn, acc[r * tile->vectors + v], quad, b[v]);
		if (wide)
			acc[rows * tile->vectors + r] =
				lth_loop_dot4(fn, acc[rows * tile->vectors + r], quad, ones);
	}
}

/* The last quad, of which `left` bytes exist. */
static void multiply_last(struct lth_tiles *tiles, const struct lth_tile *tile, unsigned rows, const lth_lv *a, lth_lv at,
			  lth_lv left, lth_lv *state, unsigned count)
{
	struct lth_loop_fn *fn = tiles->emit->fn;
	multiply_quads(tiles, tile, rows, a, at, left, state[count], state);
	state[count] = lth_loop_offset(fn, state[count], tiles->panel_step, LTH_DTYPE_I32);
}

/* lth_tile_dot of bytes: `depth` of them, four a turn, then what is left. */
lth_lv lth_bytes_dot(struct lth_tiles *tiles, const struct lth_tile *tile, unsigned rows, const struct lth_tile_rows *a,
		     lth_lv panel, lth_lv depth, lth_lv *acc)
{
	struct lth_loop_fn *fn = tiles->emit->fn;
	unsigned count = lth_tile_sums(tiles, tile, rows);
	int64_t known = tiles->bytes->depth;
	lth_lv state[LTH_MAX_ACCUMULATORS + 1], phis[LTH_MAX_ACCUMULATORS + 1];
	assert(count <= LTH_MAX_ACCUMULATORS && a->steps == LTH_STEP_ADJACENT);
	memcpy(state, acc, count * sizeof(*acc));
	state[count] = panel;
	lth_lv left = known >= 0 ? lth_loop_i64(fn, known % LTH_QUAD) : t_rem(fn, depth, lth_loop_i64(fn, LTH_QUAD));
	lth_lv whole = t_sub(fn, depth, left);
	if (known < 0 || known >= LTH_QUAD) {
		lth_lv k = lth_loop_for(fn, lth_loop_i64(fn, 0), whole, LTH_QUAD, state, count + 1, phis);
		if (a->ahead != LTH_LV_NONE) {
			lth_lv place = lth_loop_offset(fn, a->ahead, t_mul_const(fn, k, rows), a->memory);
			lth_loop_prefetch(fn, place, false);
		}
		multiply_quads(tiles, tile, rows, a->pointer, k, LTH_LV_NONE, phis[count], phis);
		phis[count] = lth_loop_offset(fn, phis[count], tiles->panel_step, LTH_DTYPE_I32);
		lth_loop_end_for(fn, phis, count + 1, state);
	}
	if (known < 0) { /* at most one turn */
		lth_lv k = lth_loop_for(fn, whole, depth, LTH_QUAD, state, count + 1, phis);
		multiply_last(tiles, tile, rows, a->pointer, k, left, phis, count);
		lth_loop_end_for(fn, phis, count + 1, state);
	} else if (known % LTH_QUAD) {
		multiply_last(tiles, tile, rows, a->pointer, whole, left, state, count);
	}
	memcpy(acc, state, count * sizeof(*acc));
	return state[count];
}
