/* Inside of group lowering, shared by read.c, emit.c, map.c, reduce.c, group.c and the templates' glue. */
#ifndef LTH_LOWER_GROUP_H
#define LTH_LOWER_GROUP_H

#include "compiler/lower/kernel.h"
#include "compiler/lower/lower.h"
#include "runtime/base/id_table.h"

/* What a value of the group is at some indices, as the read at hand has found. */
struct lth_group_read {
	lth_value_id value;
	uint32_t round;
	const lth_sx *index;
	lth_sx x;
};

struct lth_lower {
	struct lth_graph *graph;
	struct lth_arena *arena;
	const struct lth_access *accesses;
	const struct lth_lower_group *group;
	const struct lth_lower_target *target;
	struct lth_sx_pool *pool;
	struct lth_loop_fn *fn;
	struct lth_diag *diag;
	enum lth_code code; /* the first error met inside an element function, which cannot return one */

	/* the anchor, when a template computes it: reads of its outputs give ANCHOR leaves; else LTH_NONE */
	lth_node_id anchor;
	/* kernel operands so far: buffer id of an expression's LOAD = index here = pointer parameter */
	struct lth_kernel_operand *operands;
	uint32_t num_operands, cap_operands;
	lth_dim *ints;
	uint32_t num_ints, cap_ints;
	uint32_t read_depth;
	struct lth_group_read *reads; /* since the outermost one began: what is used twice is read once */
	uint32_t num_reads, cap_reads, read_round;
	struct lth_id_table read_table;
	lth_sx word; /* which word of an element of two is in hand (map.c); NONE where these cannot be read */
};

/* The pointer parameter for a value in memory, made at first use. */
enum lth_dtype lth_pointer_dtype(enum lth_dtype memory);
uint32_t lth_lower_operand(struct lth_lower *lower, lth_value_id value, bool written);
uint32_t lth_lower_packed(struct lth_lower *lower, struct lth_packed packed, enum lth_dtype memory);
/* The int parameter that carries a dimension (constants become constants). */
lth_lv lth_lower_dim(struct lth_lower *lower, lth_dim dim);
/* A parameter even where the dimension is constant, so that one kernel serves many sizes. */
lth_lv lth_lower_parameter(struct lth_lower *lower, lth_dim dim);
/* Flat element address of `value` at `index` in its base storage, relative to its own first element. */
lth_sx lth_lower_address(struct lth_lower *lower, lth_value_id value, const lth_sx *index);
bool lth_lower_in_group(const struct lth_lower *lower, lth_value_id value);
enum lth_code lth_lower_fail(struct lth_lower *lower, enum lth_code code, const struct lth_node *node,
			     const char *what);

/* packed.c: an element of a sub-byte buffer, in its compute type; byte number `byte` of a packed value. */
lth_sx lth_packed_load(struct lth_sx_pool *pool, uint32_t buffer, enum lth_dtype dtype, lth_sx address);
lth_sx lth_packed_byte(struct lth_lower *lower, lth_value_id value, lth_sx byte);

/* From expressions to loop IR. An emitter knows the values of axes and stages in the scope it stands in. */
struct lth_emitter {
	struct lth_lower *lower;
	struct lth_loop_fn *fn;
	struct lth_sx_pool *pool;
	lth_lv axes[LTH_MAX_AXES]; /* scalar i64; of the vector axis: the first lane's */
	uint32_t bound;            /* bit k: axis k has a value */
	uint32_t vector_axis;      /* LTH_NONE: none */
	unsigned lanes;            /* 1 without a vector axis */
	bool aligned;              /* the vector axis' first lane is a multiple of `lanes` */
	bool tabulated;            /* vectors of indices are at hand, cheaper than their ends */
	lth_lv mask;               /* of the vector axis' lanes, or LTH_LV_NONE: all */
	lth_lv stages[LTH_MAX_STAGES];
	uint32_t num_stages;       /* stages that have a value */
	lth_lv anchor;
	lth_lv *memo[2];           /* [0] with the vector axis at its first lane, [1] as vectors */
	uint32_t *walked[2];       /* likewise: the last walk of lth_emit_hoist that came by */
	uint32_t memo_size, num_walks;
	uint32_t *trail; /* memo entries in order of making, to undo at the end of a scope */
	uint32_t num_trail, cap_trail;
};

