/* Where a value's elements are: a strided window on the storage of a base value. By default each value is its own base,
 * dense in the order of its layout; AliasViews makes views and slices windows on other values.
 * Thread rule: read only once built. */
#ifndef LTH_LOWER_ACCESS_H
#define LTH_LOWER_ACCESS_H

#include "compiler/ir/graph.h"

struct lth_access {
	lth_value_id base;
	const lth_dim *strides; /* rank entries, elements, by logical axis */
	lth_dim offset;         /* elements from the base's first */
};

/* The default access of every tensor value (dense, own base); others have strides NULL. Array of num_values, arena-owned;
 * NULL when exhausted. */
struct lth_access *lth_access_dense(struct lth_graph *graph, struct lth_arena *arena);
/* Dense strides of a shape in a layout (NULL: row-major). */
const lth_dim *lth_dense_strides(struct lth_graph *graph, struct lth_arena *arena, uint32_t rank, const lth_dim *dims,
				 const uint8_t *layout);

#endif
