/* --local: a private lathed on a free port, with its state in a temporary folder. A keeper process stands between: it
 * waits for the end of a pipe that the command holds, however the command ends, then ends the daemon and removes the
 * folder. */
#include "api/cli/cli.h"
#include "runtime/base/io.h"
#include "runtime/base/place.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { START_SECONDS = 30, STOP_SECONDS = 10 };

struct lth_cli_local {
	pid_t keeper;
	int pipe; /* held open as long as the daemon is wanted; -1 before */
	char folder[256];
	char server[64];
};

/* The daemon installed with this program, wherever that has been moved, or the one of the same build. */
static bool find_daemon(char out[PATH_MAX])
{
	static const char installed[] = LATHE_SBINDIR "/lathed";
	char own[PATH_MAX];
	if (lth_moved_path(LATHE_BINDIR, installed, out) && access(out, X_OK) == 0)
		return true;
	static const char *const beside[] = {"../daemon/lathed", "lathed"}; /* of a build; all in one folder */
	for (size_t i = 0; lth_own_folder(own) && i < sizeof(beside) / sizeof(beside[0]); i++) {
		int length = snprintf(out, PATH_MAX, "%s/%s", own, beside[i]);
		if (length > 0 && length < PATH_MAX && access(out, X_OK) == 0)
			return true;
	}
	snprintf(out, PATH_MAX, "%s", installed);
	return access(out, X_OK) == 0;
}

static void become_daemon(const char *program, const struct lth_cli_local *local, bool verbose, pid_t parent)
{
	char state[300], port[300], client_jobs[] = "--client-jobs=0";
	snprintf(state, sizeof(state), "--state-dir=%s/state", local->folder);
	snprintf(port, sizeof(port), "--port-file=%s/port", local->folder);
	char listen[] = "--listen=127.0.0.1:0", level[32];
	snprintf(level, sizeof(level), "--log-level=%s", verbose ? "info" : "error");
	char *name;
	memcpy(&name, &program, sizeof(name)); /* execv does not write to its arguments */
	char *const arguments[] = {name, listen, state, port, level, client_jobs, NULL};
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() != parent)
		_exit(1);
	setenv("LATHED_CONFIG", "", 1); /* settings of this machine's daemon are not this one's */
	int null = open("/dev/null", O_RDWR);
	if (null >= 0) {
		dup2(null, 0);
		dup2(null, 1);
	}
	execv(program, arguments);
	_exit(127);
}

static void pause_ms(long ms)
{
	struct timespec time = {.tv_nsec = ms * 1000000};
	nanosleep(&time, NULL);
}

static int remove_entry(const char *path, const struct stat *status, int type, struct FTW *position)
{
	(void)status;
	(void)type;
	(void)position;
	return remove(path) != 0 && errno != ENOENT;
}

static void stop_daemon(pid_t daemon)
{
	uint64_t end = lth_now_ns() + STOP_SECONDS * (uint64_t)1000000000;
	kill(daemon, SIGTERM);
	while (waitpid(daemon, NULL, WNOHANG) == 0) {
		if (lth_now_ns() > end)
			kill(daemon, SIGKILL);
		pause_ms(2);
	}
}

/* Does not return. Ends when the pipe does, or the daemon. */
static void keep(const char *program, const struct lth_cli_local *local, bool verbose, int end_of_command)
{
	enum { MOST_FILES = 16, LOOK_MS = 50 };
	bool wanted = true;
	setpgid(0, 0); /* Ctrl-C is for the command */
	pid_t keeper = getpid(), daemon = fork();
	if (daemon == 0)
		become_daemon(program, local, verbose, keeper);
	while (wanted && daemon > 0) {
		struct pollfd wait = {.fd = end_of_command, .events = POLLIN};
		wanted = poll(&wait, 1, LOOK_MS) <= 0;
		if (wanted && waitpid(daemon, NULL, WNOHANG) != 0)
			daemon = -1;
	}
	if (daemon > 0)
		stop_daemon(daemon);
	nftw(local->folder, remove_entry, MOST_FILES, FTW_DEPTH | FTW_PHYS);
	_exit(wanted ? 1 : 0);
}

/* Waits for the port file: the daemon listens, and keeps requests until its first worker is there. */
static enum lth_code wait_until_ready(struct lth_cli *cli, struct lth_cli_local *local)
{
	char path[300];
	uint64_t end = lth_now_ns() + START_SECONDS * (uint64_t)1000000000;
	bool listens = false, alive = true;
	snprintf(path, sizeof(path), "%s/port", local->folder);
	for (; alive && lth_now_ns() < end; pause_ms(5)) {
		FILE *file = fopen(path, "r");
		int port;
		listens = file && fscanf(file, "%d", &port) == 1;
		if (file)
			fclose(file);
		if (listens) {
			snprintf(local->server, sizeof(local->server), "http://127.0.0.1:%d", port);
			return LTH_OK;
		}
		alive = waitpid(local->keeper, NULL, WNOHANG) == 0;
	}
	if (!alive)
		local->keeper = 0;
	return lth_diag_fail(&cli->diag, LTH_UNREACHABLE, "--local", "a daemon that starts", "try again with -v",
			     alive ? "one that is not ready in time" : "one that ended at once");
}

enum lth_code lth_cli_local_start(struct lth_cli *cli, const char **out_server)
{
	char program[PATH_MAX];
	int ends[2];
	const char *temporary = getenv("TMPDIR");
	struct lth_cli_local *local = calloc(1, sizeof(*local));
	if (!local)
		return lth_diag_fail(&cli->diag, LTH_OUT_OF_MEMORY, "--local", NULL, NULL, "no memory");
	cli->local = local;
	local->pipe = -1;
	if (!find_daemon(program))
		return lth_diag_fail(&cli->diag, LTH_NOT_FOUND, "--local", "an installed lathed", NULL, "nothing at %s",
				     program);
	snprintf(local->folder, sizeof(local->folder), "%s/lathe-local.XXXXXX",
		 temporary && *temporary ? temporary : "/tmp");
	if (!mkdtemp(local->folder))
		return lth_diag_fail(&cli->diag, LTH_IO_ERROR, local->folder, NULL, NULL,
				     "cannot create the folder: %s", strerror(errno));
	if (pipe2(ends, O_CLOEXEC) != 0)
		return lth_diag_fail(&cli->diag, LTH_IO_ERROR, "--local", NULL, NULL, "pipe: %s", strerror(errno));
	fflush(NULL);
	local->keeper = fork();
	if (local->keeper == 0) {
		close(ends[1]);
		keep(program, local, lth_cli_has(cli, LTH_CLI_VERBOSE), ends[0]);
	}
	close(ends[0]);
	local->pipe = ends[1];
	if (local->keeper < 0) {
		local->keeper = 0;
		return lth_diag_fail(&cli->diag, LTH_IO_ERROR, "--local", NULL, NULL, "fork: %s", strerror(errno));
	}
	enum lth_code code = wait_until_ready(cli, local);
	if (code == LTH_OK)
		*out_server = local->server;
	return code;
}

void lth_cli_local_stop(struct lth_cli *cli)
{
	struct lth_cli_local *local = cli->local;
	if (!local)
		return;
	if (local->pipe >= 0)
		close(local->pipe);
	while (local->keeper && waitpid(local->keeper, NULL, 0) < 0 && errno == EINTR)
		;
	free(local);
	cli->local = NULL;
}
