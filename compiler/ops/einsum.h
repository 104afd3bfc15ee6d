/* An Einsum's equation, taken apart. Private to compiler/ops. */
#ifndef LTH_OPS_EINSUM_H
#define LTH_OPS_EINSUM_H

#include "compiler/ops/infer.h"

enum {
	LTH_EINSUM_LABELS = 32,
	LTH_EINSUM_INPUTS = 8,
	LTH_EINSUM_ELLIPSIS = 128 /* labels 128 + k: the k-th broadcast axis from the right */
};

struct lth_einsum {
	uint32_t num_inputs;
	struct {
		uint8_t labels[LTH_MAX_RANK];
		uint32_t rank;
	} inputs[LTH_EINSUM_INPUTS];
	uint8_t output[2 * LTH_EINSUM_LABELS], reduced[LTH_EINSUM_LABELS];
	uint32_t num_output, num_reduced;
	uint32_t ellipsis; /* broadcast axes in all */
	const char *fault; /* what is wrong with the equation, or NULL */
};

/* The place of a label in a list, or -1. */
int lth_einsum_place(const uint8_t *list, uint32_t count, uint8_t label);

/* einsum_product.c: whether the equation is a matrix product of the node's two inputs, each of whose subscripts is a
 * batch axis of both, a row or column of one, or summed over both; and that product in the node's place. */
bool lth_einsum_is_product(struct lth_infer *infer, const struct lth_einsum *einsum);
LTH_MUST_CHECK enum lth_code lth_einsum_build_product(struct lth_infer *infer, const struct lth_einsum *einsum);

#endif
