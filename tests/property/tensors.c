/* Tensor files for tests: makes random and written ones, and compares two. The comparison is written anew here, so that it shares no
 * code with the one of lathe suite.
 *
 *	tensors text FILE TYPE VALUE...                  TYPE is like f32[2,3]; strings: one word each, '' for none
 *	tensors random SEED LOW HIGH FILE DIM...         f32, uniform; the kind of file by its name
 *	tensors compare GOT EXPECTED [RTOL [ATOL]]       exit 1 and a line when they differ; f32 by tolerance, all else exact
 */
#include "runtime/base/hash.h"
#include "runtime/tensor/host.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int complain(const struct lth_diag *diag)
{
	char line[1024];
	fprintf(stderr, "tensors: %s\n", lth_diag_line(diag, line, sizeof(line)));
	return 2;
}

static int make_random(int argc, char **argv)
{
	uint64_t state = strtoull(argv[0], NULL, 10) * 0x9e3779b97f4a7c15u + 1;
	double low = strtod(argv[1], NULL), high = strtod(argv[2], NULL);
	struct lth_host_tensor tensor = {.dtype = LTH_DTYPE_F32, .rank = (uint32_t)(argc - 4)};
	struct lth_diag diag = {0};
	int64_t count;
	for (uint32_t axis = 0; axis < tensor.rank; axis++)
		tensor.dims[axis] = strtoll(argv[4 + axis], NULL, 10);
	if (!lth_host_count(tensor.rank, tensor.dims, &count) || count > 1 << 26)
		return fprintf(stderr, "tensors: too large\n"), 2;
	tensor.bytes = count * (int64_t)sizeof(float);
	float *values = calloc((size_t)count + 1, sizeof(*values));
	if (!values)
		return 2;
	for (int64_t i = 0; i < count; i++) { /* xorshift64 */
		state ^= state << 13;
		state ^= state >> 7;
		state ^= state << 17;
		values[i] = (float)(low + (high - low) * (double)(state >> 11) / 9007199254740992.0);
	}
	tensor.data = values;
	enum lth_code code = lth_host_write_file(argv[3], &tensor, &diag);
	lth_host_tensor_free(&tensor);
	return code == LTH_OK ? 0 : complain(&diag);
}

/* One element at its place in `data`. */
static bool put_element(struct lth_host_tensor *tensor, int64_t i, char *word)
{
	unsigned bits = lth_dtype_bits(tensor->dtype);
	char *end = word, *at = (char *)tensor->data + i * (int64_t)bits / 8;
	double real = strtod(word, &end);
	float single = (float)real;
	int64_t integer;
	switch (lth_dtype_class(tensor->dtype)) {
	case LTH_CLASS_STRING:
		((struct lth_string *)tensor->data)[i] = (struct lth_string){word, strcmp(word, "''") ? strlen(word) : 0};
		return true;
	case LTH_CLASS_COMPLEX: /* real and imaginary part, a comma between */
		if (bits != 64 || *end != ',')
			return false;
		memcpy(at, &single, sizeof(single));
		single = strtof(end + 1, &end);
		memcpy(at + sizeof(single), &single, sizeof(single));
		return !*end;
	case LTH_CLASS_FLOAT:
		if (bits != 32 && bits != 64)
			return false;
		memcpy(at, bits == 64 ? (void *)&real : (void *)&single, bits / 8);
		return !*end;
	default:
		integer = strtoll(word, &end, 10);
		if (tensor->dtype == LTH_DTYPE_U64)
			integer = (int64_t)strtoull(word, &end, 10);
		memcpy(at, &integer, bits / 8); /* little-endian: the low bytes are the narrower number */
		return bits >= 8 && !*end;
	}
}

/* Type and shape as "f32[2,3]"; false when it is none. */
static bool read_type(const char *text, struct lth_host_tensor *tensor)
{
	size_t length = strcspn(text, "[");
	int dtype = 0;
	while (dtype < LTH_NUM_DTYPES && (strlen(lth_dtype_text((enum lth_dtype)dtype)) != length ||
					  memcmp(text, lth_dtype_text((enum lth_dtype)dtype), length) != 0))
		dtype++;
	if (dtype == LTH_NUM_DTYPES || text[length] != '[')
		return false;
	tensor->dtype = (enum lth_dtype)dtype;
	for (const char *at = text + length + 1; *at && *at != ']' && tensor->rank < LTH_HOST_MAX_RANK;) {
		char *end;
		tensor->dims[tensor->rank++] = strtoll(at, &end, 10);
		if (end == at)
			return false;
		at = *end == ',' ? end + 1 : end;
	}
	return true;
}

