/* A growing byte buffer and string builder on the heap. Failure to grow is sticky: test lth_buf_ok once, at the end.
 * While it is ok the content is NUL-terminated. Thread rule: one thread a buffer. */
#ifndef LTH_BASE_BUF_H
#define LTH_BASE_BUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct lth_buf {
	char *data; /* owned; NULL while empty */
	size_t size, capacity;
	bool failed;
};

void lth_buf_free(struct lth_buf *buf); /* and resets it to empty */
void lth_buf_append(struct lth_buf *buf, const void *bytes, size_t size);
void lth_buf_puts(struct lth_buf *buf, const char *text);
void lth_buf_putc(struct lth_buf *buf, char c);
/* An integer in decimal. */
void lth_buf_int(struct lth_buf *buf, int64_t value);
void lth_buf_printf(struct lth_buf *buf, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Little-endian integers, for the binary formats. */
void lth_buf_u8(struct lth_buf *buf, uint8_t value);
void lth_buf_u32(struct lth_buf *buf, uint32_t value);
void lth_buf_u64(struct lth_buf *buf, uint64_t value);
/* Text in double quotes with JSON's escapes. */
void lth_buf_quote(struct lth_buf *buf, const char *text);
/* A double that reads back as the same double: shortest of %.15g, %.16g, %.17g; nan, inf, -inf as words. */
void lth_buf_double(struct lth_buf *buf, double value);
bool lth_buf_ok(const struct lth_buf *buf);
/* The content as a string that lives as long as the buffer; "" when empty or failed. */
const char *lth_buf_text(const struct lth_buf *buf);

#endif
