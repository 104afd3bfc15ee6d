/* lathed: the daemon. See server.h. */
#include <config.h>
#include "daemon/server.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static int fail(const struct lth_diag *diag)
{
	char line[4096];
	fprintf(stderr, "lathed: %s\n", lth_diag_line(diag, line, sizeof(line)));
	return lth_code_exit(diag->code);
}

/* The loop runs for microseconds and often, its workers for seconds: with a short slice the kernel (from 6.12 on) lets
 * it run soon after it wakes, without giving it more of the CPU in all. Threads and children get the usual slice. An
 * older kernel takes no notice. See sched_setattr(2): the first version of its structure. */
static void ask_for_short_slices(void)
{
	static const uint64_t SLICE_NS = 200000, RESET_ON_FORK = 1;
	struct {
		uint32_t size, policy;
		uint64_t flags;
		int32_t nice;
		uint32_t priority;
		uint64_t runtime, deadline, period;
	} attributes = {.size = sizeof(attributes), .flags = RESET_ON_FORK, .runtime = SLICE_NS};
	errno = 0;
	attributes.nice = getpriority(PRIO_PROCESS, 0);
	if (errno == 0 && syscall(SYS_sched_setattr, 0, &attributes, 0) != 0)
		errno = 0; /* as before, then */
}

static int serve(struct lth_server *server)
{
	struct lth_diag diag = {0};
	uv_loop_t loop;
	if (uv_loop_init(&loop) != 0)
		return 8;
	enum lth_code code = lth_server_start(server, &loop, &diag);
	if (code == LTH_OK)
		uv_run(&loop, UV_RUN_DEFAULT);
	else if (server->pool)
		lth_server_stop(server), lth_server_stop(server), uv_run(&loop, UV_RUN_DEFAULT);
	lth_server_finish(server);
	uv_loop_close(&loop);
	return code == LTH_OK ? 0 : fail(&diag);
}

int main(int argc, char **argv)
{
	struct lth_diag diag = {0};
	enum lth_config_action action;
	static struct lth_server server; /* too large for a stack; the only one */
	server.argc = argc;
	server.argv = argv;
	enum lth_code code = lth_config_load(argc, argv, &server.config, &action, &diag);
	if (code != LTH_OK)
		return fail(&diag);
	if (action != LTH_CONFIG_RUN) {
		if (action == LTH_CONFIG_HELP)
			lth_config_help(stdout);
		else if (action == LTH_CONFIG_REFERENCE)
			lth_config_reference(stdout);
		else if (action == LTH_CONFIG_MANUAL)
			lth_config_manual(stdout);
		else
			puts("lathed " PACKAGE_VERSION);
		lth_config_free(&server.config);
		return 0;
	}
	signal(SIGPIPE, SIG_IGN);
	signal(SIGIO, SIG_IGN); /* of leases, which ask whether a file has writers: see store_put.c */
	ask_for_short_slices();
	json_object_seed((size_t)time(NULL) ^ (size_t)getpid()); /* before threads */
	return serve(&server);
}
