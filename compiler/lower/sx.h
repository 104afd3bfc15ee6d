/* Inside of the expression pool, shared by sx*.c only. */
#ifndef LTH_LOWER_SX_H
#define LTH_LOWER_SX_H

#include "compiler/lower/expr.h"

struct lth_sx_bounds {
	bool known, nonnegative;
	lth_dim max; /* inclusive, or LTH_DIM_NONE */
};

struct lth_sx_pool {
	struct lth_arena *arena;
	struct lth_dims *dims;
	struct lth_sx_node *nodes;
	struct lth_sx_bounds *bounds;
	uint32_t num_nodes, cap_nodes, cap_bounds;
	uint32_t *table; /* open addressing, node id + 1; size a power of two */
	uint32_t table_size;
	lth_dim extents[LTH_MAX_AXES];
	uint32_t depths[LTH_MAX_AXES];
};

/* Interns a finished node. */
lth_sx lth_sx_intern(struct lth_sx_pool *pool, const struct lth_sx_node *node);
/* Operator node without simplification. */
lth_sx lth_sx_raw(struct lth_sx_pool *pool, enum lth_scalar_op op, enum lth_dtype dtype, lth_sx a, lth_sx b, lth_sx c);

/* A sum of dim-weighted atoms plus a dim: the normal form of i64 index arithmetic. */
enum { LTH_SX_MAX_TERMS = 48 };
struct lth_sx_linear {
	uint32_t count;
	struct {
		lth_sx atom;
		lth_dim weight;
	} terms[LTH_SX_MAX_TERMS];
	lth_dim constant;
};
/* False when the form has too many terms; the caller then keeps a plain node. */
bool lth_sx_linear_of(struct lth_sx_pool *pool, lth_sx x, struct lth_sx_linear *out);
lth_sx lth_sx_linear_build(struct lth_sx_pool *pool, struct lth_sx_linear *form);
/* Simplified i64 arithmetic; LTH_SX_NONE when nothing better than the plain node is known. sx_index.c */
lth_sx lth_sx_index_op(struct lth_sx_pool *pool, enum lth_scalar_op op, lth_sx a, lth_sx b);

#endif
