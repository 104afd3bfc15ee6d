/* C kernels on hostile values: shapes are such as the compiler makes, the data are the fuzzer's. A kernel may refuse, but
 * must not read or write outside its operands, and must give back what it took from the pool. */
#include "runtime/exec/pool.h"
#include "runtime/exec/strings.h"
#include "runtime/kernels/copy.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct input {
	const uint8_t *at, *end;
};

static unsigned take(struct input *in, unsigned limit)
{
	return in->at < in->end ? *in->at++ % limit : 0;
}

enum { MAX_OPERANDS = 8 };

struct operands {
	struct input *in;
	struct lth_builtin_tensor tensors[MAX_OPERANDS];
	int64_t dims[MAX_OPERANDS][LTH_MAX_RANK], strides[MAX_OPERANDS][LTH_MAX_RANK];
	uint32_t count, outputs;
};

/* A dense operand on a block of exactly its bytes, filled from the fuzzer's. */
static int64_t *add(struct operands *o, enum lth_dtype dtype, uint32_t rank, const int64_t *dims)
{
	struct lth_builtin_tensor *t = &o->tensors[o->count];
	int64_t stride = 1, element = lth_dtype_bits(dtype) / 8;
	for (uint32_t k = 0; k < rank; k++)
		o->dims[o->count][k] = dims[k];
	for (uint32_t k = rank; k-- > 0; stride *= dims[k])
		o->strides[o->count][k] = stride;
	size_t bytes = (size_t)(lth_tensor_count(rank, dims) * element);
	uint8_t *block = malloc(bytes ? bytes : 1);
	for (size_t i = 0; i < bytes; i++)
		block[i] = (uint8_t)take(o->in, 256);
	if (dtype == LTH_DTYPE_BOOL)
		for (size_t i = 0; i < bytes; i++)
			block[i] &= 1;
	*t = (struct lth_builtin_tensor){.data = block, .dtype = dtype, .rank = rank, .dims = o->dims[o->count],
					 .strides = o->strides[o->count]};
	o->count++;
	return (int64_t *)(void *)block;
}

static void add_scalar(struct operands *o, enum lth_dtype dtype)
{
	add(o, dtype, 0, NULL);
}

static enum lth_dtype any_number(struct input *in)
{
	static const enum lth_dtype dtypes[] = {LTH_DTYPE_F32,  LTH_DTYPE_I64, LTH_DTYPE_U8,   LTH_DTYPE_F16,
						LTH_DTYPE_BF16, LTH_DTYPE_F64, LTH_DTYPE_BOOL, LTH_DTYPE_I16};
	return dtypes[take(in, sizeof(dtypes) / sizeof(dtypes[0]))];
}

static uint32_t any_dims(struct input *in, uint32_t least_rank, int64_t dims[LTH_MAX_RANK])
{
	uint32_t rank = least_rank + take(in, 4 - least_rank);
	for (uint32_t k = 0; k < rank; k++)
		dims[k] = take(in, 5);
	return rank;
}

static void make_select(struct operands *o, enum lth_builtin builtin, char *attributes, size_t size)
{
	int64_t dims[LTH_MAX_RANK], out[LTH_MAX_RANK];
	uint32_t rank = any_dims(o->in, builtin == LTH_BUILTIN_NON_ZERO ? 0 : 1, dims), axis = take(o->in, rank ? rank : 1);
	enum lth_dtype dtype = any_number(o->in);
	bool flat = take(o->in, 2);
	int64_t total = lth_tensor_count(rank, dims), bound;
	memcpy(out, dims, sizeof(out));
	o->outputs = 2;
	if (builtin == LTH_BUILTIN_NON_ZERO) {
		out[0] = rank ? rank : 1;
		out[1] = total - (total > 0 && take(o->in, 2)); /* sometimes too small */
		add(o, LTH_DTYPE_I64, 2, out);
		add_scalar(o, LTH_DTYPE_I64);
		add(o, dtype, rank, dims);
		return;
	}
	bound = flat ? total : dims[axis];
	out[flat ? 0 : axis] = bound - (bound > 0 && take(o->in, 2));
	snprintf(attributes, size, flat ? "x=1" : "axis=%u", axis);
	add(o, dtype, flat ? 1 : rank, out);
	if (builtin == LTH_BUILTIN_COMPRESS) {
		int64_t length = take(o->in, 6);
		add_scalar(o, LTH_DTYPE_I64);
		add(o, dtype, rank, dims);
		add(o, LTH_DTYPE_BOOL, 1, &length);
		return;
	}
	/* unique is planned at the size of its input, which is a bound that always holds */
	free(o->tensors[0].data);
	o->count = 0;
	out[flat ? 0 : axis] = bound;
	add(o, dtype, flat ? 1 : rank, out);
	for (int i = 0; i < 3; i++)
		add(o, LTH_DTYPE_I64, 1, &bound);
	add_scalar(o, LTH_DTYPE_I64);
	add(o, dtype, rank, dims);
	o->outputs = 5;
	snprintf(attributes + strlen(attributes), size - strlen(attributes), ";sorted=%u", take(o->in, 2));
}

