/* What the fuzz targets of the importers and of text IR check of a graph they got: it prints, the text parses, and
 * prints the same; inference of it ends with a code. */
#ifndef LTH_TESTS_FUZZ_GRAPH_H
#define LTH_TESTS_FUZZ_GRAPH_H

#include "compiler/ops/op.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { FUZZ_ARENA_BYTES = 64 << 20 };

static void fuzz_round_trip(const struct lth_graph *graph)
{
	struct lth_arena *arena = lth_arena_create(FUZZ_ARENA_BYTES);
	struct lth_buf first = {0}, second = {0};
	struct lth_graph *again = NULL;
	struct lth_diag diag = {.code = LTH_OK};
	assert(arena);
	lth_graph_print(graph, false, &first);
	if (lth_buf_ok(&first)) {
		enum lth_code code = lth_graph_parse(first.data, first.size, arena, &again, &diag);
		if (code == LTH_OK) {
			lth_graph_print(again, false, &second);
			assert(!lth_buf_ok(&second) || strcmp(first.data, second.data) == 0);
		} else {
			assert(code == LTH_OUT_OF_MEMORY);
		}
	}
	lth_buf_free(&first);
	lth_buf_free(&second);
	lth_arena_destroy(&arena);
}

static void fuzz_graph(struct lth_graph *graph)
{
	struct lth_diag diag = {.code = LTH_OK};
	fuzz_round_trip(graph);
	if (lth_infer_graph(graph, &diag) != LTH_OK)
		return;
	struct lth_diag verified = {.code = LTH_OK};
	enum lth_code code = lth_graph_verify(graph, &verified);
	assert(code == LTH_OK || code == LTH_OUT_OF_MEMORY);
	fuzz_round_trip(graph);
}

#endif
