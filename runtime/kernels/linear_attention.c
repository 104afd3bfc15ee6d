/* linear_attention: attention by a recurrent state S [key size, value size] a head (ONNX LinearAttention-27).
 *
 *   outputs: y [batch, sequence, q heads * value size], present state [batch, kv heads, key size, value size]
 *   inputs: query, key, value [batch, sequence, heads * size], past state, decay, beta; the last three may be absent
 *   attributes: q_num_heads, kv_num_heads, scale (0: 1 / sqrt(key size)), update_rule
 *
 * Each step decays the state by exp(decay), adds the key times (value, or what the state misses of it, times beta), and
 * answers the queries that share the head. States are float, whatever the element type; steps follow each other, and
 * heads share nothing. */
#include "runtime/exec/pool.h"
#include "runtime/kernels/builtin.h"
#include "runtime/kernels/real.h"

#include <math.h>
#include <string.h>

enum { QUERY, KEY, VALUE, PAST, DECAY, BETA, NUM_OPERANDS };

struct attention {
	struct lth_builtin_tensor in[NUM_OPERANDS], y, present;
	int64_t batch, steps, q_heads, kv_heads, key_size, value_size;
	float scale;
	bool decays, corrects;
	float *state, *query, *key, *value, *row; /* the head in hand; `row`: of value size */
};

static int64_t bytes_of(const struct lth_builtin_tensor *t)
{
	return lth_dtype_bits(t->dtype) / 8;
}

/* `count` elements of [batch, step, first ...] as floats. */
static void load(const struct lth_builtin_tensor *t, int64_t batch, int64_t step, int64_t first, int64_t count,
		 float *to)
{
	const char *at = t->data;
	at += (batch * t->strides[0] + step * t->strides[1] + first * t->strides[2]) * bytes_of(t);
	for (int64_t i = 0; i < count; i++, at += t->strides[2] * bytes_of(t))
		to[i] = (float)lth_real_load(at, t->dtype);
}

static void load_state(const struct attention *a, int64_t batch, int64_t head)
{
	const struct lth_builtin_tensor *past = &a->in[PAST];
	memset(a->state, 0, (size_t)(a->key_size * a->value_size) * sizeof(float));
	for (int64_t i = 0; past->data && i < a->key_size; i++)
		for (int64_t k = 0; k < a->value_size; k++) {
			int64_t at = batch * past->strides[0] + head * past->strides[1] + i * past->strides[2] +
				     k * past->strides[3];
			a->state[i * a->value_size + k] =
				(float)lth_real_load((const char *)past->data + at * bytes_of(past), past->dtype);
		}
}

static void store_state(const struct attention *a, int64_t batch, int64_t head)
{
	int64_t size = a->key_size * a->value_size, element = bytes_of(&a->present);
	char *to = (char *)a->present.data + (batch * a->kv_heads + head) * size * element;
	for (int64_t i = 0; i < size; i++)
		lth_real_store(to + i * element, a->present.dtype, (double)a->state[i]);
}

/* One decay a head, or one for each row of the state. */
static void decay_state(const struct attention *a, int64_t batch, int64_t head, int64_t step)
{
	bool by_row = a->in[DECAY].dims[2] != a->kv_heads;
	for (int64_t i = 0; i < a->key_size; i++) {
		float gate;
		load(&a->in[DECAY], batch, step, by_row ? head * a->key_size + i : head, 1, &gate);
		gate = expf(gate);
		for (int64_t k = 0; k < a->value_size; k++)
			a->state[i * a->value_size + k] *= gate;
	}
}

/* row = sum over i of vector[i] * state[i] */
static void weigh_rows(const struct attention *a, const float *vector)
{
	memset(a->row, 0, (size_t)a->value_size * sizeof(float));
	for (int64_t i = 0; i < a->key_size; i++)
		for (int64_t k = 0; k < a->value_size; k++)
			a->row[k] += vector[i] * a->state[i * a->value_size + k];
}

static void update_state(const struct attention *a, int64_t batch, int64_t head, int64_t step)
{
	load(&a->in[KEY], batch, step, head * a->key_size, a->key_size, a->key);
	load(&a->in[VALUE], batch, step, head * a->value_size, a->value_size, a->value);
	if (a->decays)
		decay_state(a, batch, head, step);
	if (a->corrects) {
		float rate;
		load(&a->in[BETA], batch, step, a->in[BETA].dims[2] == 1 ? 0 : head, 1, &rate);
		weigh_rows(a, a->key);
		for (int64_t k = 0; k < a->value_size; k++)
			a->value[k] = rate * (a->value[k] - a->row[k]);
	}
	for (int64_t i = 0; i < a->key_size; i++)
		for (int64_t k = 0; k < a->value_size; k++)
			a->state[i * a->value_size + k] += a->key[i] * a->value[k];
}

