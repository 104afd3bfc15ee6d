/* Offline memory planning: buffers with live ranges in, offsets out, such that no two buffers that live at the same
 * step share a byte. The planner is a library of its own: it knows nothing of graphs or programs and stands on
 * runtime/base alone. Effort is counted in search nodes and never in time, so the same buffers, options and seed give
 * the same plan on every machine; the clock only aborts. Thread rule: reentrant, no state outside the arguments.
 *
 * Sizes. Every offset is a multiple of the granule, the greatest common divisor of all alignments; so a buffer takes
 * its size rounded up to the granule (to its alignment, when all are equal), and one of size 0 takes one alignment
 * unit. `height`, `live_bound_bytes` and `naive_bytes` all count these taken sizes. */
#ifndef LTH_MEMORY_PLAN_H
#define LTH_MEMORY_PLAN_H

#include "runtime/base/diag.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct lth_buffer {
	int64_t lower, upper; /* live at the steps [lower, upper); 0 <= lower < upper */
	int64_t size;         /* bytes, >= 0 */
	int64_t alignment;    /* of the offset, bytes, >= 1; any number, not only powers of two */
	int64_t fixed_offset; /* the offset it must have, or -1 */
};

enum lth_plan_strategy {
#define LTH_PLAN_STRATEGY(name, text, run, description) LTH_PLAN_##name,
#include "compiler/memory/plan/plan_strategies.def"
#undef LTH_PLAN_STRATEGY
	LTH_NUM_PLAN
};

/* What is known of the plan's height. */
enum lth_plan_certificate {
	LTH_CERTIFICATE_LIVE_BOUND, /* equals the live bound: nothing can be lower */
	LTH_CERTIFICATE_FIXED_TOP,  /* equals the top of the highest fixed buffer: nothing can be lower */
	LTH_CERTIFICATE_ALIGNMENT,  /* equals what coarsely aligned buffers take: nothing can be lower */
	LTH_CERTIFICATE_EXHAUSTED,  /* a complete search found nothing lower */
	LTH_CERTIFICATE_ANYTIME,    /* the best found; how far from optimal is not known beyond the gap */
	LTH_NUM_CERTIFICATE
};

/* All zero is a good default, but for the strategy: region is 0. */
struct lth_plan_options {
	enum lth_plan_strategy strategy;
	int64_t capacity;      /* exact: stop at the first plan of at most this height; 0: find the lowest */
	int64_t effort;        /* exact: search nodes to spend; 0: LTH_PLAN_DEFAULT_EFFORT */
	uint64_t seed;         /* exact: of the random choices */
	int64_t time_limit_ms; /* exact: abort with the best plan so far, `cut_short`; 0: none */
	const char *const *names; /* of the buffers, for messages; NULL: they are numbered */
	/* Asked now and then; true abandons the plan with LTH_CANCELLED. May be NULL. */
	bool (*cancelled)(void *context);
	void *cancel_context;
};

#define LTH_PLAN_DEFAULT_EFFORT 200000
#define LTH_PLAN_MAX_BUFFERS (1 << 24)

struct lth_plan_result {
	int64_t *offsets; /* one a buffer; owned */
	int64_t height, live_bound_bytes, naive_bytes;
	int64_t lower_bound_bytes; /* no plan is lower: the live bound, or what fixed buffers and the search prove */
	enum lth_plan_certificate certificate;
	char certificate_text[96];
	int64_t nodes; /* effort spent */
	bool cut_short; /* by time_limit_ms: do not cache */
};

/* plan.c: plans `count` buffers. A valid plan always comes out unless the input is wrong: LTH_INVALID_REQUEST for a
 * buffer that breaks the rules above, sizes whose sums overflow, or fixed buffers that overlap; LTH_BUDGET_UNREACHABLE
 * when `capacity` is below what any plan needs. A plan that missed a capacity that is not provably out of reach comes
 * out with its height above it: the caller compares. The caller frees the result. */
