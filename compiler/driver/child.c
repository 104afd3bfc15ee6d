/* A function in a child process. See child.h. The time limit is a timer in the child, whose default action ends it: the
 * worker's own sandbox forbids it to signal other processes. */
#include "compiler/driver/child.h"

#include "runtime/base/io.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

/* The worker's handlers speak for the worker, over its socket: the child must have neither. */
static void forget_worker(int *answer_fd)
{
	enum { ANSWER_FD = 3 };
	for (int number = 1; number < NSIG; number++)
		if (number != SIGXFSZ && number != SIGPIPE)
			signal(number, SIG_DFL);
	if (*answer_fd != ANSWER_FD && dup2(*answer_fd, ANSWER_FD) < 0)
		_exit(1);
	*answer_fd = ANSWER_FD;
	close_range(ANSWER_FD + 1, ~0U, 0);
}

static _Noreturn void be_child(int answer_fd, pid_t parent, lth_child_fn function, void *context, uint64_t limit_ms)
{
	struct itimerval timer = {.it_value = {.tv_sec = (time_t)(limit_ms / 1000),
					       .tv_usec = (suseconds_t)(limit_ms % 1000 * 1000)}};
	forget_worker(&answer_fd);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent || (limit_ms && setitimer(ITIMER_REAL, &timer, NULL) != 0))
		_exit(1);
	char *text = function(context);
	bool ok = text && lth_write_full(answer_fd, text, strlen(text));
	_exit(ok ? 0 : 1);
}

static void read_all(int fd, struct lth_buf *out)
{
	char chunk[4096];
	for (ssize_t size; (size = read(fd, chunk, sizeof(chunk))) != 0;) {
		if (size > 0)
			lth_buf_append(out, chunk, (size_t)size);
		else if (errno != EINTR)
			break;
	}
}

static enum lth_code judge(const char *place, int status, uint64_t limit_ms, struct lth_diag *diag)
{
	if (status == 0)
		return LTH_OK;
	if (!WIFSIGNALED(status))
		return lth_diag_fail(diag, LTH_RUNTIME_ERROR, place, "a run that ends", NULL,
				     "a process that ended early, with status %d", WEXITSTATUS(status));
	switch (WTERMSIG(status)) {
	case SIGALRM:
		return lth_diag_fail(diag, LTH_DEADLINE, place, NULL, "ask for fewer runs, or a longer timeout_ms",
				     "runs that were not done after %llu ms", (unsigned long long)limit_ms);
	case SIGXCPU:
		return lth_diag_fail(diag, LTH_DEADLINE, place, NULL, "ask for fewer runs, or a longer timeout_ms",
				     "the job's CPU time used up");
	case SIGKILL: /* nobody else kills a child alone */
		return lth_diag_fail(diag, LTH_OUT_OF_MEMORY, place, NULL, "narrow the model's dimensions",
				     "runs that the kernel stopped: the machine's memory ran out");
	default:
		return lth_diag_fail(diag, LTH_RUNTIME_ERROR, place, "a run that ends", NULL, "signal %d (%s)",
				     WTERMSIG(status), strsignal(WTERMSIG(status)));
	}
}

enum lth_code lth_child_run(const char *place, lth_child_fn function, void *context, uint64_t limit_ms,
			    struct lth_buf *out_text, int64_t *out_rss_bytes, struct lth_diag *diag)
{
	int ends[2], status = 0;
	struct rusage usage = {0};
	pid_t parent = getpid();
	if (pipe(ends) != 0)
		return lth_diag_fail(diag, LTH_IO_ERROR, place, NULL, NULL, "pipe: %s", strerror(errno));
	pid_t child = fork();
	if (child == 0)
		be_child(ends[1], parent, function, context, limit_ms);
	int error = errno;
	close(ends[1]);
	if (child < 0) {
		close(ends[0]);
		return lth_diag_fail(diag, LTH_IO_ERROR, place, NULL, NULL, "fork: %s", strerror(error));
	}
	struct lth_buf text = {0};
	read_all(ends[0], &text);
	close(ends[0]);
	while (wait4(child, &status, 0, &usage) < 0 && errno == EINTR)
		;
	enum lth_code code = judge(place, status, limit_ms, diag);
	if (code == LTH_OK && !lth_buf_ok(&text))
		code = lth_diag_fail(diag, LTH_OUT_OF_MEMORY, place, NULL, NULL, "no memory for its answer");
	if (code != LTH_OK) {
		lth_buf_free(&text);
		return code;
	}
	*out_text = text;
	*out_rss_bytes = (int64_t)usage.ru_maxrss * 1024;
	return LTH_OK;
}
