/* Comparing tensors by tolerance. See verify.h. */
#include "api/cli/verify.h"
#include "runtime/tensor/element.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Tolerances by type; types that are not listed are exact. */
static const struct {
	enum lth_dtype dtype;
	double rtol, atol;
} by_type[] = {
	{LTH_DTYPE_F32, 1e-3, 1e-5},   {LTH_DTYPE_C64, 1e-3, 1e-5}, {LTH_DTYPE_F64, 1e-7, 1e-10},
	{LTH_DTYPE_C128, 1e-7, 1e-10}, {LTH_DTYPE_F16, 1e-2, 1e-3}, {LTH_DTYPE_BF16, 1e-2, 1e-3},
};

struct limits {
	double rtol, atol;
};

static void print_type(const struct lth_host_tensor *t, char *out, size_t size)
{
	size_t used = (size_t)snprintf(out, size, "%s[", lth_dtype_text(t->dtype));
	for (uint32_t axis = 0; axis < t->rank && used < size; axis++)
		used += (size_t)snprintf(out + used, size - used, "%s%lld", axis ? "," : "", (long long)t->dims[axis]);
	if (used < size)
		snprintf(out + used, size - used, "]");
}

static bool same_type(const struct lth_host_tensor *got, const struct lth_host_tensor *expected, char *reason,
		      size_t size)
{
	char left[160], right[160];
	if (got->dtype == expected->dtype && got->rank == expected->rank &&
	    memcmp(got->dims, expected->dims, got->rank * sizeof(got->dims[0])) == 0)
		return true;
	print_type(got, left, sizeof(left));
	print_type(expected, right, sizeof(right));
	snprintf(reason, size, "%s instead of %s", left, right);
	return false;
}

static struct limits limits_of(const struct lth_host_tensor *expected, int64_t count,
			       const struct lth_cli_tolerance *tolerance)
{
	struct limits limits = {0, tolerance->step ? 1 : 0};
	double largest = 1;
	for (size_t i = 0; i < sizeof(by_type) / sizeof(by_type[0]); i++)
		if (by_type[i].dtype == expected->dtype) {
			limits = (struct limits){by_type[i].rtol, by_type[i].atol};
			limits.rtol = tolerance->rtol >= 0 ? tolerance->rtol : limits.rtol;
			limits.atol = tolerance->atol >= 0 ? tolerance->atol : limits.atol;
		}
	for (int64_t i = 0; tolerance->scaled && i < count; i++) {
		double magnitude = fabs(lth_host_element(expected, i));
		largest = magnitude > largest && magnitude <= 1.7e308 ? magnitude : largest;
	}
	limits.atol *= tolerance->scaled && lth_dtype_class(expected->dtype) == LTH_CLASS_FLOAT ? largest : 1;
	return limits;
}

static bool right_string(const struct lth_host_tensor *got, const struct lth_host_tensor *expected, int64_t i)
{
	const struct lth_string *a = (const struct lth_string *)got->data + i;
	const struct lth_string *b = (const struct lth_string *)expected->data + i;
	return a->size == b->size && (a->size == 0 || memcmp(a->data, b->data, a->size) == 0);
}

/* 64-bit integers do not fit a double. */
static bool right_wide(const struct lth_host_tensor *got, const struct lth_host_tensor *expected, int64_t i, bool step)
{
	uint64_t a = ((const uint64_t *)got->data)[i], b = ((const uint64_t *)expected->data)[i];
	return a == b || (step && (a - b == 1 || b - a == 1));
}

static bool right_number(double got, double expected, struct limits limits, bool kept)
{
	if (got == expected || (got != got && expected != expected))
		return true;
	if (kept && (got == 0 || expected == 0))
		return true;
	return isfinite(got) && isfinite(expected) &&
	       fabs(got - expected) <= limits.atol + limits.rtol * fabs(expected);
}

static bool right(const struct lth_host_tensor *got, const struct lth_host_tensor *expected, int64_t i,
		  struct limits limits, const struct lth_cli_tolerance *tolerance)
{
	switch (expected->dtype) {
	case LTH_DTYPE_STRING:
		return right_string(got, expected, i);
	case LTH_DTYPE_I64:
	case LTH_DTYPE_U64:
		return right_wide(got, expected, i, tolerance->step);
	default:
		return right_number(lth_host_element(got, i), lth_host_element(expected, i), limits, tolerance->kept);
	}
}

static void describe(const struct lth_host_tensor *got, const struct lth_host_tensor *expected, int64_t first,
		     int64_t wrong, int64_t count, char *reason, size_t size)
{
	struct lth_buf left = {0}, right_text = {0};
	bool is_complex = lth_dtype_class(got->dtype) == LTH_CLASS_COMPLEX;
	lth_host_element_print(got, is_complex ? first / 2 : first, &left);
	lth_host_element_print(expected, is_complex ? first / 2 : first, &right_text);
	snprintf(reason, size, "%lld of %lld values off; [%lld] is %.40s instead of %.40s", (long long)wrong,
		 (long long)count, (long long)first, lth_buf_text(&left), lth_buf_text(&right_text));
	lth_buf_free(&left);
	lth_buf_free(&right_text);
}

static bool is_number(enum lth_dtype dtype)
{
	enum lth_dtype_class class = lth_dtype_class(dtype);
	return class != LTH_CLASS_STRING && class != LTH_CLASS_COMPLEX;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return x < y ? -1 : x > y;
}

/* The elements in ascending order; NULL when out of memory or one of them is no number. */
static double *sorted_elements(const struct lth_host_tensor *tensor, int64_t count)
{
	double *list = calloc((size_t)count + 1, sizeof(*list));
	for (int64_t i = 0; list && i < count; i++) {
		list[i] = lth_host_element(tensor, i);
		if (list[i] != list[i]) {
			free(list);
			return NULL;
		}
	}
	if (list)
		qsort(list, (size_t)count, sizeof(*list), by_value);
	return list;
}

