/* Fuzz target of the ONNX importer. */
#include "tests/fuzz/fuzz_import.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	fuzz_import(lth_import_onnx, data, size);
	return 0;
}
