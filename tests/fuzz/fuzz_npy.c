/* Fuzz target: any bytes as a .npy file. */
#include "tests/fuzz/fuzz_tensor.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	fuzz_tensor(lth_npy_read, lth_npy_write, data, size);
	return 0;
}
