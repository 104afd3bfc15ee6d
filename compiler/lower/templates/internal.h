/* What the templates share: short names for building loop IR, the choice of register tiles, and the driver that turns
 * "rows times panels of columns" into units of parallel work (tiles.c). Private to this folder. */
#ifndef LTH_LOWER_TEMPLATES_INTERNAL_H
#define LTH_LOWER_TEMPLATES_INTERNAL_H

#include "compiler/lower/templates/template.h"

#include <assert.h>

enum { LTH_MAX_TILE_ROWS = 8, LTH_MAX_TILE_VECTORS = 8, LTH_MAX_ACCUMULATORS = 32 };

/* One row of templates.def. */
struct lth_template {
	const char *name;
	enum lth_problem_kind problem;
	/* Whether it takes the problem; fills packs, flops and variant. */
	bool (*plan)(struct lth_dims *dims, const struct lth_machine *machine, const struct lth_problem *problem,
		     struct lth_template_plan *plan);
	void (*emit)(struct lth_emit *emit, const struct lth_problem *problem, const struct lth_template_plan *plan);
};

/* Building (build.c). Arithmetic on i64 scalars unless said otherwise. */
static inline lth_lv t_add(struct lth_loop_fn *fn, lth_lv a, lth_lv b)
{
	return lth_loop_op2(fn, LTH_SCALAR_ADD, a, b);
}
static inline lth_lv t_sub(struct lth_loop_fn *fn, lth_lv a, lth_lv b)
{
	return lth_loop_op2(fn, LTH_SCALAR_SUB, a, b);
}
static inline lth_lv t_mul(struct lth_loop_fn *fn, lth_lv a, lth_lv b)
{
	return lth_loop_op2(fn, LTH_SCALAR_MUL, a, b);
}
/* Of numbers that are not negative: unsigned division needs less guarding. */
lth_lv t_div(struct lth_loop_fn *fn, lth_lv a, lth_lv b);
lth_lv t_rem(struct lth_loop_fn *fn, lth_lv a, lth_lv b);
static inline lth_lv t_min(struct lth_loop_fn *fn, lth_lv a, lth_lv b)
{
	return lth_loop_op2(fn, LTH_SCALAR_MIN, a, b);
}
static inline lth_lv t_max(struct lth_loop_fn *fn, lth_lv a, lth_lv b)
{
	return lth_loop_op2(fn, LTH_SCALAR_MAX, a, b);
}
static inline lth_lv t_lt(struct lth_loop_fn *fn, lth_lv a, lth_lv b)
{
	return lth_loop_op2(fn, LTH_SCALAR_LT, a, b);
}
static inline lth_lv t_le(struct lth_loop_fn *fn, lth_lv a, lth_lv b)
{
	return lth_loop_op2(fn, LTH_SCALAR_LE, a, b);
}
static inline lth_lv t_eq(struct lth_loop_fn *fn, lth_lv a, lth_lv b)
{
	return lth_loop_op2(fn, LTH_SCALAR_EQ, a, b);
}
static inline lth_lv t_and(struct lth_loop_fn *fn, lth_lv a, lth_lv b)
{
	return lth_loop_op2(fn, LTH_SCALAR_AND, a, b);
}
static inline lth_lv t_or(struct lth_loop_fn *fn, lth_lv a, lth_lv b)
{
	return lth_loop_op2(fn, LTH_SCALAR_OR, a, b);
}
static inline lth_lv t_fma(struct lth_loop_fn *fn, lth_lv a, lth_lv b, lth_lv c)
{
	return lth_loop_op3(fn, LTH_SCALAR_FMA, a, b, c);
}
static inline lth_lv t_select(struct lth_loop_fn *fn, lth_lv condition, lth_lv a, lth_lv b)
{
	return lth_loop_op3(fn, LTH_SCALAR_SELECT, condition, a, b);
}
static inline lth_lv t_add_const(struct lth_loop_fn *fn, lth_lv a, int64_t value)
{
	return value ? t_add(fn, a, lth_loop_i64(fn, value)) : a;
}
static inline lth_lv t_mul_const(struct lth_loop_fn *fn, lth_lv a, int64_t value)
{
	return value == 1 ? a : t_mul(fn, a, lth_loop_i64(fn, value));
}
/* The value of `count` lanes that is zero everywhere. */
lth_lv lth_t_zero(struct lth_loop_fn *fn, enum lth_dtype dtype, unsigned lanes);
/* The neutral value of a maximum, of floats and bytes; a scalar. */
lth_lv lth_t_least(struct lth_loop_fn *fn, enum lth_dtype dtype);
/* 0 <= index < limit in one unsigned comparison. */
lth_lv lth_t_inside(struct lth_loop_fn *fn, lth_lv index, lth_lv limit);
/* A dimension as a value: constants that the code's shape depends on may stay constants (see lth_t_fixed). */
static inline lth_lv lth_t_param(struct lth_emit *emit, lth_dim dim)
{
	return emit->param(emit->context, dim);
}
/* A dimension that is a constant stays one: for strides of 0 and 1, where the constant makes better code. */
lth_lv lth_t_stride(struct lth_emit *emit, lth_dim dim);
/* A memory type whose elements load as `compute`. */
bool lth_t_loads_as(enum lth_dtype memory, enum lth_dtype compute);
bool lth_t_is(struct lth_dims *dims, lth_dim dim, int64_t value);
/* The constant, or the hint's value for decisions that are about speed only. */
int64_t lth_t_likely(struct lth_dims *dims, lth_dim dim);
/* Fewest units worth a thread when one unit takes `flops_per_unit` operations. */
lth_dim lth_t_min_units(struct lth_dims *dims, lth_dim flops_per_unit);

