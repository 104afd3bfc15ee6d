/* lathe top: the daemon's queue, workers and jobs, again and again, from /metrics and /v1/jobs. */
#include "api/cli/cli.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

static volatile sig_atomic_t interrupted;

static void on_interrupt(int number)
{
	(void)number;
	interrupted = 1;
}

/* A sample of the text format: "lathe_NAME VALUE"; negative where there is none. */
static double sample(const char *metrics, const char *name)
{
	size_t length = strlen(name);
	for (const char *line = metrics; line && *line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL)
		if (strncmp(line, "lathe_", 6) == 0 && strncmp(line + 6, name, length) == 0 && line[6 + length] == ' ')
			return strtod(line + 7 + length, NULL);
	return -1;
}

static enum lth_code get_text(struct lth_cli *cli, const char *path, struct lathe_reply *out_reply)
{
	struct lathe_call call = {.method = "GET", .path = path};
	struct lathe_problem problem;
	return lathe_client_call(cli->client, &call, out_reply, &problem) ? lth_cli_problem(cli, &problem) : LTH_OK;
}

/* All samples without labels, by name. */
static json_t *samples_json(const char *metrics)
{
	json_t *out = json_object();
	for (const char *line = metrics; line && *line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL) {
		char name[128];
		double value;
		if (sscanf(line, "lathe_%127[a-z_] %lf", name, &value) == 2)
			json_object_set_new(out, name, json_real(value));
	}
	return out;
}

struct picture {
	double jobs_done, hits, misses; /* of the last one, for rates */
	bool has_last;
};

static void print_head(const struct lth_cli *cli, const char *metrics, double seconds, struct picture *last)
{
	char store[32];
	double done = sample(metrics, "jobs_done_total"), hits = sample(metrics, "cache_hits_total");
	double misses = sample(metrics, "cache_misses_total");
	lth_cli_bytes((int64_t)sample(metrics, "store_bytes"), store, sizeof(store));
	printf("%s   store %s   connections %.0f\n", lathe_client_server(cli->client), store,
	       sample(metrics, "http_connections"));
	printf("workers  %.0f idle, %.0f started, %.0f crashed, %.0f recycled\n", sample(metrics, "workers_ready"),
	       sample(metrics, "workers_started_total"), sample(metrics, "workers_crashed_total"),
	       sample(metrics, "workers_recycled_total"));
	printf("jobs     %.0f running, %.0f queued, %.0f done, %.0f failed, %.0f cancelled, %.0f refused",
	       sample(metrics, "jobs_running"), sample(metrics, "jobs_queued"), done,
	       sample(metrics, "jobs_failed_total"), sample(metrics, "jobs_cancelled_total"),
	       sample(metrics, "jobs_refused_total"));
	printf("\ncache    %.0f hits, %.0f misses", hits, misses);
	if (last->has_last)
		printf("   now %.1f compiles/s, %.1f hits/s", (done - last->jobs_done) / seconds,
		       (hits - last->hits) / seconds);
	puts("\n");
	*last = (struct picture){done, hits, misses, true};
}

static int rows_of_terminal(void)
{
	enum { STANDARD = 24, HEAD = 8, LEAST = 4 };
	struct winsize size;
	int rows = ioctl(1, TIOCGWINSZ, &size) == 0 && size.ws_row ? size.ws_row : STANDARD;
	return rows > HEAD + LEAST ? rows - HEAD : LEAST;
}

static enum lth_code draw(struct lth_cli *cli, double seconds, bool again, struct picture *last)
{
	char path[64];
	struct lathe_reply metrics;
	json_t *document, *job;
	struct lth_cli_table table = {0};
	size_t index;
	snprintf(path, sizeof(path), "/v1/jobs?limit=%d", rows_of_terminal());
	enum lth_code code = get_text(cli, "/metrics", &metrics);
	if (code != LTH_OK)
		return code;
	code = lth_cli_get(cli, path, &document);
	if (code == LTH_OK && lth_cli_has(cli, LTH_CLI_JSON)) { /* a line a picture */
		json_t *line = json_pack("{s:s, s:o, s:o?}", "server", lathe_client_server(cli->client), "metrics",
					 samples_json(metrics.body ? metrics.body : ""), "jobs",
					 json_incref(json_object_get(document, "jobs")));
		json_dumpf(line, stdout, JSON_COMPACT | JSON_REAL_PRECISION(15));
		putchar('\n');
		json_decref(line);
	} else if (code == LTH_OK) {
		if (again)
			fputs("\033[H\033[2J", stdout);
		print_head(cli, metrics.body ? metrics.body : "", seconds, last);
		lth_cli_job_head(&table);
		json_array_foreach(json_object_get(document, "jobs"), index, job)
			lth_cli_job_row(&table, job);
		lth_cli_table_print(&table, stdout);
	}
	if (code == LTH_OK) {
		fflush(stdout);
		json_decref(document);
	}
	lathe_reply_free(&metrics);
	return code;
}

enum lth_code lth_cli_top(struct lth_cli *cli)
{
	double seconds = lth_cli_number(cli, LTH_CLI_INTERVAL, 1);
	struct picture last = {0};
	struct sigaction action = {.sa_handler = on_interrupt};
	bool again = isatty(1) && !lth_cli_has(cli, LTH_CLI_JSON) && !lth_cli_has(cli, LTH_CLI_ONCE);
	if (seconds < 0.1)
		seconds = 0.1;
	struct timespec pause = {.tv_sec = (time_t)seconds,
				 .tv_nsec = (long)((seconds - (double)(time_t)seconds) * 1e9)};
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	enum lth_code code = draw(cli, seconds, again, &last);
	while (code == LTH_OK && !lth_cli_has(cli, LTH_CLI_ONCE) && !interrupted) {
		nanosleep(&pause, NULL);
		if (!interrupted)
			code = draw(cli, seconds, again, &last);
	}
	return interrupted ? LTH_OK : code;
}
