/* Runs compiled models on hostile values: hostile-run SEED RUNS MODEL.so... All models are builds of one graph. Each
 * run gives each of them the same inputs, shapes as the model says, values that often are beyond any range: they must
 * all succeed with the same outputs, or all fail with a message that names a node. Every block that a runtime takes ends at
 * a page that may not be touched, begins behind one, and is filled with another byte for each build, so that reading
 * beyond it or before writing it shows. A crash, a hang and a difference name the run; the exit status is 1. */
#include "api/lathe.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>

enum { MAX_PORTS = 16, MAX_MODELS = 4, PAGE = 4096, SECONDS = 20 };

/* ---- blocks with guards ---- */

static const size_t arena_bytes = (size_t)1 << 40, most_bytes = (size_t)1 << 28;
static char *arena, *arena_at;
static unsigned char fill;

static bool is_guarded(const void *block)
{
	return arena && (const char *)block >= arena && (const char *)block < arena + arena_bytes;
}

/* What lth_pool and lth_arena take their blocks with; this program's are found before the C library's. */
int posix_memalign(void **out, size_t alignment, size_t size);
void free(void *block);
void __libc_free(void *block);

int posix_memalign(void **out, size_t alignment, size_t size)
{
	size_t rounded = (size + alignment - 1) & ~(alignment - 1), pages = (rounded + PAGE - 1) & ~(size_t)(PAGE - 1);
	if (size > most_bytes || (size_t)(arena + arena_bytes - arena_at) < pages + 2 * PAGE)
		return ENOMEM;
	char *begin = arena_at + PAGE;
	if (mprotect(begin, pages, PROT_READ | PROT_WRITE) != 0)
		return ENOMEM;
	arena_at = begin + pages;
	if (pages <= 1 << 20)
		memset(begin, fill, pages);
	*out = begin + (alignment <= PAGE ? pages - rounded : 0);
	return 0;
}

void free(void *block)
{
	if (!is_guarded(block))
		__libc_free(block);
}

/* All guarded blocks end. */
static void forget_blocks(void)
{
	madvise(arena, (size_t)(arena_at - arena), MADV_DONTNEED);
	mprotect(arena, (size_t)(arena_at - arena), PROT_NONE);
	arena_at = arena;
}

/* ---- values ---- */

static uint64_t state;

static uint64_t random_bits(void)
{
	uint64_t z = state += 0x9E3779B97F4A7C15u;
	z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
	z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
	return z ^ (z >> 31);
}

static int64_t hostile_int(void)
{
	static const int64_t list[] = {INT64_MIN, INT64_MIN + 1, INT64_MAX, INT64_MAX - 1, INT32_MIN, INT32_MAX,
				       (int64_t)1 << 32, ((int64_t)1 << 32) + 1, (int64_t)1 << 61, -1, -9, 16, 17,
				       64, 1000, 1 << 20, -(1 << 20), (int64_t)1 << 40, 0x100000001, UINT32_MAX};
	return list[random_bits() % (sizeof(list) / sizeof(list[0]))];
}

static double hostile_real(void)
{
	static const double list[] = {NAN, INFINITY, -INFINITY, 1e38, -1e38, 3e9, -3e9, 9.3e18, -9.3e18, 1e-40, -0.0,
				      0.5, 1e6, -1e6, 1e300, 255.5, 65536};
	return list[random_bits() % (sizeof(list) / sizeof(list[0]))];
}

/* How one input is filled: with a chance of `chance` in 16 an element is hostile, else one of `span` integers from
 * `low`. */
struct filling {
	unsigned chance, span;
	int64_t low;
};

static struct filling pick_filling(void)
{
	static const unsigned chances[] = {0, 0, 1, 4, 16}, spans[] = {2, 4, 8, 11};
	struct filling filling = {.chance = chances[random_bits() % 5], .span = spans[random_bits() % 4]};
	filling.low = random_bits() % 3 ? 0 : -3;
	return filling;
}

