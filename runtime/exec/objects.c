/* Objects of a run. See objects.h. Each is a block of the pool with its tensor's bytes behind it, in one list of all;
 * the items of lists are blocks of their own, filled from the front and shared by lists of different lengths. */
#include "runtime/exec/objects.h"

#include "runtime/base/checked.h"

#include <string.h>

struct lth_object_block {
	struct lth_object_block *next;
	int64_t bytes; /* with this header */
	bool kept;
};

enum { HEADER = 64, FIRST_ITEMS = 4, FIRST_HANDLES = 16 };
_Static_assert(sizeof(struct lth_object_block) <= HEADER, "data keeps the pool's alignment");

struct lth_items {
	int64_t capacity, used;
	struct lth_object *entries[];
};

static void *take(struct lth_objects *objects, int64_t payload)
{
	int64_t bytes;
	if (!lth_add_i64(payload, HEADER, &bytes))
		return NULL;
	struct lth_object_block *block = lth_pool_take(objects->pool, bytes);
	if (!block)
		return NULL;
	*block = (struct lth_object_block){.next = objects->blocks, .bytes = bytes};
	objects->blocks = block;
	return (char *)block + HEADER;
}

static void keep(void *payload)
{
	struct lth_object_block *block = (void *)((char *)payload - HEADER);
	block->kept = true;
}

void *lth_objects_keep_bytes(struct lth_objects *objects, int64_t bytes)
{
	void *payload = take(objects, bytes);
	if (payload)
		keep(payload);
	return payload;
}

bool lth_objects_end(const struct lth_objects *objects, const void *bytes)
{
	const struct lth_object_block *block = objects->last_run;
	while (block && (const char *)block + HEADER != bytes)
		block = block->next;
	return block != NULL;
}

/* ---- making ---- */

static struct lth_object *new_tensor(struct lth_objects *objects, enum lth_dtype dtype, uint32_t rank,
				     const int64_t *dims, bool with_data)
{
	int64_t place = (int64_t)(sizeof(struct lth_object) + HEADER - 1) / HEADER * HEADER, count = 1, bytes, all;
	for (uint32_t axis = 0; axis < rank; axis++)
		if (!lth_mul_i64(count, dims[axis], &count))
			return NULL;
	if (!lth_dtype_bytes(dtype, count, &bytes) || !lth_add_i64(place, with_data ? bytes : 0, &all))
		return NULL;
	struct lth_object *object = take(objects, all);
	if (!object)
		return NULL;
	*object = (struct lth_object){.dtype = dtype, .rank = rank, .bytes = bytes, .data = (char *)object + place};
	if (rank)
		memcpy(object->dims, dims, rank * sizeof(*dims));
	return object;
}

struct lth_object *lth_object_tensor(struct lth_objects *objects, enum lth_dtype dtype, uint32_t rank,
				     const int64_t *dims)
{
	return new_tensor(objects, dtype, rank, dims, true);
}

struct lth_object *lth_object_borrow(struct lth_objects *objects, enum lth_dtype dtype, uint32_t rank,
				     const int64_t *dims, void *data)
{
	struct lth_object *object = new_tensor(objects, dtype, rank, dims, false);
	if (object) {
		object->borrowed = true;
		object->data = data;
	}
	return object;
}

static struct lth_items *new_items(struct lth_objects *objects, int64_t capacity)
{
	int64_t bytes;
	capacity = capacity < FIRST_ITEMS ? FIRST_ITEMS : capacity;
	if (!lth_mul_i64(capacity, sizeof(struct lth_object *), &bytes) ||
	    !lth_add_i64(bytes, sizeof(struct lth_items), &bytes))
		return NULL;
	struct lth_items *items = take(objects, bytes);
	if (items)
		*items = (struct lth_items){.capacity = capacity};
	return items;
}

static struct lth_object *new_list(struct lth_objects *objects, struct lth_items *items, int64_t count)
{
	struct lth_object *list = items ? take(objects, sizeof(*list)) : NULL;
	if (list)
		*list = (struct lth_object){.is_list = true, .items = items, .count = count};
	return list;
}

