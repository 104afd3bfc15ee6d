/* Inside of the map schedules, shared by map.c and turn.c only. */
#ifndef LTH_LOWER_MAP_H
#define LTH_LOWER_MAP_H

#include "compiler/lower/lower_group.h"

/* Expressions of one axis only that cost something, as rows of numbers in scratch: computed when the kernel starts, read
 * wherever outer loops would compute them again. table.c */
enum { LTH_MAX_TABLES = 24 };
struct lth_tables {
	struct lth_table {
		lth_sx x;
		uint32_t axis;
		lth_lv pointer;
	} rows[LTH_MAX_TABLES];
	uint32_t count;
};

struct lth_map {
	struct lth_lower *lower;
	struct lth_emitter emitter;
	struct lth_nest nest;
	struct lth_root roots[LTH_MAX_ROOTS]; /* value, address of each output in turn */
	uint32_t operands[LTH_MAX_ROOTS / 2];
	uint32_t num_outputs;
	struct lth_tables tables;
};

/* Computes and stores all outputs at the emitter's axes. */
void lth_map_body(void *map);
/* Schedules the nest in blocks of lanes x lanes if some loads are contiguous along another axis than the innermost one;
 * false, and nothing is emitted, where that does not pay. turn.c */
bool lth_map_turn(struct lth_map *map, unsigned lanes, struct lth_kernel_spec *out);

/* Chooses what is worth a table, writes the loops that fill them, and sets the kernel's scratch. Before other loops. */
void lth_tables_fill(struct lth_map *map, unsigned lanes, struct lth_kernel_spec *out);
/* The axis has just got its value: what the tables say of it. */
void lth_tables_read(struct lth_map *map, uint32_t axis);

#endif
