/* The interpreter: walks the instructions of a verified program at a known signature. Structure is verified, shapes are
 * checked with the signature, so what is left to check here is what only data decides.
 *
 * A storage's bytes are bases[storage]. Planned ones point into the arena from the start; all others get their base
 * when an ALLOC takes a block from the pool. */
#include "runtime/base/checked.h"
#include "runtime/base/io.h"
#include "runtime/exec/context.h"
#include "runtime/kernels/copy.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

static const char *const kernel_errors[LTH_NUM_KERNEL_ERRORS] = {
	[LTH_KERNEL_INDEX] = "an index outside its tensor",
	[LTH_KERNEL_SHAPE] = "a shape that does not fit",
	[LTH_KERNEL_DIVISION] = "an integer division by zero",
	[LTH_KERNEL_MEMORY] = "no memory left",
	[LTH_KERNEL_LIMIT] = "data beyond a limit",
	[LTH_KERNEL_LIBRARY] = "a library that cannot be loaded",
};

static const char *place_of(const struct lathe_context *c, uint32_t at, char place[300])
{
	const struct lth_instr *instr = &c->x->program->instrs[at];
	if (instr->node)
		snprintf(place, 300, "node '%.250s'", instr->node);
	else
		snprintf(place, 300, "instruction %u (%s)", at, lth_instr_text(instr->op));
	return place;
}

enum lth_code lth_tensor_pointer(struct lathe_context *c, uint32_t tensor, void **out_pointer, struct lth_diag *diag)
{
	const struct lth_program *program = c->x->program;
	const struct lth_tensor *t = &program->tensors[tensor];
	if (program->storages[t->storage].kind == LTH_STORAGE_POOL) {
		enum lth_code code = lth_tensor_check(program, tensor, c->signature->values, c->taken[t->storage],
						      diag);
		if (code != LTH_OK)
			return code;
	}
	/* Of a tensor without elements kernels may read the first place, a vector at most, and use nothing of it. */
	static _Alignas(64) const char nothing[64];
	char *base = c->bases[t->storage];
	*out_pointer = base ? base + c->signature->values[t->offset] : NULL;
	for (uint32_t axis = 0; axis < t->rank; axis++)
		if (c->signature->values[t->dims[axis]] == 0)
			*out_pointer = (void *)(uintptr_t)nothing;
	return LTH_OK;
}

/* A view repeats elements by strides of 0: its extents may be beyond what any memory bounds. */
static bool countable(uint32_t rank, const int64_t *dims)
{
	int64_t count = 1;
	bool fits = true;
	for (uint32_t axis = 0; axis < rank; axis++) {
		if (dims[axis] == 0)
			return true;
		fits = fits && lth_mul_i64(count, dims[axis], &count);
	}
	return fits;
}

enum lth_code lth_tensor_view(struct lathe_context *c, uint32_t tensor, int64_t *dims,
			      struct lth_builtin_tensor *out_view, struct lth_diag *diag)
{
	const struct lth_tensor *t = &c->x->program->tensors[tensor];
	void *data;
	enum lth_code code = lth_tensor_pointer(c, tensor, &data, diag);
	if (code != LTH_OK)
		return code;
	for (uint32_t axis = 0; axis < t->rank; axis++) {
		dims[axis] = c->signature->values[t->dims[axis]];
		dims[LTH_MAX_RANK + axis] = c->signature->values[t->strides[axis]];
	}
	if (!countable(t->rank, dims)) {
		char place[300];
		snprintf(place, sizeof(place), "tensor '%.250s'", t->name ? t->name : "");
		return lth_diag_fail(diag, LTH_RUNTIME_ERROR, place, "as many elements as an int64 can count", NULL,
				     "more");
	}
	*out_view = (struct lth_builtin_tensor){
		.data = data, .dtype = t->dtype, .rank = t->rank, .dims = dims, .strides = dims + LTH_MAX_RANK,
	};
	return LTH_OK;
}

static enum lth_code gather_ints(struct lathe_context *c, const struct lth_instr *instr)
{
	for (uint32_t i = 0; i < instr->num_ints; i++)
		c->ints[i] = c->signature->values[instr->ints[i]];
	return LTH_OK;
}