static void answer(const struct attention *a, int64_t batch, int64_t head, int64_t step)
{
	int64_t shared = a->q_heads / a->kv_heads, element = bytes_of(&a->y);
	for (int64_t q = head * shared; q < (head + 1) * shared; q++) {
		load(&a->in[QUERY], batch, step, q * a->key_size, a->key_size, a->query);
		weigh_rows(a, a->query);
		char *to = (char *)a->y.data +
			   ((batch * a->steps + step) * a->q_heads + q) * a->value_size * element;
		for (int64_t k = 0; k < a->value_size; k++)
			lth_real_store(to + k * element, a->y.dtype, (double)(a->scale * a->row[k]));
	}
}

static void run(const struct attention *a)
{
	for (int64_t batch = 0; batch < a->batch; batch++)
		for (int64_t head = 0; head < a->kv_heads; head++) {
			load_state(a, batch, head);
			for (int64_t step = 0; step < a->steps; step++) {
				update_state(a, batch, head, step);
				if (a->y.data)
					answer(a, batch, head, step);
			}
			if (a->present.data)
				store_state(a, batch, head);
		}
}

/* Whether all operands fit the heads and sizes. */
static bool fits(const struct attention *a)
{
	const struct lth_builtin_tensor *in = a->in;
	int64_t gates = in[DECAY].data ? in[DECAY].dims[2] : 0, rates = in[BETA].data ? in[BETA].dims[2] : 0;
	return in[QUERY].dims[2] == a->q_heads * a->key_size && in[KEY].dims[2] == a->kv_heads * a->key_size &&
	       in[VALUE].dims[2] == a->kv_heads * a->value_size &&
	       (!a->decays || gates == a->kv_heads || gates == a->kv_heads * a->key_size) &&
	       (!a->corrects || rates == 1 || rates == a->kv_heads);
}

int lth_builtin_linear_attention(struct lth_builtin_call *call)
{
	char rule[16] = "gated_delta";
	struct attention a = {.q_heads = lth_builtin_int(call, "q_num_heads", 0),
			      .kv_heads = lth_builtin_int(call, "kv_num_heads", 0)};
	for (uint32_t i = 0; i < NUM_OPERANDS; i++)
		a.in[i] = lth_builtin_input(call, i);
	lth_builtin_text_attribute(call, "update_rule", rule, sizeof(rule));
	a.decays = strncmp(rule, "gated", 5) == 0;
	a.corrects = strstr(rule, "delta") != NULL;
	a.y = call->tensors[0];
	a.present = call->num_outputs > 1 ? call->tensors[1] : (struct lth_builtin_tensor){0};
	if (a.q_heads < 1 || a.kv_heads < 1 || !a.in[QUERY].data || !a.in[KEY].data || !a.in[VALUE].data ||
	    (a.decays && !a.in[DECAY].data) || (a.corrects && !a.in[BETA].data))
		return lth_builtin_fail(call, LTH_KERNEL_SHAPE, "linear_attention lacks an operand");
	a.batch = a.in[QUERY].dims[0];
	a.steps = a.in[QUERY].dims[1];
	a.key_size = a.in[KEY].dims[2] / a.kv_heads;
	a.value_size = a.in[VALUE].dims[2] / a.kv_heads;
	double scale = lth_builtin_real(call, "scale", 0);
	a.scale = (float)(scale != 0 ? scale : 1 / sqrt((double)(a.key_size > 0 ? a.key_size : 1)));
	if (!fits(&a))
		return lth_builtin_fail(call, LTH_KERNEL_SHAPE, "heads and sizes of linear_attention do not agree");
	int64_t floats = a.key_size * a.value_size + 2 * a.key_size + 2 * a.value_size;
	float *scratch = lth_pool_take(call->pool, floats * (int64_t)sizeof(float));
	if (!scratch)
		return LTH_KERNEL_MEMORY;
	a.state = scratch;
	a.query = a.state + a.key_size * a.value_size;
	a.key = a.query + a.key_size;
	a.value = a.key + a.key_size;
	a.row = a.value + a.value_size;
	run(&a);
	lth_pool_give(call->pool, scratch, floats * (int64_t)sizeof(float));
	return 0;
}
