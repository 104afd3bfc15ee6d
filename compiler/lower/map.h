/* Inside of the map schedules, shared by map.c and turn.c only. */
#ifndef LTH_LOWER_MAP_H
#define LTH_LOWER_MAP_H

#include "compiler/lower/lower_group.h"

struct lth_map {
	struct lth_lower *lower;
	struct lth_emitter emitter;
	struct lth_nest nest;
	struct lth_root roots[LTH_MAX_ROOTS]; /* value, address of each output in turn */
	uint32_t operands[LTH_MAX_ROOTS / 2];
	uint32_t num_outputs;
};

/* Computes and stores all outputs at the emitter's axes. */
void lth_map_body(void *map);
/* Schedules the nest in blocks of lanes x lanes if some loads are contiguous along another axis than the innermost one;
 * false, and nothing is emitted, where that does not pay. turn.c */
bool lth_map_turn(struct lth_map *map, unsigned lanes, struct lth_kernel_spec *out);

#endif
