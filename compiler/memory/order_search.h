/* The order of tasks with the least peak memory: tasks with dependencies, items that are alive from the first to the
 * last task that touches them. Knows nothing of programs. Thread rule: reentrant. */
#ifndef LTH_MEMORY_ORDER_SEARCH_H
#define LTH_MEMORY_ORDER_SEARCH_H

#include "runtime/base/diag.h"

#include <stdbool.h>
#include <stdint.h>

struct lth_order_item {
	int64_t bytes;
	bool enters, leaves;   /* alive before the first task, behind the last */
	const uint32_t *tasks; /* that touch it, distinct */
	uint32_t num_tasks;
};

struct lth_order_problem {
	uint32_t num_tasks, num_items;
	const struct lth_order_item *items;
	const uint32_t *before_start; /* num_tasks + 1 positions in `before` */
	const uint32_t *before;	      /* tasks that must come first; smaller than their own */
	const uint32_t *in_place_from,
		*in_place_to; /* by task: the item that it may write over, and with which; or NONE */
	int64_t effort;	      /* expansions to spend */
};

struct lth_order {
	uint32_t *tasks; /* in order; owned */
	int64_t peak_bytes;
	int64_t bound_bytes; /* no order is lower */
	int64_t expansions;
};

/* Takes the given order (0, 1, 2, ...) unless it finds a lower one. `bound_bytes` equals the peak when the order is
 * proved to be the best. */
LTH_MUST_CHECK enum lth_code lth_order_search(const struct lth_order_problem *problem, struct lth_order *out_order,
					      struct lth_diag *diag);

#endif
