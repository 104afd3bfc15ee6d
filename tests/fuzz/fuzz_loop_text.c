/* Fuzz target of loop IR's text: what parses verifies, prints, parses again to the same text, and its expansion verifies. */
#include "compiler/lower/expand.h"
#include "compiler/lower/loop.h"

#include <assert.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void round_trip(const struct lth_loop_fn *fn, struct lth_arena *arena)
{
	struct lth_buf first = {0}, second = {0};
	struct lth_loop_fn *again;
	struct lth_diag diag = {0};
	lth_loop_print(fn, &first);
	enum lth_code code = lth_loop_parse(lth_buf_text(&first), first.size, arena, &again, &diag);
	if (lth_arena_ok(arena) && lth_buf_ok(&first)) {
		assert(code == LTH_OK);
		lth_loop_print(again, &second);
		assert(strcmp(lth_buf_text(&first), lth_buf_text(&second)) == 0);
	}
	lth_buf_free(&first);
	lth_buf_free(&second);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct lth_arena *arena = lth_arena_create(256 << 20);
	struct lth_loop_fn *fn;
	struct lth_diag diag = {0};
	if (lth_loop_parse((const char *)data, size, arena, &fn, &diag) == LTH_OK) {
		round_trip(fn, arena);
		const struct lth_loop_fn *wide =
			lth_loop_expand(fn, LTH_EXPAND_MATH | LTH_EXPAND_NARROW | LTH_EXPAND_F16, arena);
		if (wide) {
			enum lth_code code = lth_loop_verify(wide, &diag);
			assert(code == LTH_OK || !lth_arena_ok(arena));
		}
	}
	lth_arena_destroy(&arena);
	return 0;
}
