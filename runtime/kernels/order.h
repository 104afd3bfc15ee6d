/* Order of elements, for sorting kernels. Numbers become 64-bit keys that compare as unsigned integers: negative zero
 * equals zero, all NaNs are equal and above infinity. Strings compare byte by byte. */
#ifndef LTH_KERNELS_ORDER_H
#define LTH_KERNELS_ORDER_H

#include "runtime/kernels/builtin.h"

struct lth_keyed {
	uint64_t key;
	int64_t index;
};

/* Whether a type has keys: every number of 8 bits or more and bool; not strings and complex numbers. */
bool lth_has_key(enum lth_dtype dtype);
uint64_t lth_key(const void *element, enum lth_dtype dtype);
/* Less than, equal to, greater than 0. For types with keys and strings. */
int lth_compare(const void *a, const void *b, enum lth_dtype dtype);
/* Sorts by key, then index; `scratch` holds as many. */
void lth_sort_keyed(struct lth_keyed *items, struct lth_keyed *scratch, int64_t count);
/* Whether a number is zero (negative zero is). A string: whether it is empty. */
bool lth_is_zero(const void *element, enum lth_dtype dtype);

#endif
