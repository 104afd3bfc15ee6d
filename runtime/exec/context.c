/* Contexts: creation, and what stands around the interpreter in a run: inputs in, arena made ready, outputs out. */
#include "runtime/exec/context.h"
#include "runtime/base/checked.h"
#include "runtime/exec/values.h"
#include "runtime/kernels/copy.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ARENA_ALIGNMENT = 4096, CALLER_ALIGNMENT = 64 };

static bool make_arrays(struct lathe_context *c)
{
	const struct lathe_executable *x = c->x;
	const struct lth_program *program = x->program;
	c->bases = lth_arena_array(c->memory, program->num_storages, sizeof(*c->bases));
	c->taken = lth_arena_array(c->memory, program->num_storages, sizeof(*c->taken));
	c->defined = lth_arena_array(c->memory, program->num_exprs, sizeof(*c->defined));
	c->pointers = lth_arena_array(c->memory, x->max_tensors, sizeof(*c->pointers));
	c->ints = lth_arena_array(c->memory, x->max_ints, sizeof(*c->ints));
	c->tensors = lth_arena_array(c->memory, x->max_tensors, sizeof(*c->tensors));
	c->dims = lth_arena_array(c->memory, (size_t)x->max_tensors * 2 * LTH_MAX_RANK, sizeof(*c->dims));
	c->loops = lth_arena_array(c->memory, x->max_depth, sizeof(*c->loops));
	c->stack = lth_arena_array(c->memory, (size_t)program->num_exprs * 2 + 1, sizeof(*c->stack));
	c->fresh = lth_arena_array(c->memory, program->num_exprs, sizeof(*c->fresh));
	c->handles = lth_arena_array(c->memory, program->num_inputs, sizeof(*c->handles));
	c->homes = lth_arena_array(c->memory, x->num_swapped_outputs, sizeof(*c->homes));
	c->output_given = lth_arena_array(c->memory, program->num_outputs, sizeof(*c->output_given));
	if (!lth_arena_ok(c->memory))
		return false;
	for (uint32_t i = 0; i < program->num_storages; i++) {
		const struct lth_storage *s = &program->storages[i];
		c->taken[i] = -1;
		if (s->kind == LTH_STORAGE_CONSTANT) /* kernels take plain pointers; the verifier lets none write */
			c->bases[i] = (void *)((uintptr_t)x->image.constants + (uintptr_t)s->index);
	}
	return true;
}

static enum lth_code check_options(const struct lathe_options *options, struct lth_diag *diag)
{
	if (options->bytes != sizeof(*options))
		return lth_diag_fail(diag, LTH_INVALID_OPTION, "options.bytes", "sizeof(struct lathe_options)", NULL,
				     "%u", options->bytes);
	if (options->threads > LTH_MAX_THREADS)
		return lth_diag_fail(diag, LTH_INVALID_OPTION, "options.threads", "at most 256", NULL, "%u",
				     options->threads);
	if (options->arena && (uintptr_t)options->arena % CALLER_ALIGNMENT != 0)
		return lth_diag_fail(diag, LTH_INVALID_OPTION, "options.arena", "an address aligned to 64", NULL, "%p",
				     options->arena);
	return LTH_OK;
}

