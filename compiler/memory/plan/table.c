/* Buffers with their ids, as requests bring them. Thread rule: one thread a table. */
#include "compiler/memory/plan/plan.h"
#include "runtime/base/hash.h"

#include <stdlib.h>
#include <string.h>

void lth_plan_table_free(struct lth_plan_table *table)
{
	for (size_t i = 0; i < table->count; i++)
		free(table->ids[i]);
	free(table->ids);
	free(table->buffers);
	free(table->offsets);
	*table = (struct lth_plan_table){0};
}

static bool grow(struct lth_plan_table *table)
{
	size_t capacity = table->capacity ? 2 * table->capacity : 64;
	struct lth_buffer *buffers = realloc(table->buffers, capacity * sizeof(*buffers));
	if (buffers)
		table->buffers = buffers;
	char **ids = realloc(table->ids, capacity * sizeof(*ids));
	if (ids)
		table->ids = ids;
	int64_t *offsets = realloc(table->offsets, capacity * sizeof(*offsets));
	if (offsets)
		table->offsets = offsets;
	if (!buffers || !ids || !offsets)
		return false;
	table->capacity = capacity;
	return true;
}

bool lth_plan_table_add(struct lth_plan_table *table, const char *id, size_t id_length,
			const struct lth_buffer *buffer, int64_t offset)
{
	if (table->count == table->capacity && !grow(table))
		return false;
	char *copy = strndup(id, id_length);
	if (!copy)
		return false;
	table->ids[table->count] = copy;
	table->buffers[table->count] = *buffer;
	table->offsets[table->count] = offset;
	table->count++;
	return true;
}

size_t lth_plan_table_repeated_id(const struct lth_plan_table *table)
{
	size_t slots = 16, repeated = SIZE_MAX;
	while (slots < 2 * table->count)
		slots *= 2;
	size_t *index = calloc(slots, sizeof(*index)); /* one based */
	if (!index)
		return SIZE_MAX - 1;
	for (size_t i = 0; i < table->count && repeated == SIZE_MAX; i++) {
		size_t at = (size_t)lth_hash_bytes(table->ids[i], strlen(table->ids[i]), 0) & (slots - 1);
		while (index[at] && strcmp(table->ids[index[at] - 1], table->ids[i]) != 0)
			at = (at + 1) & (slots - 1);
		if (index[at])
			repeated = i;
		else
			index[at] = i + 1;
	}
	free(index);
	return repeated;
}
