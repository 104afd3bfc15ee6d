/* Random loop IR. See loop_random.h. A pool of values for each compute type grows by random operators on what is there;
 * at last one of each type is stored. What is not defined (bits of a nan, scales of broken exponents) is kept out. */
#include "loop_random.h"

#include "compiler/lower/lanes.h"
#include "runtime/base/hash.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

const enum lth_dtype random_types[] = {
	LTH_DTYPE_F32, LTH_DTYPE_F64, LTH_DTYPE_I8, LTH_DTYPE_I16, LTH_DTYPE_I32, LTH_DTYPE_I64,
	LTH_DTYPE_U8, LTH_DTYPE_U16, LTH_DTYPE_U32, LTH_DTYPE_U64, LTH_DTYPE_BOOL,
	LTH_DTYPE_F16, LTH_DTYPE_BF16, LTH_DTYPE_F8E4M3, LTH_DTYPE_F8E5M2, LTH_DTYPE_F8E8M0,
};
const uint32_t random_num_types = sizeof(random_types) / sizeof(random_types[0]);
enum { NUM_COMPUTE = 11, POOL = 64 };

struct maker {
	struct lth_loop_fn *fn;
	uint64_t state;
	struct random_options options;
	unsigned lanes;
	lth_lv pool[NUM_COMPUTE][POOL];
	uint32_t count[NUM_COMPUTE];
	lth_lv unit, mask;
	unsigned depth;
};

static uint64_t next(struct maker *m)
{
	m->state += 0x9e3779b97f4a7c15u;
	return lth_hash_u64(m->state, 1);
}

static uint32_t below(struct maker *m, uint32_t limit)
{
	return (uint32_t)(next(m) % limit);
}

static uint32_t kind_of(enum lth_dtype dtype)
{
	for (uint32_t k = 0; k < NUM_COMPUTE; k++)
		if (random_types[k] == dtype)
			return k;
	return 0;
}

static void keep(struct maker *m, lth_lv value)
{
	uint32_t kind = kind_of(lth_loop_get(m->fn, value)->dtype);
	value = lth_loop_splat(m->fn, value, m->lanes);
	m->pool[kind][m->count[kind] < POOL ? m->count[kind]++ : below(m, POOL)] = value;
}

static lth_lv any(struct maker *m, uint32_t kind)
{
	if (m->count[kind] == 0) /* only when memory ran out */
		return 0;
	/* The newest are the most interesting. */
	uint32_t count = m->count[kind], back = below(m, 4) ? below(m, count < 6 ? count : 6) : below(m, count);
	return m->pool[kind][count - 1 - back];
}

static lth_lv zero(struct maker *m, enum lth_dtype dtype)
{
	return lth_is_float(dtype) ? lth_loop_const_f(m->fn, dtype, 0) : lth_loop_const_i(m->fn, dtype, 0);
}

/* The value without nans, whose bits mean nothing. */
static lth_lv without_nan(struct maker *m, lth_lv value)
{
	enum lth_dtype dtype = lth_loop_get(m->fn, value)->dtype;
	if (!lth_is_float(dtype))
		return value;
	return lth_loop_op3(m->fn, LTH_SCALAR_SELECT, lth_loop_op1(m->fn, LTH_SCALAR_ISNAN, value), zero(m, dtype), value);
}

static bool allowed(const struct maker *m, enum lth_scalar_op op)
{
	if (op > LTH_SCALAR_ISNAN)
		return m->options.math;
	return op != LTH_SCALAR_FMA || m->options.fma;
}