/* Register tiles (tiles.c). */
struct lth_tile {
	unsigned lanes, vectors, rows;
};
unsigned lth_machine_lanes(const struct lth_machine *machine, enum lth_dtype compute);
/* The tile of full panels, whose width is lanes * vectors columns. */
struct lth_tile lth_tile_full(const struct lth_machine *machine, enum lth_dtype compute);
/* The tile for a panel of `width` columns, fewer than a full one: half-width vectors where they waste less. */
struct lth_tile lth_tile_tail(const struct lth_machine *machine, enum lth_dtype compute, int64_t width);
static inline int64_t lth_tile_width(const struct lth_tile *tile)
{
	return (int64_t)tile->lanes * tile->vectors;
}

/* Rows times panels. Rows are counted in one flat order over `num_rows` axes; each batch entry has its own panels where
 * its weights differ. A unit of work is a block of rows times one panel. */
enum lth_panels {
	LTH_PANELS_PACKED,   /* panels of LTH_PACK_PANELS, `k` deep, one set a group */
	LTH_PANELS_IN_PLACE, /* columns contiguous in memory, rows of B k_stride apart */
	LTH_PANELS_GATHERED  /* packed by the unit that uses it into scratch: one block of rows a batch entry and panel
			      */
};

struct lth_tiles {
	struct lth_emit *emit;
	enum lth_dtype compute, b_memory;
	enum lth_panels panels;
	uint32_t num_batch, num_rows, num_k;
	lth_dim batch[LTH_MAX_TEMPLATE_AXES], rows[LTH_MAX_TEMPLATE_AXES]; /* at least one row axis */
	lth_dim columns, depth;                                            /* depth: the product of the k axes */
	lth_lv b;                                                          /* B's pointer */
	lth_dim b_batch_stride[LTH_MAX_TEMPLATE_AXES]; /* in groups of panels when packed, else in elements */
	lth_dim b_k[LTH_MAX_TEMPLATE_AXES], b_k_stride[LTH_MAX_TEMPLATE_AXES]; /* not PACKED; IN_PLACE: one axis */
	lth_dim b_n_stride;                                                    /* GATHERED */
	const struct lth_bytes *bytes; /* products of bytes; NULL: of floats */
	const struct lth_blocks *blocks; /* GATHERED: B of few bits; NULL: of whole elements */
	bool in_bits; /* of blocks: the panel at hand is not written out */
	lth_dim extra_scratch; /* bytes the template wants for itself; LTH_DIM_NONE: none */
	void *context;
	/* Adds the products of `rows` rows (row_index) with the panel to `acc` (lth_tile_sums: rows x vectors,
	 * row-major, then what bytes need). */
	void (*accumulate)(struct lth_tiles *tiles, const struct lth_tile *tile, unsigned rows, lth_lv *acc);
	/* Hands `value`, columns from `column` on of the row at `row`, to the epilogue. */
	void (*finish)(struct lth_tiles *tiles, const lth_lv *row, lth_lv column, lth_lv value, unsigned lanes,
		       lth_lv mask);
	void (*prefetch)(struct lth_tiles *tiles, const lth_lv *row, lth_lv column); /* or NULL */

