/* Templates: operators that write their own loops (matmul, convolution, pooling, recurrent cells, transposition), by
 * recipes measured in bench/kernels. A template computes finished vectors of the anchor's output and hands each to the
 * group's epilogue, which applies the fused tail and stores; a template never stores an output itself.
 *
 * The caller describes a problem (extents and strides as dimensions, nothing of layouts or nodes), asks
 * lth_template_plan which template takes it and how that wants its constant weights packed (pack.h), sets the
 * pointers, and calls lth_template_emit. Sizes become int parameters even where they are constant, so that one
 * kernel serves many layers; what shapes the code (panel widths, tails, kernel extents of small windows) is fixed at
 * compile time.
 *
 * Thread rule: everything here belongs to the function under construction. */
#ifndef LTH_LOWER_TEMPLATE_H
#define LTH_LOWER_TEMPLATE_H

#include "compiler/ir/dim.h"
#include "compiler/lower/loop.h"
#include "compiler/lower/templates/pack.h"

enum { LTH_MAX_SPATIAL = 3, LTH_MAX_PACKS = 8 };

/* What the target's registers and caches are like. */
struct lth_machine {
	unsigned vector_bytes; /* 64, 32 or 16 */
	unsigned registers;    /* vector registers: 32 or 16 */
	int64_t l1_bytes, l2_bytes;
	bool dot4; /* has an instruction for loop IR's dot4 */
};

/* The fused tail. `index` is the logical index of the first lane in the anchor's output `output`, in the order each
 * problem names below; the other lanes follow along index `axis`. `value` has `lanes` lanes (1: a scalar) of the
 * problem's compute type; lanes outside `mask` (LTH_LV_NONE: none are) hold garbage and must not be stored. */
struct lth_epilogue {
	void *context;
	void (*apply)(void *context, uint32_t output, const lth_lv *index, uint32_t axis, lth_lv value, unsigned lanes,
		      lth_lv mask);
	/* Hints that the element at `index` will soon be stored (and read, where a residual is added). May be NULL. */
	void (*prefetch)(void *context, uint32_t output, const lth_lv *index);
	/* The logical axis of output 0 along which stores are contiguous; UINT32_MAX when none is. */
	uint32_t unit_axis;
	/* Every tensor the epilogue touches is dense over all axes but the vectors' own (stride of an axis = extent
	 * times stride of the next): of convolution and pooling index (0, c, 0, p) with p the flat pixel number is as
	 * good as (n, c, y, x), of products (0, p, column) as good as (i, j, column). */
	bool flat_pixels;
	/* Operations an element, roughly. A dear tail is written once a row instead of once a register (compile time).
	 */
	unsigned cost;
};

struct lth_emit {
	struct lth_loop_fn *fn;
	struct lth_dims *dims;
	const struct lth_machine *machine;
	const struct lth_epilogue *epilogue;
	/* A new int parameter of the function whose value at a call is `dim`. */
	lth_lv (*param)(void *context, lth_dim dim);
	void *context;
	/* Written by lth_template_emit. Units: the parallel range; min_units: fewest worth a thread, at least 1. */
	lth_dim units, min_units, scratch_bytes;
};

/* An operand: where and what it is. Pointers are set before emission; those of packed operands point at the packing. */
struct lth_operand {
	lth_lv pointer; /* LTH_LV_NONE: absent */
	enum lth_dtype memory;
	bool constant; /* contents known now: may be packed */
};

/* Products of bytes (compute i32) are of elements less their operand's zero point, exact modulo 2^32. Elements of A (x)
 * are adjacent along the innermost axis of the sum. B (the weights) and its zero points are constants; of matrix products
 * they may be computed. */
struct lth_zero_points {
	struct lth_operand a; /* one number of A's type, read by the kernel; pointer NONE: 0 */
	const void *b;        /* of B's type: NULL: 0, else one, or one a column */
	struct lth_operand b_read; /* the same where they are read by the kernel; pointer NONE: 0 */
	bool b_by_column;
	bool wide; /* B less its zero point may not fit a signed byte */
};

/* B of few bits (compute f32): memory is u8, a byte holds 8 / bits elements of a column, neighbours along k, the first in
 * the lowest bits; rows of bytes follow each other at row_stride. The element is (bits - zero) * scale, both [block,
 * column]. No batch; the last block may reach behind k. */
struct lth_blocks {
	unsigned bits; /* 2, 4 or 8; 0: B's elements are whole */
	int64_t size;  /* elements of a block, a multiple of 8 */
	lth_dim count, row_stride, scale_stride, zero_stride;
	struct lth_operand scales, zeros; /* zeros absent: half the range */
};

/* C[batch.., rows.., n] = sum over k of A[batch, rows, k] * B[batch, k, n], strides in elements, 0 to broadcast.
 * Epilogue index: batch axes, row axes, column. */
struct lth_gemm {
	struct lth_operand a, b;
	uint32_t num_batch, num_rows; /* together at most LTH_MAX_TEMPLATE_AXES; num_rows may be 0: one row */
	struct lth_gemm_axis {
		lth_dim extent, a_stride, b_stride; /* b_stride of rows: ignored */
	} batch[LTH_MAX_TEMPLATE_AXES], rows[LTH_MAX_TEMPLATE_AXES];
	lth_dim k, a_k_stride, b_k_stride;
	lth_dim n, b_n_stride;
};

/* Convolution in 1 to 3 dimensions and its transpose. Kernel, stride and dilation are by spatial axis; `pad` is what
 * stands before the first element and `pad_end` behind the last (the caller resolves auto_pad and output_shape).
 * Epilogue index: (n, oc, spatial..). Weights: [oc][ic / groups][kernel..]; of the transpose [ic][oc /
 * groups][kernel..]; any strides. */
