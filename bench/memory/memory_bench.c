/* How good the memory plans of executables are over their box, and whether running at many shapes keeps memory flat.
 *
 * For each executable: arena over live bound at random shapes of the box, uniform in each symbol's range, or in its
 * logarithm (mean, worst, time of an evaluation), and how many take more than the largest dims do, which happens where a
 * model scales its inputs to a given size; then, with --runs, that many runs at random shapes through
 * one context: resident memory when all shapes' buffers exist against the end, and allocations of a second run at the
 * same shape. Everything goes through lathe.h. A symbol without a top is taken up to 8 times its hint. */
#include "api/lathe.h"

#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { OPEN_REACH = 8, MAX_PORTS = 64, MAX_SYMBOLS = 64 };

static const char usage[] = "usage: memory-bench [--shapes N] [--runs N] [--distinct N] [--log] [--seed N] EXECUTABLE...\n"
			    "  --shapes N    shapes at which the plan is evaluated (1000)\n"
			    "  --runs N      runs at random shapes (0)\n"
			    "  --distinct N  the runs repeat this many random shapes; 0: each is new (0)\n"
			    "  --log         the logarithm of a dimension is uniform: large ones are rarer\n";

struct bench {
	struct lathe_executable *executable;
	const struct lathe_description *d;
	struct lathe_context *context;
	int64_t shape[MAX_SYMBOLS];
	struct lathe_tensor inputs[MAX_PORTS], outputs[MAX_PORTS];
	uint64_t state;
	bool logarithmic;
	struct lathe_error error;
};

