/* Planning requests as a worker process gets them: text in, JSON out. Apart from plan.h so that planning alone needs no
 * JSON library. Thread rule: reentrant. */
#ifndef LTH_MEMORY_PLAN_JSON_H
#define LTH_MEMORY_PLAN_JSON_H

#include "compiler/memory/plan/plan.h"

#include <jansson.h>

/* A planning request as a worker gets it. `bytes` are CSV, or JSON {"buffers": [{"id", "lower", "upper",
 * "size", "alignment"?, "offset"?}], "options"?}. `options` (an object or NULL) has strategy, capacity, effort, seed,
 * time_limit_ms, alignment; it wins over the body's. The answer is {"height", "live_bound_bytes", "naive_bytes", "gap",
 * "certificate", "strategy", "nodes", "cut_short", "buffers": [{"id", "offset"}]}; a capacity that was not reached is
 * LTH_BUDGET_UNREACHABLE. `*out_answer` is a new reference. */
LTH_MUST_CHECK enum lth_code lth_plan_job(const char *bytes, size_t size, bool csv, const json_t *options,
					  json_t **out_answer, struct lth_diag *diag);
/* The same body with an offset for every buffer; answers {"valid", "height", "live_bound_bytes", "violations":
 * [{"kind", "text", "buffers": [ids], "step"?}]}. */
LTH_MUST_CHECK enum lth_code lth_plan_check_job(const char *bytes, size_t size, bool csv, const json_t *options,
						json_t **out_answer, struct lth_diag *diag);

#endif
