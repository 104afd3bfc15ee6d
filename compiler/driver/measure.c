/* Measuring: all variants run interleaved in one child process, so that they share the machine's mood; then each once
 * more in a child of its own for its resident memory. A model that crashes or hangs when run takes only the child with
 * it. The child loads the linked shared objects as any user would, through lathe.h. */
#include "compiler/driver/child.h"
#include "compiler/driver/variant.h"

#include "api/lathe.h"
#include "runtime/base/hash.h"
#include "runtime/base/io.h"
#include "runtime/kernels/real.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_PORTS = 256 };

struct runner {
	struct lathe_executable *executable;
	struct lathe_context *context;
	const struct lathe_description *description;
	struct lathe_tensor inputs[MAX_PORTS], outputs[MAX_PORTS];
	double *latency_us;
	uint64_t digest;
};

static uint64_t random_bits(uint64_t *state)
{
	uint64_t z = *state += 0x9E3779B97F4A7C15u;
	z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
	z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
	return z ^ (z >> 31);
}

/* One random element: floats in [low, high), integers in [low, high]. */
static void put_element(struct lathe_tensor *t, int64_t i, double low, double high, uint64_t *state)
{
	double unit = (double)(random_bits(state) >> 11) * 0x1p-53, real = low + unit * (high - low);
	int64_t whole = (int64_t)low + (int64_t)(random_bits(state) % (uint64_t)((int64_t)high - (int64_t)low + 1));
	switch (t->dtype) {
	case LATHE_F32: ((float *)t->data)[i] = (float)real; break;
	case LATHE_F64: ((double *)t->data)[i] = real; break;
	case LATHE_F16: ((uint16_t *)t->data)[i] = (uint16_t)(unit < 0.5 ? 0 : 0x3800); break;
	case LATHE_BF16: ((uint16_t *)t->data)[i] = (uint16_t)(unit < 0.5 ? 0 : 0x3f00); break;
	case LATHE_I64:
	case LATHE_U64: ((int64_t *)t->data)[i] = whole; break;
	case LATHE_I32:
	case LATHE_U32: ((int32_t *)t->data)[i] = (int32_t)whole; break;
	case LATHE_I16:
	case LATHE_U16: ((int16_t *)t->data)[i] = (int16_t)whole; break;
	default: ((int8_t *)t->data)[i] = (int8_t)whole; break;
	}
}

static int64_t dim_value(const struct lth_variant *variant, const struct lathe_description *d, int64_t fixed,
			 int32_t symbol)
{
	if (fixed >= 0)
		return fixed;
	if (symbol < 0)
		return 1;
	const json_t *given =
		json_object_get(lth_variant_option(variant, LTH_OPTION_ID_MEASURE_DIMS), d->symbols[symbol].name);
	return given ? json_integer_value(given) : d->symbols[symbol].hint;
}

static int make_inputs(const struct lth_variant *variant, struct runner *r, struct lathe_error *error)
{
	uint64_t state = 1;
	for (uint32_t i = 0; i < r->description->num_inputs; i++) {
		const struct lathe_port *port = &r->description->inputs[i];
		struct lathe_tensor *t = &r->inputs[i];
		int64_t count = 1, bytes;
		*t = (struct lathe_tensor){.dtype = port->dtype, .rank = port->rank};
		for (uint32_t axis = 0; axis < port->rank; axis++) {
			t->dims[axis] =
				dim_value(variant, r->description, port->static_dims[axis], port->dim_symbols[axis]);
			count *= t->dims[axis];
		}
		enum lth_dtype dtype = lth_dtype_by_onnx(port->dtype);
		bool known =
			dtype != LTH_NUM_DTYPES && dtype != LTH_DTYPE_STRING && lth_dtype_bytes(dtype, count, &bytes);
		if (!known || !(t->data = calloc(1, (size_t)bytes + 64))) {
			error->code = known ? LATHE_ERROR_MEMORY : LATHE_ERROR_INPUT;
			snprintf(error->text, sizeof(error->text),
				 known ? "input %s: no memory for random values"
				       : "input %s: no random values for its type",
				 port->name);
			return error->code;
		}
		t->bytes = (uint64_t)bytes;
		const json_t *range =
			json_object_get(lth_variant_option(variant, LTH_OPTION_ID_MEASURE_INPUTS), port->name);
		const json_t *low = json_object_get(range, "min"), *high = json_object_get(range, "max");
		double from = low ? json_number_value(low) : 0, to = high ? json_number_value(high) : 1;
		if (lth_dtype_bits(dtype) >= 8)
			for (int64_t k = 0; k < count; k++)
				put_element(t, k, from, to < from ? from : to, &state);
	}
	return 0;
}

