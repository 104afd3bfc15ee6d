/* Any text: an error, or a program whose text parses to itself and whose bytes decode to the same text. */
#include "runtime/program/program.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct lth_arena *arena = lth_arena_create(64 << 20);
	struct lth_program *program, *again;
	struct lth_diag diag = {0};
	struct lth_buf first = {0}, second = {0}, bytes = {0};
	if (lth_program_parse((const char *)data, size, arena, &program, &diag) == LTH_OK) {
		lth_program_print(program, &first);
		if (lth_program_parse(first.data, first.size, arena, &again, &diag) != LTH_OK)
			abort();
		lth_program_print(again, &second);
		if (first.size != second.size || memcmp(first.data, second.data, first.size) != 0)
			abort();
		lth_program_encode(program, &bytes);
		if (lth_program_decode(bytes.data, bytes.size, arena, &again, &diag) != LTH_OK)
			abort();
		second.size = 0;
		lth_program_print(again, &second);
		if (first.size != second.size || memcmp(first.data, second.data, first.size) != 0)
			abort();
		enum lth_code ignored = lth_program_verify(program, &diag);
		(void)ignored;
	}
	lth_buf_free(&first);
	lth_buf_free(&second);
	lth_buf_free(&bytes);
	lth_arena_destroy(&arena);
	return 0;
}
