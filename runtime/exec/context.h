/* A context: all that a run needs and may change. Everything is allocated when it is created, save the arena, which
 * grows to the largest shape seen, and the pool's blocks.
 * Thread rule: one run at a time. */
#ifndef LTH_EXEC_CONTEXT_H
#define LTH_EXEC_CONTEXT_H

#include "runtime/exec/executable.h"
#include "runtime/exec/objects.h"
#include "runtime/exec/pool.h"
#include "runtime/exec/signature.h"
#include "runtime/exec/strings.h"
#include "runtime/kernels/builtin.h"
#include "runtime/profiler.h"
#include "runtime/threadpool.h"

/* A loop in progress. */
struct lth_loop {
	uint32_t position;
	int64_t turn, trips;
};

struct lathe_context {
	const struct lathe_api *api; /* first */
	const struct lathe_executable *x;
	struct lth_arena *memory; /* of the context and its arrays */
	struct lth_signatures signatures;
	struct lth_threadpool *threads; /* NULL: the caller's only */
	struct lth_pool *pool;
	struct lth_pool *outputs; /* where outputs come from that the caller has no buffer for: not the run's memory */
	struct lth_strings strings; /* of the last run's string elements */
	struct lth_objects objects; /* of the run, and of the last one's outputs */
	int64_t *handles;           /* of each input: its object */
	struct lth_profiler profiler;

	char *arena;
	int64_t arena_bytes;
	bool own_arena;

	_Atomic bool running; /* two threads in one context would write over each other */

	/* The run in hand. */
	struct lth_signature *signature;
	void **bases;   /* of each storage: its bytes */
	int64_t *taken; /* of each storage: bytes taken from the pool, -1 for none */
	void **homes;   /* of each of the executable's swapped outputs: where it stood when the run began */
	bool pool_used; /* some storage was taken in this run */
	bool *defined;  /* of each expression: its symbols are bound */
	void **pointers;
	int64_t *ints;
	struct lth_builtin_tensor *tensors;
	int64_t *dims; /* of `tensors`: dims, then strides, LTH_MAX_RANK each */
	struct lth_loop *loops;
	uint32_t num_loops;
	uint32_t *stack; /* of expressions, for sizes that are evaluated at their ALLOC */
	bool *output_given; /* of each output: the caller brought a buffer */
	bool *fresh;     /* of each expression: evaluated for the ALLOC in hand */
};

/* `options` may be NULL. context.c */
LTH_MUST_CHECK enum lth_code lth_context_create(const struct lathe_executable *x, const struct lathe_options *options,
						struct lathe_context **out_context, struct lth_diag *diag);
void lth_context_destroy(struct lathe_context **context);
LTH_MUST_CHECK enum lth_code lth_context_run(struct lathe_context *context, const struct lathe_tensor *inputs,
					     size_t num_inputs, struct lathe_tensor *outputs, size_t num_outputs,
					     struct lth_diag *diag);
void lth_context_release(struct lathe_context *context, struct lathe_tensor *output);
void lth_context_counters(const struct lathe_context *context, struct lathe_counters *out_counters);

/* Executes the program; bases of all storages that live already are set. interp.c */
LTH_MUST_CHECK enum lth_code lth_interpret(struct lathe_context *context, struct lth_diag *diag);
/* Outputs that swapped stand where they began again, with their bytes where the program has `ran`. interp.c */
void lth_settle_outputs(struct lathe_context *context, bool ran);
/* Ends what the pool gave to storages. interp.c */
void lth_interpret_cleanup(struct lathe_context *context);
/* A tensor's first element; checked where its storage is in the pool. interp.c */
LTH_MUST_CHECK enum lth_code lth_tensor_pointer(struct lathe_context *context, uint32_t tensor, void **out_pointer,
						struct lth_diag *diag);
/* The same with evaluated dims and strides, which are written to `dims` (2 * LTH_MAX_RANK). interp.c */
LTH_MUST_CHECK enum lth_code lth_tensor_view(struct lathe_context *context, uint32_t tensor, int64_t *dims,
					     struct lth_builtin_tensor *out_view, struct lth_diag *diag);
/* Binds a DATA symbol and evaluates what depends on it. interp_symbols.c */
LTH_MUST_CHECK enum lth_code lth_bind_symbol(struct lathe_context *context, uint32_t symbol, int64_t value,
					     const char *place, struct lth_diag *diag);
/* Evaluates one expression afresh, with all that it stands on. interp_symbols.c */
LTH_MUST_CHECK enum lth_code lth_evaluate_afresh(struct lathe_context *context, uint32_t expr, const char *place, int64_t *out_value,
						 struct lth_diag *diag);

#endif
