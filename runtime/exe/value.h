/* Values that are no tensors in a caller's hands: trees of struct lathe_value whose arrays and bytes are malloc'ed,
 * and the files they come in, ONNX's SequenceProto, OptionalProto and MapProto, as a type says. Readers take untrusted
 * bytes. Thread rule: plain values. */
#ifndef LTH_EXE_VALUE_H
#define LTH_EXE_VALUE_H

#ifndef LATHE_LINKED
#define LATHE_LINKED /* declarations only */
#endif
#include "api/lathe.h"
#include "runtime/tensor/host.h"
#include "runtime/tensor/value_type.h"

/* Ends a value that was read; not the struct itself. */
void lth_value_free(struct lathe_value *value);
/* What a tensor in hand is to lathe.h, and back; bytes are shared, and the name is not set. */
struct lathe_tensor lth_tensor_of_host(const struct lth_host_tensor *tensor);
struct lth_host_tensor lth_tensor_to_host(const struct lathe_tensor *tensor);

/* A file or bytes of a value of the type (a text of value_type.h). */
LTH_MUST_CHECK enum lth_code lth_value_read_file(const char *path, const char *type, struct lathe_value *out,
						 struct lth_diag *diag);
LTH_MUST_CHECK enum lth_code lth_value_read(const void *bytes, size_t size, const struct lth_value_type *type,
					    struct lathe_value *out, struct lth_diag *diag);
/* As the protobuf message of its kind. `name` may be NULL. */
LTH_MUST_CHECK enum lth_code lth_value_write_file(const char *path, const char *name, const char *type,
						  const struct lathe_value *value, struct lth_diag *diag);
LTH_MUST_CHECK enum lth_code lth_value_write(const struct lathe_value *value, const struct lth_value_type *type,
					     const char *name, struct lth_buf *out, struct lth_diag *diag);
/* For people, on one line: kinds, counts, types and dims. */
void lth_value_print(const struct lathe_value *value, struct lth_buf *out);

#endif