static void make_top_k(struct operands *o, char *attributes, size_t size)
{
	int64_t dims[LTH_MAX_RANK], out[LTH_MAX_RANK];
	uint32_t rank = any_dims(o->in, 1, dims), axis = take(o->in, rank);
	enum lth_dtype dtype = any_number(o->in);
	memcpy(out, dims, sizeof(out));
	out[axis] = take(o->in, (unsigned)dims[axis] + 2);
	add(o, dtype, rank, out);
	add(o, LTH_DTYPE_I64, rank, out);
	add(o, dtype, rank, dims);
	o->outputs = 2;
	snprintf(attributes, size, "axis=%u;largest=%u", axis, take(o->in, 2));
}

static void make_nms(struct operands *o, char *attributes, size_t size)
{
	int64_t batches = take(o->in, 3), classes = take(o->in, 3), boxes = take(o->in, 6);
	int64_t bound = batches * classes * boxes;
	add(o, LTH_DTYPE_I64, 2, (const int64_t[]){bound - (bound && take(o->in, 2)), 3});
	add_scalar(o, LTH_DTYPE_I64);
	add(o, LTH_DTYPE_F32, 3, (const int64_t[]){batches, boxes, 4});
	add(o, LTH_DTYPE_F32, 3, (const int64_t[]){batches, classes, boxes});
	add_scalar(o, LTH_DTYPE_I64);
	add_scalar(o, LTH_DTYPE_F32);
	add_scalar(o, LTH_DTYPE_F32);
	o->outputs = 2;
	snprintf(attributes, size, "center_point_box=%u", take(o->in, 2));
}

static void make_scatter(struct operands *o, enum lth_builtin builtin, char *attributes, size_t size)
{
	static const char *const reductions[] = {"none", "add", "mul", "min", "max"};
	int64_t dims[LTH_MAX_RANK], places[LTH_MAX_RANK], updates[LTH_MAX_RANK];
	uint32_t rank = any_dims(o->in, 1, dims), axis = take(o->in, rank), update_rank = rank, place_rank = rank;
	enum lth_dtype dtype = any_number(o->in);
	if (builtin == LTH_BUILTIN_SCATTER_ELEMENTS) {
		for (uint32_t k = 0; k < rank; k++)
			places[k] = updates[k] = k == axis ? take(o->in, 6) : take(o->in, (unsigned)dims[k] + 1);
	} else {
		uint32_t tuple = take(o->in, rank + 1);
		places[0] = updates[0] = take(o->in, 5);
		places[1] = tuple;
		place_rank = 2;
		update_rank = 1 + rank - tuple;
		for (uint32_t k = tuple; k < rank; k++)
			updates[1 + k - tuple] = dims[k];
	}
	add(o, dtype, rank, dims);
	add(o, dtype, rank, dims);
	int64_t *indices = add(o, LTH_DTYPE_I64, place_rank, places);
	for (int64_t i = 0; i < lth_tensor_count(place_rank, places) && take(o->in, 4); i++)
		indices[i] = (int64_t)take(o->in, 9) - 4; /* mostly near the data, so that updates happen */
	add(o, dtype, update_rank, updates);
	o->outputs = 1;
	snprintf(attributes, size, "axis=%u;reduction=%s", axis, reductions[take(o->in, 5)]);
}

/* Strings that are slices of the fuzzer's bytes. */
static void add_strings(struct operands *o, uint32_t rank, const int64_t *dims)
{
	size_t count = (size_t)lth_tensor_count(rank, dims);
	add(o, LTH_DTYPE_STRING, rank, dims);
	struct lth_string *list = o->tensors[o->count - 1].data;
	for (size_t i = 0; i < count; i++) {
		size_t size = take(o->in, 12), left = (size_t)(o->in->end - o->in->at);
		size = size < left ? size : left;
		list[i] = (struct lth_string){(const char *)o->in->at, size};
		o->in->at += size;
	}
}

