/* Fuzz target of the JSON importer. */
#include "compiler/import/import.h"
#include "tests/fuzz/fuzz_graph.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct lth_compile_file file = {"w.bin", "0123456789abcdef", 16};
	struct lth_arena *arena = lth_arena_create(FUZZ_ARENA_BYTES);
	struct lth_graph *graph = NULL;
	struct lth_diag diag = {.code = LTH_OK};
	assert(arena);
	if (lth_import_json(data, size, &file, 1, NULL, arena, &graph, &diag) == LTH_OK)
		fuzz_graph(graph);
	lth_arena_destroy(&arena);
	return 0;
}