static void make_op(struct maker *m)
{
	enum lth_scalar_op op = (enum lth_scalar_op)below(m, LTH_NUM_SCALARS);
	uint32_t kind = below(m, NUM_COMPUTE);
	if (op > LTH_SCALAR_SCALE)
		kind = below(m, 4) == 0; /* f32, at times f64 */
	enum lth_dtype dtype = random_types[kind], to = random_types[below(m, NUM_COMPUTE)];
	if (!allowed(m, op))
		return;
	lth_lv a = any(m, kind), b = any(m, kind), c = any(m, kind);
	if (below(m, 8) == 0)
		b = lth_is_float(dtype) ? lth_loop_const_f(m->fn, dtype, (double)below(m, 64) / 8 - 4) :
					  lth_loop_const_i(m->fn, dtype, (int64_t)below(m, 20) - 10);
	if (op == LTH_SCALAR_ROUND_TO) {
		keep(m, lth_loop_round_to(m->fn, any(m, 0), random_types[NUM_COMPUTE + below(m, 5)]));
	} else if (op == LTH_SCALAR_CAST) {
		keep(m, lth_loop_cast(m->fn, a, to));
	} else if (op == LTH_SCALAR_BITCAST) {
		if (lth_lanes(op, dtype, to))
			keep(m, lth_loop_bitcast(m->fn, without_nan(m, a), to));
	} else if (op == LTH_SCALAR_SELECT) {
		keep(m, lth_loop_op3(m->fn, op, any(m, kind_of(LTH_DTYPE_BOOL)), b, c));
	} else if (op == LTH_SCALAR_SCALE) {
		keep(m, lth_loop_op2(m->fn, op, any(m, 0), lth_loop_cast(m->fn, any(m, 2), LTH_DTYPE_F32)));
	} else if (lth_lanes(op, dtype, dtype)) {
		unsigned arity = lth_scalar_arity(op);
		keep(m, lth_loop_op3(m->fn, op, a, arity > 1 ? b : LTH_LV_NONE, arity > 2 ? c : LTH_LV_NONE));
	}
}

static lth_lv address(struct maker *m, uint32_t type, bool output)
{
	return lth_loop_offset(m->fn, lth_loop_pointer(m->fn, 2 * type + output), m->unit, random_types[type]);
}

/* Loads, straight or gathered by small indices, masked or not (inputs are longer than the units). */
static void make_load(struct maker *m)
{
	uint32_t type = below(m, random_num_types);
	lth_lv mask = below(m, 2) ? m->mask : below(m, 4) ? LTH_LV_NONE : any(m, kind_of(LTH_DTYPE_BOOL));
	if (below(m, 3)) {
		keep(m, lth_loop_load(m->fn, address(m, type, false), random_types[type], m->lanes, mask));
		return;
	}
	lth_lv index = lth_loop_op2(m->fn, LTH_SCALAR_AND, any(m, kind_of(LTH_DTYPE_I64)), lth_loop_i64(m->fn, 127));
	keep(m, lth_loop_gather(m->fn, lth_loop_pointer(m->fn, 2 * type), index, random_types[type], mask));
}

static void make_vector(struct maker *m)
{
	static const enum lth_scalar_op reducers[] = {LTH_SCALAR_ADD, LTH_SCALAR_MUL, LTH_SCALAR_MIN, LTH_SCALAR_MAX};
	uint32_t kind = below(m, NUM_COMPUTE), lanes[LTH_MAX_LANES];
	lth_lv a = any(m, kind), b = any(m, kind);
	switch (below(m, 6)) {
	case 0:
		keep(m, lth_loop_reduce(m->fn, reducers[below(m, 4)], a));
		break;
	case 1:
		keep(m, lth_loop_extract(m->fn, a, below(m, m->lanes)));
		break;
	case 2:
		for (unsigned k = 0; k < m->lanes; k++)
			lanes[k] = below(m, 2 * m->lanes);
		keep(m, lth_loop_shuffle(m->fn, a, b, lanes, m->lanes));
		break;
	case 3: /* lane numbers of any size */
		keep(m, lth_loop_permute(m->fn, a, any(m, kind_of(LTH_DTYPE_I32))));
		break;
	case 4:
		keep(m, lth_loop_mask(m->fn, lth_loop_int(m->fn, 1), m->lanes));
		break;
	default:
		keep(m, lth_loop_ramp(m->fn, m->unit, m->lanes));
		break;
	}
}

/* The byte dot product, of bytes repeated to four times the lanes. */
static void make_dot(struct maker *m)
{
	uint32_t lanes[LTH_MAX_LANES];
	if (m->lanes > LTH_MAX_LANES / 4)
		return;
	for (unsigned k = 0; k < 4 * m->lanes; k++)
		lanes[k] = k % (2 * m->lanes);
	lth_lv u = any(m, kind_of(LTH_DTYPE_U8)), v = any(m, kind_of(LTH_DTYPE_U8));
	lth_lv s = any(m, kind_of(LTH_DTYPE_I8)), t = any(m, kind_of(LTH_DTYPE_I8));
	if (m->lanes == 1)
		return;
	keep(m, lth_loop_dot4(m->fn, any(m, kind_of(LTH_DTYPE_I32)), lth_loop_shuffle(m->fn, u, v, lanes, 4 * m->lanes),
			      lth_loop_shuffle(m->fn, s, t, lanes, 4 * m->lanes)));
}

