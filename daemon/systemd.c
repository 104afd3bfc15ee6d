/* Notifications, socket activation and the watchdog. See systemd.h. */
#include "daemon/systemd.h"

#include <fcntl.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { FIRST_FD = 3 }; /* SD_LISTEN_FDS_START */

void lth_systemd_notify(const char *state)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	const char *path = getenv("NOTIFY_SOCKET");
	size_t length = path ? strlen(path) : 0;
	if (!length || length >= sizeof(address.sun_path) || (path[0] != '/' && path[0] != '@'))
		return;
	memcpy(address.sun_path, path, length);
	if (path[0] == '@')
		address.sun_path[0] = 0; /* the abstract name space */
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return;
	socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length);
	ssize_t ignored = sendto(fd, state, strlen(state), MSG_NOSIGNAL, (struct sockaddr *)&address, size);
	(void)ignored;
	close(fd);
}

/* A variable that is meant for this process: the manager names it, since children inherit the environment. */
static unsigned long long number_for_us(const char *name, const char *owner)
{
	const char *pid = getenv(owner), *value = getenv(name);
	if (!value || (pid && strtol(pid, NULL, 10) != (long)getpid()))
		return 0;
	return strtoull(value, NULL, 10);
}

int lth_systemd_socket(void)
{
	if (!getenv("LISTEN_PID") || number_for_us("LISTEN_FDS", "LISTEN_PID") < 1)
		return -1;
	fcntl(FIRST_FD, F_SETFD, FD_CLOEXEC);
	return FIRST_FD;
}

uint64_t lth_systemd_watchdog_ms(void)
{
	return number_for_us("WATCHDOG_USEC", "WATCHDOG_PID") / 1000 / 2; /* twice as often as it is required */
}