static int open_runner(const struct lth_variant *variant, struct runner *r, size_t runs, struct lathe_error *error)
{
	bool profile = json_is_true(lth_variant_option(variant, LTH_OPTION_ID_MEASURE_PROFILE));
	struct lathe_options options = {
		.bytes = sizeof(options), .threads = (uint32_t)variant->threads, .profile = profile};
	int code = lathe_load(variant->library, &r->executable, error);
	if (code)
		return code;
	r->description = lathe_describe(r->executable);
	r->latency_us = calloc(runs + 1, sizeof(double));
	if (r->description->num_inputs > MAX_PORTS || r->description->num_outputs > MAX_PORTS || !r->latency_us) {
		snprintf(error->text, sizeof(error->text), "more than %d inputs or outputs", MAX_PORTS);
		return error->code = LATHE_ERROR_INPUT;
	}
	code = make_inputs(variant, r, error);
	return code ? code : lathe_context_create(r->executable, &options, &r->context, error);
}

static int run_once(struct runner *r, struct lathe_error *error)
{
	return lathe_run(r->context, r->inputs, r->description->num_inputs, r->outputs, r->description->num_outputs,
			 error);
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return x < y ? -1 : x > y;
}

static uint64_t digest_tensor(const struct lathe_tensor *t, uint64_t digest);

static uint64_t digest_value(const struct lathe_value *value, uint64_t digest)
{
	digest = lth_hash_u64(value->count, lth_hash_u64((uint64_t)value->kind, digest));
	for (uint64_t i = 0; i < value->count; i++)
		digest = digest_value(&value->elements[i], digest);
	return value->kind == LATHE_TENSOR ? digest_tensor(&value->tensor, digest) : digest;
}

static uint64_t digest_tensor(const struct lathe_tensor *t, uint64_t digest)
{
	int64_t count = 1, bytes = 0;
	if (t->dtype == LATHE_OBJECT)
		return digest_value(t->data, digest);
	for (uint32_t axis = 0; axis < t->rank; axis++)
		count *= t->dims[axis];
	digest = lth_hash_bytes(t->dims, t->rank * sizeof(t->dims[0]), digest);
	if (t->dtype == LATHE_STRING) /* what they say, not where they are */
		for (int64_t i = 0; i < count; i++) {
			const struct lth_string *s = (const struct lth_string *)t->data + i;
			digest = lth_hash_bytes(s->data, s->size, lth_hash_u64(s->size, digest));
		}
	else if (lth_dtype_bytes(lth_dtype_by_onnx(t->dtype), count, &bytes) && t->data)
		digest = lth_hash_bytes(t->data, (size_t)bytes, digest);
	return digest;
}

static uint64_t outputs_digest(const struct runner *r)
{
	uint64_t digest = 0;
	for (uint32_t i = 0; i < r->description->num_outputs; i++)
		digest = digest_tensor(&r->outputs[i], digest);
	return digest;
}