static enum lth_code kernel_error(struct lathe_context *c, uint32_t at, int error, const char *message,
				  struct lth_diag *diag)
{
	char place[300];
	const char *known = error > 0 && error < LTH_NUM_KERNEL_ERRORS ? kernel_errors[error] : "an unknown error";
	enum lth_code code = error == LTH_KERNEL_MEMORY ? LTH_OUT_OF_MEMORY : LTH_RUNTIME_ERROR;
	const char *advice = error == LTH_KERNEL_LIBRARY
				     ? "install Lathe's liblathe-media.so.0 and Debian's libjpeg62-turbo, libopenjp2-7, "
				       "libpcre2-8-0, libpng16-16, libtiff6 and libwebp7, or set LATHE_MEDIA to its path"
				     : NULL;
	return lth_diag_fail(diag, code, place_of(c, at, place), NULL, advice, "%s%s%s", known, message[0] ? ": " : "",
			     message);
}

/* A compiled kernel on one piece of its range. */
struct kernel_task {
	lathe_kernel_fn kernel;
	struct lathe_kernel_call call;
	char *scratch;
	int64_t scratch_step;
};

static int run_kernel_task(void *context, int64_t begin, int64_t end, int64_t thread)
{
	const struct kernel_task *task = context;
	struct lathe_kernel_call call = task->call;
	call.thread = thread;
	call.scratch = task->scratch ? task->scratch + thread * task->scratch_step : NULL;
	return task->kernel(&call, begin, end);
}

/* Sets the task's scratch; returns how many threads it serves. */
static int64_t set_scratch(struct lathe_context *c, const struct lth_instr *instr, struct kernel_task *task)
{
	if (instr->scratch == LTH_NONE)
		return LTH_MAX_THREADS;
	const struct lth_storage *s = &c->x->program->storages[instr->scratch];
	int64_t bytes = c->signature->values[instr->scratch_bytes];
	int64_t size = c->taken[instr->scratch] >= 0 ? c->taken[instr->scratch] : c->signature->values[s->size];
	task->scratch = c->bases[instr->scratch];
	if (bytes <= 0)
		return LTH_MAX_THREADS;
	if (bytes > size)
		return 0;
	task->scratch_step = (bytes + 63) & ~(int64_t)63;
	return size < task->scratch_step ? 1 : size / task->scratch_step;
}

/* Whether a call has nothing to write: some extent of every result is 0, however long its other loops are. */
static bool writes_nothing(const struct lathe_context *c, const struct lth_instr *instr)
{
	for (uint32_t i = 0; i < instr->num_outputs; i++) {
		if (instr->tensors[i] == LTH_NONE)
			continue;
		const struct lth_tensor *t = &c->x->program->tensors[instr->tensors[i]];
		bool empty = false;
		for (uint32_t axis = 0; axis < t->rank; axis++)
			empty |= c->signature->values[t->dims[axis]] == 0;
		if (!empty)
			return false;
	}
	return true;
}

static enum lth_code step_call(struct lathe_context *c, uint32_t at, struct lth_diag *diag)
{
	const struct lth_instr *instr = &c->x->program->instrs[at];
	struct kernel_task task = {
		.kernel = c->x->image.kernels[instr->callee],
		.call = {.pointers = c->pointers, .ints = c->ints},
	};
	for (uint32_t i = 0; i < instr->num_tensors; i++) {
		c->pointers[i] = NULL;
		if (instr->tensors[i] == LTH_NONE)
			continue;
		enum lth_code code = lth_tensor_pointer(c, instr->tensors[i], &c->pointers[i], diag);
		if (code != LTH_OK)
			return code;
	}
	gather_ints(c, instr);
	int64_t range = c->signature->values[instr->range], threads = set_scratch(c, instr, &task);
	char place[300];
	if (threads == 0)
		return lth_diag_fail(diag, LTH_RUNTIME_ERROR, place_of(c, at, place), NULL,
				     "report it: the compiler's bound was too small", "scratch that is too small");
	enum { MANY_UNITS = 1 << 24 }; /* more than this, of nothing, would take time */
	if (range <= 0 || (range > MANY_UNITS && writes_nothing(c, instr)))
		return LTH_OK;
	int error;
	if (c->threads && threads > 1)
		error = lth_threadpool_run(c->threads, run_kernel_task, &task, range, instr->grain,
					   (unsigned)(threads < LTH_MAX_THREADS ? threads : LTH_MAX_THREADS));
	else
		error = run_kernel_task(&task, 0, range, 0);
	return error ? kernel_error(c, at, error, "", diag) : LTH_OK;
}