enum lth_code lth_context_create(const struct lathe_executable *x, const struct lathe_options *options,
				 struct lathe_context **out_context, struct lth_diag *diag)
{
	static const struct lathe_options defaults = {.bytes = sizeof(defaults)};
	options = options ? options : &defaults;
	enum lth_code code = check_options(options, diag);
	if (code != LTH_OK)
		return code;
	struct lth_arena *memory = lth_arena_create(0);
	struct lathe_context *c = memory ? lth_arena_alloc(memory, sizeof(*c)) : NULL;
	if (!c) {
		lth_arena_destroy(&memory);
		return lth_diag_fail(diag, LTH_OUT_OF_MEMORY, "context", NULL, NULL, "no memory to create it");
	}
	c->memory = memory;
	c->x = x;
	c->api = x->api;
	c->arena = options->arena;
	c->own_arena = !options->arena;
	c->arena_bytes = options->arena ? (int64_t)options->arena_bytes : 0;
	c->pool = lth_pool_create();
	c->outputs = lth_pool_create();
	c->strings.pool = c->objects.pool = c->pool;
	if (options->threads > 1)
		c->threads = lth_threadpool_create(options->threads);
	if (!c->pool || !c->outputs || (options->threads > 1 && !c->threads) ||
	    !lth_signatures_init(&c->signatures, x, options->signatures, memory) ||
	    !lth_profiler_init(&c->profiler, options->profile != 0, x->program->num_instrs, memory) ||
	    !make_arrays(c)) {
		lth_context_destroy(&c);
		return lth_diag_fail(diag, LTH_OUT_OF_MEMORY, "context", NULL, NULL,
				     "no memory or no threads to create it");
	}
	*out_context = c;
	return LTH_OK;
}

void lth_context_destroy(struct lathe_context **context)
{
	struct lathe_context *c = *context;
	if (!c)
		return;
	lth_threadpool_destroy(&c->threads);
	lth_strings_free(&c->strings);
	lth_objects_free(&c->objects);
	lth_pool_destroy(&c->pool);
	lth_pool_destroy(&c->outputs);
	if (c->own_arena)
		free(c->arena);
	struct lth_arena *memory = c->memory;
	lth_arena_destroy(&memory);
	*context = NULL;
}

/* An arena of at least the signature's bytes. Its old contents are of no use. */
static enum lth_code prepare_arena(struct lathe_context *c, struct lth_diag *diag)
{
	int64_t need = c->signature->arena_bytes;
	char expected[64];
	if (need <= c->arena_bytes)
		return LTH_OK;
	if (!c->own_arena) {
		snprintf(expected, sizeof(expected), "%lld bytes for these dims", (long long)need);
		return lth_diag_fail(diag, LTH_ARENA_TOO_SMALL, "arena", expected, NULL, "%lld bytes",
				     (long long)c->arena_bytes);
	}
	free(c->arena);
	c->arena = NULL;
	c->arena_bytes = 0;
	void *fresh;
	if (posix_memalign(&fresh, ARENA_ALIGNMENT, (size_t)need) != 0)
		return lth_diag_fail(diag, LTH_OUT_OF_MEMORY, "arena", NULL, NULL, "%lld bytes", (long long)need);
	lth_advise_large(fresh, (size_t)need);
	c->arena = fresh;
	c->arena_bytes = need;
	c->profiler.system_allocations++;
	return LTH_OK;
}

static bool is_own_output(const struct lathe_context *c, uint32_t number)
{
	const struct lth_tensor *t = &c->x->program->tensors[c->x->program->outputs[number].tensor];
	const struct lth_storage *s = &c->x->program->storages[t->storage];
	return s->kind == LTH_STORAGE_OUTPUT && s->index == (int64_t)number;
}

static void place_output(const struct lathe_context *c, uint32_t number, char place[300])
{
	snprintf(place, 300, "output %u '%.200s'", number, c->x->description.outputs[number].name);
}

/* Dims of an output as far as shapes decide them, and whether they do. */
static bool known_bytes(const struct lathe_context *c, uint32_t number, int64_t *out_bytes)
{
	const struct lth_tensor *t = &c->x->program->tensors[c->x->program->outputs[number].tensor];
	int64_t count = 1;
	if (t->dtype == LTH_DTYPE_OBJECT) {
		*out_bytes = sizeof(struct lathe_value);
		return true;
	}
	for (uint32_t axis = 0; axis < t->rank; axis++)
		if (!c->x->shape_only[t->dims[axis]] ||
		    !lth_mul_i64(count, c->signature->values[t->dims[axis]], &count))
			return false;
	return lth_dtype_bytes(t->dtype, count, out_bytes);
}