static void make_some(struct maker *m, uint32_t count);

/* An inner loop with carried values, two of which change places every turn. */
static void make_loop(struct maker *m)
{
	uint32_t kind = below(m, NUM_COMPUTE), other = below(m, NUM_COMPUTE);
	struct maker saved = *m;
	lth_lv initial[3] = {any(m, kind), any(m, kind), any(m, other)}, phis[3], next_values[3], results[3];
	lth_lv turns = lth_loop_int(m->fn, 0);
	lth_lv index = lth_loop_for(m->fn, lth_loop_i64(m->fn, (int64_t)below(m, 3)), turns, 1 + below(m, 2), initial, 3, phis);
	keep(m, index);
	keep(m, phis[0]);
	keep(m, phis[2]);
	make_some(m, 4);
	next_values[0] = phis[1];
	next_values[1] = any(m, kind);
	next_values[2] = any(m, other);
	lth_loop_end_for(m->fn, next_values, 3, results);
	saved.state = m->state;
	*m = saved;
	for (int k = 0; k < 3; k++)
		keep(m, results[k]);
}

static void make_if(struct maker *m)
{
	uint32_t kind = below(m, NUM_COMPUTE);
	lth_lv condition = any(m, kind_of(LTH_DTYPE_BOOL));
	struct maker saved = *m;
	lth_lv yes[1], no[1], result[1];
	lth_loop_if(m->fn, lth_loop_extract(m->fn, condition, below(m, m->lanes)));
	make_some(m, 3);
	yes[0] = any(m, kind);
	lth_loop_else(m->fn, yes, 1);
	saved.state = m->state;
	*m = saved;
	make_some(m, 3);
	no[0] = any(m, kind);
	lth_loop_end_if(m->fn, no, 1, result);
	saved.state = m->state;
	*m = saved;
	keep(m, result[0]);
}

static void make_some(struct maker *m, uint32_t count)
{
	m->depth++;
	for (uint32_t k = 0; k < count; k++) {
		uint32_t what = below(m, 24);
		if (what == 0 && m->depth < 4)
			make_loop(m);
		else if (what == 1 && m->depth < 4)
			make_if(m);
		else if (what < 4)
			make_load(m);
		else if (what < 7)
			make_vector(m);
		else if (what == 7)
			make_dot(m);
		else
			make_op(m);
	}
	m->depth--;
}

static void store_all(struct maker *m)
{
	for (uint32_t type = 0; type < random_num_types; type++) {
		uint32_t kind = type < NUM_COMPUTE ? type : 0;
		lth_lv value = any(m, kind);
		if (type % 3 == 1) { /* scattered, lanes in reverse */
			lth_lv last = lth_loop_op2(m->fn, LTH_SCALAR_ADD, m->unit, lth_loop_i64(m->fn, m->lanes - 1));
			lth_lv index = lth_loop_op2(m->fn, LTH_SCALAR_SUB, last, lth_loop_ramp(m->fn, lth_loop_i64(m->fn, 0), m->lanes));
			lth_loop_scatter(m->fn, lth_loop_pointer(m->fn, 2 * type + 1), index, value, random_types[type], m->mask);
		} else {
			lth_loop_store(m->fn, address(m, type, true), value, random_types[type], m->mask);
		}
	}
}

