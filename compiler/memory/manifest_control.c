/* ManifestAlloc: control flow and C kernels. */
#include "compiler/memory/manifest.h"

#include "compiler/ops/op.h"

enum lth_code lth_build_control(struct lth_builder *builder, const struct lth_node *node)
{
	return lth_diag_fail(builder->diag, LTH_UNSUPPORTED, node->name, NULL, NULL,
			     "%s: control flow in programs is not implemented", node->op->name);
}

enum lth_code lth_build_builtin(struct lth_builder *builder, const struct lth_step *step)
{
	const struct lth_node *node = &builder->graph->nodes[step->node];
	return lth_diag_fail(builder->diag, LTH_UNSUPPORTED, node->name, NULL, NULL,
			     "%s: C kernels in programs are not implemented", node->op->name);
}
