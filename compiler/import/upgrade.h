/* Changes of operators between versions (upgrades.def), and what they are built from. A change edits the draft; it may
 * emit nodes before it, and, where the newest form needs nodes behind it, emit the draft itself and set its op to NULL.
 */
#ifndef LTH_IMPORT_UPGRADE_H
#define LTH_IMPORT_UPGRADE_H

#include "compiler/import/importer.h"

typedef enum lth_code (*lth_upgrade_fn)(struct lth_importer *importer, struct lth_draft *draft, const char *detail);

#define LTH_UPGRADE(of_domain, of_op, of_below, change, of_detail)                                                     \
	enum lth_code lth_up_##change(struct lth_importer *importer, struct lth_draft *draft, const char *detail);
#include "compiler/import/upgrades.def"
#undef LTH_UPGRADE

enum { LTH_UP_WORD = 64 };
/* Copies the next word of a detail; false at its end. */
bool lth_up_word(const char **detail, char out[LTH_UP_WORD]);
enum lth_code lth_up_fail(struct lth_importer *importer, const struct lth_draft *draft, const char *expected,
			  const char *found);
enum lth_code lth_up_unsupported(struct lth_importer *importer, const struct lth_draft *draft, const char *found);

/* Constants beside the draft; LTH_NONE when the arena is exhausted. `what` names them. */
lth_value_id lth_up_ints(struct lth_importer *importer, const struct lth_draft *draft, const char *what,
			 const int64_t *list, uint32_t count);
lth_value_id lth_up_int(struct lth_importer *importer, const struct lth_draft *draft, const char *what, int64_t value);
lth_value_id lth_up_floats(struct lth_importer *importer, const struct lth_draft *draft, const char *what,
			   uint32_t rank, const int64_t *shape, const double *list, uint32_t count);

/* Emits a node in its newest form before the draft, with one new output. */
LTH_MUST_CHECK enum lth_code lth_up_emit(struct lth_importer *importer, const struct lth_draft *draft, const char *op,
					 const lth_value_id *inputs, uint32_t num_inputs, const struct lth_attr *attrs,
					 uint32_t num_attrs, lth_value_id *out);
/* Emits the last node of a rewriting, which defines the draft's output 0, and ends the draft. */
LTH_MUST_CHECK enum lth_code lth_up_finish(struct lth_importer *importer, struct lth_draft *draft, const char *op,
					   const lth_value_id *inputs, uint32_t num_inputs,
					   const struct lth_attr *attrs, uint32_t num_attrs);
/* Puts a value at an input position; positions in between are absent. An absent value is kept absent. */
LTH_MUST_CHECK enum lth_code lth_up_set_input(struct lth_importer *importer, struct lth_draft *draft, uint32_t position,
					      lth_value_id value);
LTH_MUST_CHECK enum lth_code lth_up_set_int(struct lth_importer *importer, struct lth_draft *draft, const char *name,
					    int64_t value);
LTH_MUST_CHECK enum lth_code lth_up_set_text(struct lth_importer *importer, struct lth_draft *draft, const char *name,
					     const char *value);
lth_value_id lth_up_input(const struct lth_draft *draft, uint32_t position); /* LTH_NONE when absent */
int64_t lth_up_int_attr(const struct lth_draft *draft, const char *name, int64_t otherwise);
double lth_up_float_attr(const struct lth_draft *draft, const char *name, double otherwise);
/* The tensor type of a value, as far as it is known now; NULL when its rank is not. */
const struct lth_type *lth_up_ranked(const struct lth_importer *importer, lth_value_id value);

static inline struct lth_attr lth_up_attr_int(const char *name, int64_t value)
{
	return (struct lth_attr){.name = name, .kind = LTH_ATTR_INT, .count = 1, .i = value};
}

#endif