struct lth_object *lth_object_list(struct lth_objects *objects, int64_t capacity)
{
	return new_list(objects, new_items(objects, capacity), 0);
}

struct lth_object *lth_list_item(const struct lth_object *list, int64_t at)
{
	return list->items->entries[at];
}

bool lth_list_push(struct lth_objects *objects, struct lth_object *list, struct lth_object *item)
{
	if (list->items->used == list->count && list->count < list->items->capacity) {
		list->items->entries[list->items->used++] = item;
		list->count++;
		return true;
	}
	struct lth_object *longer = lth_list_insert(objects, list, list->count, item);
	if (!longer)
		return false;
	*list = *longer;
	return true;
}

struct lth_object *lth_list_insert(struct lth_objects *objects, const struct lth_object *list, int64_t at,
				   struct lth_object *item)
{
	struct lth_items *items = list->items;
	int64_t count = list->count;
	if (at == count && items->used == count && count < items->capacity) { /* nobody has put anything there */
		items->entries[items->used++] = item;
		return new_list(objects, items, count + 1);
	}
	items = new_items(objects, 2 * (count + 1));
	if (!items)
		return NULL;
	memcpy(items->entries, list->items->entries, (size_t)at * sizeof(item));
	items->entries[at] = item;
	memcpy(items->entries + at + 1, list->items->entries + at, (size_t)(count - at) * sizeof(item));
	items->used = count + 1;
	return new_list(objects, items, count + 1);
}

struct lth_object *lth_list_erase(struct lth_objects *objects, const struct lth_object *list, int64_t at)
{
	int64_t count = list->count - 1;
	if (at == count)
		return new_list(objects, list->items, count);
	struct lth_items *items = new_items(objects, count);
	if (!items)
		return NULL;
	memcpy(items->entries, list->items->entries, (size_t)at * sizeof(items->entries[0]));
	memcpy(items->entries + at, list->items->entries + at + 1, (size_t)(count - at) * sizeof(items->entries[0]));
	items->used = count;
	return new_list(objects, items, count);
}

/* ---- handles ---- */

int64_t lth_objects_name(struct lth_objects *objects, struct lth_object *object)
{
	if (objects->count == objects->capacity) {
		int64_t capacity = objects->capacity ? 2 * objects->capacity : FIRST_HANDLES;
		struct lth_object **table = lth_pool_take(objects->pool, capacity * (int64_t)sizeof(*table));
		if (!table)
			return 0;
		if (objects->count)
			memcpy(table, objects->table, (size_t)objects->count * sizeof(*table));
		lth_pool_give(objects->pool, objects->table, objects->capacity * (int64_t)sizeof(*table));
		objects->table = table;
		objects->capacity = capacity;
	}
	objects->table[objects->count++] = object;
	return objects->count;
}

struct lth_object *lth_objects_find(const struct lth_objects *objects, int64_t handle)
{
	return handle >= 1 && handle <= objects->count ? objects->table[handle - 1] : NULL;
}

/* ---- the end ---- */

void lth_objects_keep(struct lth_object *tensor)
{
	keep(tensor);
}

static void end_blocks(struct lth_objects *objects, struct lth_object_block **link, bool all)
{
	while (*link) {
		struct lth_object_block *block = *link;
		if (block->kept && !all) {
			link = &block->next;
			continue;
		}
		*link = block->next;
		lth_pool_give(objects->pool, block, block->bytes);
	}
}

void lth_objects_begin(struct lth_objects *objects)
{
	end_blocks(objects, &objects->last_run, true);
	objects->last_run = objects->blocks;
	objects->blocks = NULL;
}

void lth_objects_sweep(struct lth_objects *objects)
{
	end_blocks(objects, &objects->blocks, false);
	end_blocks(objects, &objects->last_run, true);
	objects->count = 0;
}

void lth_objects_free(struct lth_objects *objects)
{
	end_blocks(objects, &objects->blocks, true);
	end_blocks(objects, &objects->last_run, true);
	if (objects->table)
		lth_pool_give(objects->pool, objects->table, objects->capacity * (int64_t)sizeof(*objects->table));
	objects->table = NULL;
	objects->count = objects->capacity = 0;
}
