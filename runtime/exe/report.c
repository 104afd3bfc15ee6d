/* What a compiled program says about itself, as JSON: description and measurements. */
#include "runtime/base/io.h"
#include "runtime/exe/exe.h"

#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

enum lth_code lth_exe_error(struct lth_diag *diag, const struct lathe_error *error)
{
	return lth_diag_read_line(diag, (enum lth_code)error->code, error->text);
}

static void put_string(struct lth_buf *out, const char *key, const char *value)
{
	lth_buf_quote(out, key);
	lth_buf_putc(out, ':');
	lth_buf_quote(out, value);
}

static void put_number(struct lth_buf *out, const char *key, int64_t value)
{
	lth_buf_quote(out, key);
	lth_buf_printf(out, ":%lld", (long long)value);
}

static void put_ports(struct lth_buf *out, const char *key, const struct lathe_port *ports, const char *const *types,
		      uint32_t count)
{
	lth_buf_printf(out, ",\n \"%s\":[", key);
	for (uint32_t i = 0; i < count; i++) {
		lth_buf_puts(out, i ? ",\n  {" : "\n  {");
		put_string(out, "name", ports[i].name);
		lth_buf_putc(out, ',');
		if (types[i]) {
			put_string(out, "type", types[i]);
			lth_buf_putc(out, '}');
			continue;
		}
		put_string(out, "dtype", lth_dtype_text(lth_dtype_by_onnx(ports[i].dtype)));
		lth_buf_puts(out, ",\"dims\":[");
		for (uint32_t axis = 0; axis < ports[i].rank; axis++) {
			lth_buf_puts(out, axis ? "," : "");
			if (ports[i].static_dims[axis] >= 0)
				lth_buf_printf(out, "%lld", (long long)ports[i].static_dims[axis]);
			else
				lth_buf_quote(out, ports[i].dims[axis]);
		}
		lth_buf_puts(out, "]}");
	}
	lth_buf_putc(out, ']');
}

static void put_symbols(struct lth_buf *out, const struct lathe_description *d)
{
	lth_buf_puts(out, ",\n \"symbols\":[");
	for (uint32_t i = 0; i < d->num_symbols; i++) {
		const struct lathe_symbol *s = &d->symbols[i];
		lth_buf_puts(out, i ? ",\n  {" : "\n  {");
		put_string(out, "name", s->name);
		lth_buf_putc(out, ',');
		put_number(out, "min", s->min);
		if (s->max == INT64_MAX) {
			lth_buf_puts(out, ",\"max\":null,");
		} else {
			lth_buf_putc(out, ',');
			put_number(out, "max", s->max);
			lth_buf_putc(out, ',');
		}
		put_number(out, "multiple", s->multiple);
		lth_buf_putc(out, ',');
		put_number(out, "hint", s->hint);
		lth_buf_printf(out, ",\"from_data\":%s}", s->from_data ? "true" : "false");
	}
	lth_buf_putc(out, ']');
}

/* {"batch":4,...} of the symbols that shapes decide. */
static void put_dims(struct lth_buf *out, const struct lth_exe *exe, const int64_t *values)
{
	bool any = false;
	lth_buf_puts(out, "\"dims\":{");
	for (uint32_t i = 0; i < exe->description->num_symbols; i++) {
		if (exe->description->symbols[i].from_data)
			continue;
		lth_buf_puts(out, any ? "," : "");
		put_number(out, exe->description->symbols[i].name, values[i]);
		any = true;
	}
	lth_buf_putc(out, '}');
}

static void put_memory(struct lth_buf *out, const struct lathe_memory *m)
{
	lth_buf_putc(out, ',');
	put_number(out, "arena_bytes", (int64_t)m->arena_bytes);
	lth_buf_putc(out, ',');
	put_number(out, "live_bound_bytes", (int64_t)m->live_bound_bytes);
	lth_buf_putc(out, ',');
	put_number(out, "naive_bytes", (int64_t)m->naive_bytes);
	lth_buf_putc(out, ',');
	put_number(out, "io_bytes", (int64_t)m->io_bytes);
	lth_buf_putc(out, ',');
	put_number(out, "constants_bytes", (int64_t)m->constants_bytes);
}

enum lth_code lth_exe_describe(const struct lth_exe *exe, struct lth_buf *out, struct lth_diag *diag)
{
	const struct lathe_description *d = exe->description;
	struct lathe_memory memory;
	struct lathe_error error;
	if (exe->api->memory(exe->executable, exe->symbols, &memory, &error) != 0)
		return lth_exe_error(diag, &error);
	lth_buf_puts(out, "{");
	put_string(out, "name", d->name);
	lth_buf_putc(out, ',');
	put_string(out, "runtime", exe->api->runtime);
	put_ports(out, "inputs", d->inputs, d->input_types, d->num_inputs);
	put_ports(out, "outputs", d->outputs, d->output_types, d->num_outputs);
	put_symbols(out, d);
	lth_buf_puts(out, ",\n \"memory\":{");
	put_dims(out, exe, exe->symbols);
	put_memory(out, &memory);
	lth_buf_putc(out, ',');
	put_string(out, "certificate", d->certificate);
	lth_buf_puts(out, "}}\n");
	return LTH_OK;
}

static int compare_times(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return x < y ? -1 : x > y;
}

