/* ONNX models cut down to some of their values, on the level of protobuf's wire format: what is not understood is
 * copied as it is. Works on the main graph; values inside of subgraphs and functions are not listed. Bytes are
 * untrusted: every length is checked. Thread rule: reentrant. */
#ifndef LTH_CLI_ONNX_CUT_H
#define LTH_CLI_ONNX_CUT_H

#include "runtime/base/buf.h"
#include "runtime/base/diag.h"

/* What a node of the main graph computes. */
struct lth_onnx_value {
	char *name, *node, *op; /* owned; the node's own name may be empty */
};

struct lth_onnx_scan {
	const char *bytes; /* borrowed */
	size_t size;
	struct lth_onnx_value *values; /* in the order of the nodes, which is topological */
	size_t num_values;
};

LTH_MUST_CHECK enum lth_code lth_onnx_scan(const char *bytes, size_t size, struct lth_onnx_scan *out_scan,
					   struct lth_diag *diag);
void lth_onnx_scan_free(struct lth_onnx_scan *scan);
/* Appends the model whose outputs are values[begin .. end), without the nodes and initializers that these do not need.
 */
LTH_MUST_CHECK enum lth_code lth_onnx_cut(const struct lth_onnx_scan *scan, size_t begin, size_t end,
					  struct lth_buf *out, struct lth_diag *diag);

#endif
