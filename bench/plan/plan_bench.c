/* How well and how fast the memory planner packs: runs every CSV file of a folder, or random problems of many
 * shapes, and prints height, live bound, gap, certificate and CPU time of each. Every plan goes through the independent
 * checker. A number between dots in a file's name (A.1048576.csv) is the capacity, unless --lowest is given. One
 * thread. */
#include "compiler/memory/plan/plan.h"
#include "runtime/base/io.h"

#include <dirent.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct totals {
	double ms;
	int instances, failures;
};

/* Of this thread alone: what else the machine does counts less. */
static double cpu_ms(void)
{
	struct timespec t;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static const char usage[] = "usage: plan-bench [--strategy NAME] [--effort N] [--seed N] [--time-limit MS] [--lowest] "
			    "[--random COUNT] [--cut COUNT] [FOLDER|FILE...]\n";

static int64_t capacity_in_name(const char *path)
{
	const char *name = strrchr(path, '/');
	name = strchr(name ? name : path, '.');
	if (!name)
		return 0;
	char *end = NULL;
	long long value = strtoll(name + 1, &end, 10);
	return end != name + 1 && *end == '.' && value > 0 ? value : 0;
}

static void run(const char *name, const struct lth_buffer *buffers, size_t count,
		const struct lth_plan_options *options, struct totals *totals)
{
	struct lth_plan_result result = {0};
	struct lth_plan_check check = {0};
	struct lth_diag diag = {0};
	char line[4096];
	double start = cpu_ms();
	enum lth_code code = lth_plan(buffers, count, options, &result, &diag);
	double ms = cpu_ms() - start;
	totals->instances++;
	totals->ms += ms;
	if (code == LTH_OK)
		code = lth_plan_check(buffers, result.offsets, count, &check, &diag);
	if (code != LTH_OK) {
		printf("%-28s %s\n", name, lth_diag_line(&diag, line, sizeof(line)));
		totals->failures++;
		return;
	}
	bool good = check.num_violations == 0 && check.height == result.height &&
		    (options->capacity == 0 || result.height <= options->capacity);
	printf("%-28s %7zu %16" PRId64 " %16" PRId64 " %9.4f%% %9.1f ms %9" PRId64 " %s %s\n", name, count,
	       result.height, result.live_bound_bytes, 100.0 * ((double)result.height / (double)result.live_bound_bytes - 1), ms,
	       result.nodes, result.certificate_text,
	       good ? "" : check.num_violations ? "INVALID" : "ABOVE CAPACITY");
	fflush(stdout);
	totals->failures += !good;
	lth_plan_result_free(&result);
}

static void run_file(const char *path, struct lth_plan_options options, bool lowest, struct totals *totals)
{
	const struct lth_plan_reading reading = {.alignment = 1, .offsets_are_fixed = true};
	struct lth_plan_table table = {0};
	struct lth_diag diag = {0};
	char *text = NULL, line[4096];
	size_t size = 0;
	enum lth_code code = lth_read_file(path, 0, &text, &size, &diag);
	if (code == LTH_OK)
		code = lth_plan_read_csv(text, size, &reading, &table, &diag);
	free(text);
	if (code != LTH_OK) {
		printf("%s: %s\n", path, lth_diag_line(&diag, line, sizeof(line)));
		totals->failures++;
		return;
	}
	const char *name = strrchr(path, '/');
	options.capacity = lowest ? 0 : capacity_in_name(path);
	run(name ? name + 1 : path, table.buffers, table.count, &options, totals);
	lth_plan_table_free(&table);
}

static int is_csv(const struct dirent *entry)
{
	size_t length = strlen(entry->d_name);
	return length > 4 && strcmp(entry->d_name + length - 4, ".csv") == 0;
}

static void run_path(const char *path, const struct lth_plan_options *options, bool lowest, struct totals *totals)
{
	struct dirent **entries = NULL;
	int count = scandir(path, &entries, is_csv, alphasort);
	if (count < 0) {
		run_file(path, *options, lowest, totals);
		return;
	}
	for (int i = 0; i < count; i++) {
		char file[4096];
		snprintf(file, sizeof(file), "%s/%s", path, entries[i]->d_name);
		run_file(file, *options, lowest, totals);
		free(entries[i]);
	}
	free(entries);
}

static uint64_t next(uint64_t *state)
{
	uint64_t x = *state += 0x9E3779B97F4A7C15u;
	x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9u;
	x = (x ^ x >> 27) * 0x94D049BB133111EBu;
	return x ^ x >> 31;
}

static int64_t below(uint64_t *state, int64_t bound)
{
	return (int64_t)(next(state) % (uint64_t)bound);
}

enum kind { SHORT, MIXED, TENTH, ANYWHERE, TO_THE_END, LONG, TRAINING, STACKED, POWERS, NUM_KINDS };
static const char *const kind_names[NUM_KINDS] = {"short", "mixed",    "tenth",   "anywhere", "to the end",
						  "long",  "training", "stacked", "powers"};

/* Buffer `i` of `count`: what inference, training and loops look like, and what they do not. */
static struct lth_buffer invent(enum kind kind, int64_t i, int64_t count, uint64_t *state)
{
	struct lth_buffer b = {.lower = below(state, count), .alignment = 1, .fixed_offset = -1};
	b.size = 1 + below(state, 1 << 20);
	b.upper = b.lower + 1 + below(state, 20);
	switch (kind) {
	case MIXED: /* every length: its logarithm is uniform */
		b.upper = b.lower + (int64_t)exp((double)below(state, 1000) / 1000 * log((double)count));
		break;
	case TENTH:
		b.upper = b.lower + 1 + below(state, count / 10 + 1);
		break;
	case ANYWHERE: /* from any step to any other */
		b.upper = below(state, count);
		if (b.upper < b.lower) {
			int64_t held = b.lower;
			b.lower = b.upper;
			b.upper = held;
		}
		b.upper++;
		break;
	case TO_THE_END: /* two thirds at once */
		b.upper = b.lower + 1 + below(state, count);
		break;
	case LONG:
		b.lower = below(state, count / 10 + 1);
		b.upper = count - below(state, count / 10 + 1);
		break;
	case TRAINING: /* kept from the forward step to its mirror image in the backward pass */
		b.lower = i;
		if (i < count / 2 && i % 3 != 0)
			b.upper = count - i;
		else
			b.upper = i + 1 + below(state, 4);
		break;
	case STACKED: /* all live at once in the middle */
		b.lower = i / 2;
		b.upper = count - i / 2;
		break;
	case POWERS:
		b.size = (int64_t)1 << below(state, 30);
		b.upper = b.lower + 1 + (below(state, 100) == 0 ? below(state, count) : below(state, 50));
		break;
	default:
		break;
	}
	return b;
}

/* A rectangle of 200 steps by 2^20 bytes cut at random, in units of 1024: packs without waste. */
static void run_cut(int64_t count, const struct lth_plan_options *options, struct totals *totals)
{
	uint64_t state = options->seed ^ 0xC07;
	struct lth_buffer *buffers = calloc((size_t)count, sizeof(*buffers));
	int64_t made = 1;
	if (!buffers)
		return;
	buffers[0] = (struct lth_buffer){0, 200, 1 << 20, 1, -1};
	for (int tries = 0; made < count && tries < 1000000; tries++) {
		struct lth_buffer *piece = &buffers[below(&state, made)], *other = &buffers[made];
		*other = *piece;
		if (next(&state) % 2 && piece->upper - piece->lower > 1) {
			other->lower = piece->lower + 1 + below(&state, piece->upper - piece->lower - 1);
			piece->upper = other->lower;
			made++;
		} else if (piece->size > 1024) {
			other->size = 1024 * (1 + below(&state, piece->size / 1024 - 1));
			piece->size -= other->size;
			made++;
		}
	}
	run("cut", buffers, (size_t)made, options, totals);
	free(buffers);
}

static void run_random(int64_t count, const struct lth_plan_options *options, struct totals *totals)
{
	uint64_t state = options->seed;
	struct lth_buffer *buffers = calloc((size_t)count, sizeof(*buffers));
	for (int kind = 0; kind < NUM_KINDS && buffers; kind++) {
		for (int64_t i = 0; i < count; i++)
			buffers[i] = invent((enum kind)kind, i, count, &state);
		run(kind_names[kind], buffers, (size_t)count, options, totals);
	}
	free(buffers);
}

int main(int argc, char **argv)
{
	struct lth_plan_options options = {.strategy = LTH_PLAN_EXACT};
	struct totals totals = {0};
	bool lowest = false;
	for (int i = 1; i < argc; i++) {
		const char *value = i + 1 < argc ? argv[i + 1] : "";
		if (strcmp(argv[i], "--lowest") == 0) {
			lowest = true;
		} else if (strncmp(argv[i], "--", 2) != 0) {
			run_path(argv[i], &options, lowest, &totals);
		} else if (strcmp(argv[i], "--strategy") == 0) {
			options.strategy = lth_plan_strategy_by_name(value);
			i++;
		} else if (strcmp(argv[i], "--effort") == 0) {
			options.effort = strtoll(value, NULL, 10);
			i++;
		} else if (strcmp(argv[i], "--seed") == 0) {
			options.seed = strtoull(value, NULL, 10);
			i++;
		} else if (strcmp(argv[i], "--time-limit") == 0) {
			options.time_limit_ms = strtoll(value, NULL, 10);
			i++;
		} else if (strcmp(argv[i], "--random") == 0 && strtoll(value, NULL, 10) > 0) {
			run_random(strtoll(value, NULL, 10), &options, &totals);
			i++;
		} else if (strcmp(argv[i], "--cut") == 0 && strtoll(value, NULL, 10) > 0) {
			run_cut(strtoll(value, NULL, 10), &options, &totals);
			i++;
		} else {
			fputs(usage, stderr);
			return 2;
		}
		if (options.strategy == LTH_NUM_PLAN) {
			fprintf(stderr, "plan-bench: no strategy '%s'\n", value);
			return 2;
		}
	}
	printf("%d instances, %d failures, %.1f ms\n", totals.instances, totals.failures, totals.ms);
	return totals.failures != 0;
}