/* Before anything is written: buffers that are too small for dims that are known. */
static enum lth_code check_outputs(const struct lathe_context *c, const struct lathe_tensor *outputs,
				   size_t num_outputs, struct lth_diag *diag)
{
	char place[300], expected[64];
	if (num_outputs != c->x->program->num_outputs) {
		snprintf(expected, sizeof(expected), "%u", c->x->program->num_outputs);
		return lth_diag_fail(diag, LTH_BAD_INPUT, "number of outputs", expected, NULL, "%zu", num_outputs);
	}
	for (uint32_t i = 0; i < num_outputs; i++) {
		int64_t bytes;
		if (!outputs[i].data || !known_bytes(c, i, &bytes) || (uint64_t)bytes <= outputs[i].bytes)
			continue;
		place_output(c, i, place);
		snprintf(expected, sizeof(expected), "a buffer of %lld bytes", (long long)bytes);
		return lth_diag_fail(diag, LTH_BAD_INPUT, place, expected, NULL, "%llu bytes",
				     (unsigned long long)outputs[i].bytes);
	}
	return LTH_OK;
}

/* Sets the bases of everything that lives when the program begins. Output storages whose caller brought no buffer, or
 * one that only the true extent may fit, are taken from the pool. */
static enum lth_code set_bases(struct lathe_context *c, const struct lathe_tensor *inputs,
			       const struct lathe_tensor *outputs, struct lth_diag *diag)
{
	const struct lth_program *program = c->x->program;
	for (uint32_t i = 0; i < program->num_storages; i++) {
		const struct lth_storage *s = &program->storages[i];
		int64_t size = c->signature->values[s->size];
		if (c->x->planned[i])
			c->bases[i] = c->arena + c->signature->offsets[i];
		else if (s->kind == LTH_STORAGE_INPUT)
			c->bases[i] = program->inputs[s->index].type ? &c->handles[s->index] : inputs[s->index].data;
		if (s->kind != LTH_STORAGE_OUTPUT)
			continue;
		const struct lathe_tensor *output = &outputs[s->index];
		if (output->data && output->bytes >= (uint64_t)size) {
			c->bases[i] = output->data;
			continue;
		}
		c->bases[i] = lth_pool_take_aligned(c->outputs, size, s->alignment);
		if (!c->bases[i])
			return lth_diag_fail(diag, LTH_OUT_OF_MEMORY, "output", NULL, NULL, "%lld bytes",
					     (long long)size);
		c->taken[i] = size;
		c->pool_used = true;
	}
	return LTH_OK;
}

/* Hands the storage of an output over to the caller: it leaves the context's books. */
static void hand_over(struct lathe_context *c, uint32_t storage, struct lathe_tensor *output)
{
	if (c->x->program->storages[storage].kind != LTH_STORAGE_OUTPUT)
		lth_pool_transfer(c->pool, c->outputs, c->taken[storage]);
	output->data = c->bases[storage];
	output->bytes = (uint64_t)c->taken[storage];
	c->bases[storage] = NULL;
	c->taken[storage] = -1;
}

/* Whether the output is a dense tensor at the start of a block of the pool that no later output needs. */
static bool may_hand_over(const struct lathe_context *c, uint32_t number, const struct lth_builtin_tensor *view)
{
	const struct lth_program *program = c->x->program;
	uint32_t storage = program->tensors[program->outputs[number].tensor].storage;
	if (c->taken[storage] < 0 || view->data != c->bases[storage] ||
	    !lth_tensor_is_dense(view->rank, view->dims, view->strides))
		return false;
	for (uint32_t i = number + 1; i < program->num_outputs; i++)
		if (program->tensors[program->outputs[i].tensor].storage == storage)
			return false;
	return true;
}

static void row_major(uint32_t rank, const int64_t *dims, int64_t *strides)
{
	int64_t stride = 1;
	for (uint32_t axis = rank; axis-- > 0;) {
		strides[axis] = stride;
		stride *= dims[axis];
	}
}

