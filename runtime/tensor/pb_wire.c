/* The wire format of protobuf, as far as files of tensors and values use it. See pb_wire.h. */
#include "runtime/tensor/pb_wire.h"

#include <stdio.h>

void lth_pb_fail(struct lth_pb_reader *r, enum lth_code code, const char *expected, const char *found)
{
	char place[64];
	snprintf(place, sizeof(place), "%s, byte %zu", r->message, (size_t)(r->at - r->start));
	lth_diag_fail(r->diag, code, place, expected, NULL, "%s", found);
	r->failed = true;
}

uint64_t lth_pb_varint(struct lth_pb_reader *r)
{
	uint64_t value = 0;
	for (unsigned shift = 0; shift < 70; shift += 7) {
		if (r->at == r->end) {
			lth_pb_fail(r, LTH_BAD_INPUT, "more bytes", "the end inside a number");
			return 0;
		}
		unsigned char byte = *r->at++;
		if (shift < 64)
			value |= (uint64_t)(byte & 0x7F) << shift;
		if (byte < 0x80)
			return value;
	}
	lth_pb_fail(r, LTH_BAD_INPUT, "numbers of at most ten bytes", "a longer one");
	return 0;
}

uint64_t lth_pb_fixed(struct lth_pb_reader *r, unsigned bytes)
{
	uint64_t value = 0;
	if ((size_t)(r->end - r->at) < bytes) {
		lth_pb_fail(r, LTH_BAD_INPUT, "more bytes", "the end inside a number");
		return 0;
	}
	for (unsigned i = 0; i < bytes; i++)
		value |= (uint64_t)*r->at++ << 8 * i;
	return value;
}

struct lth_pb_reader lth_pb_bytes(struct lth_pb_reader *r)
{
	struct lth_pb_reader inner = *r;
	uint64_t size = lth_pb_varint(r);
	if (!r->failed && size > (uint64_t)(r->end - r->at))
		lth_pb_fail(r, LTH_BAD_INPUT, "more bytes", "the end inside a field");
	inner.failed = r->failed;
	inner.at = inner.end = r->at;
	if (!r->failed) {
		inner.end = r->at + size;
		r->at = inner.end;
	}
	return inner;
}

void lth_pb_skip(struct lth_pb_reader *r, enum lth_pb_wire wire)
{
	switch (wire) {
	case LTH_PB_VARINT:
		lth_pb_varint(r);
		break;
	case LTH_PB_FIXED64:
		lth_pb_fixed(r, 8);
		break;
	case LTH_PB_BYTES:
		lth_pb_bytes(r);
		break;
	case LTH_PB_FIXED32:
		lth_pb_fixed(r, 4);
		break;
	default:
		lth_pb_fail(r, LTH_BAD_INPUT, r->message, "a field of no known kind");
	}
}

void lth_pb_numbers(struct lth_pb_reader *r, enum lth_pb_wire wire, enum lth_pb_wire element,
		    void (*take)(void *context, uint64_t value), void *context)
{
	struct lth_pb_reader inner = *r;
	if (wire == LTH_PB_BYTES) {
		inner = lth_pb_bytes(r);
	} else if (wire != element) {
		lth_pb_fail(r, LTH_BAD_INPUT, "numbers of the field's kind", "others");
		return;
	}
	do {
		if (wire == LTH_PB_BYTES && inner.at == inner.end)
			break;
		uint64_t value = element == LTH_PB_VARINT ? lth_pb_varint(&inner)
							: lth_pb_fixed(&inner, element == LTH_PB_FIXED32 ? 4 : 8);
		if (!inner.failed)
			take(context, value);
	} while (wire == LTH_PB_BYTES && !inner.failed);
	r->failed = r->failed || inner.failed;
	if (wire != LTH_PB_BYTES)
		r->at = inner.at;
}

void lth_pb_put_varint(struct lth_buf *out, uint64_t value)
{
	for (; value >= 0x80; value >>= 7)
		lth_buf_u8(out, (uint8_t)(value | 0x80));
	lth_buf_u8(out, (uint8_t)value);
}

void lth_pb_put_number(struct lth_buf *out, unsigned field, uint64_t value)
{
	lth_pb_put_varint(out, (uint64_t)field << 3 | LTH_PB_VARINT);
	lth_pb_put_varint(out, value);
}

void lth_pb_put_bytes(struct lth_buf *out, unsigned field, const void *bytes, size_t size)
{
	lth_pb_put_varint(out, (uint64_t)field << 3 | LTH_PB_BYTES);
	lth_pb_put_varint(out, size);
	lth_buf_append(out, bytes, size);
}
