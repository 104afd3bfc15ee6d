/* C kernels on objects, one after the other as the fuzzer chooses: lists and tensors in a few registers, positions, axes and
 * sizes of any kind, handles that name nothing. A kernel may refuse, but must stay inside its operands, must not change
 * what lists hold, and all memory must come back. */
#include "runtime/exec/objects.h"
#include "runtime/kernels/copy.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { REGISTERS = 4, MAX_STEPS = 64, MAX_OPERANDS = 4 };

struct machine {
	const uint8_t *at, *end;
	struct lth_objects objects;
	int64_t handles[REGISTERS]; /* of objects */
};

static unsigned take(struct machine *m, unsigned limit)
{
	return m->at < m->end ? *m->at++ % limit : 0;
}

struct operands {
	struct lth_builtin_tensor list[MAX_OPERANDS];
	int64_t dims[MAX_OPERANDS][4], strides[MAX_OPERANDS][4];
	uint32_t count;
};

/* A dense operand on a block of exactly its bytes. */
static void *add(struct operands *o, enum lth_dtype dtype, uint32_t rank, const int64_t *dims)
{
	int64_t stride = 1, bytes;
	struct lth_builtin_tensor *t = &o->list[o->count];
	for (uint32_t axis = rank; axis-- > 0; stride *= dims[axis]) {
		o->dims[o->count][axis] = dims[axis];
		o->strides[o->count][axis] = stride;
	}
	if (!lth_dtype_bytes(dtype, stride, &bytes))
		abort();
	*t = (struct lth_builtin_tensor){.data = calloc(1, bytes ? (size_t)bytes : 1),
					 .dtype = dtype,
					 .rank = rank,
					 .dims = o->dims[o->count],
					 .strides = o->strides[o->count]};
	o->count++;
	return t->data;
}

static void add_handle(struct machine *m, struct operands *o, bool in)
{
	int64_t *handle = add(o, LTH_DTYPE_OBJECT, 0, NULL);
	unsigned chosen = take(m, REGISTERS + 1);
	if (in)
		*handle = chosen < REGISTERS ? m->handles[chosen] : (int64_t)take(m, 256) - 3;
}

static void add_tensor(struct machine *m, struct operands *o)
{
	static const enum lth_dtype dtypes[] = {LTH_DTYPE_F32, LTH_DTYPE_I64, LTH_DTYPE_U8, LTH_DTYPE_STRING};
	int64_t dims[3];
	uint32_t rank = take(m, 4);
	for (uint32_t axis = 0; axis < rank; axis++)
		dims[axis] = take(m, 4);
	add(o, dtypes[take(m, 4)], rank, dims);
}

static void add_integers(struct machine *m, struct operands *o)
{
	int64_t count = take(m, 4);
	int64_t *out = add(o, LTH_DTYPE_I64, take(m, 2), &count);
	for (int64_t i = 0; i < lth_tensor_count(o->list[o->count - 1].rank, &count); i++)
		out[i] = (int64_t)take(m, 12) - 5;
}

/* Outputs first: what the kernel's rules say, or something else now and then. */
static void make_operands(struct machine *m, enum lth_builtin builtin, struct operands *o)
{
	bool tensor_out = builtin == LTH_BUILTIN_LIST_CONCAT || builtin == LTH_BUILTIN_LIST_CONCAT_DIMS ||
			  builtin == LTH_BUILTIN_LIST_DIMS || builtin == LTH_BUILTIN_LIST_LENGTH ||
			  builtin == LTH_BUILTIN_MAP_FIND || (builtin == LTH_BUILTIN_LIST_AT && take(m, 2));
	if (tensor_out)
		add_tensor(m, o);
	else
		add_handle(m, o, false);
	while (o->count < MAX_OPERANDS && take(m, 8))
		switch (take(m, 3)) {
		case 0: add_handle(m, o, true); break;
		case 1: add_tensor(m, o); break;
		default: add_integers(m, o); break;
		}
}

static void step(struct machine *m, struct lth_pool *pool)
{
	enum lth_builtin builtin = (enum lth_builtin)(LTH_BUILTIN_LIST + take(m, LTH_BUILTIN_MAP_FIND - LTH_BUILTIN_LIST + 1));
	struct operands o = {.count = 0};
	char attributes[64];
	make_operands(m, builtin, &o);
	snprintf(attributes, sizeof(attributes), "axis=%d;new_axis=%u;keepdims=%u", (int)take(m, 5) - 1, take(m, 2), take(m, 2));
	struct lth_builtin_call call = {.num_outputs = 1, .num_tensors = o.count, .tensors = o.list,
					.attributes = attributes, .pool = pool, .objects = &m->objects};
	int error = lth_builtin_function(builtin)(&call);
	if (!error && o.list[0].dtype == LTH_DTYPE_OBJECT)
		memcpy(&m->handles[take(m, REGISTERS)], o.list[0].data, sizeof(int64_t));
	for (uint32_t i = 0; i < o.count; i++)
		free(o.list[i].data);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct lth_pool *pool = lth_pool_create();
	struct machine m = {.at = data, .end = data + size, .objects = {.pool = pool}};
	for (int i = 0; i < MAX_STEPS && m.at < m.end; i++)
		step(&m, pool);
	lth_objects_free(&m.objects);
	if (lth_pool_counters(pool)->used_bytes != 0)
		abort();
	lth_pool_destroy(&pool);
	return 0;
}
