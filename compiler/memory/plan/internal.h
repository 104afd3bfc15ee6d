/* What the planner's files share: the problem in its normal form, the greedy decoder, the search. Nothing here is for
 * callers of the planner, and the checker includes none of it. */
#ifndef LTH_MEMORY_PLAN_INTERNAL_H
#define LTH_MEMORY_PLAN_INTERNAL_H

#include "compiler/memory/plan/plan.h"
#include "runtime/base/arena.h"

/* A buffer in normal form. Sections stand for steps: only those steps are kept whose set of live buffers is in no
 * other's. Sizes and offsets are in units (struct lth_plan_problem.unit). */
struct lth_plan_item {
	int32_t lower, upper; /* sections [lower, upper) */
	int64_t size;         /* > 0 */
	int64_t alignment;    /* 1 when the unit takes care of it */
	int64_t fixed;        /* -1 when free */
};

struct lth_plan_problem {
	struct lth_arena *arena;
	struct lth_plan_item *items;
	uint32_t count;
	int32_t sections;
	int64_t *load;       /* a section: the sum of sizes that live there */
	int64_t unit;        /* bytes */
	int64_t live_bound;  /* units */
	int64_t fixed_top;   /* units: end of the highest fixed item, 0 without one */
	int64_t aligned_bound; /* units: what coarsely aligned items take, a whole alignment unit each; 0: all are as fine */
	int64_t floor;       /* units: no plan is lower; the largest of the three above */
	int64_t naive;       /* units */
	bool free_form;      /* no alignment above the unit and no fixed item */
};

/* problem.c. `names` as in the options. */
LTH_MUST_CHECK enum lth_code lth_plan_problem_build(struct lth_arena *arena, const struct lth_buffer *buffers,
						    size_t count, const char *const *names,
						    struct lth_plan_problem *out_problem, struct lth_diag *diag);
/* "buffer 'a'", or "buffer 3" without names. */
struct lth_plan_buffer_text {
	char text[96];
};
struct lth_plan_buffer_text lth_plan_buffer_text(const char *const *names, size_t index);

static inline int64_t lth_plan_align(int64_t offset, int64_t alignment)
{
	return alignment == 1 ? offset : (offset + alignment - 1) / alignment * alignment;
}

/* What a run has left, shared by all its parts. `nodes` counts up to `limit`. */
struct lth_plan_budget {
	int64_t nodes, limit;
	uint64_t deadline_ns; /* 0: none */
	bool (*cancelled)(void *context);
	void *cancel_context;
	int64_t next_look; /* node count at which the clock and the caller are asked next */
	bool cut_short, is_cancelled;
};

/* The entries of the decoder's lists that it looks at in the time of one search node. */
#define LTH_PLAN_ENTRIES_A_NODE 4096

/* plan.c: charges `nodes`; false when the run must stop. */
bool lth_plan_charge(struct lth_plan_budget *budget, int64_t nodes);

/* decode.c: places items one by one in a given order, in the lowest hole they fit, or in the tightest of the lowest
 * few. More would cost more and gain nothing: the tightest of thousands is found high up, and leaves slivers. */
enum lth_plan_fit { LTH_PLAN_FIT_FIRST, LTH_PLAN_FIT_BEST };
#define LTH_PLAN_BEST_FIT_HOLES 8
struct lth_plan_decoder;
/* NULL when out of memory. */
struct lth_plan_decoder *lth_plan_decoder_create(const struct lth_plan_problem *problem);
void lth_plan_decoder_destroy(struct lth_plan_decoder **decoder);
/* Writes an offset for every item and returns the height. Gives up and returns INT64_MAX once an item ends above
 * `limit`, when out of memory, when cancelled, and, if there is a limit, when time is up. What it does is charged
 * to the budget, but goes on above its nodes. */
int64_t lth_plan_decode(struct lth_plan_decoder *decoder, const uint32_t *order, enum lth_plan_fit fit, int64_t limit,
			struct lth_plan_budget *budget, int64_t *offsets);

/* Whether two fixed items overlap, and which. */
bool lth_plan_decoder_conflict(struct lth_plan_decoder *decoder, uint32_t *out_first, uint32_t *out_second);

/* portfolio.c: greedy orders. */
enum lth_plan_tie { LTH_PLAN_TIE_START, LTH_PLAN_TIE_END, LTH_PLAN_TIE_DURATION, LTH_PLAN_TIE_SIZE, LTH_PLAN_TIE_AREA };
struct lth_plan_order_spec {
	int64_t band_permille, threshold_ppm;
	enum lth_plan_tie tie;
	enum lth_plan_fit fit;
};
/* Decodes one order; the height, or INT64_MAX when it is above `limit`. */
int64_t lth_plan_greedy(const struct lth_plan_problem *problem, struct lth_plan_decoder *decoder,
			const struct lth_plan_order_spec *spec, int64_t limit, struct lth_plan_budget *budget,
			int64_t *offsets);
/* The best of the orders in plan_orders.def, until one is at most `goal`. `*height` is INT64_MAX or that of a plan in
 * `offsets`, and stays INT64_MAX only when cancelled or out of memory, which is an error. */
enum lth_code lth_plan_portfolio(const struct lth_plan_problem *problem, struct lth_plan_decoder *decoder,
				 struct lth_plan_budget *budget, int64_t goal, int64_t *height, int64_t *offsets);

/* Problems with this many items are repaired before they are searched whole. */
#define LTH_PLAN_REPAIR_FROM 600

/* repair.c: lowers `*height` and `offsets`, a plan of a problem that may be too large to search, by searches in
 * stretches of time around what stands too high. */
void lth_plan_repair(const struct lth_plan_problem *problem, uint64_t seed, int64_t goal,
		     struct lth_plan_budget *budget, int64_t *height, int64_t *offsets);

/* minimise.c: lowers `*height` and `offsets` by searches at chosen heights. Stops at `goal`. Returns the height
 * below which nothing is, as far as is proved. */
int64_t lth_plan_minimise(const struct lth_plan_problem *problem, uint64_t seed, int64_t goal, bool fit_only,
		       struct lth_plan_budget *budget, int64_t *height, int64_t *offsets);

/* search.c: is there a plan of at most `height`? */
enum lth_plan_answer { LTH_PLAN_FOUND, LTH_PLAN_NONE, LTH_PLAN_UNKNOWN };
struct lth_plan_search;
/* NULL when out of memory or the problem is too large to search. */
struct lth_plan_search *lth_plan_search_create(const struct lth_plan_problem *problem, uint64_t seed);
void lth_plan_search_destroy(struct lth_plan_search **search);
/* Spends at most `nodes` of the budget. `offsets` are written when found. */
enum lth_plan_answer lth_plan_search_run(struct lth_plan_search *search, int64_t height, int64_t nodes,
					 struct lth_plan_budget *budget, int64_t *offsets);

#endif