/* Largest difference of float outputs against the first variant's, absolute. */
static double largest_error(const struct runner *a, const struct runner *b)
{
	double worst = 0;
	for (uint32_t i = 0; i < a->description->num_outputs && i < b->description->num_outputs; i++) {
		const struct lathe_tensor *x = &a->outputs[i], *y = &b->outputs[i];
		int64_t count = 1;
		for (uint32_t axis = 0; axis < x->rank; axis++)
			count *= x->dims[axis];
		enum lth_dtype dtype = lth_dtype_by_onnx(x->dtype);
		if (dtype == LTH_NUM_DTYPES || lth_dtype_class(dtype) != LTH_CLASS_FLOAT || lth_dtype_bits(dtype) < 8 ||
		    x->dtype != y->dtype || x->rank != y->rank || memcmp(x->dims, y->dims, sizeof(x->dims)) != 0)
			continue;
		for (int64_t k = 0; k < count; k++) {
			size_t at = (size_t)k * (lth_dtype_bits(dtype) / 8);
			double d =
				lth_real_load((char *)x->data + at, dtype) - lth_real_load((char *)y->data + at, dtype);
			d = d < 0 ? -d : d;
			worst = d > worst ? d : worst;
		}
	}
	return worst;
}

static json_t *dims_used(const struct runner *r)
{
	json_t *out = json_object();
	for (uint32_t i = 0; i < r->description->num_inputs; i++)
		for (uint32_t axis = 0; axis < r->inputs[i].rank; axis++) {
			int32_t symbol = r->description->inputs[i].dim_symbols[axis];
			if (symbol >= 0)
				json_object_set_new(out, r->description->symbols[symbol].name,
						    json_integer(r->inputs[i].dims[axis]));
		}
	return out;
}

static json_t *profile_of(const struct runner *r)
{
	enum { MOST = 65536 };
	struct lathe_profile_entry *entries = calloc(MOST, sizeof(*entries));
	size_t count = entries ? lathe_profile(r->context, entries, MOST) : 0;
	json_t *list = json_array();
	for (size_t i = 0; i < count && i < MOST; i++)
		json_array_append_new(
			list,
			json_pack("{s:s, s:s, s:f, s:I, s:I}", "kernel", entries[i].kernel, "node", entries[i].node, "us",
				  entries[i].calls ? (double)entries[i].ns / 1e3 / (double)entries[i].calls : 0.0,
				  "bytes", (json_int_t)entries[i].bytes, "flops", (json_int_t)entries[i].flops));
	free(entries);
	return list;
}

static json_t *report(const struct lth_variant *variant, struct runner *r, const struct runner *first, size_t runs)
{
	struct lathe_counters counters;
	char digest[24];
	lathe_counters(r->context, &counters);
	qsort(r->latency_us, runs, sizeof(double), by_value);
	snprintf(digest, sizeof(digest), "%016llx", (unsigned long long)r->digest);
	json_t *latency = json_pack("{s:f, s:f, s:f, s:f}", "min", r->latency_us[0], "p50", r->latency_us[runs / 2],
				    "p90", r->latency_us[runs * 9 / 10], "p99", r->latency_us[runs * 99 / 100]);
	json_t *out = json_pack("{s:I, s:o, s:I, s:o, s:I, s:I, s:I, s:s, s:b, s:f}", "runs", (json_int_t)runs, "dims",
				dims_used(r), "threads", (json_int_t)variant->threads, "latency_us", latency,
				"peak_bytes", (json_int_t)counters.peak_bytes, "allocations_per_run",
				(json_int_t)counters.last_run_allocations, "copies_per_run",
				(json_int_t)counters.last_run_copies, "outputs_digest", digest, "outputs_equal",
				r->digest == first->digest, "largest_error", largest_error(r, first));
	if (json_is_true(lth_variant_option(variant, LTH_OPTION_ID_MEASURE_PROFILE)))
		json_object_set_new(out, "profile", profile_of(r));
	return out;
}