/* The smallest time that at least `percent` of the runs did not exceed. */
static double percentile_us(const uint64_t *sorted, int64_t count, int64_t percent)
{
	int64_t rank = (count * percent + 99) / 100;
	return (double)sorted[rank > 0 ? rank - 1 : 0] / 1000;
}

static enum lth_code run_once(struct lth_exe *exe, uint64_t *out_ns, struct lth_diag *diag)
{
	const struct lathe_description *d = exe->description;
	struct lathe_error error;
	uint64_t start = lth_now_ns();
	int code = exe->api->run(exe->context, exe->inputs, d->num_inputs, exe->outputs, d->num_outputs, &error);
	*out_ns = lth_now_ns() - start;
	if (code != 0)
		return lth_exe_error(diag, &error);
	for (uint32_t i = 0; i < d->num_outputs; i++)
		exe->api->release(exe->context, &exe->outputs[i]);
	return LTH_OK;
}

/* The profile so far, malloc'ed; *out_count entries. NULL when out of memory. */
static struct lathe_profile_entry *take_profile(const struct lth_exe *exe, size_t *out_count)
{
	*out_count = exe->api->profile(exe->context, NULL, 0);
	struct lathe_profile_entry *entries = calloc(*out_count + 1, sizeof(*entries));
	if (entries)
		exe->api->profile(exe->context, entries, *out_count);
	return entries;
}

/* What the counted runs added to the profile of the warm-up, whose times hold page faults. */
static void put_profile(const struct lth_exe *exe, const struct lathe_profile_entry *before, struct lth_buf *out)
{
	size_t count;
	struct lathe_profile_entry *entries = take_profile(exe, &count);
	if (!entries) {
		out->failed = true;
		return;
	}
	lth_buf_puts(out, ",\n \"profile\":[");
	for (size_t i = 0; i < count; i++) {
		uint64_t calls = entries[i].calls - before[i].calls, ns = entries[i].ns - before[i].ns;
		lth_buf_puts(out, i ? ",\n  {" : "\n  {");
		put_string(out, "kernel", entries[i].kernel);
		lth_buf_putc(out, ',');
		put_string(out, "node", entries[i].node);
		lth_buf_printf(out, ",\"us\":%.3f,", (double)ns / (double)(calls ? calls : 1) / 1000);
		put_number(out, "calls", (int64_t)calls);
		lth_buf_putc(out, ',');
		put_number(out, "bytes", (int64_t)entries[i].bytes);
		lth_buf_putc(out, ',');
		put_number(out, "flops", (int64_t)entries[i].flops);
		lth_buf_putc(out, '}');
	}
	lth_buf_putc(out, ']');
	free(entries);
}

static void put_bench(const struct lth_exe *exe, const struct lth_exe_options *options, const uint64_t *sorted,
		      struct lth_buf *out)
{
	struct lathe_counters counters;
	struct rusage usage;
	exe->api->counters(exe->context, &counters);
	getrusage(RUSAGE_SELF, &usage);
	lth_buf_puts(out, "{");
	put_string(out, "model", exe->description->name);
	lth_buf_putc(out, ',');
	put_number(out, "runs", options->bench);
	lth_buf_putc(out, ',');
	put_number(out, "threads", options->threads);
	lth_buf_printf(out, ",\n \"latency_us\":{\"min\":%.3f,\"p50\":%.3f,\"p90\":%.3f,\"p99\":%.3f},\n ",
		       (double)sorted[0] / 1000, percentile_us(sorted, options->bench, 50),
		       percentile_us(sorted, options->bench, 90), percentile_us(sorted, options->bench, 99));
	put_number(out, "peak_bytes", (int64_t)counters.peak_bytes);
	lth_buf_putc(out, ',');
	put_number(out, "arena_bytes", (int64_t)counters.arena_bytes);
	lth_buf_putc(out, ',');
	put_number(out, "peak_rss_bytes", (int64_t)usage.ru_maxrss * 1024);
	lth_buf_putc(out, ',');
	put_number(out, "allocations_per_run", (int64_t)counters.last_run_allocations);
	lth_buf_putc(out, ',');
	put_number(out, "copies_per_run", (int64_t)counters.last_run_copies);
}

enum lth_code lth_exe_bench(struct lth_exe *exe, const struct lth_exe_options *options, struct lth_buf *out,
			    struct lth_diag *diag)
{
	int64_t warmup = options->warmup >= 0 ? options->warmup : 1 + options->bench / 10;
	uint64_t *times = calloc((size_t)options->bench, sizeof(*times)), ignored;
	struct lathe_profile_entry *before = NULL;
	size_t count;
	enum lth_code code = LTH_OK;
	for (int64_t i = 0; i < warmup && code == LTH_OK; i++)
		code = run_once(exe, &ignored, diag);
	before = take_profile(exe, &count);
	if (code == LTH_OK && (!times || !before))
		code = lth_diag_fail(diag, LTH_OUT_OF_MEMORY, "--bench", NULL, NULL, "%lld runs",
				     (long long)options->bench);
	for (int64_t i = 0; i < options->bench && code == LTH_OK; i++)
		code = run_once(exe, &times[i], diag);
	if (code == LTH_OK) {
		qsort(times, (size_t)options->bench, sizeof(*times), compare_times);
		put_bench(exe, options, times, out);
		if (options->given[LTH_EXE_PROFILE])
			put_profile(exe, before, out);
		lth_buf_puts(out, "}\n");
	}
	free(before);
	free(times);
	return code;
}
