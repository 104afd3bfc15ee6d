/* From the grouped graph to a program with explicit storage, and the memory passes over it (MEMORY.md).
 *
 * ManifestAlloc builds the program; the other passes rewrite it. Each is a function here; compile.c runs those that the
 * pass table selects, in the table's order. Thread rule: a compile's own. */
#ifndef LTH_MEMORY_H
#define LTH_MEMORY_H

#include "compiler/lower/kernel.h"
#include "compiler/memory/plan/plan.h"
#include "runtime/memory/figures.h"

/* The executable's constants: pieces in order, each at its offset, 64-byte aligned. The data is borrowed. */
struct lth_constant_piece {
	const void *data;
	const struct lth_pack *pack; /* how data is to be laid out; NULL: as it is */
	int64_t bytes, offset;
};
struct lth_constants {
	struct lth_constant_piece *pieces;
	uint32_t count, capacity;
	int64_t bytes;
};

enum lth_step_kind {
	LTH_STEP_KERNEL,  /* one CALL */
	LTH_STEP_VIEW,    /* nothing happens: the outputs are windows on their input */
	LTH_STEP_BUILTIN, /* a C kernel of the runtime */
	LTH_STEP_CONTROL, /* If, Loop, Scan */
};

/* What becomes of one group. */
struct lth_step {
	enum lth_step_kind kind;
	lth_node_id node;                    /* the one that names it */
	const struct lth_kernel_spec *spec;  /* KERNEL */
	const char *kernel_name;             /* KERNEL: the identity, */
	uint32_t kernel;                     /* and its number among those of the compile */
	const lth_value_id *outputs;
	uint32_t num_outputs;
};
struct lth_region_steps {
	struct lth_step *steps;
	uint32_t count;
};

struct lth_manifest {
	struct lth_graph *graph;
	const struct lth_access *accesses;
	const struct lth_region_steps *regions; /* one a region of the graph */
	uint32_t num_kernels;                   /* distinct ones */
	int64_t alignment;                      /* of storages, bytes */
	int64_t threads;                        /* that scratch is sized for */
};

/* ManifestAlloc. manifest.c */
LTH_MUST_CHECK enum lth_code lth_manifest_alloc(const struct lth_manifest *input, struct lth_arena *arena,
						struct lth_program **out_program, struct lth_constants *out_constants,
						struct lth_diag *diag);

/* AliasViews, on the graph's side, in two steps. alias.c
 * Before grouping: a copy node before each operand of a Concat whose producer cannot write into the result, so that the
 * others can; copies get groups of their own. `copy` is the operator that copies (LayoutCopy). */
LTH_MUST_CHECK enum lth_code lth_alias_prepare(struct lth_graph *graph, const struct lth_op *concat,
					       const struct lth_op *copy, struct lth_diag *diag);
/* What the bodies of Scan nodes see: the turn's slices of the scanned inputs. Called for each such node before the nodes
 * of its body are looked at; lth_alias_views does so. manifest_control.c */
void lth_control_windows(struct lth_graph *graph, struct lth_access *accesses, const struct lth_node *node);
/* The same for all nodes of a region and of the regions inside. */
void lth_control_all_windows(struct lth_graph *graph, struct lth_access *accesses, lth_region_id region);
/* After it: outputs of view operators become windows on their input, operands of a Concat windows on its output.
 * `is_view` (one a node) tells which nodes then need no step. */
LTH_MUST_CHECK enum lth_code lth_alias_views(struct lth_graph *graph, const struct lth_op *concat,
					     struct lth_access *accesses, bool *is_view, struct lth_diag *diag);

/* OrderForMemory: moves independent calls of a block so that less is alive at its peak, at the hint; the source's order
 * stands wherever no lower one is found. Before ReuseInPlace and ManifestLifetimes. order.c */
struct lth_order_report {
	uint32_t blocks, changed; /* runs of calls that may be moved, and those that were */
	bool proved;              /* no other order of any of them has a lower peak */
	int64_t peak_bytes, bound_bytes; /* of the block with the highest peak: what it has, and what none is below */
};
LTH_MUST_CHECK enum lth_code lth_order_for_memory(struct lth_program *program, int64_t effort,
						  struct lth_order_report *out, struct lth_diag *diag);

/* ReuseInPlace: storages whose last reader writes a result of the same size over them become one. reuse.c */
LTH_MUST_CHECK enum lth_code lth_reuse_in_place(struct lth_program *program, struct lth_diag *diag);

/* ManifestLifetimes: KILL after each storage's last use by dataflow, and live ranges. Without it
 * lth_lifetimes_to_the_end gives every storage a range to the end. lifetimes.c */
LTH_MUST_CHECK enum lth_code lth_manifest_lifetimes(struct lth_program *program, struct lth_diag *diag);
void lth_lifetimes_to_the_end(struct lth_program *program);
/* The live ranges that ALLOCs and KILLs say. */
void lth_lifetimes_set_ranges(struct lth_program *program);