/* In the child: runs `count` variants and writes a JSON list, or an object with "error". */
static json_t *run_all(struct lth_variant *variants, size_t count, size_t warmup, size_t runs)
{
	struct runner *runners = calloc(count, sizeof(*runners));
	struct lathe_error error = {0};
	int code = runners ? 0 : LATHE_ERROR_MEMORY;
	for (size_t i = 0; i < count && !code; i++)
		code = open_runner(&variants[i], &runners[i], runs, &error);
	for (size_t k = 0; k < warmup + 1 && !code; k++)
		for (size_t i = 0; i < count && !code; i++) {
			code = run_once(&runners[i], &error);
			if (!code && k == 0)
				runners[i].digest = outputs_digest(&runners[i]);
		}
	for (size_t k = 0; k < runs && !code; k++)
		for (size_t i = 0; i < count && !code; i++) {
			uint64_t start = lth_now_ns();
			code = run_once(&runners[i], &error);
			runners[i].latency_us[k] = (double)(lth_now_ns() - start) / 1e3;
		}
	if (code)
		return json_pack("{s:i, s:s}", "code", code, "error", error.text);
	json_t *list = json_array();
	for (size_t i = 0; i < count; i++)
		json_array_append_new(list, report(&variants[i], &runners[i], &runners[0], runs));
	return list;
}

struct measuring {
	struct lth_variant *variants;
	size_t count, warmup, runs;
};

static char *measure_text(void *context)
{
	const struct measuring *m = context;
	return json_dumps(run_all(m->variants, m->count, m->warmup, m->runs), JSON_COMPACT);
}

/* The child must be done before the daemon's patience is, so that the worker can say what happened. */
static uint64_t limit_ms(uint64_t deadline_ns)
{
	enum { LEAST_MS = 50 };
	uint64_t now = lth_now_ns();
	if (!deadline_ns)
		return 0;
	uint64_t left_ms = deadline_ns > now ? (deadline_ns - now) / 1000000 : 0;
	left_ms -= left_ms / 10;
	return left_ms > LEAST_MS ? left_ms : LEAST_MS;
}

/* Runs the variants in a child; `*out` is what it reported, `*out_rss` its largest resident size. */
static enum lth_code in_child(struct measuring *m, json_t **out, int64_t *out_rss)
{
	struct lth_diag *diag = m->variants[0].diag;
	struct lth_buf text;
	enum lth_code code = lth_child_run("measure", measure_text, m, limit_ms(m->variants[0].request->deadline_ns),
					   &text, out_rss, diag);
	if (code != LTH_OK)
		return code;
	json_t *answer = json_loadb(lth_buf_text(&text), text.size, 0, NULL);
	lth_buf_free(&text);
	const char *error = json_string_value(json_object_get(answer, "error"));
	if (!answer || error) {
		code = (enum lth_code)json_integer_value(json_object_get(answer, "code"));
		if (code == LTH_OUT_OF_MEMORY)
			lth_diag_fail(diag, code, "", NULL,
				      "measure at smaller dims, or raise the worker's memory limit", "%s", error);
		else
			code = lth_diag_read_line(diag, error ? code : LTH_RUNTIME_ERROR, error ? error : "no figures");
		lth_diag_within(diag, "measure");
		json_decref(answer);
		return code;
	}
	*out = answer;
	return LTH_OK;
}

enum lth_code lth_variant_measure(struct lth_variant *variants, size_t count)
{
	struct measuring together = {
		.variants = variants,
		.count = count,
		.runs = (size_t)lth_variant_int(&variants[0], LTH_OPTION_ID_MEASURE_RUNS),
		.warmup = (size_t)lth_variant_int(&variants[0], LTH_OPTION_ID_MEASURE_WARMUP),
	};
	json_t *all, *one;
	int64_t rss;
	enum lth_code code = in_child(&together, &all, &rss);
	if (code != LTH_OK)
		return code;
	for (size_t i = 0; i < count && code == LTH_OK; i++) {
		struct measuring alone = {.variants = &variants[i], .count = 1, .warmup = 1, .runs = 1};
		variants[i].measured = json_incref(json_array_get(all, i));
		code = in_child(&alone, &one, &rss);
		if (code != LTH_OK)
			break;
		json_decref(one);
		json_object_set_new(variants[i].measured, "peak_rss_bytes", json_integer(rss));
	}
	json_decref(all);
	return code;
}