struct lth_loop_fn *random_function(struct lth_arena *arena, uint64_t seed, struct random_options options)
{
	static const unsigned lane_counts[] = {1, 2, 4, 8, 16, 16, 32, 3, 24};
	struct maker maker = {.fn = lth_loop_create(arena, 2), .state = lth_hash_u64(seed, 7), .options = options}, *m = &maker;
	if (!m->fn)
		return NULL;
	for (uint32_t type = 0; type < random_num_types; type++) {
		lth_loop_add_pointer(m->fn, random_types[type], false);
		lth_loop_add_pointer(m->fn, random_types[type], true);
	}
	m->lanes = lane_counts[below(m, sizeof(lane_counts) / sizeof(lane_counts[0]))];
	m->unit = lth_loop_for(m->fn, lth_loop_begin(m->fn), lth_loop_end(m->fn), m->lanes, NULL, 0, NULL);
	m->mask = lth_loop_mask(m->fn, lth_loop_op2(m->fn, LTH_SCALAR_SUB, lth_loop_end(m->fn), m->unit), m->lanes);
	for (uint32_t type = 0; type < NUM_COMPUTE; type++)
		keep(m, lth_loop_load(m->fn, address(m, type, false), random_types[type], m->lanes, LTH_LV_NONE));
	make_some(m, 30);
	store_all(m);
	lth_loop_fail(m->fn, lth_loop_op2(m->fn, LTH_SCALAR_AND, m->mask, any(m, kind_of(LTH_DTYPE_BOOL))),
		      (enum lth_kernel_error)(1 + below(m, 3)));
	lth_loop_end_for(m->fn, NULL, 0, NULL);
	return m->fn;
}

void loop_data_fill(struct loop_data *data, uint64_t seed)
{
	memset(data, 0, sizeof(*data));
	for (uint32_t k = 0; k < RANDOM_POINTERS; k++) {
		data->pointers[k] = data->bytes[k];
		if (k % 2 == 0 && k / 2 < random_num_types) {
			enum lth_dtype type = random_types[k / 2];
			for (uint32_t i = 0; i < RANDOM_ELEMENTS; i++) {
				uint64_t bits = lth_hash_u64(seed + i, k);
				/* Plain numbers among the random bits. */
				float f = (float)((int)(bits >> 40) % 2000) / 64;
				double d = (double)f;
				if (type == LTH_DTYPE_BOOL)
					bits &= 1;
				else if (type == LTH_DTYPE_F32 && bits % 4)
					memcpy(&bits, &f, sizeof(f));
				else if (type == LTH_DTYPE_F64 && bits % 4)
					memcpy(&bits, &d, sizeof(d));
				else if (!lth_is_float(type) && bits % 4 == 0)
					bits = (bits >> 8) % 7 - 3;
				memcpy(data->bytes[k] + i * lth_dtype_bits(type) / 8, &bits, lth_dtype_bits(type) / 8);
			}
		}
	}
	data->ints[0] = (int64_t)(seed % 5);
	data->ints[1] = (int64_t)(seed % 37) - 2;
	data->call = (struct lathe_kernel_call){.pointers = data->pointers, .ints = data->ints};
}

static bool is_nan(enum lth_dtype type, const unsigned char *at)
{
	float f;
	double d;
	uint32_t code = 0;
	if (lth_is_narrow(type)) {
		memcpy(&code, at, lth_dtype_bits(type) / 8);
		f = lth_narrow_widen(type, code);
		return isnan(f);
	}
	memcpy(&f, at, sizeof(f));
	if (type == LTH_DTYPE_F32)
		return isnan(f);
	memcpy(&d, at, sizeof(d));
	return type == LTH_DTYPE_F64 && isnan(d);
}

bool loop_data_equal(const struct loop_data *a, const struct loop_data *b)
{
	for (uint32_t type = 0; type < random_num_types; type++) {
		size_t width = lth_dtype_bits(random_types[type]) / 8;
		for (uint32_t i = 0; i < RANDOM_ELEMENTS; i++) {
			const unsigned char *x = a->bytes[2 * type + 1] + i * width, *y = b->bytes[2 * type + 1] + i * width;
			bool floats = lth_is_float(random_types[type]) || lth_is_narrow(random_types[type]);
			if (memcmp(x, y, width) == 0 || (floats && is_nan(random_types[type], x) && is_nan(random_types[type], y)))
				continue;
			uint64_t p = 0, q = 0;
			memcpy(&p, x, width);
			memcpy(&q, y, width);
			printf("%s output, element %u: %llx and %llx\n", lth_dtype_text(random_types[type]), i,
			       (unsigned long long)p, (unsigned long long)q);
			return false;
		}
	}
	return true;
}
