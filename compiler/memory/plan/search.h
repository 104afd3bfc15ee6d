/* The complete search, shared by its three files. It builds a plan from the floor up. A *section*'s floor is the
 * height below which nothing more will be placed there; the search picks one section and enumerates what lies
 * directly above its floor: one of the items that fit there flat, or a gap. States are copied whole, one a depth,
 * and nothing is undone.
 *
 *   search.c   restarts, the node, decomposition, the table of failed states
 *   branch.c   which section, which children, in what order
 *   state.c    what a placement or a gap entails, and the bounds that refute it
 *
 * Items are sorted by their first section, so that a part of the problem (a stretch of sections that no unplaced
 * item leaves) owns a stretch of items too. Thread rule: one thread a search. */
#ifndef LTH_MEMORY_PLAN_SEARCH_H
#define LTH_MEMORY_PLAN_SEARCH_H

#include "compiler/memory/plan/internal.h"

/* Sections [lower, upper) and the items that live only there, [first, last). */
struct lth_plan_part {
	int32_t lower, upper;
	uint32_t first, last;
	uint32_t unplaced;
};

struct lth_plan_state {
	int64_t *floor;     /* a section: nothing unplaced goes below */
	int64_t *top;       /* a section: the end of what was placed last there; floor - top is a gap given up */
	int64_t *rest;      /* a section: the sum of unplaced sizes */
	int32_t *crossing;  /* a section: unplaced items that live in the next one too */
	int64_t *least;     /* an item: the lowest offset its sections' floors allow */
	uint64_t *unplaced; /* a bit an item */
};

/* Which section to branch on, and which child to try first. One for each slot of the portfolio of restarts. */
struct lth_plan_config {
	bool weigh_slack; /* count the gap child as more options the more slack there is, low floors first;
			     else each child counts as one, least slack first */
	bool wide_first;  /* ties by length, then size; else by area */
	bool count_waste; /* value order by waste and flush edges; else by flush edges alone */
	/* Children that refute themselves at once add to their section's weight too: worse by far on packings
	 * without slack, better where there is some but the height is near the bound. Such restarts learn weights
	 * of their own. */
	bool count_refuted;
	int share; /* nodes, by which the restart's limit is multiplied */
};

struct lth_plan_child {
	double cost;     /* the least first */
	double priority; /* among equal costs the largest first */
	uint32_t item;
};

/* A section's options, as branch.c found them. */
struct lth_plan_branch {
	int32_t section;
	int32_t niche_lower, niche_upper; /* the sections around it with the same floor */
	int64_t floor, slack;
};

struct lth_plan_search {
	const struct lth_plan_problem *problem;
	struct lth_arena *arena;
	uint32_t count, words;
	int32_t sections;
	struct lth_plan_item *items; /* sorted by lower */
	uint32_t *original;          /* their indices in the problem */
	uint64_t *cover;             /* a section: a bit for every item that lives there */
	uint64_t *overlap;           /* an item: a bit for every other that lives with it */
	uint32_t *twin;              /* an item: the one before with the same sections, size and alignment, or none */
	uint32_t *near_starts, *near_fixed; /* an item: the fixed ones that live with it, by offset */
	double *area, *width;        /* static priorities */
	double *priority;            /* of the current restart, with noise */
	double *weights[2];          /* a section: how often it refuted; learnt without and with count_refuted */
	double *weight;              /* those of the current restart */
	int64_t height;              /* what to fit */
	double scale;                /* of sizes in the costs: heights count 1024 */
	struct lth_plan_config config;
	int64_t *offsets;            /* the solution in the making */
	struct lth_plan_state *states;
	uint32_t num_states, states_capacity;
	struct lth_plan_child *children; /* a stack */
	uint32_t num_children, children_capacity;
	struct lth_plan_key { uint64_t low, high; } *failed;
	uint64_t failed_mask;
	uint64_t random;
	int64_t nodes_left; /* of this restart */
	struct lth_plan_budget *budget;
	bool out_of_memory;

	/* Scratch of state.c, sized by sections or items. */
	int32_t *touched, num_touched;
	uint32_t *touched_at, touch_epoch;
	int64_t *touched_sum; /* floor + rest before */
	uint32_t *changed, num_changed;
	int32_t *num_changed_at; /* differences by section; zero between steps */
	struct lth_plan_head { int64_t least, size; } *heads;
	/* Scratch of branch.c. */
	int32_t *run_end, *num_flat;
	bool *blocked;
	uint64_t *flat;
};

/* What a section gains when a node at it runs out of children; it gains 1 when what followed a child is refuted. */
#define LTH_PLAN_DEAD_END_WEIGHT 0.2
#define LTH_PLAN_NO_ITEM UINT32_MAX

/* state.c. The state of an empty plan. */
void lth_plan_state_start(const struct lth_plan_search *search, struct lth_plan_state *state);
/* The part alone. */
void lth_plan_state_copy(const struct lth_plan_part *part, const struct lth_plan_state *from,
			 struct lth_plan_state *to);
/* Places `item` at its least offset; false when the state can't be completed. `*waste` grows by how much slack it
 * costs, each section's by the slack it had. */
bool lth_plan_state_place(struct lth_plan_search *search, struct lth_plan_state *state, uint32_t item, double *waste);
/* Gives up the bytes of a section below `floor`. */
bool lth_plan_state_gap(struct lth_plan_search *search, struct lth_plan_state *state, int32_t section, int64_t floor);

/* branch.c. Picks a section of the part; false when some section has no option left. */
bool lth_plan_branch_choose(struct lth_plan_search *search, const struct lth_plan_part *part,
			    const struct lth_plan_state *state, struct lth_plan_branch *out_branch);
/* Pushes the items that may lie on the section's floor, those that refute themselves left out, the best last;
 * `scratch` is any state. Returns their number. */
uint32_t lth_plan_branch_children(struct lth_plan_search *search, const struct lth_plan_part *part,
				  const struct lth_plan_state *state, const struct lth_plan_branch *branch,
				  struct lth_plan_state *scratch);
/* The lowest floor that a gap at the section leads to; INT64_MAX when there can be none. */
int64_t lth_plan_branch_gap(const struct lth_plan_search *search, const struct lth_plan_state *state,
			    const struct lth_plan_branch *branch);

#endif