	/* While emitting, for the callbacks: */
	lth_lv batch_index[LTH_MAX_TEMPLATE_AXES];
	lth_lv row_index[LTH_MAX_TILE_ROWS][LTH_MAX_TEMPLATE_AXES]; /* of the tile at hand */
	lth_lv panel;                                               /* pointer at the panel's first k */
	enum lth_dtype panel_memory;
	lth_lv panel_step; /* elements from one k to the next */
	lth_lv load_mask;  /* of the panel's last vector; NONE: whole or padded */
	lth_lv column;     /* first column of the panel */
	lth_lv extra;      /* pointer at extra_scratch */
	/* The driver's own: */
	lth_lv row_extent[LTH_MAX_TEMPLATE_AXES], num_columns, depth_value, tile_buffer;
	bool few_rows;      /* remaining rows are worth tiles of their own */
	int64_t known_rows; /* how many rows in all; -1: known at run time */
	bool buffer_used;
};
/* The whole kernel: units, their blocks and panels; sets emit's units, min_units and scratch_bytes. panels.c */
void lth_tiles_emit(struct lth_tiles *tiles);
/* All rows of a block, `count` from row `start` on, times one panel. `ragged`: the columns end inside the last vector.
 */
void lth_tiles_block(struct lth_tiles *tiles, const struct lth_tile *tile, bool ragged, lth_lv count,
		     const lth_lv *start);
/* The tile and width of the last, partial panel for static `columns`; false when there is none. */
bool lth_tiles_tail(const struct lth_machine *machine, enum lth_dtype compute, int64_t columns,
		    struct lth_tile *out_tile);
enum { LTH_TILE_BUFFER_BYTES = LTH_MAX_TILE_ROWS * LTH_MAX_TILE_VECTORS * 64 };
/* A multi-index from a flat one, row-major. */
void lth_t_unflatten(struct lth_loop_fn *fn, lth_lv flat, const lth_lv *extents, uint32_t count, lth_lv *out);

/* Rows of A for the inner loop: where each begins and how far its next element is. */
struct lth_tile_rows {
	lth_lv pointer[LTH_MAX_TILE_ROWS];
	lth_lv step[LTH_MAX_TILE_ROWS]; /* ADJACENT: unused; SHARED: step[0] for all; OWN: one a row */
	enum { LTH_STEP_ADJACENT, LTH_STEP_SHARED, LTH_STEP_OWN } steps;
	enum lth_dtype memory;
	lth_lv ahead; /* pointer whose next rows * depth elements are prefetched, or LTH_LV_NONE */
};
/* How many sums a tile carries: rows x vectors, and with wide bytes one more a row. */
unsigned lth_tile_sums(const struct lth_tiles *tiles, const struct lth_tile *tile, unsigned rows);
/* acc[r][v] += A(r, k) * panel[k][v] for `depth` values of k. Returns the panel's pointer behind the last. */
lth_lv lth_tile_dot(struct lth_tiles *tiles, const struct lth_tile *tile, unsigned rows, const struct lth_tile_rows *a,
		    lth_lv panel, lth_lv depth, lth_lv *acc);
/* The same for a small constant depth, without a loop. */
lth_lv lth_tile_dot_unrolled(struct lth_tiles *tiles, const struct lth_tile *tile, unsigned rows,
			     const struct lth_tile_rows *a, lth_lv panel, unsigned depth, lth_lv *acc);

/* Products of bytes (bytes.c). A panel's element is a quad, four bytes of k; the tiles' `depth` counts quads and the rows
 * in front of the panel's first. Bytes of B without a sign lie in a panel less the middle of their range. */
