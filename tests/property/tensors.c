/* Tensor files for tests: makes random ones and compares two. The comparison is written anew here, so that it shares no
 * code with the one of lathe suite.
 *
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
	if (argc >= 4 && argc <= 6 && strcmp(argv[1], "compare") == 0)
		return compare(argc - 2, argv + 2);
	fprintf(stderr, "usage: tensors random SEED LOW HIGH FILE DIM... | tensors compare GOT EXPECTED [RTOL [ATOL]]\n");
	return 2;
}
