/* Tensors in the caller's hands: memory and files. See host.h. */
#include "runtime/tensor/host.h"
#include "runtime/base/checked.h"
#include "runtime/base/io.h"

#include <stdlib.h>
#include <string.h>

void lth_host_tensor_free(struct lth_host_tensor *tensor)
{
	free(tensor->name);
	free(tensor->data);
	*tensor = (struct lth_host_tensor){0};
}

bool lth_host_count(uint32_t rank, const int64_t *dims, int64_t *out_count)
{
	int64_t count = 1;
	bool empty = false;
	for (uint32_t axis = 0; axis < rank; axis++) {
		if (dims[axis] < 0)
			return false;
		empty = empty || dims[axis] == 0;
	}
	for (uint32_t axis = 0; axis < rank && !empty; axis++)
		if (!lth_mul_i64(count, dims[axis], &count))
			return false;
	*out_count = empty ? 0 : count;
	return true;
}

enum lth_code lth_host_read_file(const char *path, struct lth_host_tensor *out_tensor, struct lth_diag *diag)
{
	char *bytes;
	size_t size;
	enum lth_code code = lth_read_file(path, 0, &bytes, &size, diag);
	if (code != LTH_OK)
		return code;
	if (size >= 6 && memcmp(bytes, "\x93NUMPY", 6) == 0)
		code = lth_npy_read(bytes, size, out_tensor, diag);
	else
		code = lth_pb_read(bytes, size, out_tensor, diag);
	if (code != LTH_OK)
		lth_diag_within(diag, "%s", path);
	free(bytes);
	return code;
}

enum lth_code lth_host_write_file(const char *path, const struct lth_host_tensor *tensor, struct lth_diag *diag)
{
	struct lth_buf out = {0};
	size_t length = strlen(path);
	bool npy = length > 4 && strcmp(path + length - 4, ".npy") == 0;
	enum lth_code code = npy ? lth_npy_write(tensor, &out, diag) : lth_pb_write(tensor, &out, diag);
	if (code == LTH_OK && !lth_buf_ok(&out))
		code = lth_diag_fail(diag, LTH_OUT_OF_MEMORY, path, NULL, NULL, "%lld bytes to write",
				     (long long)tensor->bytes);
	if (code == LTH_OK)
		code = lth_write_file(path, out.data ? out.data : "", out.size, false, diag);
	else
		lth_diag_within(diag, "%s", path);
	lth_buf_free(&out);
	return code;
}
