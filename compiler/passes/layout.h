/* Physical layouts: in what order a value's axes stand in memory (lth_value.layout). Thread rule: as the graph's. */
#ifndef LTH_PASSES_LAYOUT_H
#define LTH_PASSES_LAYOUT_H

#include "compiler/ops/op.h"

/* The axis that stands `place`-th in memory, outermost first. */
static inline uint32_t lth_layout_axis(const uint8_t *layout, uint32_t place)
{
	return layout ? layout[place] : place;
}

/* True when both layouts put every element of a tensor of this type in the same place: they may differ in where axes of
 * extent 1 stand. */
bool lth_layout_equal(const struct lth_graph *graph, const struct lth_type *type, const uint8_t *a, const uint8_t *b);

/* The axis that neighbours in memory differ in; LTH_NONE when there is one element. */
uint32_t lth_layout_innermost(const struct lth_graph *graph, const struct lth_value *value);

/* The layout that makes the node's output 0 such a view of its input laid out as `layout`: writes one entry an axis of
 * the output. False when there is none. */
bool lth_layout_through(struct lth_graph *graph, const struct lth_node *node, const uint8_t *layout, uint8_t *out);

#endif
