/* Bytes of string elements. See strings.h. A list of blocks that is filled from the front; a block that is too small
 * for a string is passed over, and a new one put behind it. */
#include "runtime/exec/strings.h"

enum { BLOCK_BYTES = 64 * 1024 };

struct lth_strings_block {
	struct lth_strings_block *next;
	int64_t bytes; /* with this header */
};

enum { HEADER = sizeof(struct lth_strings_block) };

static struct lth_strings_block *append_block(struct lth_strings *strings, int64_t payload)
{
	int64_t bytes = HEADER + (payload > BLOCK_BYTES ? payload : BLOCK_BYTES);
	struct lth_strings_block *block = lth_pool_take(strings->pool, bytes);
	if (!block)
		return NULL;
	block->bytes = bytes;
	block->next = strings->last ? strings->last->next : strings->first;
	if (strings->last)
		strings->last->next = block;
	else
		strings->first = block;
	return block;
}

char *lth_strings_take(struct lth_strings *strings, size_t bytes)
{
	if (bytes > INT64_MAX / 8)
		return NULL;
	int64_t need = (int64_t)bytes;
	while (!strings->last || need > strings->last->bytes - strings->used) {
		struct lth_strings_block *next = strings->last ? strings->last->next : strings->first;
		if (!next || need > next->bytes - HEADER)
			next = append_block(strings, need);
		if (!next)
			return NULL;
		strings->last = next;
		strings->used = HEADER;
	}
	char *text = (char *)strings->last + strings->used;
	strings->used += need;
	return text;
}

void lth_strings_reset(struct lth_strings *strings)
{
	strings->last = NULL;
	strings->used = 0;
}

void lth_strings_free(struct lth_strings *strings)
{
	while (strings->first) {
		struct lth_strings_block *block = strings->first;
		strings->first = block->next;
		lth_pool_give(strings->pool, block, block->bytes);
	}
	lth_strings_reset(strings);
}
