/* What is known of operators as ONNX publishes them, beside what they mean: when each came and changed (history.def), and
 * in how many conformance cases it passes (cases.def). Reference pages, /v1/ops and the importers' check of versions are
 * made from it. Thread rule: reentrant. */
#ifndef LTH_OPS_HISTORY_H
#define LTH_OPS_HISTORY_H

#include <stdint.h>

struct lth_op_history {
	const char *domain; /* "" is ai.onnx */
	const char *name;
	int64_t removed;      /* 0: not */
	const char *versions; /* ascending, a space between two */
};

/* What reference pages say of an operator that has no row in ops.def. */
#define LTH_OP_IMPORT_SUMMARY "read as a value, or written with the operators of newer sets"

/* Rows in the order of their domains and names. */
extern const struct lth_op_history lth_op_histories[];
extern const uint32_t lth_num_op_histories;

/* NULL for one that ONNX does not publish. */
const struct lth_op_history *lth_op_history(const char *domain, const char *name);
/* The row's versions; of other domains "1"; "" for Lathe's own. */
const char *lth_op_versions(const char *domain, const char *name);
int64_t lth_op_first_version(const struct lth_op_history *history);
/* Cases of the ONNX conformance suite that use the operator and pass: tests/conformance counts them. */
uint32_t lth_op_cases(const char *domain, const char *name);

#endif
