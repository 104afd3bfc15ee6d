/* Any bytes as a value of a type, whose text is the first line: a bad type or value is refused; a good one is written
 * and read again as itself. */
#include "runtime/exe/value.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const uint8_t *line = memchr(data, '\n', size);
	struct lth_value_type type, again;
	struct lathe_value value, copy;
	struct lth_diag diag = {0};
	struct lth_buf text = {0}, first = {0}, second = {0};
	if (!line)
		return 0;
	lth_buf_append(&text, data, (size_t)(line - data));
	bool known = lth_value_type_parse(lth_buf_text(&text), &type);
	lth_buf_free(&text);
	if (!known)
		return 0;
	lth_value_type_print(&type, &text);
	if (!lth_value_type_parse(lth_buf_text(&text), &again))
		abort();
	lth_buf_free(&text);
	if (lth_value_read(line + 1, size - (size_t)(line + 1 - data), &type, &value, &diag) != LTH_OK)
		return 0;
	if (lth_value_write(&value, &type, NULL, &first, &diag) != LTH_OK ||
	    lth_value_read(first.data, first.size, &type, &copy, &diag) != LTH_OK ||
	    lth_value_write(&copy, &type, NULL, &second, &diag) != LTH_OK || first.size != second.size ||
	    (first.size && memcmp(first.data, second.data, first.size) != 0))
		abort();
	lth_buf_free(&first);
	lth_buf_free(&second);
	lth_value_free(&value);
	lth_value_free(&copy);
	return 0;
}
