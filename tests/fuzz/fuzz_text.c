/* Fuzz target of text IR. */
#include "tests/fuzz/fuzz_graph.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct lth_arena *arena = lth_arena_create(FUZZ_ARENA_BYTES);
	struct lth_graph *graph = NULL;
	struct lth_diag diag = {.code = LTH_OK};
	assert(arena);
	if (lth_graph_parse((const char *)data, size, arena, &graph, &diag) == LTH_OK)
		fuzz_graph(graph);
	lth_arena_destroy(&arena);
	return 0;
}
