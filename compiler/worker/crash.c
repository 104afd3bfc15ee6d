/* Last words: a fatal signal tells the daemon which it was and how much address space the process had, so that memory
 * that ran out can be told from a bug. Only async-signal-safe calls. The one mutable global of the worker: a signal
 * handler has no other way to its socket. */
#include "compiler/worker/worker.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

static volatile sig_atomic_t report_fd = -1;

static size_t put_text(char *out, size_t at, const char *text)
{
	size_t length = strlen(text);
	memcpy(out + at, text, length);
	return at + length;
}

static size_t put_number(char *out, size_t at, uint64_t number)
{
	char digits[24];
	size_t count = 0;
	do
		digits[count++] = (char)('0' + number % 10);
	while (number /= 10);
	while (count)
		out[at++] = digits[--count];
	return at;
}

/* 0 where no limit holds: then it says nothing about memory. */
static uint64_t address_space_bytes(void)
{
	char text[64];
	struct rlimit limit;
	if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
		return 0;
	int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	ssize_t size = read(fd, text, sizeof(text));
	close(fd);
	uint64_t pages = 0;
	for (ssize_t i = 0; i < size && text[i] >= '0' && text[i] <= '9'; i++)
		pages = pages * 10 + (uint64_t)(text[i] - '0');
	return pages * 4096;
}

static void on_fatal(int number)
{
	char text[128];
	size_t at = put_text(text, 0, "{\"event\":\"crash\",\"signal\":");
	at = put_number(text, at, (uint64_t)number);
	at = put_text(text, at, ",\"address_space_bytes\":");
	at = put_number(text, at, address_space_bytes());
	at = put_text(text, at, "}");
	ssize_t ignored = send(report_fd, text, at, MSG_NOSIGNAL | MSG_DONTWAIT);
	(void)ignored;
	raise(number); /* SA_RESETHAND: the default action kills now */
}

bool lth_worker_report_crashes(int fd)
{
	static const int fatal[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGXCPU, SIGSYS};
	stack_t stack = {.ss_size = 64 * 1024};
	stack.ss_sp =
		malloc(stack.ss_size); /* a stack that overflowed cannot run its own handler; lives as the process */
	if (!stack.ss_sp || sigaltstack(&stack, NULL) != 0) {
		free(stack.ss_sp);
		return false;
	}
	report_fd = fd;
	struct sigaction action = {.sa_flags = SA_ONSTACK | (int)SA_RESETHAND | SA_NODEFER};
	action.sa_handler = on_fatal;
	for (size_t i = 0; i < sizeof(fatal) / sizeof(fatal[0]); i++)
		sigaction(fatal[i], &action, NULL);
	return true;
}