static enum lth_code copy_out(struct lathe_context *c, uint32_t number, const struct lth_builtin_tensor *view,
			      int64_t bytes, struct lathe_tensor *output, struct lth_diag *diag)
{
	char place[300], expected[64];
	int64_t strides[LTH_MAX_RANK];
	place_output(c, number, place);
	if (output->data && output->bytes < (uint64_t)bytes) {
		snprintf(expected, sizeof(expected), "a buffer of %lld bytes", (long long)bytes);
		return lth_diag_fail(diag, LTH_BAD_INPUT, place, expected, NULL, "%llu bytes",
				     (unsigned long long)output->bytes);
	}
	if (!output->data) {
		output->data = lth_pool_take(c->outputs, bytes);
		output->bytes = (uint64_t)bytes;
		if (!output->data)
			return lth_diag_fail(diag, LTH_OUT_OF_MEMORY, place, NULL, NULL, "%lld bytes",
					     (long long)bytes);
	}
	row_major(view->rank, view->dims, strides);
	struct lth_builtin_tensor to = *view;
	to.data = output->data;
	to.strides = strides;
	lth_copy_tensor(&to, view, c->threads);
	c->profiler.last_run_copies++;
	return LTH_OK;
}

static enum lth_code output_too_large(const struct lth_port *port, struct lth_diag *diag)
{
	char place[300];
	snprintf(place, sizeof(place), "output '%.250s'", port->name ? port->name : "");
	return lth_diag_fail(diag, LTH_RUNTIME_ERROR, place, "as many bytes as an int64 can count", NULL, "more");
}

/* Gives one output that is a tensor its dims and its data. */
static enum lth_code deliver_tensor(struct lathe_context *c, uint32_t number, struct lathe_tensor *output,
			     struct lth_diag *diag)
{
	const struct lth_port *port = &c->x->program->outputs[number];
	struct lth_builtin_tensor view;
	int64_t dims[2 * LTH_MAX_RANK], bytes = 0;
	enum lth_code code = lth_tensor_view(c, port->tensor, dims, &view, diag);
	if (code != LTH_OK)
		return code;
	if (!lth_dtype_bytes(view.dtype, lth_tensor_count(view.rank, view.dims), &bytes))
		return output_too_large(port, diag);
	output->dtype = lth_dtype_onnx(view.dtype);
	output->rank = view.rank;
	for (uint32_t axis = 0; axis < view.rank; axis++)
		output->dims[axis] = dims[axis];
	bool dense = lth_tensor_is_dense(view.rank, view.dims, view.strides);
	if (output->data && output->data == view.data && dense)
		return LTH_OK; /* it was written there */
	if (!output->data && may_hand_over(c, number, &view)) {
		hand_over(c, c->x->program->tensors[port->tensor].storage, output);
		return LTH_OK;
	}
	if (is_own_output(c, number) && output->data == view.data)
		return lth_diag_fail(diag, LTH_BAD_EXECUTABLE, port->name, "a dense output", NULL, "another");
	return copy_out(c, number, &view, bytes, output, diag);
}

static enum lth_code deliver(struct lathe_context *c, uint32_t number, struct lathe_tensor *output,
			     struct lth_diag *diag)
{
	return c->x->program->outputs[number].type ? lth_deliver_value(c, number, output, diag)
						   : deliver_tensor(c, number, output, diag);
}

static enum lth_code execute(struct lathe_context *c, const struct lathe_tensor *inputs, struct lathe_tensor *outputs,
			     struct lth_diag *diag)
{
	enum lth_code code = set_bases(c, inputs, outputs, diag);
	if (c->x->has_data_symbols)
		memcpy(c->defined, c->x->shape_only, c->x->program->num_exprs * sizeof(*c->defined));
	if (code == LTH_OK) {
		for (uint32_t i = 0; i < c->x->num_swapped_outputs; i++)
			c->homes[i] = c->bases[c->x->swapped_outputs[i]];
		code = lth_interpret(c, diag);
		lth_settle_outputs(c, code == LTH_OK);
	}
	for (uint32_t i = 0; i < c->x->program->num_outputs; i++)
		c->output_given[i] = outputs[i].data != NULL;
	for (uint32_t i = 0; code == LTH_OK && i < c->x->program->num_outputs; i++)
		code = deliver(c, i, &outputs[i], diag);
	for (uint32_t i = 0; code != LTH_OK && i < c->x->program->num_outputs; i++)
		if (!c->output_given[i]) /* what the pool gave for outputs before the failure */
			lth_context_release(c, &outputs[i]);
	return code;
}

