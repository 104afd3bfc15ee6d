/* Reading and writing protobuf's wire format: numbers and fields with a length. Every length is checked against what is
 * left; the first failure is kept in the diag, and from then on nothing is read. Thread rule: plain values. */
#ifndef LTH_TENSOR_PB_WIRE_H
#define LTH_TENSOR_PB_WIRE_H

#include "runtime/base/buf.h"
#include "runtime/base/diag.h"

enum lth_pb_wire { LTH_PB_VARINT, LTH_PB_FIXED64, LTH_PB_BYTES, LTH_PB_FIXED32 = 5 };

struct lth_pb_reader {
	const char *message; /* whose bytes these are, for messages */
	const unsigned char *at, *end, *start;
	struct lth_diag *diag;
	bool failed;
};

void lth_pb_fail(struct lth_pb_reader *r, enum lth_code code, const char *expected, const char *found);
uint64_t lth_pb_varint(struct lth_pb_reader *r);
uint64_t lth_pb_fixed(struct lth_pb_reader *r, unsigned bytes);
/* A field with a length in front: a reader over its bytes, which `r` steps over. */
struct lth_pb_reader lth_pb_bytes(struct lth_pb_reader *r);
/* Takes a number field, packed or single, number by number. */
void lth_pb_numbers(struct lth_pb_reader *r, enum lth_pb_wire wire, enum lth_pb_wire element,
		    void (*take)(void *context, uint64_t value), void *context);
void lth_pb_skip(struct lth_pb_reader *r, enum lth_pb_wire wire);

void lth_pb_put_varint(struct lth_buf *out, uint64_t value);
void lth_pb_put_number(struct lth_buf *out, unsigned field, uint64_t value);
void lth_pb_put_bytes(struct lth_buf *out, unsigned field, const void *bytes, size_t size);

#endif
