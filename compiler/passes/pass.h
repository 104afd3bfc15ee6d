/* Passes: one table of graph passes and memory passes in pipeline order; the pass manager (pass.c) selects, runs, times
 * and verifies them and keeps the ledger of what each did. A pass is one file and one row.
 * Thread rule: a compile's passes run on its thread. */
#ifndef LTH_PASSES_PASS_H
#define LTH_PASSES_PASS_H

#include "compiler/ir/graph.h"
#include "runtime/base/diag.h"

enum lth_pass_kind {
	LTH_PASS_GRAPH,  /* rewrites graph IR */
	LTH_PASS_MEMORY, /* rewrites the program; run through compiler/memory */
};

/* What passes may know of the request. */
struct lth_pass_context {
	unsigned opt_level;
	unsigned vector_lanes;   /* f32 lanes of the target's widest useful unit: 4, 8 or 16 */
	uint64_t fold_bytes;     /* FoldConstant leaves results above this unfolded (0: no limit) */
	void (*on_pass)(void *context, const char *name); /* told each pass as it begins; may be NULL */
	void *on_pass_context;
};

typedef enum lth_code (*lth_graph_pass_fn)(struct lth_graph *graph, const struct lth_pass_context *context,
					   struct lth_diag *diag);

enum lth_pass_id {
#define LTH_PASS(name, kind, level, required, run, description) LTH_PASS_ID_##name,
#include "compiler/passes/passes.def"
#undef LTH_PASS
	LTH_NUM_PASSES
};

struct lth_pass {
	const char *name;
	enum lth_pass_kind kind;
	unsigned level;         /* part of the set from this opt_level on */
	bool required;          /* cannot be disabled */
	lth_graph_pass_fn run;  /* GRAPH passes; NULL for memory passes */
	const char *description;
};

extern const struct lth_pass lth_passes[LTH_NUM_PASSES];

/* The id, or LTH_NUM_PASSES. */
enum lth_pass_id lth_pass_find(const char *name);

/* Which passes run: the level's set, plus `required`, minus `disabled` (which wins). An unknown name or disabling a
 * required pass is LTH_INVALID_OPTION with the nearest name. */
struct lth_pass_set {
	bool on[LTH_NUM_PASSES];
};
LTH_MUST_CHECK enum lth_code lth_pass_select(unsigned opt_level, const char *const *required, size_t num_required,
					     const char *const *disabled, size_t num_disabled,
					     struct lth_pass_set *out, struct lth_diag *diag);

/* One row of the ledger; figures are -1 where they do not exist (yet). */
struct lth_pass_record {
	enum lth_pass_id pass;
	double ms, cpu_ms;
	int64_t nodes_before, nodes_after;
	int64_t live_bound_before, live_bound_after; /* bytes, at the hint, in the order given */
	int64_t arena_before, arena_after;           /* bytes, at the hint */
};

/* Runs the selected graph passes in table order and appends a record for each to `records` (room for LTH_NUM_PASSES).
 * `verify` checks the graph after each. After the pass named `dump_after` (or NULL) the graph is printed to `dump`. */
LTH_MUST_CHECK enum lth_code lth_passes_run(struct lth_graph *graph, const struct lth_pass_set *set,
					    const struct lth_pass_context *context, bool verify,
					    const char *dump_after, struct lth_buf *dump,
					    struct lth_pass_record *records, size_t *out_num_records,
					    struct lth_diag *diag);

/* Largest sum of bytes of node outputs alive at one node of the main region, in node order, at the hint; inputs, graph
 * outputs and constants do not count. -1 if a size is unknown. */
int64_t lth_graph_live_bound(const struct lth_graph *graph);

#define LTH_PASS_GRAPH_FN(run) \
	enum lth_code run(struct lth_graph *graph, const struct lth_pass_context *context, struct lth_diag *diag);

#endif
