/* Objects of a run: sequences, optionals and maps, as lists of items that are tensors or lists. Programs name them by
 * handles, numbers in scalars of type OBJECT; a handle that names nothing is told from one that does, so that no
 * program reaches memory that is not an object's.
 *
 * Objects never change once they are made. A list that is made from another by putting an item behind its last shares
 * that one's items, so a loop that collects n items costs O(n). Nothing is given back before the end of the run; what
 * its outputs hold lives until the end of the next one, which may take it as input. All memory is the counted pool's.
 * Thread rule: one thread at a time. */
#ifndef LTH_EXEC_OBJECTS_H
#define LTH_EXEC_OBJECTS_H

#include "runtime/exec/pool.h"
#include "runtime/program/program.h"

struct lth_items;

struct lth_object {
	bool is_list;
	bool borrowed; /* a tensor whose bytes are the caller's */
	/* A tensor: dense, row-major. */
	enum lth_dtype dtype;
	uint32_t rank;
	int64_t dims[LTH_MAX_RANK];
	int64_t bytes;
	void *data;
	/* A list. */
	int64_t count;
	struct lth_items *items;
};

struct lth_object_block;

struct lth_objects {
	struct lth_pool *pool;
	struct lth_object_block *blocks, *last_run; /* of this run, and what the last one's outputs hold */
	struct lth_object **table; /* by handle - 1 */
	int64_t count, capacity;
};

/* Making; all return NULL (or false) when out of memory. A tensor's data is not set; a borrowed one's is `data`. */
struct lth_object *lth_object_tensor(struct lth_objects *objects, enum lth_dtype dtype, uint32_t rank,
				     const int64_t *dims);
struct lth_object *lth_object_borrow(struct lth_objects *objects, enum lth_dtype dtype, uint32_t rank,
				     const int64_t *dims, void *data);
struct lth_object *lth_object_list(struct lth_objects *objects, int64_t capacity); /* empty */
/* Puts an item behind the last of a list in the making. */
bool lth_list_push(struct lth_objects *objects, struct lth_object *list, struct lth_object *item);
/* A list with an item at position `at`, or without the one there. */
struct lth_object *lth_list_insert(struct lth_objects *objects, const struct lth_object *list, int64_t at,
				   struct lth_object *item);
struct lth_object *lth_list_erase(struct lth_objects *objects, const struct lth_object *list, int64_t at);
struct lth_object *lth_list_item(const struct lth_object *list, int64_t at); /* 0 <= at < count */

/* A handle of an object, 0 when out of memory; the object that a number names, or NULL. */
int64_t lth_objects_name(struct lth_objects *objects, struct lth_object *object);
struct lth_object *lth_objects_find(const struct lth_objects *objects, int64_t handle);

/* A run begins: what was kept is the last run's. */
void lth_objects_begin(struct lth_objects *objects);
/* Bytes that live as long as the run's outputs. */
void *lth_objects_keep_bytes(struct lth_objects *objects, int64_t bytes);
/* Whether bytes are some that the last run kept: they end with this one. */
bool lth_objects_end(const struct lth_objects *objects, const void *bytes);
/* A tensor that outputs hold lives on. */
void lth_objects_keep(struct lth_object *tensor);
/* A run ends: with it all objects that are not kept, all handles, and all of the last run. Or everything ends. */
void lth_objects_sweep(struct lth_objects *objects);
void lth_objects_free(struct lth_objects *objects);

#endif
