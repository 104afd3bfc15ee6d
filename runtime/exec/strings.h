/* Bytes of string elements that C kernels make. They live until the next run of the context, so that outputs may refer
 * to them; their blocks come from the pool and stay, so that a program that repeats itself asks the system for nothing.
 * Thread rule: one thread at a time. */
#ifndef LTH_EXEC_STRINGS_H
#define LTH_EXEC_STRINGS_H

#include "runtime/exec/pool.h"

struct lth_strings_block;

struct lth_strings {
	struct lth_pool *pool;
	struct lth_strings_block *first, *last; /* `last` is the one in use; those behind it are from an earlier run */
	int64_t used;                           /* bytes of `last` */
};

/* Room for `bytes`; NULL when out of memory. */
char *lth_strings_take(struct lth_strings *strings, size_t bytes);
/* All strings end; the blocks stay. */
void lth_strings_reset(struct lth_strings *strings);
/* The blocks go back to the pool. */
void lth_strings_free(struct lth_strings *strings);

#endif
