/* What a program's memory looks like at a shape, in the forms of views.def. Programs without a plan show live ranges at
 * offset -1. Thread rule: pure functions of a program. */
#ifndef LTH_MEMORY_VIEWS_H
#define LTH_MEMORY_VIEWS_H

#include "runtime/base/buf.h"
#include "runtime/memory/figures.h"

enum { LTH_NUM_MEMORY_VIEWS = 0
#define LTH_MEMORY_VIEW(artifact, format, function, description) +1
#include "runtime/memory/views.def"
#undef LTH_MEMORY_VIEW
};

struct lth_memory_view {
	const char *artifact, *format, *description;
	enum lth_code (*write)(const struct lth_program *program, const int64_t *symbols, struct lth_buf *out,
			       struct lth_diag *diag);
};
extern const struct lth_memory_view lth_memory_views[LTH_NUM_MEMORY_VIEWS];

/* timeline.c */
LTH_MUST_CHECK enum lth_code lth_memory_svg(const struct lth_program *program, const int64_t *symbols,
					    struct lth_buf *out, struct lth_diag *diag);
LTH_MUST_CHECK enum lth_code lth_memory_trace(const struct lth_program *program, const int64_t *symbols,
					      struct lth_buf *out, struct lth_diag *diag);
/* lists.c */
LTH_MUST_CHECK enum lth_code lth_memory_ledger(const struct lth_program *program, const int64_t *symbols,
					       struct lth_buf *out, struct lth_diag *diag);
LTH_MUST_CHECK enum lth_code lth_memory_csv(const struct lth_program *program, const int64_t *symbols,
					    struct lth_buf *out, struct lth_diag *diag);

#endif
