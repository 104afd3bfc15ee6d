/* What the fuzz targets of tensor files share: any bytes are refused, or are a tensor that is written and read again as
 * itself. */
#ifndef LTH_TESTS_FUZZ_TENSOR_H
#define LTH_TESTS_FUZZ_TENSOR_H

#include "runtime/tensor/host.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef enum lth_code (*fuzz_tensor_read_fn)(const void *, size_t, struct lth_host_tensor *, struct lth_diag *);
typedef enum lth_code (*fuzz_tensor_write_fn)(const struct lth_host_tensor *, struct lth_buf *, struct lth_diag *);

static void fuzz_tensor(fuzz_tensor_read_fn read, fuzz_tensor_write_fn write, const uint8_t *data, size_t size)
{
	struct lth_host_tensor first = {0}, second = {0};
	struct lth_diag diag = {0};
	struct lth_buf bytes = {0};
	if (read(data, size, &first, &diag) != LTH_OK)
		return;
	if (write(&first, &bytes, &diag) != LTH_OK || read(bytes.data, bytes.size, &second, &diag) != LTH_OK ||
	    first.bytes != second.bytes)
		abort();
	if (first.dtype != LTH_DTYPE_STRING && memcmp(first.data, second.data, (size_t)first.bytes) != 0)
		abort();
	lth_buf_free(&bytes);
	lth_host_tensor_free(&first);
	lth_host_tensor_free(&second);
}

#endif