static void put_element(struct lathe_tensor *t, int64_t i, const struct filling *filling)
{
	bool hostile = random_bits() % 16 < filling->chance;
	int64_t whole = hostile ? hostile_int() : (int64_t)(random_bits() % filling->span) + filling->low;
	double real = hostile ? hostile_real() : (double)(random_bits() % 4096) / 1024 - 2;
	switch (t->dtype) {
	case LATHE_F32:
		((float *)t->data)[i] = (float)real;
		break;
	case LATHE_F64:
		((double *)t->data)[i] = real;
		break;
	case LATHE_I64:
	case LATHE_U64:
		((int64_t *)t->data)[i] = whole;
		break;
	case LATHE_I32:
	case LATHE_U32:
		((int32_t *)t->data)[i] = (int32_t)whole;
		break;
	case LATHE_BOOL:
		((uint8_t *)t->data)[i] = whole & 1;
		break;
	default:
		((int8_t *)t->data)[i] = (int8_t)whole;
		break;
	}
}

static size_t width_of(int32_t dtype)
{
	return dtype == LATHE_F32 || dtype == LATHE_I32 || dtype == LATHE_U32	? 4
	       : dtype == LATHE_F64 || dtype == LATHE_I64 || dtype == LATHE_U64 ? 8
										: 1;
}

static int64_t count_of(const struct lathe_tensor *t)
{
	int64_t count = 1;
	for (uint32_t k = 0; k < t->rank; k++)
		count *= t->dims[k];
	return count;
}

static void make_inputs(const struct lathe_description *d, struct lathe_tensor *inputs)
{
	for (uint32_t i = 0; i < d->num_inputs; i++) {
		const struct lathe_port *port = &d->inputs[i];
		struct filling filling = pick_filling();
		inputs[i] = (struct lathe_tensor){.dtype = port->dtype, .rank = port->rank};
		for (uint32_t k = 0; k < port->rank; k++)
			inputs[i].dims[k] = port->static_dims[k] < 0 ? 3 : port->static_dims[k];
		inputs[i].bytes = (uint64_t)count_of(&inputs[i]) * width_of(port->dtype);
		if (posix_memalign(&inputs[i].data, width_of(port->dtype), inputs[i].bytes) != 0)
			abort();
		for (int64_t k = 0; k < count_of(&inputs[i]); k++)
			put_element(&inputs[i], k, &filling);
	}
}

/* ---- comparing ---- */

static bool same_real(double a, double b)
{
	if (!isfinite(a) || !isfinite(b) || fabs(a) > 1e30 || fabs(b) > 1e30)
		return true; /* how far an overflow goes depends on the order of sums */
	return fabs(a - b) <= 1e-3 * fmax(1, fabs(a));
}

static bool same_element(const struct lathe_tensor *a, const struct lathe_tensor *b, int64_t i)
{
	if (a->dtype == LATHE_F32)
		return same_real((double)((const float *)a->data)[i], (double)((const float *)b->data)[i]);
	if (a->dtype == LATHE_F64)
		return same_real(((const double *)a->data)[i], ((const double *)b->data)[i]);
	size_t width = width_of(a->dtype);
	return memcmp((const char *)a->data + (size_t)i * width, (const char *)b->data + (size_t)i * width, width) == 0;
}

static bool same_outputs(const struct lathe_tensor *a, const struct lathe_tensor *b, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		if (a[i].rank != b[i].rank || memcmp(a[i].dims, b[i].dims, a[i].rank * sizeof(a[i].dims[0])) != 0)
			return fprintf(stderr, "output %u has other dims\n", i), false;
		for (int64_t k = 0; k < count_of(&a[i]); k++)
			if (!same_element(&a[i], &b[i], k))
				return fprintf(stderr, "output %u differs at %lld\n", i, (long long)k), false;
	}
	return true;
}

/* ---- runs ---- */

static unsigned long long run_number;
static int model_number;

static void on_signal(int number)
{
	char line[128];
	int size = snprintf(line, sizeof(line), "run %llu, model %d: %s\n", run_number, model_number,
			    number == SIGALRM ? "a hang" : strsignal(number));
	if (size > 0 && write(2, line, (size_t)size) < 0)
		_exit(2);
	_exit(1);
}

