/* C kernels of the runtime: what is irregular (sorting, sets, data-dependent extents) and what no compiled kernel took.
 * All have one signature over evaluated tensor descriptors. A kernel may run on the pool's threads itself.
 *
 * Operands are those of the graph's node: its outputs in order, then one i64 scalar for each extent that only the data
 * decides, then its inputs. Absent ones have no data; trailing ones may be left out. Attributes are the node's own,
 * "name=value;name=value", lists with commas between.
 *
 * Data-dependent extents. An output whose extent only the data decides is described at its upper bound. The kernel
 * writes the elements it has densely from the start of the output, row-major with the true extents, and writes the true
 * extent into the i64 scalar that a BIND reads; the program goes on with a tensor of the true dims on that storage.
 *
 * Objects (sequences, optionals, maps) are i64 handles in scalars of type OBJECT; a kernel looks each up, since memory
 * that was never written holds any number.
 *
 * Thread rule: called by one thread a run; state is in the call only. */
#ifndef LTH_KERNELS_BUILTIN_H
#define LTH_KERNELS_BUILTIN_H

#include "runtime/program/kernel_abi.h"
#include "runtime/program/program.h"

enum lth_builtin {
#define LTH_BUILTIN(name, text, function, description) LTH_BUILTIN_##name,
#include "runtime/kernels/builtins.def"
#undef LTH_BUILTIN
	LTH_NUM_BUILTINS
};

/* The name, and the builtin with a name (LTH_NUM_BUILTINS when there is none). builtin_names.c */
const char *lth_builtin_text(enum lth_builtin builtin);
enum lth_builtin lth_builtin_by_text(const char *text);
/* The shared library that a builtin opens when it runs, or NULL. builtin_names.c */
const char *lth_builtin_library(enum lth_builtin builtin);

struct lth_builtin_tensor {
	void *data; /* the first element; NULL for an absent optional operand */
	enum lth_dtype dtype;
	uint32_t rank;
	const int64_t *dims;
	const int64_t *strides; /* elements; 0 and negative ones occur in inputs */
};

struct lth_objects;
struct lth_pool;
struct lth_strings;
struct lth_threadpool;

struct lth_builtin_call {
	uint32_t num_outputs, num_tensors, num_ints;
	const struct lth_builtin_tensor *tensors; /* outputs first */
	const int64_t *ints;
	const char *attributes;         /* "key=value;key=value", never NULL */
	struct lth_pool *pool;          /* for temporaries: lth_pool_take and lth_pool_give (runtime/exec/pool.h) */
	struct lth_strings *strings;    /* for bytes of string outputs: lth_strings_take (runtime/exec/strings.h) */
	struct lth_objects *objects;    /* what operands of type OBJECT name: runtime/exec/objects.h */
	struct lth_threadpool *threads; /* NULL for one thread */
	char message[192];              /* a kernel that fails may say here what it found */
};

/* Returns 0 or enum lth_kernel_error. */
typedef int (*lth_builtin_fn)(struct lth_builtin_call *call);

lth_builtin_fn lth_builtin_function(enum lth_builtin builtin);

/* Reading attributes: the value of `key`, or the fallback when it is not there. builtin.c */
int64_t lth_builtin_int(const struct lth_builtin_call *call, const char *key, int64_t fallback);
double lth_builtin_real(const struct lth_builtin_call *call, const char *key, double fallback);
/* Copies the value as text; false when it is not there or does not fit. */
bool lth_builtin_text_attribute(const struct lth_builtin_call *call, const char *key, char *out, size_t size);
/* Operand `index` of the inputs, as if absent when it was left out. */
struct lth_builtin_tensor lth_builtin_input(const struct lth_builtin_call *call, uint32_t index);
/* Records a message and returns `error`. */
int lth_builtin_fail(struct lth_builtin_call *call, enum lth_kernel_error error, const char *format, ...)
	LTH_PRINTF(3, 4);

#define LTH_BUILTIN(name, text, function, description) int lth_builtin_##function(struct lth_builtin_call *call);
#include "runtime/kernels/builtins.def"
#undef LTH_BUILTIN

#endif
