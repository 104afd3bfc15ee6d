/* Any bytes as a TensorProto: refused, or a tensor that is written and read again as itself. */
#include "runtime/tensor/host.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct lth_host_tensor first = {0}, second = {0};
	struct lth_diag diag = {0};
	struct lth_buf bytes = {0};
	if (lth_pb_read(data, size, &first, &diag) != LTH_OK)
		return 0;
	if (lth_pb_write(&first, &bytes, &diag) != LTH_OK ||
	    lth_pb_read(bytes.data, bytes.size, &second, &diag) != LTH_OK || first.bytes != second.bytes)
		abort();
	if (first.dtype != LTH_DTYPE_STRING && memcmp(first.data, second.data, (size_t)first.bytes) != 0)
		abort();
	lth_buf_free(&bytes);
	lth_host_tensor_free(&first);
	lth_host_tensor_free(&second);
	return 0;
}