static struct lathe_executable *models[MAX_MODELS];
static int num_models;

/* One model in a context of its own, which stays for its outputs. */
static int run_model(int model, const struct lathe_tensor *inputs, struct lathe_tensor *outputs,
		     struct lathe_context **out_context, struct lathe_error *error)
{
	const struct lathe_description *d = lathe_describe(models[model]);
	model_number = model;
	fill = (unsigned char)(0x11 * (model + 1));
	int code = lathe_context_create(models[model], NULL, out_context, error);
	return code ? code : lathe_run(*out_context, inputs, d->num_inputs, outputs, d->num_outputs, error);
}

static bool one_run(unsigned long long *succeeded)
{
	const struct lathe_description *d = lathe_describe(models[0]);
	struct lathe_tensor inputs[MAX_PORTS], outputs[MAX_MODELS][MAX_PORTS] = {{{0}}};
	struct lathe_context *contexts[MAX_MODELS] = {0};
	struct lathe_error errors[MAX_MODELS] = {{0}};
	int codes[MAX_MODELS] = {0};
	bool right = true;
	make_inputs(d, inputs);
	for (int m = 0; m < num_models; m++) {
		alarm(SECONDS);
		codes[m] = run_model(m, inputs, outputs[m], &contexts[m], &errors[m]);
		if (codes[m] != 0 && codes[m] != LATHE_ERROR_RUNTIME && codes[m] != LATHE_ERROR_MEMORY)
			right = fprintf(stderr, "code %d: %s\n", codes[m], errors[m].text) < 0;
		if (codes[m] == LATHE_ERROR_RUNTIME && !strchr(errors[m].text, '\''))
			right = fprintf(stderr, "no node named: %s\n", errors[m].text) < 0;
	}
	alarm(0);
	for (int m = 1; m < num_models && right; m++) {
		if ((codes[0] == 0) != (codes[m] == 0))
			right = fprintf(stderr, "build %d says '%s', build 0 '%s'\n", m,
					codes[m] ? errors[m].text : "right", codes[0] ? errors[0].text : "right") < 0;
		else if (codes[0] == 0)
			right = same_outputs(outputs[0], outputs[m], d->num_outputs);
	}
	*succeeded += codes[0] == 0;
	for (int m = 0; m < num_models; m++) {
		for (uint32_t i = 0; i < d->num_outputs && contexts[m]; i++)
			if (outputs[m][i].data)
				LATHE_TABLE(models[m])->release(contexts[m], &outputs[m][i]);
		lathe_context_destroy(&contexts[m]);
	}
	forget_blocks();
	return right;
}

int main(int argc, char **argv)
{
	unsigned long long runs = argc > 2 ? strtoull(argv[2], NULL, 10) : 0, succeeded = 0;
	struct lathe_error error;
	arena = arena_at = mmap(NULL, arena_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (arena == MAP_FAILED || argc < 4 || argc > 3 + MAX_MODELS)
		return fprintf(stderr, "hostile-run SEED RUNS MODEL.so...\n"), 2;
	for (num_models = 0; num_models < argc - 3; num_models++)
		if (lathe_load(argv[3 + num_models], &models[num_models], &error) != 0)
			return fprintf(stderr, "%s\n", error.text), 2;
	const struct lathe_description *d = lathe_describe(models[0]);
	if (d->num_inputs > MAX_PORTS || d->num_outputs > MAX_PORTS)
		return fprintf(stderr, "too many inputs or outputs\n"), 2;
	static const int caught[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGALRM};
	for (size_t i = 0; i < sizeof(caught) / sizeof(caught[0]); i++)
		signal(caught[i], on_signal);
	for (run_number = 0; run_number < runs; run_number++) {
		state = strtoull(argv[1], NULL, 10) * 1000003 + run_number; /* a run can be repeated alone */
		if (!one_run(&succeeded)) {
			fprintf(stderr, "run %llu\n", run_number);
			return 1;
		}
	}
	printf("%llu runs, %llu succeeded\n", runs, succeeded);
	return 0;
}
