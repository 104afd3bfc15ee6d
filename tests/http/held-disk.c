/* A disk that is slow for as long as a test wants, preloaded into a daemon: fsync waits while the file $LATHE_HOLD_DISK
 * is there, and says by a file beside it, .reached, that somebody waits. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

int fsync(int fd)
{
	enum { POLL_US = 5000 };
	char reached[4096];
	const char *hold = getenv("LATHE_HOLD_DISK");
	while (hold && access(hold, F_OK) == 0) {
		snprintf(reached, sizeof(reached), "%s.reached", hold);
		close(open(reached, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
		usleep(POLL_US);
	}
	return (int)syscall(SYS_fsync, fd);
}