/* The greatest difference of the shares of two sorted lists up to any value. */
static double greatest_gap(const double *a, const double *b, int64_t count)
{
	double gap = 0;
	for (int64_t i = 0, k = 0; i < count && k < count;) {
		double value = a[i] < b[k] ? a[i] : b[k];
		while (i < count && a[i] <= value)
			i++;
		while (k < count && b[k] <= value)
			k++;
		double here = fabs((double)(i - k)) / (double)count;
		gap = here > gap ? here : gap;
	}
	return gap;
}

/* Whether two samples may be of one distribution, by the test of Kolmogorov and Smirnov: range, mean and spread agree
 * as far as their size tells. The bound is one that chance exceeds once in 100,000 times. */
static bool same_distribution(const struct lth_host_tensor *got, const struct lth_host_tensor *expected, int64_t count,
			      char *reason, size_t size)
{
	double *left = sorted_elements(got, count), *right_list = sorted_elements(expected, count);
	double gap = left && right_list ? greatest_gap(left, right_list, count) : 2;
	double bound = count ? 2.5 * sqrt(2.0 / (double)count) : 1;
	free(left);
	free(right_list);
	if (gap <= bound)
		return true;
	snprintf(reason, size, "another distribution: %.3f of the values lie elsewhere, at most %.3f by chance", gap,
		 bound);
	return false;
}

bool lth_cli_verify(const struct lth_host_tensor *got, const struct lth_host_tensor *expected,
		    const struct lth_cli_tolerance *tolerance, char *reason, size_t size)
{
	int64_t count, wrong = 0, first = 0;
	if (!same_type(got, expected, reason, size))
		return false;
	if (!lth_host_count(expected->rank, expected->dims, &count))
		return true;
	if (tolerance->random && is_number(expected->dtype))
		return same_distribution(got, expected, count, reason, size);
	if (lth_dtype_class(expected->dtype) == LTH_CLASS_COMPLEX)
		count *= 2;
	if (tolerance->kept && expected->dtype == LTH_DTYPE_BOOL)
		return true; /* the random mask itself */
	struct limits limits = limits_of(expected, count, tolerance);
	for (int64_t i = 0; i < count; i++)
		if (!right(got, expected, i, limits, tolerance) && wrong++ == 0)
			first = i;
	if ((double)wrong <= tolerance->mismatch * (double)count)
		return true;
	describe(got, expected, first, wrong, count, reason, size);
	return false;
}

/* ---- values of other kinds ---- */

/* Element `at` of a tensor of rank 1, as a scalar. */
static struct lth_host_tensor scalar_of(const struct lathe_tensor *tensor, int64_t at)
{
	struct lth_host_tensor row = lth_tensor_to_host(tensor);
	int64_t width = lth_dtype_bits(row.dtype) / 8;
	return (struct lth_host_tensor){.dtype = row.dtype, .data = (char *)row.data + at * width, .bytes = width};
}

static bool verify_map(const struct lathe_value *got, const struct lathe_value *expected,
		       const struct lth_cli_tolerance *tolerance, char *reason, size_t size)
{
	const struct lth_cli_tolerance exact = {.rtol = 0, .atol = 0};
	int64_t count = expected->elements[0].tensor.dims[0];
	if (got->elements[0].tensor.dims[0] != count) {
		snprintf(reason, size, "a map of %lld instead of %lld", (long long)got->elements[0].tensor.dims[0],
			 (long long)count);
		return false;
	}
	for (int64_t i = 0; i < count; i++) {
		struct lth_host_tensor key = scalar_of(&expected->elements[0].tensor, i);
		int64_t at = 0;
		for (; at < count; at++) {
			struct lth_host_tensor other = scalar_of(&got->elements[0].tensor, at);
			if (lth_cli_verify(&other, &key, &exact, reason, size))
				break;
		}
		if (at == count) {
			snprintf(reason, size, "key %lld is not in the map", (long long)i);
			return false;
		}
		struct lth_host_tensor left = scalar_of(&got->elements[1].tensor, at);
		struct lth_host_tensor right_value = scalar_of(&expected->elements[1].tensor, i);
		if (!lth_cli_verify(&left, &right_value, tolerance, reason, size))
			return false;
	}
	return true;
}

bool lth_cli_verify_value(const struct lathe_value *got, const struct lathe_value *expected,
			  const struct lth_cli_tolerance *tolerance, char *reason, size_t size)
{
	if (got->kind != expected->kind || got->count != expected->count) {
		struct lth_buf left = {0}, right_text = {0};
		lth_value_print(got, &left);
		lth_value_print(expected, &right_text);
		snprintf(reason, size, "%.200s instead of %.200s", lth_buf_text(&left), lth_buf_text(&right_text));
		lth_buf_free(&left);
		lth_buf_free(&right_text);
		return false;
	}
	if (got->kind == LATHE_MAP)
		return verify_map(got, expected, tolerance, reason, size);
	if (got->kind == LATHE_TENSOR) {
		struct lth_host_tensor left = lth_tensor_to_host(&got->tensor);
		struct lth_host_tensor right_tensor = lth_tensor_to_host(&expected->tensor);
		return lth_cli_verify(&left, &right_tensor, tolerance, reason, size);
	}
	for (uint64_t i = 0; i < got->count; i++)
		if (!lth_cli_verify_value(&got->elements[i], &expected->elements[i], tolerance, reason, size)) {
			char inner[400];
			snprintf(inner, sizeof(inner), "%s", reason);
			snprintf(reason, size, "element %llu: %s", (unsigned long long)i, inner);
			return false;
		}
	return true;
}