static uint64_t random_bits(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15u;
	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

static double now_us(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

/* Resident bytes, from the kernel. */
static long resident(void)
{
	long total = 0, pages = 0;
	FILE *file = fopen("/proc/self/statm", "r");
	if (!file)
		return 0;
	if (fscanf(file, "%ld %ld", &total, &pages) != 2)
		pages = 0;
	fclose(file);
	return pages * sysconf(_SC_PAGESIZE);
}

static int64_t top_of(const struct lathe_symbol *symbol)
{
	return symbol->max == INT64_MAX ? symbol->hint * OPEN_REACH : symbol->max;
}

static void random_shape(struct bench *b)
{
	for (uint32_t i = 0; i < b->d->num_symbols; i++) {
		const struct lathe_symbol *s = &b->d->symbols[i];
		int64_t first = (s->min + s->multiple - 1) / s->multiple, last = top_of(s) / s->multiple;
		uint64_t values = last > first ? (uint64_t)(last - first) + 1 : 1;
		uint64_t bits = random_bits(&b->state);
		int64_t value = first + (int64_t)(bits % values);
		if (b->logarithmic && first > 0) {
			double reach = (double)(last + 1) / (double)first;
			value = (int64_t)((double)first * pow(reach, (double)(bits >> 11) * 0x1p-53));
			value = value > last ? last : value;
		}
		b->shape[i] = value * s->multiple;
	}
}

static void top_shape(struct bench *b)
{
	for (uint32_t i = 0; i < b->d->num_symbols; i++)
		b->shape[i] = top_of(&b->d->symbols[i]);
}

static bool failed(const struct bench *b, const char *what)
{
	printf("  %s: %s\n", what, b->error.text);
	return false;
}

/* --- plans over the box */
static bool evaluate_box(struct bench *b, long shapes)
{
	struct lathe_memory memory, top;
	double sum = 0, worst = 1, us = 0;
	long counted = 0, oblong = 0;
	top_shape(b);
	if (lathe_memory(b->executable, b->shape, &top, &b->error))
		return failed(b, "memory at the top");
	for (long i = 0; i < shapes; i++) {
		random_shape(b);
		double start = now_us();
		if (lathe_memory(b->executable, b->shape, &memory, &b->error))
			return failed(b, "memory");
		us += now_us() - start;
		oblong += memory.arena_bytes > top.arena_bytes;
		if (!memory.live_bound_bytes)
			continue;
		double ratio = (double)memory.arena_bytes / (double)memory.live_bound_bytes;
		sum += ratio;
		worst = ratio > worst ? ratio : worst;
		counted++;
	}
	printf("  box: %ld shapes, arena / live bound mean %.5f worst %.5f, %ld above the arena of %" PRIu64
	       " bytes at the largest dims, %.1f us each\n",
	       shapes, counted ? sum / (double)counted : 1, worst, oblong, top.arena_bytes,
	       us / (double)(shapes ? shapes : 1));
	return true;
}

/* --- runs */
static uint64_t element_bytes(int32_t dtype)
{
	switch (dtype) {
	case LATHE_F64:
	case LATHE_I64:
	case LATHE_U64:
	case LATHE_C64:
		return 8;
	case LATHE_F32:
	case LATHE_I32:
	case LATHE_U32:
		return 4;
	case LATHE_F16:
	case LATHE_BF16:
	case LATHE_I16:
	case LATHE_U16:
		return 2;
	default:
		return dtype == LATHE_C128 ? 16 : 1;
	}
}

/* Dims of an input at the shape in hand: symbols and constants; false for an expression of several. */
static bool set_dims(struct bench *b, uint32_t input)
{
	const struct lathe_port *port = &b->d->inputs[input];
	struct lathe_tensor *t = &b->inputs[input];
	t->dtype = port->dtype;
	t->rank = port->rank;
	for (uint32_t axis = 0; axis < port->rank; axis++) {
		if (port->static_dims[axis] < 0 && port->dim_symbols[axis] < 0)
			return false;
		t->dims[axis] =
			port->static_dims[axis] >= 0 ? port->static_dims[axis] : b->shape[port->dim_symbols[axis]];
	}
	return true;
}

static void fill(struct bench *b, struct lathe_tensor *t)
{
	for (uint64_t i = 0; i < t->bytes / element_bytes(t->dtype); i++) {
		uint64_t bits = random_bits(&b->state);
		if (t->dtype == LATHE_F32)
			((float *)t->data)[i] = (float)(bits >> 40) * 0x1p-24f;
		else if (t->dtype == LATHE_F64)
			((double *)t->data)[i] = (double)(bits >> 11) * 0x1p-53;
		else if (t->dtype == LATHE_I64)
			((int64_t *)t->data)[i] = bits & 1;
		else if (t->dtype == LATHE_I32)
			((int32_t *)t->data)[i] = bits & 1;
		else
			memset((char *)t->data + i * element_bytes(t->dtype), 0, element_bytes(t->dtype));
	}
}

/* Buffers for the top of the box, so that every shape fits, and the first run, which shows how large outputs are. */
static bool prepare(struct bench *b)
{
	if (b->d->num_inputs > MAX_PORTS || b->d->num_outputs > MAX_PORTS || b->d->num_symbols > MAX_SYMBOLS) {
		printf("  more ports or symbols than this bench takes\n");
		return false;
	}
	top_shape(b);
	for (uint32_t i = 0; i < b->d->num_inputs; i++) {
		struct lathe_tensor *t = &b->inputs[i];
		if (!set_dims(b, i)) {
			printf("  input '%s' has a dimension that is an expression\n", b->d->inputs[i].name);
			return false;
		}
		t->bytes = element_bytes(t->dtype);
		for (uint32_t axis = 0; axis < t->rank; axis++)
			t->bytes *= (uint64_t)t->dims[axis];
		t->data = aligned_alloc(64, (t->bytes + 64) / 64 * 64);
		if (!t->data)
			return false;
		fill(b, t);
	}
	if (lathe_run(b->context, b->inputs, b->d->num_inputs, b->outputs, b->d->num_outputs, &b->error))
		return failed(b, "the first run, at the top");
	for (uint32_t i = 0; i < b->d->num_outputs; i++) {
		uint64_t bytes = b->outputs[i].bytes;
		lathe_release(b->context, &b->outputs[i]);
		b->outputs[i].data = aligned_alloc(64, (bytes + 64) / 64 * 64);
		b->outputs[i].bytes = bytes;
		if (!b->outputs[i].data)
			return false;
	}
	return true;
}

static bool run_once(struct bench *b)
{
	uint64_t room[MAX_PORTS];
	for (uint32_t i = 0; i < b->d->num_inputs; i++)
		(void)set_dims(b, i);
	for (uint32_t i = 0; i < b->d->num_outputs; i++)
		room[i] = b->outputs[i].bytes;
	if (lathe_run(b->context, b->inputs, b->d->num_inputs, b->outputs, b->d->num_outputs, &b->error))
		return failed(b, "run");
	for (uint32_t i = 0; i < b->d->num_outputs; i++)
		b->outputs[i].bytes = room[i];
	return true;
}

static bool run_many(struct bench *b, long runs, long distinct)
{
	struct lathe_counters counters;
	uint64_t allocations = 0, first_state = b->state;
	if (lathe_context_create(b->executable, NULL, &b->context, &b->error))
		return failed(b, "context");
	if (!prepare(b))
		return false;
	/* a tenth of the runs lets caches and the pool's lists reach their size */
	long warm = runs / 10, before = resident(), most = 0;
	for (long i = 0; i < runs; i++) {
		if (distinct && i % distinct == 0)
			b->state = first_state;
		random_shape(b);
		if (!run_once(b))
			return false;
		if (i % 16 == 0) { /* again, at a shape that is known now */
			if (!run_once(b))
				return false;
			lathe_counters(b->context, &counters);
			allocations += counters.last_run_allocations;
		}
		long now = resident();
		if (i == warm)
			before = now;
		most = i > warm && now > most ? now : most;
	}
	lathe_counters(b->context, &counters);
	double growth = before ? 100.0 * ((double)most / (double)before - 1) : 0;
	printf("  runs: %ld at random shapes, resident %ld KiB after a tenth, at most %ld KiB later (%+.2f %%), "
	       "%" PRIu64 " allocations in second runs at a shape, arena %" PRIu64 " bytes, pool peak %" PRIu64
	       " bytes\n",
	       runs, before / 1024, most / 1024, growth, allocations, counters.arena_bytes, counters.pool_peak_bytes);
	return growth <= 1 && allocations == 0;
}

static bool bench_one(const char *path, long shapes, long runs, long distinct, bool logarithmic, uint64_t seed)
{
	struct bench b = {.state = seed, .logarithmic = logarithmic};
	printf("%s\n", path);
	if (lathe_load(path, &b.executable, &b.error))
		return failed(&b, "load");
	b.d = lathe_describe(b.executable);
	printf("  certificate: %s\n", b.d->certificate);
	bool good = b.d->num_symbols <= MAX_SYMBOLS && evaluate_box(&b, shapes);
	if (good && runs)
		good = run_many(&b, runs, distinct);
	for (uint32_t i = 0; i < MAX_PORTS; i++) {
		free(b.inputs[i].data);
		free(b.outputs[i].data);
	}
	lathe_context_destroy(&b.context);
	lathe_unload(&b.executable);
	fflush(stdout);
	return good;
}

int main(int argc, char **argv)
{
	long shapes = 1000, runs = 0, distinct = 0, seed = 1, *value = NULL;
	int bad = 0, executables = 0;
	bool logarithmic = false;
	for (int i = 1; i < argc; i++) {
		value = strcmp(argv[i], "--shapes") == 0     ? &shapes
			: strcmp(argv[i], "--runs") == 0     ? &runs
			: strcmp(argv[i], "--distinct") == 0 ? &distinct
			: strcmp(argv[i], "--seed") == 0     ? &seed
							     : NULL;
		if (value && i + 1 < argc) {
			*value = strtol(argv[++i], NULL, 10);
			continue;
		}
		if (strcmp(argv[i], "--log") == 0) {
			logarithmic = true;
			continue;
		}
		if (value || argv[i][0] == '-') {
			fputs(usage, stderr);
			return 2;
		}
		executables++;
		bad += !bench_one(argv[i], shapes, runs, distinct, logarithmic, (uint64_t)seed);
	}
	if (!executables)
		fputs(usage, stderr);
	return executables == 0 ? 2 : bad != 0;
}
