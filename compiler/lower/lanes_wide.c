/* Lane functions for processors with AVX2 and FMA: the same source, other instructions, equal results. See lanes.h,
 * lanes_rows.inc. */
#define LANES_TARGET __attribute__((target("avx2,fma")))
#define LANES_ROWS lth_lanes_rows_wide
#include "compiler/lower/lanes_rows.inc"