static int make_written(int argc, char **argv)
{
	struct lth_host_tensor tensor = {0};
	struct lth_diag diag = {0};
	int64_t count;
	if (!read_type(argv[1], &tensor) || !lth_host_count(tensor.rank, tensor.dims, &count) || count != argc - 2)
		return fprintf(stderr, "tensors: %s with %d values\n", argv[1], argc - 2), 2;
	tensor.bytes = count * (int64_t)lth_dtype_bits(tensor.dtype) / 8;
	tensor.data = calloc((size_t)tensor.bytes + 1, 1);
	if (!tensor.data)
		return 2;
	for (int64_t i = 0; i < count; i++)
		if (!put_element(&tensor, i, argv[i + 2]))
			return fprintf(stderr, "tensors: value '%s' of %s\n", argv[i + 2], argv[1]), 2;
	enum lth_code code = lth_host_write_file(argv[0], &tensor, &diag);
	lth_host_tensor_free(&tensor);
	return code == LTH_OK ? 0 : complain(&diag);
}

static bool same_shape(const struct lth_host_tensor *a, const struct lth_host_tensor *b)
{
	return a->dtype == b->dtype && a->rank == b->rank && a->bytes == b->bytes &&
	       memcmp(a->dims, b->dims, a->rank * sizeof(a->dims[0])) == 0;
}

static int compare_floats(const float *got, const float *expected, int64_t count, double rtol, double atol)
{
	int64_t wrong = 0, first = 0;
	for (int64_t i = 0; i < count; i++) {
		bool right = got[i] == expected[i] || (isnan(got[i]) && isnan(expected[i])) ||
			     fabs((double)got[i] - (double)expected[i]) <= atol + rtol * fabs((double)expected[i]);
		if (!right && wrong++ == 0)
			first = i;
	}
	if (wrong)
		printf("%lld of %lld values differ, the first at %lld: %.9g instead of %.9g\n", (long long)wrong,
		       (long long)count, (long long)first, (double)got[first], (double)expected[first]);
	return wrong != 0;
}

static int compare_strings(const struct lth_string *got, const struct lth_string *expected, int64_t count)
{
	for (int64_t i = 0; i < count; i++)
		if (got[i].size != expected[i].size || memcmp(got[i].data, expected[i].data, got[i].size) != 0)
			return printf("'%.*s' instead of '%.*s' at %lld\n", (int)got[i].size, got[i].data,
				      (int)expected[i].size, expected[i].data, (long long)i),
			       1;
	return 0;
}

static int compare(int argc, char **argv)
{
	struct lth_host_tensor got, expected;
	struct lth_diag diag = {0};
	double rtol = argc > 2 ? strtod(argv[2], NULL) : 0, atol = argc > 3 ? strtod(argv[3], NULL) : 0;
	if (lth_host_read_file(argv[0], &got, &diag) != LTH_OK)
		return complain(&diag);
	if (lth_host_read_file(argv[1], &expected, &diag) != LTH_OK) {
		lth_host_tensor_free(&got);
		return complain(&diag);
	}
	int status = 1;
	if (!same_shape(&got, &expected))
		printf("other types or shapes\n");
	else if (got.dtype == LTH_DTYPE_F32)
		status = compare_floats(got.data, expected.data, got.bytes / (int64_t)sizeof(float), rtol, atol);
	else if (got.dtype == LTH_DTYPE_STRING)
		status = compare_strings(got.data, expected.data, got.bytes / (int64_t)sizeof(struct lth_string));
	else if ((status = memcmp(got.data, expected.data, (size_t)got.bytes) != 0))
		printf("the bytes differ\n");
	lth_host_tensor_free(&got);
	lth_host_tensor_free(&expected);
	return status;
}

int main(int argc, char **argv)
{
	if (argc >= 6 && argc - 6 <= LTH_HOST_MAX_RANK && strcmp(argv[1], "random") == 0)
		return make_random(argc - 2, argv + 2);
	if (argc >= 4 && strcmp(argv[1], "text") == 0)
		return make_written(argc - 2, argv + 2);
	if (argc >= 4 && argc <= 6 && strcmp(argv[1], "compare") == 0)
		return compare(argc - 2, argv + 2);
	fprintf(stderr, "usage: tensors text FILE TYPE VALUE... | tensors random SEED LOW HIGH FILE DIM... | "
			"tensors compare GOT EXPECTED [RTOL [ATOL]]\n");
	return 2;
}