LTH_MUST_CHECK enum lth_code lth_plan(const struct lth_buffer *buffers, size_t count,
				      const struct lth_plan_options *options, struct lth_plan_result *out_result,
				      struct lth_diag *diag);
void lth_plan_result_free(struct lth_plan_result *result);
const char *lth_plan_strategy_name(enum lth_plan_strategy strategy);
/* LTH_NUM_PLAN when there is none of this name. */
enum lth_plan_strategy lth_plan_strategy_by_name(const char *name);

/* problem.c: what is wrong with one buffer, NULL if nothing; `*out_field` is the member at fault by name. */
const char *lth_plan_buffer_fault(const struct lth_buffer *buffer, const char **out_field);

/* check.c: an independent checker that shares no code with the planners. `offsets` may hold anything. */
enum lth_plan_violation_kind {
	LTH_VIOLATION_OVERLAP,   /* `first` and `second` share a step and a byte */
	LTH_VIOLATION_NEGATIVE,  /* the offset of `first` is below 0, or its end overflows */
	LTH_VIOLATION_ALIGNMENT, /* the offset of `first` is not a multiple of its alignment */
	LTH_VIOLATION_FIXED,     /* `first` is not where it must be */
	LTH_NUM_VIOLATION
};

struct lth_plan_violation {
	enum lth_plan_violation_kind kind;
	size_t first, second; /* indices; second is SIZE_MAX for violations of one buffer */
	int64_t step;         /* where an overlap was first seen */
};

struct lth_plan_check {
	int64_t height, live_bound_bytes;
	int64_t live_bound_step; /* a step at which the live bound is reached */
	size_t num_violations;
	struct lth_plan_violation violations[16]; /* the first ones; an overlap ends the sweep */
};

/* LTH_OK when the check could be made, whatever it found; an error when the buffers themselves are wrong. */
LTH_MUST_CHECK enum lth_code lth_plan_check(const struct lth_buffer *buffers, const int64_t *offsets, size_t count,
					    struct lth_plan_check *out_check, struct lth_diag *diag);
const char *lth_plan_violation_text(enum lth_plan_violation_kind kind);

/* csv.c, table.c: buffers with their ids, as they come in requests. */
#define LTH_PLAN_NO_OFFSET INT64_MIN

/* How to take what a file leaves open. */
struct lth_plan_reading {
	int64_t alignment;    /* of buffers that name none, at least 1 */
	bool offsets_are_fixed; /* an offset binds the planner; else it is only kept in `offsets`, whatever it is */
};

struct lth_plan_table {
	struct lth_buffer *buffers;
	char **ids;       /* text, distinct, owned */
	int64_t *offsets; /* of the `offset` column or member; LTH_PLAN_NO_OFFSET where there is none */
	size_t count, capacity;
};

void lth_plan_table_free(struct lth_plan_table *table);
/* Appends a row, copying the id. False when out of memory. */
LTH_MUST_CHECK bool lth_plan_table_add(struct lth_plan_table *table, const char *id, size_t id_length,
				       const struct lth_buffer *buffer, int64_t offset);
/* The index of the first id that an earlier row has too, SIZE_MAX if none; SIZE_MAX - 1 when out of memory. */
size_t lth_plan_table_repeated_id(const struct lth_plan_table *table);
/* Reads `id,lower,upper,size[,alignment][,offset]`: a header row names the columns, in any order; cells may be
 * quoted; empty alignment and offset cells mean the default and none. Errors name line:column. */
LTH_MUST_CHECK enum lth_code lth_plan_read_csv(const char *text, size_t size, const struct lth_plan_reading *reading,
					       struct lth_plan_table *out_table, struct lth_diag *diag);
/* The table with `offsets` as CSV; the caller frees the text. */
LTH_MUST_CHECK enum lth_code lth_plan_write_csv(const struct lth_plan_table *table, const int64_t *offsets,
						char **out_text, struct lth_diag *diag);

#endif