static uint64_t system_allocations(const struct lathe_context *c)
{
	return c->profiler.system_allocations + lth_pool_counters(c->pool)->system_calls +
	       lth_pool_counters(c->outputs)->system_calls;
}

static enum lth_code run_alone(struct lathe_context *c, const struct lathe_tensor *inputs, size_t num_inputs,
			       struct lathe_tensor *outputs, size_t num_outputs, struct lth_diag *diag)
{
	uint64_t system_before = system_allocations(c);
	if ((num_inputs && !inputs) || (num_outputs && !outputs))
		return lth_diag_fail(diag, LTH_BAD_INPUT, inputs ? "outputs" : "inputs", "an array", NULL, "NULL");
	enum lth_code code = lth_signature_find(&c->signatures, inputs, num_inputs, &c->signature, diag);
	if (code == LTH_OK)
		code = check_outputs(c, outputs, num_outputs, diag);
	if (code == LTH_OK)
		code = prepare_arena(c, diag);
	if (code != LTH_OK)
		return code;
	c->profiler.last_run_allocations = c->profiler.last_run_copies = 0;
	lth_strings_reset(&c->strings);
	lth_objects_begin(&c->objects);
	lth_pool_reset_peak(c->pool);
	code = lth_take_values(c, inputs, diag);
	if (code == LTH_OK)
		code = execute(c, inputs, outputs, diag);
	lth_objects_sweep(&c->objects);
	lth_interpret_cleanup(c);
	lth_profiler_run(&c->profiler, c->signature->arena_bytes + lth_pool_counters(c->pool)->peak_bytes,
			 c->profiler.last_run_allocations + (system_allocations(c) - system_before));
	return code;
}

enum lth_code lth_context_run(struct lathe_context *c, const struct lathe_tensor *inputs, size_t num_inputs,
			      struct lathe_tensor *outputs, size_t num_outputs, struct lth_diag *diag)
{
	if (atomic_exchange(&c->running, true))
		return lth_diag_fail(diag, LTH_INVALID_OPTION, "context", "one run at a time",
				     "make a context for each thread", "a run in another thread");
	enum lth_code code = run_alone(c, inputs, num_inputs, outputs, num_outputs, diag);
	atomic_store(&c->running, false);
	return code;
}

void lth_context_release(struct lathe_context *c, struct lathe_tensor *output)
{
	if (output->dtype != LATHE_OBJECT)
		lth_pool_give(c->outputs, output->data, (int64_t)output->bytes);
	output->data = NULL;
	output->bytes = 0;
}

void lth_context_counters(const struct lathe_context *c, struct lathe_counters *out)
{
	const struct lth_pool_counters *pool = lth_pool_counters(c->pool);
	*out = (struct lathe_counters){
		.runs = c->profiler.runs,
		.signature_hits = c->signatures.hits,
		.signature_misses = c->signatures.misses,
		.arena_bytes = (uint64_t)c->arena_bytes,
		.arena_used_bytes = c->signature ? (uint64_t)c->signature->arena_bytes : 0,
		.peak_bytes = (uint64_t)c->profiler.peak_bytes,
		.pool_takes = pool->takes,
		.pool_gives = pool->gives,
		.pool_used_bytes = (uint64_t)pool->used_bytes,
		.pool_peak_bytes = (uint64_t)pool->peak_bytes,
		.pool_reserved_bytes = (uint64_t)pool->reserved_bytes,
		.output_bytes = (uint64_t)lth_pool_counters(c->outputs)->used_bytes,
		.system_allocations = system_allocations(c),
		.last_run_allocations = c->profiler.last_run_allocations,
		.last_run_copies = c->profiler.last_run_copies,
	};
}
