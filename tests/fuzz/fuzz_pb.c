/* Fuzz target: any bytes as a TensorProto. */
#include "tests/fuzz/fuzz_tensor.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	fuzz_tensor(lth_pb_read, lth_pb_write, data, size);
	return 0;
}
