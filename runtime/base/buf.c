/* Growing byte buffer. See buf.h. */
#include "runtime/base/buf.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void lth_buf_free(struct lth_buf *buf)
{
	free(buf->data);
	*buf = (struct lth_buf){0};
}

static bool reserve(struct lth_buf *buf, size_t more)
{
	if (buf->failed)
		return false;
	if (more < buf->capacity - buf->size)
		return true; /* strictly less: one byte stays for the NUL */
	if (more > SIZE_MAX / 2 - buf->size - 1) {
		buf->failed = true;
		return false;
	}
	size_t need = buf->size + more + 1, wanted = buf->capacity * 2;
	wanted = wanted < 64 ? 64 : wanted;
	wanted = wanted < need ? need : wanted;
	char *data = realloc(buf->data, wanted);
	if (!data) {
		buf->failed = true;
		return false;
	}
	buf->data = data;
	buf->capacity = wanted;
	return true;
}

void lth_buf_append(struct lth_buf *buf, const void *bytes, size_t size)
{
	if (!reserve(buf, size))
		return;
	if (size)
		memcpy(buf->data + buf->size, bytes, size);
	buf->size += size;
	buf->data[buf->size] = 0;
}

void lth_buf_puts(struct lth_buf *buf, const char *text)
{
	lth_buf_append(buf, text, strlen(text));
}

void lth_buf_putc(struct lth_buf *buf, char c)
{
	lth_buf_append(buf, &c, 1);
}

void lth_buf_int(struct lth_buf *buf, int64_t value)
{
	char text[24], *at = text + sizeof(text);
	uint64_t rest = value < 0 ? -(uint64_t)value : (uint64_t)value;
	do
		*--at = (char)('0' + rest % 10);
	while (rest /= 10);
	if (value < 0)
		*--at = '-';
	lth_buf_append(buf, at, (size_t)(text + sizeof(text) - at));
}

/* Most texts fit what is there already. */
void lth_buf_printf(struct lth_buf *buf, const char *format, ...)
{
	va_list args, again;
	va_start(args, format);
	va_copy(again, args);
	size_t room = buf->failed ? 0 : buf->capacity - buf->size;
	int length = vsnprintf(room ? buf->data + buf->size : NULL, room, format, args);
	if (length >= 0 && (size_t)length < room) {
		buf->size += (size_t)length;
	} else if (length >= 0 && reserve(buf, (size_t)length)) {
		vsnprintf(buf->data + buf->size, (size_t)length + 1, format, again);
		buf->size += (size_t)length;
	}
	va_end(again);
	va_end(args);
}

void lth_buf_u8(struct lth_buf *buf, uint8_t value)
{
	lth_buf_append(buf, &value, 1);
}

void lth_buf_u32(struct lth_buf *buf, uint32_t value)
{
	unsigned char bytes[4];
	for (int i = 0; i < 4; i++)
		bytes[i] = (unsigned char)(value >> (8 * i));
	lth_buf_append(buf, bytes, sizeof(bytes));
}

void lth_buf_u64(struct lth_buf *buf, uint64_t value)
{
	unsigned char bytes[8];
	for (int i = 0; i < 8; i++)
		bytes[i] = (unsigned char)(value >> (8 * i));
	lth_buf_append(buf, bytes, sizeof(bytes));
}

void lth_buf_quote(struct lth_buf *buf, const char *text)
{
	lth_buf_putc(buf, '"');
	for (const unsigned char *c = (const unsigned char *)text; *c; c++) {
		if (*c == '"' || *c == '\\')
			lth_buf_printf(buf, "\\%c", *c);
		else if (*c == '\n')
			lth_buf_puts(buf, "\\n");
		else if (*c == '\t')
			lth_buf_puts(buf, "\\t");
		else if (*c < 0x20)
			lth_buf_printf(buf, "\\u%04x", *c);
		else
			lth_buf_putc(buf, (char)*c);
	}
	lth_buf_putc(buf, '"');
}

void lth_buf_double(struct lth_buf *buf, double value)
{
	if (isnan(value) || isinf(value)) {
		lth_buf_puts(buf, isnan(value) ? "nan" : value > 0 ? "inf" : "-inf");
		return;
	}
	if (value == trunc(value) && fabs(value) < 1e15 && !(value == 0 && signbit(value))) {
		lth_buf_int(buf, (int64_t)value);
		return;
	}
	char text[40];
	for (int digits = 15; digits <= 17; digits++) {
		snprintf(text, sizeof(text), "%.*g", digits, value);
		if (strtod(text, NULL) == value)
			break;
	}
	lth_buf_puts(buf, text);
}

bool lth_buf_ok(const struct lth_buf *buf)
{
	return !buf->failed;
}

const char *lth_buf_text(const struct lth_buf *buf)
{
	return buf->failed || !buf->data ? "" : buf->data;
}
