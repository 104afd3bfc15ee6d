/* A static library with one member, in the System V form: an index of symbols, then the member. No dates, owners or
 * modes, so that equal objects give equal archives. See elf_write.h. */
#include "compiler/emit/elf_write.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MEMBER_HEADER = 60 };

static void add_header(struct lth_buf *out, const char *name, size_t size)
{
	char text[MEMBER_HEADER + 16];
	snprintf(text, sizeof(text), "%-16s%-12d%-6d%-6d%-8s%-10zu`\n", name, 0, 0, 0, "644", size);
	lth_buf_append(out, text, MEMBER_HEADER);
}

static void add_big_endian(struct lth_buf *out, uint32_t value)
{
	for (int shift = 24; shift >= 0; shift -= 8)
		lth_buf_u8(out, (uint8_t)(value >> shift));
}

enum lth_code lth_archive_write(const char *member, const char *symbol, const void *data, size_t size, void **out_data,
				size_t *out_size, struct lth_diag *diag)
{
	struct lth_buf out = {0};
	char name[17];
	size_t index = (8 + strlen(symbol) + 1 + 1) & ~(size_t)1;
	if (size > 9999999999u) /* ten digits */
		return lth_diag_fail(diag, LTH_UNSUPPORTED, "archive", "an object of less than 10^10 bytes", NULL, "%zu bytes",
				     size);
	lth_buf_puts(&out, "!<arch>\n");
	add_header(&out, "/", index);
	add_big_endian(&out, 1);
	add_big_endian(&out, (uint32_t)(8 + MEMBER_HEADER + index));
	lth_buf_append(&out, symbol, strlen(symbol) + 1);
	if (out.size % 2)
		lth_buf_putc(&out, 0);
	snprintf(name, sizeof(name), "%s/", member);
	add_header(&out, name, size);
	lth_buf_append(&out, data, size);
	if (size % 2)
		lth_buf_putc(&out, '\n');
	if (!lth_buf_ok(&out)) {
		lth_buf_free(&out);
		return lth_diag_fail(diag, LTH_OUT_OF_MEMORY, "archive", NULL, NULL, "no memory for %zu bytes", size);
	}
	*out_data = out.data;
	*out_size = out.size;
	return LTH_OK;
}