void lth_emitter_init(struct lth_emitter *emitter, struct lth_lower *lower);
/* Scopes: what is emitted between open and close is not known behind close. */
uint32_t lth_emitter_open(struct lth_emitter *emitter);
void lth_emitter_close(struct lth_emitter *emitter, uint32_t mark);
/* The value of an expression: a scalar, or a vector of `lanes` where it varies along the vector axis. */
lth_lv lth_emit(struct lth_emitter *emitter, lth_sx x);
lth_lv lth_emit_scalar(struct lth_emitter *emitter, lth_sx x); /* with the vector axis at its first lane */
/* Says what `x` is in the open scope: as a vector along the vector axis, or with that at its first lane. */
void lth_emit_preset(struct lth_emitter *emitter, lth_sx x, lth_lv value, bool vector);
/* Emits now every part of `x` that needs no axis beyond the bound ones, so that inner loops find it done. */
void lth_emit_hoist(struct lth_emitter *emitter, lth_sx x);
/* Stores `x` to `value` at the current indices; `address` is its flat address expression. */
void lth_emit_store(struct lth_emitter *emitter, uint32_t operand, enum lth_dtype memory, lth_sx address, lth_lv value);
/* Runs body(context) for the vector axis over [0, extent): full vectors in a loop, then a masked tail. `extent` is a
 * dim; `begin`/`end` (multiples of lanes but for the last end) may narrow it, LTH_LV_NONE for all. */
void lth_emit_vector_loop(struct lth_emitter *emitter, uint32_t axis, lth_dim extent, lth_lv begin, lth_lv end,
			  unsigned lanes, void (*body)(void *context), void *context);
void lth_emit_set_axis(struct lth_emitter *emitter, uint32_t axis, lth_lv value);
void lth_emit_unset_axis(struct lth_emitter *emitter, uint32_t axis);

/* Loop nest planning shared by maps and reductions. A root is an expression that the nest computes: a value, or the
 * address to which one is stored. */
enum { LTH_MAX_ROOTS = 40 };
struct lth_root {
	lth_sx x;
	bool is_address;
};
struct lth_nest {
	uint32_t num_axes;
	uint32_t axes[LTH_MAX_AXES]; /* outermost first; merged axes are gone */
	lth_dim extents[LTH_MAX_AXES];
};
/* Merges neighbouring axes that every root passes through as through one; rewrites the roots. */
void lth_nest_merge(struct lth_lower *lower, struct lth_nest *nest, struct lth_root *roots, uint32_t num_roots);
/* Of how many loads below the roots the address moves by one element along an axis / moves in another way. */
void lth_nest_strides(struct lth_lower *lower, const struct lth_root *roots, uint32_t num_roots, uint32_t axis,
		      uint32_t *out_unit, uint32_t *out_irregular);
/* A typical extent, at least 1, for cost decisions only. */
int64_t lth_nest_hint(struct lth_lower *lower, lth_dim extent);

/* Marks the operands that `value` reads only at `address`, where it is then stored as `memory` (see in_place). Operands
 * below `first` are the template's own and stay unmarked. nest.c */
void lth_lower_mark_in_place(struct lth_lower *lower, lth_sx value, lth_sx address, enum lth_dtype memory,
			     uint32_t first);

/* The schedules. Fill the kernel's range and grain. */
enum lth_code lth_lower_map(struct lth_lower *lower, struct lth_kernel_spec *out);
/* `*out_done` false: no template takes it. */
enum lth_code lth_lower_template(struct lth_lower *lower, const struct lth_node *node, struct lth_kernel_spec *out,
				 bool *out_done);
/* Opens the loops over the parallel range: the first axes of the nest (`num_parallel` of them) as units; sets their axis
 * values. `out` gets range and grain. Close with lth_parallel_end. */
struct lth_parallel {
	uint32_t num_parallel;
	uint32_t mark;
};
void lth_parallel_begin(struct lth_emitter *emitter, const struct lth_nest *nest, uint32_t num_available,
			int64_t work_per_turn, struct lth_parallel *out_parallel, struct lth_kernel_spec *out);
void lth_parallel_end(struct lth_emitter *emitter, const struct lth_nest *nest, const struct lth_parallel *parallel);
/* Lanes for loops over `extent` with elements of at most `bits`: full vectors, or fewer for short static extents. */
unsigned lth_choose_lanes(struct lth_lower *lower, lth_dim extent, unsigned bits);
/* reduce.c: the value that changes nothing when combined, and how two values combine (not for ARG combiners). */
lth_lv lth_combine_neutral(struct lth_loop_fn *fn, enum lth_combiner combiner, enum lth_dtype dtype);
enum lth_scalar_op lth_combine_op(enum lth_combiner combiner, enum lth_dtype dtype);
/* Running reductions. scan.c */
enum lth_code lth_lower_scan(struct lth_lower *lower, const struct lth_node *anchor, const struct lth_reduction *form,
			     struct lth_kernel_spec *out);
enum lth_code lth_lower_reduction(struct lth_lower *lower, const struct lth_node *anchor, struct lth_kernel_spec *out);

#endif
