/* What the fuzz targets of the importers share: a model that imports passes fuzz_graph.h's checks. */
#ifndef LTH_TESTS_FUZZ_IMPORT_H
#define LTH_TESTS_FUZZ_IMPORT_H

#include "compiler/import/import.h"
#include "tests/fuzz/fuzz_graph.h"

typedef enum lth_code (*fuzz_import_fn)(const void *, size_t, const struct lth_compile_file *, size_t,
					const struct lth_import_options *, struct lth_arena *, struct lth_graph **,
					struct lth_diag *);

static void fuzz_import(fuzz_import_fn import, const uint8_t *data, size_t size)
{
	const struct lth_compile_file file = {"w.bin", "0123456789abcdef", 16};
	struct lth_arena *arena = lth_arena_create(FUZZ_ARENA_BYTES);
	struct lth_graph *graph = NULL;
	struct lth_diag diag = {.code = LTH_OK};
	assert(arena);
	if (import(data, size, &file, 1, NULL, arena, &graph, &diag) == LTH_OK)
		fuzz_graph(graph);
	lth_arena_destroy(&arena);
}

#endif
