/* Fuzz target of the JSON importer. */
#include "tests/fuzz/fuzz_import.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	fuzz_import(lth_import_json, data, size);
	return 0;
}
