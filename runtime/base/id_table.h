/* A hash table of ids. The caller keeps the things that the ids name: a search walks the ids whose hash is equal, and the
 * caller's own look at each tells which is meant:
 *
 *	for (uint32_t at = 0, id; (id = lth_id_table_next(&table, hash, &at)) != LTH_ID_NONE;)
 *		if (same(things[id], wanted))
 *			return id;
 *
 * Zeroed memory is an empty table; ids are found in the order they were put. Thread rule: as the arena's. */
#ifndef LTH_BASE_ID_TABLE_H
#define LTH_BASE_ID_TABLE_H

#include "runtime/base/arena.h"

#define LTH_ID_NONE UINT32_MAX

struct lth_id_slot {
	uint64_t hash;
	uint32_t taken; /* id + 1 */
};

struct lth_id_table {
	struct lth_id_slot *slots; /* owned by the arena; open addressing, at most half full */
	uint32_t capacity, count;
};

/* The next id with this hash, LTH_ID_NONE after the last. *at is 0 at first and the table's to change. */
uint32_t lth_id_table_next(const struct lth_id_table *table, uint64_t hash, uint32_t *at);
/* Adds an id, below LTH_ID_NONE; false when the arena is exhausted. */
bool lth_id_table_put(struct lth_id_table *table, struct lth_arena *arena, uint64_t hash, uint32_t id);
/* Puts another id in the place of one that is there. */
void lth_id_table_replace(struct lth_id_table *table, uint64_t hash, uint32_t id, uint32_t by);

#endif