/* ShareBranches: the ranges of an If's arms as they are, so that they overlap in the plan, and next states of a loop
 * written in place or swapped with the old ones; behind ManifestLifetimes. `tight`: no swap may cost memory, not even the
 * 32nd of the live bound that it else may. Without the pass, lth_branches_add_up makes storages of arms live through the
 * whole If. branches.c */
LTH_MUST_CHECK enum lth_code lth_share_branches(struct lth_program *program, bool tight, struct lth_diag *diag);
void lth_branches_add_up(struct lth_program *program);

/* Rematerialize: recomputes cheap values until the live bound at these symbol values is at most `target_bytes` or nothing
 * lowers it. Behind ManifestLifetimes, whose kills it places anew. remat.c */
LTH_MUST_CHECK enum lth_code lth_rematerialize(struct lth_program *program, const int64_t *symbols,
					       int64_t target_bytes, uint32_t *out_recomputed, struct lth_diag *diag);

/* MemoryPlan: offsets or orientations for the ARENA storages. plan_program.c */
struct lth_memory_options {
	enum lth_plan_strategy strategy;
	int64_t effort, time_limit_ms, budget_bytes, budget_total_bytes, alignment;
	uint64_t seed;
	bool source_order; /* OrderForMemory is not wanted */
	bool check; /* run the plan checker at every sampled shape */
};
struct lth_memory_report {
	const char *certificate; /* arena-owned; at the hint */
	int64_t nodes;           /* search nodes of all plans */
	bool cut_short;
	/* Of a plan for a box: arena over live bound at the sampled shapes. */
	uint32_t shapes;
	double mean_ratio, worst_ratio;
};
LTH_MUST_CHECK enum lth_code lth_memory_plan(struct lth_program *program, const struct lth_memory_options *options,
					     struct lth_memory_report *out, struct lth_diag *diag);

/* Do the plan, and the whole with constants, inputs and outputs, keep to the budgets at every shape of the box, as far
 * as it has a top? LTH_BUDGET_UNREACHABLE tells the least reached, the bound, and who is alive at the peak.
 * budget.c */
LTH_MUST_CHECK enum lth_code lth_memory_check_budget(const struct lth_program *program,
						     const struct lth_memory_options *options, int64_t constants_bytes,
						     struct lth_diag *diag);
/* The arena that both budgets leave, INT64_MAX without one, at the shape that is furthest above them, whose symbols are
 * `out_symbols`; `*out_above`: no shape is proved further above. A negative one: the rest alone is more. */
LTH_MUST_CHECK enum lth_code lth_memory_arena_budget(const struct lth_program *program,
						     const struct lth_memory_options *options, int64_t constants_bytes,
						     int64_t *out_symbols, int64_t *out_bytes, int64_t *out_above,
						     struct lth_diag *diag);

/* The arena as an expression in the symbols, or a note where that is too long; nothing without a plan. `symbols`: some
 * shape, of which programs of fixed sizes report the arena. formula.c */
void lth_memory_formula(const struct lth_program *program, const int64_t *symbols, struct lth_buf *out);

/* Bounds of all expressions where INPUT symbols are within [low, high], by symbol; reals as bits of a double. Of what
 * depends on a symbol without a top nothing is known. ranges.c */
struct lth_range {
	int64_t low, high;
	bool known;
};
void lth_expr_ranges(const struct lth_program *program, const int64_t *low, const int64_t *high,
		     struct lth_range *out_ranges);

/* The shape of the box whose arena, or live bound without a plan, is furthest above `arena_bytes`, or with inputs and
 * outputs above `total_bytes`: its symbols, and what no shape is further above than. Where a symbol without a top counts,
 * it is at its hint and the others are at their tops. With limits other than 0 and none, the first shape above them is
 * taken. worst.c */
struct lth_memory_limits {
	int64_t arena_bytes; /* 0 asks for the largest arena; INT64_MAX: none */
	int64_t total_bytes; /* INT64_MAX: none */
};
LTH_MUST_CHECK enum lth_code lth_memory_worst(const struct lth_program *program, const struct lth_memory_limits *limits,
					      int64_t *out_symbols, int64_t *out_bound, struct lth_diag *diag);

/* Symbol values, arrays of num_symbols. shapes.c
 * At the hints, and at the top of the box; false when a symbol is unbounded. */
void lth_symbols_at_hint(const struct lth_program *program, int64_t *out);
bool lth_symbols_at_top(const struct lth_program *program, int64_t *out);
/* Sample `number` of a fixed sequence: 0 the hint, 1 the top, 2 the bottom, 3 the middle, 4 and 5 corners between, then
 * random ones. A symbol without a top is sampled up to some times its hint. */
enum { LTH_NAMED_SAMPLES = 6 };
void lth_symbols_sample(const struct lth_program *program, uint64_t number, int64_t *out);

#endif
