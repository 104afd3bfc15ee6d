/* What the kernels on objects share. Private to runtime/kernels. */
#ifndef LTH_KERNELS_LIST_H
#define LTH_KERNELS_LIST_H

#include "runtime/exec/objects.h"
#include "runtime/kernels/copy.h"

/* Input `index` as a list; NULL, with a message, when it is none. */
struct lth_object *lth_list_operand(struct lth_builtin_call *call, uint32_t index);
/* Makes output 0 name an object; an error where `object` is NULL: no memory. */
int lth_list_result(struct lth_builtin_call *call, struct lth_object *object);
/* A dense copy of a tensor, as an object; NULL when out of memory. */
struct lth_object *lth_list_copy(struct lth_builtin_call *call, const struct lth_builtin_tensor *tensor);
/* A view of a tensor that is an object; `strides` has room for its rank. */
struct lth_builtin_tensor lth_object_view(const struct lth_object *object, int64_t *strides);
/* An integer operand's first element. False, with a message, when it has none. */
bool lth_list_int(struct lth_builtin_call *call, uint32_t index, int64_t *out);
/* A map of keys (i64 or strings) and values (one each), with the keys in ascending order: a list of the two. NULL when
 * out of memory. maps.c */
struct lth_object *lth_map_make(struct lth_objects *objects, struct lth_object *keys, struct lth_object *values);

#endif