static enum lth_code step_builtin(struct lathe_context *c, uint32_t at, struct lth_diag *diag)
{
	const struct lth_instr *instr = &c->x->program->instrs[at];
	for (uint32_t i = 0; i < instr->num_tensors; i++) {
		c->tensors[i] = (struct lth_builtin_tensor){0};
		if (instr->tensors[i] == LTH_NONE)
			continue;
		enum lth_code code = lth_tensor_view(c, instr->tensors[i], c->dims + (size_t)i * 2 * LTH_MAX_RANK,
						     &c->tensors[i], diag);
		if (code != LTH_OK)
			return code;
	}
	gather_ints(c, instr);
	struct lth_builtin_call call = {
		.num_outputs = instr->num_outputs, .num_tensors = instr->num_tensors, .num_ints = instr->num_ints,
		.tensors = c->tensors, .ints = c->ints, .attributes = instr->text ? instr->text : "",
		.pool = c->pool, .strings = &c->strings, .objects = &c->objects, .threads = c->threads,
	};
	int error = lth_builtin_function((enum lth_builtin)instr->callee)(&call);
	return error ? kernel_error(c, at, error, call.message, diag) : LTH_OK;
}

static enum lth_code step_copy(struct lathe_context *c, uint32_t at, struct lth_diag *diag)
{
	const struct lth_instr *instr = &c->x->program->instrs[at];
	struct lth_builtin_tensor to, from;
	int64_t to_dims[2 * LTH_MAX_RANK], from_dims[2 * LTH_MAX_RANK];
	enum lth_code code = lth_tensor_view(c, instr->tensors[0], to_dims, &to, diag);
	if (code == LTH_OK)
		code = lth_tensor_view(c, instr->tensors[1], from_dims, &from, diag);
	if (code != LTH_OK)
		return code;
	for (uint32_t axis = 0; axis < to.rank; axis++)
		if (to_dims[axis] != from_dims[axis]) {
			char place[300], expected[64];
			snprintf(expected, sizeof(expected), "%lld", (long long)to_dims[axis]);
			return lth_diag_fail(diag, LTH_RUNTIME_ERROR, place_of(c, at, place), expected, NULL,
					     "%lld at axis %u", (long long)from_dims[axis], axis);
		}
	lth_copy_tensor(&to, &from, c->threads);
	c->profiler.last_run_copies++;
	return LTH_OK;
}

static enum lth_code step_alloc(struct lathe_context *c, uint32_t at, struct lth_diag *diag)
{
	const struct lth_program *program = c->x->program;
	uint32_t id = program->instrs[at].storage;
	const struct lth_storage *s = &program->storages[id];
	int64_t bytes = c->signature->values[s->size];
	char place[300];
	if (!program->fused_sizes) {
		enum lth_code code = lth_evaluate_afresh(c, s->size, place_of(c, at, place), &bytes, diag);
		if (code != LTH_OK)
			return code;
	}
	if (c->x->planned[id])
		return LTH_OK;
	if (bytes < 0)
		return lth_diag_fail(diag, LTH_RUNTIME_ERROR, place_of(c, at, place), "a size of 0 or more", NULL,
				     "%lld bytes", (long long)bytes);
	if (c->taken[id] >= 0) /* a loop's next turn */
		lth_pool_give(c->pool, c->bases[id], c->taken[id]);
	c->taken[id] = -1;
	c->bases[id] = lth_pool_take_aligned(c->pool, bytes, s->alignment);
	if (!c->bases[id])
		return lth_diag_fail(diag, LTH_OUT_OF_MEMORY, s->name ? s->name : "storage", NULL, NULL, "%lld bytes",
				     (long long)bytes);
	c->taken[id] = bytes;
	c->pool_used = true;
	c->profiler.last_run_allocations++;
	return LTH_OK;
}