struct lth_conv {
	struct lth_operand x, w;
	bool transposed;
	uint32_t spatial;
	int64_t groups;
	lth_dim batch, in_channels, out_channels; /* in all groups */
	lth_dim in[LTH_MAX_SPATIAL], out[LTH_MAX_SPATIAL], kernel[LTH_MAX_SPATIAL];
	lth_dim pad[LTH_MAX_SPATIAL], pad_end[LTH_MAX_SPATIAL];
	int64_t stride[LTH_MAX_SPATIAL], dilation[LTH_MAX_SPATIAL];
	lth_dim x_batch_stride, x_channel_stride, x_stride[LTH_MAX_SPATIAL];
	lth_dim w_out_stride, w_in_stride, w_stride[LTH_MAX_SPATIAL];
};

/* Pooling; global pooling has kernel = in, pad 0. Epilogue index: (n, c, spatial..). MaxPool's second output is not
 * made here. */
enum lth_pool_kind { LTH_POOL_MAX, LTH_POOL_AVERAGE, LTH_POOL_AVERAGE_PADDED /* count_include_pad */ };
struct lth_pool {
	struct lth_operand x;
	enum lth_pool_kind kind;
	uint32_t spatial;
	lth_dim batch, channels;
	lth_dim in[LTH_MAX_SPATIAL], out[LTH_MAX_SPATIAL], kernel[LTH_MAX_SPATIAL];
	lth_dim pad[LTH_MAX_SPATIAL], pad_end[LTH_MAX_SPATIAL];
	int64_t stride[LTH_MAX_SPATIAL], dilation[LTH_MAX_SPATIAL];
	lth_dim x_batch_stride, x_channel_stride, x_stride[LTH_MAX_SPATIAL];
};

/* Recurrent layers, ONNX's meaning and gate order. Outputs 0 Y (step, direction, batch, hidden), 1 Y_h and 2 Y_c
 * (direction, batch, hidden). Outputs that nobody reads are not handed over. */
enum lth_cell { LTH_CELL_RNN, LTH_CELL_GRU, LTH_CELL_LSTM };
struct lth_recurrent {
	enum lth_cell cell;
	uint32_t directions;
	bool reverse;    /* with one direction: it runs backwards; with two the second does */
	bool outputs[3]; /* which are asked for */
	lth_dim steps, batch, input, hidden;
	struct lth_operand x, w, r; /* w [dir][gates * hidden][input], r [dir][gates * hidden][hidden] */
	struct lth_operand bias;    /* [dir][2 * gates * hidden] */
	struct lth_operand lengths; /* i32 [batch] */
	struct lth_operand initial_h, initial_c, peepholes; /* [dir][batch][hidden], same, [dir][3 * hidden] */
	lth_dim x_step_stride, x_batch_stride, state_dir_stride, state_batch_stride;
	/* Activations by direction: f, g, h; the parameters alpha and beta of those that have them. */
	enum lth_activation {
		LTH_ACT_SIGMOID,
		LTH_ACT_TANH,
		LTH_ACT_RELU,
		LTH_ACT_AFFINE,
		LTH_ACT_LEAKY_RELU,
		LTH_ACT_THRESHOLDED_RELU,
		LTH_ACT_SCALED_TANH,
		LTH_ACT_HARD_SIGMOID,
		LTH_ACT_ELU,
		LTH_ACT_SOFTSIGN,
		LTH_ACT_SOFTPLUS,
		LTH_NUM_ACTS
	} activations[2][3];
	double alpha[2][3], beta[2][3];
	double clip; /* 0: none */
	bool linear_before_reset, input_forget;
};

/* Moves elements between two layouts that disagree on which axis is contiguous: blocks of lanes x lanes in registers.
 * Epilogue index: the axes in the order given. `source_axis` has stride 1 in x; vectors go along `target_axis`. */
struct lth_transpose {
	struct lth_operand x;
	uint32_t num_axes, source_axis, target_axis;
	lth_dim extent[LTH_MAX_TEMPLATE_AXES], x_stride[LTH_MAX_TEMPLATE_AXES];
};

enum lth_problem_kind {
	LTH_PROBLEM_GEMM,
	LTH_PROBLEM_CONV,
	LTH_PROBLEM_POOL,
	LTH_PROBLEM_RECURRENT,
	LTH_PROBLEM_TRANSPOSE,
	LTH_NUM_PROBLEMS
};

struct lth_problem {
	enum lth_problem_kind kind;
	enum lth_dtype compute; /* f32, f64; i32: gemm and conv of bytes; u8, i8: greatest element of windows */
	struct lth_zero_points zero_points; /* compute i32 */
	struct lth_blocks blocks;           /* gemm */
	union {
		struct lth_gemm gemm;
		struct lth_conv conv;
		struct lth_pool pool;
		struct lth_recurrent recurrent;
		struct lth_transpose transpose;
	};
};

struct lth_template; /* a row of templates.def */

struct lth_template_plan {
	const struct lth_template *chosen;
	/* Packings of constant operands, by operand: gemm and conv pack b or w as packs[0]; recurrent w as packs[0] and
	 * r as packs[1]. LTH_PACK_NONE: read in place. */
	struct lth_pack packs[2];
	lth_dim flops;
	uint32_t variant; /* the template's own */
};

const char *lth_template_name(const struct lth_template *chosen);

/* The first template of the table that takes the problem; false when none does (the caller falls back to reductions).
 */
bool lth_template_plan(struct lth_dims *dims, const struct lth_machine *machine, const struct lth_problem *problem,
		       struct lth_template_plan *out_plan);
/* Writes the loops. */
void lth_template_emit(struct lth_emit *emit, const struct lth_problem *problem, const struct lth_template_plan *plan);

#endif