/* What makes one result of the shape of its strings. */
static void make_text(struct operands *o, enum lth_builtin builtin, char *attributes, size_t size)
{
	static const char *const changes[] = {"NONE", "LOWER", "UPPER"};
	int64_t dims[LTH_MAX_RANK], bytes = take(o->in, 8), ends = take(o->in, 4), room = take(o->in, 4);
	uint32_t rank = builtin == LTH_BUILTIN_STRING_NORMALIZE ? 1 : take(o->in, 3);
	bool table = builtin == LTH_BUILTIN_STRING_NORMALIZE || builtin == LTH_BUILTIN_LOOKUP_STRING;
	bool splits = builtin == LTH_BUILTIN_STRING_SPLIT || builtin == LTH_BUILTIN_STRING_SPLIT_COUNT;
	for (uint32_t k = 0; k < rank; k++)
		dims[k] = take(o->in, 4);
	dims[rank] = room;
	o->outputs = builtin == LTH_BUILTIN_STRING_NORMALIZE ? 2 : 1;
	if (builtin == LTH_BUILTIN_PARSE_NUMBER)
		add(o, any_number(o->in), rank, dims);
	else if (builtin == LTH_BUILTIN_LOOKUP_STRING || builtin == LTH_BUILTIN_STRING_SPLIT_COUNT)
		add(o, LTH_DTYPE_I64, rank, dims);
	else
		add(o, LTH_DTYPE_STRING, builtin == LTH_BUILTIN_STRING_SPLIT ? rank + 1 : rank, dims);
	if (builtin == LTH_BUILTIN_STRING_NORMALIZE)
		add_scalar(o, LTH_DTYPE_I64);
	if (builtin == LTH_BUILTIN_FORMAT_NUMBER)
		add(o, any_number(o->in), rank, dims);
	else
		add_strings(o, rank, dims);
	if (builtin == LTH_BUILTIN_STRING_CONCAT)
		add_strings(o, rank, dims);
	if (splits || table)
		add(o, LTH_DTYPE_U8, 1, &bytes);
	if (table)
		add(o, LTH_DTYPE_I64, 1, &ends);
	snprintf(attributes, size, "case_change_action=%s;is_case_sensitive=%u;maxsplit=%d", changes[take(o->in, 3)],
		 take(o->in, 2), (int)take(o->in, 5) - 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = {data, data + size};
	struct operands o = {.in = &in};
	char attributes[96] = "";
	enum lth_builtin builtin = (enum lth_builtin)take(&in, LTH_NUM_BUILTINS);
	switch (builtin) {
	case LTH_BUILTIN_NON_ZERO:
	case LTH_BUILTIN_COMPRESS:
	case LTH_BUILTIN_UNIQUE:
		make_select(&o, builtin, attributes, sizeof(attributes));
		break;
	case LTH_BUILTIN_TOP_K:
		make_top_k(&o, attributes, sizeof(attributes));
		break;
	case LTH_BUILTIN_NON_MAX_SUPPRESSION:
		make_nms(&o, attributes, sizeof(attributes));
		break;
	case LTH_BUILTIN_SCATTER_ELEMENTS:
	case LTH_BUILTIN_SCATTER_ND:
		make_scatter(&o, builtin, attributes, sizeof(attributes));
		break;
	case LTH_BUILTIN_STRING_CONCAT:
	case LTH_BUILTIN_STRING_SPLIT_COUNT:
	case LTH_BUILTIN_STRING_SPLIT:
	case LTH_BUILTIN_STRING_NORMALIZE:
	case LTH_BUILTIN_LOOKUP_STRING:
	case LTH_BUILTIN_PARSE_NUMBER:
	case LTH_BUILTIN_FORMAT_NUMBER:
		make_text(&o, builtin, attributes, sizeof(attributes));
		break;
	default:
		return 0;
	}
	struct lth_pool *pool = lth_pool_create();
	struct lth_strings strings = {.pool = pool};
	struct lth_builtin_call call = {.num_outputs = o.outputs, .num_tensors = o.count, .tensors = o.tensors,
					.attributes = attributes, .pool = pool, .strings = &strings};
	int ignored = lth_builtin_function(builtin)(&call);
	(void)ignored;
	lth_strings_free(&strings);
	if (lth_pool_counters(pool)->used_bytes != 0)
		abort();
	lth_pool_destroy(&pool);
	for (uint32_t i = 0; i < o.count; i++)
		free(o.tensors[i].data);
	return 0;
}