/* Grows by half at least: what collects a slice a turn is moved rarely. */
static enum lth_code step_grow(struct lathe_context *c, uint32_t at, struct lth_diag *diag)
{
	const struct lth_program *program = c->x->program;
	const struct lth_instr *instr = &program->instrs[at];
	uint32_t id = program->tensors[instr->tensors[0]].storage;
	const struct lth_storage *s = &program->storages[id];
	int64_t wanted = c->signature->values[instr->ints[0]], held = c->taken[id], bytes = wanted;
	char place[300];
	if (wanted <= held)
		return LTH_OK;
	if (held > 0 && held < INT64_MAX / 2 && bytes < held + held / 2)
		bytes = held + held / 2;
	void *block = lth_pool_take_aligned(c->pool, bytes, s->alignment);
	if (!block)
		return lth_diag_fail(diag, LTH_OUT_OF_MEMORY, place_of(c, at, place), NULL, NULL, "%lld bytes",
				     (long long)bytes);
	if (held > 0)
		memcpy(block, c->bases[id], (size_t)held);
	if (held >= 0)
		lth_pool_give(c->pool, c->bases[id], held);
	c->bases[id] = block;
	c->taken[id] = bytes;
	c->pool_used = true;
	c->profiler.last_run_allocations++;
	return LTH_OK;
}

static void exchange(struct lathe_context *c, uint32_t a, uint32_t b)
{
	void *base = c->bases[a];
	int64_t taken = c->taken[a];
	c->bases[a] = c->bases[b];
	c->taken[a] = c->taken[b];
	c->bases[b] = base;
	c->taken[b] = taken;
}

static void step_swap(struct lathe_context *c, uint32_t at)
{
	const struct lth_instr *instr = &c->x->program->instrs[at];
	int64_t times = instr->ints[0] == LTH_NONE ? 1 : c->signature->values[instr->ints[0]];
	if (times > 0 && times % 2 == 1)
		exchange(c, c->x->program->tensors[instr->tensors[0]].storage,
			 c->x->program->tensors[instr->tensors[1]].storage);
}

/* Two blocks of memory exchange their bytes. */
static void exchange_bytes(char *a, char *b, size_t bytes)
{
	char held[4096];
	for (size_t part; bytes; bytes -= part, a += part, b += part) {
		part = bytes < sizeof(held) ? bytes : sizeof(held);
		memcpy(held, a, part);
		memcpy(a, b, part);
		memcpy(b, held, part);
	}
}

/* Brings the output back to `home`, which another storage of its class holds by now: an output, too, or one whose bytes
 * nobody reads any more. */
static void settle(struct lathe_context *c, uint32_t output, void *home, bool ran)
{
	const struct lathe_executable *x = c->x;
	const struct lth_storage *storages = x->program->storages;
	size_t bytes = (size_t)c->signature->values[storages[output].size];
	uint32_t other = 0;
	while (other < x->program->num_storages &&
	       (other == output || x->swap_class[other] != x->swap_class[output] || c->bases[other] != home))
		other++;
	assert(other < x->program->num_storages); /* swaps move places about within a class */
	if (ran && storages[other].kind == LTH_STORAGE_OUTPUT)
		exchange_bytes(home, c->bases[output], bytes);
	else if (ran)
		memcpy(home, c->bases[output], bytes);
	c->profiler.last_run_copies++;
	exchange(c, output, other);
}

void lth_settle_outputs(struct lathe_context *c, bool ran)
{
	for (uint32_t i = 0; i < c->x->num_swapped_outputs; i++)
		if (c->bases[c->x->swapped_outputs[i]] != c->homes[i])
			settle(c, c->x->swapped_outputs[i], c->homes[i], ran);
}

static void step_kill(struct lathe_context *c, uint32_t at)
{
	uint32_t id = c->x->program->instrs[at].storage;
	if (c->taken[id] < 0)
		return;
	lth_pool_give(c->pool, c->bases[id], c->taken[id]);
	c->bases[id] = NULL;
	c->taken[id] = -1;
}

void lth_interpret_cleanup(struct lathe_context *c)
{
	for (uint32_t id = 0; c->pool_used && id < c->x->program->num_storages; id++) {
		if (c->taken[id] < 0)
			continue;
		bool output = c->x->program->storages[id].kind == LTH_STORAGE_OUTPUT;
		lth_pool_give(output ? c->outputs : c->pool, c->bases[id], c->taken[id]);
		c->bases[id] = NULL;
		c->taken[id] = -1;
	}
	c->pool_used = false;
}

