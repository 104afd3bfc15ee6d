/* Types of what a model takes and gives beside tensors: sequences, optionals and maps. A type is a chain of containers
 * around a tensor's type, since each holds elements of one type. Its text is what graphs and programs have:
 *
 *	seq(f32[*])   optional(seq(i32[?, 4]))   seq(map(string, f32[]))
 *
 * where `?` is a size that may differ from element to element, and `*` (or `!`, of none at all) a rank. Thread rule:
 * plain values. */
#ifndef LTH_TENSOR_VALUE_TYPE_H
#define LTH_TENSOR_VALUE_TYPE_H

#include "runtime/base/buf.h"
#include "runtime/tensor/dtype.h"

enum lth_value_kind { LTH_VALUE_TENSOR, LTH_VALUE_SEQUENCE, LTH_VALUE_OPTIONAL, LTH_VALUE_MAP, LTH_NUM_VALUE_KINDS };

enum { LTH_MAX_VALUE_DEPTH = 8, LTH_MAX_VALUE_RANK = 16, LTH_ANY_RANK = -1, LTH_ANY_SIZE = -1 };

struct lth_value_type {
	uint32_t depth;                                  /* containers; 0: a tensor */
	enum lth_value_kind kinds[LTH_MAX_VALUE_DEPTH];  /* the outermost first */
	enum lth_dtype keys[LTH_MAX_VALUE_DEPTH];        /* of maps: I64 or STRING */
	enum lth_dtype dtype;
	int32_t rank;                                    /* LTH_ANY_RANK: any */
	int64_t dims[LTH_MAX_VALUE_RANK];                /* LTH_ANY_SIZE: any */
};

/* A type from its text; false for what is none. */
bool lth_value_type_parse(const char *text, struct lth_value_type *out);
void lth_value_type_print(const struct lth_value_type *type, struct lth_buf *out);
/* The kind of the whole, and the type of what it holds. */
enum lth_value_kind lth_value_type_kind(const struct lth_value_type *type);
struct lth_value_type lth_value_type_element(const struct lth_value_type *type);

#endif
