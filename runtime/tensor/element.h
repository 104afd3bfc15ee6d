/* Elements of host tensors as numbers and text. Pure functions. */
#ifndef LTH_TENSOR_ELEMENT_H
#define LTH_TENSOR_ELEMENT_H

#include "runtime/tensor/host.h"

/* Element `index` of a tensor of any float, integer or bool type; sub-byte types are packed, low half first. Values of
 * 64-bit integers beyond 2^53 are rounded: compare those as bytes. Complex numbers have 2 * count elements. */
double lth_host_element(const struct lth_host_tensor *tensor, int64_t index);
/* The same for text: exact, strings in quotes. */
void lth_host_element_print(const struct lth_host_tensor *tensor, int64_t index, struct lth_buf *out);
/* "dtype":...,"dims":[...],"values":[...]: numbers where JSON has them, else strings (NaN, infinities, complex numbers). */
void lth_host_json_members(const struct lth_host_tensor *tensor, struct lth_buf *out);

#endif
