/* Hash tables of ids, by linear probing. See id_table.h. */
#include "runtime/base/id_table.h"

#include <assert.h>

uint32_t lth_id_table_next(const struct lth_id_table *table, uint64_t hash, uint32_t *at)
{
	if (!table->capacity)
		return LTH_ID_NONE;
	for (;;) {
		const struct lth_id_slot *slot = &table->slots[(uint32_t)(hash + *at) & (table->capacity - 1)];
		if (!slot->taken)
			return LTH_ID_NONE;
		(*at)++;
		if (slot->hash == hash)
			return slot->taken - 1;
	}
}

static void put(struct lth_id_table *table, struct lth_id_slot slot)
{
	uint32_t place = (uint32_t)slot.hash & (table->capacity - 1);
	while (table->slots[place].taken)
		place = (place + 1) & (table->capacity - 1);
	table->slots[place] = slot;
	table->count++;
}

static bool grow(struct lth_id_table *table, struct lth_arena *arena)
{
	enum { FIRST = 16 };
	struct lth_id_table fresh = {.capacity = table->capacity ? table->capacity * 2 : FIRST};
	if (table->capacity > UINT32_MAX / 4)
		return false;
	fresh.slots = lth_arena_array(arena, fresh.capacity, sizeof(*fresh.slots));
	if (!fresh.slots)
		return false;
	/* From behind a free slot on, so that ids of one hash keep their order. */
	uint32_t start = 0;
	while (table->capacity && table->slots[start].taken)
		start++;
	for (uint32_t i = 0; i < table->capacity; i++) {
		struct lth_id_slot slot = table->slots[(start + i) & (table->capacity - 1)];
		if (slot.taken)
			put(&fresh, slot);
	}
	*table = fresh;
	return true;
}

bool lth_id_table_put(struct lth_id_table *table, struct lth_arena *arena, uint64_t hash, uint32_t id)
{
	assert(id != LTH_ID_NONE);
	if (table->count >= table->capacity / 2 && !grow(table, arena))
		return false;
	put(table, (struct lth_id_slot){hash, id + 1});
	return true;
}

void lth_id_table_replace(struct lth_id_table *table, uint64_t hash, uint32_t id, uint32_t by)
{
	uint32_t place = (uint32_t)hash & (table->capacity - 1);
	while (table->slots[place].hash != hash || table->slots[place].taken != id + 1) {
		assert(table->slots[place].taken);
		place = (place + 1) & (table->capacity - 1);
	}
	table->slots[place].taken = by + 1;
}