/* An element of an integer or bool tensor. */
static int64_t read_int(const void *at, enum lth_dtype dtype)
{
	switch (dtype) {
	case LTH_DTYPE_I8:
		return *(const int8_t *)at;
	case LTH_DTYPE_I16:
		return *(const int16_t *)at;
	case LTH_DTYPE_I32:
		return *(const int32_t *)at;
	case LTH_DTYPE_U16:
		return *(const uint16_t *)at;
	case LTH_DTYPE_U32:
		return *(const uint32_t *)at;
	case LTH_DTYPE_I64:
		return *(const int64_t *)at;
	case LTH_DTYPE_U64:
		return *(const uint64_t *)at > INT64_MAX ? INT64_MAX : (int64_t)*(const uint64_t *)at;
	default:
		return *(const uint8_t *)at;
	}
}

/* The element of a tensor that a row-major index names. */
static enum lth_code read_element(struct lathe_context *c, uint32_t at, uint32_t tensor, int64_t index, int64_t *out,
				  struct lth_diag *diag)
{
	struct lth_builtin_tensor view;
	int64_t dims[2 * LTH_MAX_RANK], place = 0, rest = index;
	char where[300], expected[64];
	enum lth_code code = lth_tensor_view(c, tensor, dims, &view, diag);
	if (code != LTH_OK)
		return code;
	int64_t count = lth_tensor_count(view.rank, view.dims);
	if (index < 0 || index >= count) {
		snprintf(expected, sizeof(expected), "an element of %lld", (long long)count);
		return lth_diag_fail(diag, LTH_RUNTIME_ERROR, place_of(c, at, where), expected, NULL, "element %lld",
				     (long long)index);
	}
	for (uint32_t axis = view.rank; axis-- > 0;) {
		place += rest % view.dims[axis] * view.strides[axis];
		rest /= view.dims[axis];
	}
	*out = read_int((const char *)view.data + place * (int64_t)(lth_dtype_bits(view.dtype) / 8), view.dtype);
	return LTH_OK;
}

static enum lth_code step_bind(struct lathe_context *c, uint32_t at, struct lth_diag *diag)
{
	const struct lth_instr *instr = &c->x->program->instrs[at];
	int64_t value;
	char place[300];
	enum lth_code code =
		read_element(c, at, instr->tensors[0], c->signature->values[instr->ints[0]], &value, diag);
	return code != LTH_OK ? code : lth_bind_symbol(c, instr->symbol, value, place_of(c, at, place), diag);
}

static enum lth_code step_set(struct lathe_context *c, uint32_t at, struct lth_diag *diag)
{
	const struct lth_instr *instr = &c->x->program->instrs[at];
	char place[300];
	return lth_bind_symbol(c, instr->symbol, c->signature->values[instr->ints[0]], place_of(c, at, place), diag);
}

/* Whether a loop has a next turn; binds its symbol if so. */
static enum lth_code next_turn(struct lathe_context *c, struct lth_loop *loop, bool *out_more, struct lth_diag *diag)
{
	const struct lth_instr *instr = &c->x->program->instrs[loop->position];
	int64_t condition = 1;
	char place[300];
	*out_more = false;
	if (instr->tensors[0] != LTH_NONE) {
		enum lth_code code = read_element(c, loop->position, instr->tensors[0], 0, &condition, diag);
		if (code != LTH_OK)
			return code;
	}
	if (!condition || loop->turn >= loop->trips)
		return LTH_OK;
	*out_more = true;
	return instr->symbol == LTH_NONE ? LTH_OK
					 : lth_bind_symbol(c, instr->symbol, loop->turn,
							   place_of(c, loop->position, place), diag);
}

/* The control flow instructions set `*next`, the position to go on from. */
static enum lth_code step_if(struct lathe_context *c, uint32_t at, uint32_t *next, struct lth_diag *diag)
{
	const struct lth_instr *instr = &c->x->program->instrs[at];
	int64_t condition;
	enum lth_code code = read_element(c, at, instr->tensors[0], 0, &condition, diag);
	if (code == LTH_OK && !condition)
		*next = instr->target + 1;
	return code;
}

