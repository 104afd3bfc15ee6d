/* Order of elements. See order.h. */
#include "runtime/kernels/order.h"
#include "runtime/kernels/small_float.h"

#include <math.h>
#include <string.h>

#define LOAD(type, from) (*(const type *)(from))

static uint64_t key_of_real(double value)
{
	uint64_t bits;
	if (isnan(value))
		return UINT64_MAX;
	value += 0.0; /* negative zero becomes zero */
	memcpy(&bits, &value, sizeof(bits));
	return bits >> 63 ? ~bits : bits | (uint64_t)1 << 63;
}

static uint64_t key_of_int(int64_t value)
{
	return (uint64_t)value ^ (uint64_t)1 << 63;
}

bool lth_has_key(enum lth_dtype dtype)
{
	enum lth_dtype_class class = lth_dtype_class(dtype);
	return lth_dtype_bits(dtype) >= 8 && class != LTH_CLASS_STRING && class != LTH_CLASS_COMPLEX;
}

uint64_t lth_key(const void *element, enum lth_dtype dtype)
{
	switch (dtype) {
	case LTH_DTYPE_F32:
		return key_of_real((double)LOAD(float, element));
	case LTH_DTYPE_F64:
		return key_of_real(LOAD(double, element));
	case LTH_DTYPE_I8:
		return key_of_int(LOAD(int8_t, element));
	case LTH_DTYPE_I16:
		return key_of_int(LOAD(int16_t, element));
	case LTH_DTYPE_I32:
		return key_of_int(LOAD(int32_t, element));
	case LTH_DTYPE_I64:
		return key_of_int(LOAD(int64_t, element));
	case LTH_DTYPE_U8:
	case LTH_DTYPE_BOOL:
		return LOAD(uint8_t, element);
	case LTH_DTYPE_U16:
		return LOAD(uint16_t, element);
	case LTH_DTYPE_U32:
		return LOAD(uint32_t, element);
	case LTH_DTYPE_U64:
		return LOAD(uint64_t, element);
	case LTH_DTYPE_F16:
	case LTH_DTYPE_BF16:
		return key_of_real(lth_small_float(LOAD(uint16_t, element), dtype));
	default:
		return key_of_real(lth_small_float(LOAD(uint8_t, element), dtype));
	}
}

static int compare_strings(const struct lth_string *a, const struct lth_string *b)
{
	size_t common = a->size < b->size ? a->size : b->size;
	int order = common ? memcmp(a->data, b->data, common) : 0;
	return order ? order : a->size < b->size ? -1 : a->size > b->size;
}

int lth_compare(const void *a, const void *b, enum lth_dtype dtype)
{
	if (dtype == LTH_DTYPE_STRING)
		return compare_strings(a, b);
	uint64_t x = lth_key(a, dtype), y = lth_key(b, dtype);
	return x < y ? -1 : x > y;
}

static bool comes_before(const struct lth_keyed *a, const struct lth_keyed *b)
{
	return a->key < b->key || (a->key == b->key && a->index < b->index);
}

/* Merge sort from the bottom up, over runs that insertion sort made. */
void lth_sort_keyed(struct lth_keyed *items, struct lth_keyed *scratch, int64_t count)
{
	enum { RUN = 16 };
	for (int64_t start = 0; start < count; start += RUN) {
		int64_t end = start + RUN < count ? start + RUN : count;
		for (int64_t i = start + 1; i < end; i++) {
			struct lth_keyed item = items[i];
			int64_t k = i;
			for (; k > start && comes_before(&item, &items[k - 1]); k--)
				items[k] = items[k - 1];
			items[k] = item;
		}
	}
	struct lth_keyed *from = items, *to = scratch;
	for (int64_t width = RUN; width < count; width *= 2) {
		for (int64_t start = 0; start < count; start += 2 * width) {
			int64_t middle = start + width < count ? start + width : count;
			int64_t end = start + 2 * width < count ? start + 2 * width : count;
			int64_t left = start, right = middle;
			for (int64_t out = start; out < end; out++) {
				bool take_left = left < middle &&
						 (right >= end || !comes_before(&from[right], &from[left]));
				to[out] = from[take_left ? left++ : right++];
			}
		}
		struct lth_keyed *swap = from;
		from = to;
		to = swap;
	}
	if (from != items)
		memcpy(items, from, (size_t)count * sizeof(*items));
}

bool lth_is_zero(const void *element, enum lth_dtype dtype)
{
	switch (lth_dtype_class(dtype)) {
	case LTH_CLASS_STRING:
		return LOAD(struct lth_string, element).size == 0;
	case LTH_CLASS_COMPLEX:
		return dtype == LTH_DTYPE_C64
			       ? LOAD(float, element) == 0 && ((const float *)element)[1] == 0
			       : LOAD(double, element) == 0 && ((const double *)element)[1] == 0;
	case LTH_CLASS_FLOAT:
		return lth_key(element, dtype) == (uint64_t)1 << 63;
	default:
		for (unsigned i = 0; i < lth_dtype_bits(dtype) / 8; i++)
			if (((const unsigned char *)element)[i])
				return false;
		return true;
	}
}