enum { LTH_QUAD = 4, LTH_UNSIGNED_MIDDLE = 128 };
struct lth_bytes {
	const struct lth_zero_points *zero_points;
	enum lth_dtype a_memory;
	int64_t depth;      /* bytes of one inner loop; -1: known at run time */
	lth_lv a_zero;      /* i32: of A, as it is multiplied */
	lth_lv padding;     /* A's zero point, as it lies in memory */
};
bool lth_bytes_plan(struct lth_dims *dims, const struct lth_problem *problem, const struct lth_operand *a,
		    const struct lth_operand *b, lth_dim a_k_stride);
/* Whether B's panels can be packed at compile time. */
bool lth_bytes_known(const struct lth_problem *problem, const struct lth_operand *b);
/* Gathers the panel at tiles->column, whose first byte is at `source`, into tiles->panel. bytes_fill.c */
void lth_bytes_fill(struct lth_tiles *tiles, const struct lth_tile *tile, lth_lv source, lth_lv depth, lth_lv k_stride,
		    lth_lv n_stride);
/* Make QUADS or DIFFERENCES of a specification of panels whose source are bytes. */
void lth_bytes_pack(const struct lth_problem *problem, int64_t zero_group_stride, struct lth_pack *pack);
void lth_bytes_pack_differences(const struct lth_problem *problem, struct lth_pack *pack);
/* Of a panel of QUADS: rows in front of the first quad, and in all. */
int64_t lth_bytes_header(bool wide);
int64_t lth_bytes_pack_depth(const struct lth_pack *pack);
/* The latter where the sum is over one axis of `k` bytes. */
lth_dim lth_bytes_depth(struct lth_dims *dims, const struct lth_problem *problem, lth_dim k);
/* One panel of QUADS or DIFFERENCES: `width` columns of a group from `first` on. */
void lth_bytes_pack_panel(const struct lth_pack *pack, const void *source, int64_t group, int64_t first, int64_t width,
			  void *out);
void lth_bytes_begin(struct lth_emit *emit, const struct lth_problem *problem, enum lth_dtype a_memory, int64_t depth,
		     struct lth_bytes *out);
unsigned lth_bytes_rows(const struct lth_machine *machine, unsigned vectors, bool wide);
void lth_bytes_start(struct lth_tiles *tiles, const struct lth_tile *tile, unsigned rows, lth_lv *acc);
void lth_bytes_settle(struct lth_tiles *tiles, const struct lth_tile *tile, unsigned rows, lth_lv *acc);
lth_lv lth_bytes_dot(struct lth_tiles *tiles, const struct lth_tile *tile, unsigned rows, const struct lth_tile_rows *a,
		     lth_lv panel, lth_lv depth, lth_lv *acc);

/* Writes the panel at tiles->column, whose first byte is at `source`, out to tiles->panel. blocks.c */
void lth_blocks_fill(struct lth_tiles *tiles, const struct lth_tile *tile, lth_lv source);
/* acc[v] += A(0, k) * B(k, column) for `depth` values of k, from the bytes at `source`. */
void lth_blocks_dot(struct lth_tiles *tiles, const struct lth_tile *tile, const struct lth_tile_rows *a, lth_lv source,
		    lth_lv depth, lth_lv *acc);

/* All of LTH_PACK_WINOGRAD. winograd.c */
void lth_winograd_pack(const struct lth_pack *pack, const void *source, void *packed);
lth_dim lth_conv_flops(struct lth_dims *dims, const struct lth_conv *conv);
/* Squares of lanes x lanes elements turned in registers (transpose.c): vectors[i] lane j becomes vectors[j] lane i. */
void lth_t_transpose(struct lth_loop_fn *fn, lth_lv *vectors, unsigned lanes);

#define LTH_TEMPLATE(name, problem, text, plan, emit, description)                                                     \
	bool plan(struct lth_dims *dims, const struct lth_machine *machine, const struct lth_problem *p,               \
		  struct lth_template_plan *out);                                                                      \
	void emit(struct lth_emit *e, const struct lth_problem *p, const struct lth_template_plan *out);
#include "compiler/lower/templates/templates.def"
#undef LTH_TEMPLATE

#endif