static enum lth_code step_loop(struct lathe_context *c, uint32_t at, uint32_t *next, struct lth_diag *diag)
{
	const struct lth_instr *instr = &c->x->program->instrs[at];
	struct lth_loop *loop = &c->loops[c->num_loops];
	int64_t trips = instr->ints[0] == LTH_NONE ? INT64_MAX : c->signature->values[instr->ints[0]];
	bool more;
	*loop = (struct lth_loop){.position = at, .trips = trips};
	enum lth_code code = next_turn(c, loop, &more, diag);
	if (more)
		c->num_loops++;
	else
		*next = instr->target + 1;
	return code;
}

static enum lth_code step_endloop(struct lathe_context *c, uint32_t at, uint32_t *next, struct lth_diag *diag)
{
	struct lth_loop *loop = &c->loops[c->num_loops - 1];
	bool more;
	loop->turn++;
	enum lth_code code = next_turn(c, loop, &more, diag);
	if (more)
		*next = c->x->program->instrs[at].target + 1;
	else
		c->num_loops--;
	return code;
}

static enum lth_code step(struct lathe_context *c, uint32_t at, uint32_t *next, struct lth_diag *diag)
{
	const struct lth_instr *instr = &c->x->program->instrs[at];
	switch (instr->op) {
	case LTH_INSTR_CALL:
		return step_call(c, at, diag);
	case LTH_INSTR_BUILTIN:
		return step_builtin(c, at, diag);
	case LTH_INSTR_COPY:
		return step_copy(c, at, diag);
	case LTH_INSTR_ALLOC:
		return step_alloc(c, at, diag);
	case LTH_INSTR_KILL:
		step_kill(c, at);
		return LTH_OK;
	case LTH_INSTR_BIND:
		return step_bind(c, at, diag);
	case LTH_INSTR_SET:
		return step_set(c, at, diag);
	case LTH_INSTR_GROW:
		return step_grow(c, at, diag);
	case LTH_INSTR_SWAP:
		step_swap(c, at);
		return LTH_OK;
	case LTH_INSTR_GUARD:
		return c->x->guard_done[at] ? LTH_OK : lth_guard_check(instr, at, c->signature->values, diag);
	case LTH_INSTR_IF:
		return step_if(c, at, next, diag);
	case LTH_INSTR_ELSE: /* the end of the first arm */
		*next = instr->target + 1;
		return LTH_OK;
	case LTH_INSTR_LOOP:
		return step_loop(c, at, next, diag);
	case LTH_INSTR_ENDLOOP:
		return step_endloop(c, at, next, diag);
	default:
		return LTH_OK;
	}
}

/* Bytes of an instruction's tensors, for profiles. */
static uint64_t bytes_touched(const struct lathe_context *c, const struct lth_instr *instr)
{
	uint64_t total = 0;
	if (instr->op == LTH_INSTR_SWAP)
		return 0;
	for (uint32_t i = 0; i < instr->num_tensors; i++) {
		if (instr->tensors[i] == LTH_NONE)
			continue;
		const struct lth_tensor *t = &c->x->program->tensors[instr->tensors[i]];
		int64_t count = 1, bytes;
		for (uint32_t axis = 0; axis < t->rank; axis++)
			count *= c->signature->values[t->dims[axis]];
		total += lth_dtype_bytes(t->dtype, count, &bytes) ? (uint64_t)bytes : 0;
	}
	return total;
}

enum lth_code lth_interpret(struct lathe_context *c, struct lth_diag *diag)
{
	const struct lth_program *program = c->x->program;
	bool timed = lth_profiler_on(&c->profiler);
	c->num_loops = 0;
	for (uint32_t at = 0; at < program->num_instrs;) {
		uint32_t next = at + 1;
		uint64_t start = timed ? lth_now_ns() : 0;
		enum lth_code code = step(c, at, &next, diag);
		if (code != LTH_OK)
			return code;
		if (timed)
			lth_profiler_call(&c->profiler, at, start, bytes_touched(c, &program->instrs[at]));
		at = next;
	}
	return LTH_OK;
}
