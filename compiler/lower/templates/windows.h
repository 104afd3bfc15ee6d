/* Window operators channel by channel, shared by depthwise convolution and pooling: tiles of ty x tx output pixels in
 * registers, a vector of channels each, channels innermost in memory. Every input pixel of a tile is loaded once;
 * pixels outside the image are read from a buffer of the neutral value, so that borders are no special case. */
#ifndef LTH_LOWER_TEMPLATES_WINDOWS_H
#define LTH_LOWER_TEMPLATES_WINDOWS_H

#include "compiler/lower/templates/internal.h"

enum { LTH_MAX_WINDOW_TILE = 16, LTH_MAX_WINDOW_TAPS = 32, LTH_MAX_WINDOW_EXTENT = 64 };
/* TAPS: of what is written out, a window or a row of a larger one. */

enum lth_window_op { LTH_WINDOW_FMA, LTH_WINDOW_MAX, LTH_WINDOW_SUM };

/* Rows and columns of the plane; one-dimensional problems have one row. */
struct lth_window_axis {
	lth_dim in, out, pad, stride_elements; /* stride_elements: of x */
	int64_t kernel, stride, dilation;
};

struct lth_windows {
	struct lth_emit *emit;
	enum lth_dtype compute;
	enum lth_window_op op;
	struct lth_operand x;
	lth_lv weights; /* FMA: packed [block of lanes][taps][lanes] */
	enum lth_dtype weights_memory;
	lth_dim batch, channels, x_batch_stride; /* channels of the output */
	int64_t multiplier;                      /* output channels an input channel */
	struct lth_window_axis y, x_axis;
	bool one_dimension; /* the epilogue's index has no row */
	unsigned lanes;
	unsigned tile_y, tile_x;
	bool by_rows; /* a loop over the window's rows, one of which is written out */
	/* Turns a finished accumulator of the pixel (y, x) into the result; NULL: it is the result. */
	lth_lv (*finish)(struct lth_windows *windows, lth_lv y, lth_lv x, lth_lv value);
	void *context;
	/* Bytes: x less this zero point is summed, as f32; the sums are whole and small enough to be exact. */
	const struct lth_bytes *bytes;
	/* While emitting: */
	bool streams; /* input and output do not stay in the cache: fetch ahead */
	lth_lv y_in, x_in, y_out, x_out, y_pad, x_pad, y_step, x_step, num_channels, neutral, buffer;
};

/* How many lanes suit `channels`, and a tile for the extents; false when the window is too large to write out. */
unsigned lth_windows_lanes(struct lth_dims *dims, const struct lth_machine *machine, enum lth_dtype compute,
			   lth_dim channels);
bool lth_windows_tile(struct lth_dims *dims, const struct lth_machine *machine, struct lth_windows *windows);
void lth_windows_emit(struct lth_windows *windows);

#endif
