/* Clients that misbehave, many at once: `bad-clients PORT COUNT` opens COUNT connections that send half a header or
 * half a body and then nothing, or a byte now and then; it ends when the daemon has cut them all. With `leave` as the last
 * argument it posts jobs instead and goes away before they end; with `vanish` it says nothing, and all go at once when its
 * standard input ends. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { PATIENCE_S = 60 };

static int connect_to(unsigned port)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	if (fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0)
		return fd;
	if (fd >= 0)
		close(fd);
	return -1;
}

static void say(int fd, const char *text)
{
	ssize_t ignored = send(fd, text, strlen(text), MSG_NOSIGNAL | MSG_DONTWAIT);
	(void)ignored;
}

/* True once the other end has closed. */
static bool is_cut(int fd)
{
	char buffer[512];
	ssize_t size = recv(fd, buffer, sizeof(buffer), MSG_DONTWAIT);
	return size == 0 || (size < 0 && errno != EAGAIN && errno != EWOULDBLOCK);
}

static int be_slow(int *fds, int count)
{
	static const char *const beginnings[] = {
		"", "POST /compile HTTP/1.1\r\nHo",
		"POST /compile HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\nabc"};
	struct timespec pause = {.tv_nsec = 100000000};
	int open = 0;
	for (int i = 0; i < count; i++)
		if (fds[i] >= 0) {
			say(fds[i], beginnings[i % 3]);
			open++;
		}
	for (int round = 0; open && round < PATIENCE_S * 10; round++) {
		nanosleep(&pause, NULL);
		for (int i = 0; i < count; i++) {
			if (fds[i] < 0)
				continue;
			if (round % 5 == 0 && i % 3)
				say(fds[i], "x");
			if (is_cut(fds[i])) {
				close(fds[i]);
				fds[i] = -1;
				open--;
			}
		}
	}
	printf("%d of %d connections left\n", open, count);
	return open != 0;
}

static int leave(int *fds, int count)
{
	struct timespec pause = {.tv_nsec = 300000000};
	char body[64], text[256];
	for (int i = 0; i < count; i++) {
		int size = snprintf(body, sizeof(body), "{\"do\":\"sleep\",\"ms\":5000,\"n\":%d}", i);
		snprintf(text, sizeof(text), "POST /compile HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s", size,
			 body);
		if (fds[i] >= 0)
			say(fds[i], text);
	}
	nanosleep(&pause, NULL);
	for (int i = 0; i < count; i++)
		if (fds[i] >= 0)
			close(fds[i]);
	return 0;
}

static int vanish(int *fds, int count)
{
	char byte;
	puts("connected");
	fflush(stdout);
	while (read(STDIN_FILENO, &byte, 1) > 0)
		;
	for (int i = 0; i < count; i++)
		if (fds[i] >= 0)
			close(fds[i]);
	return 0;
}

int main(int argc, char **argv)
{
	int count = argc > 2 ? atoi(argv[2]) : 0;
	int *fds = count > 0 ? calloc((size_t)count, sizeof(*fds)) : NULL;
	if (!fds)
		return 2;
	for (int i = 0; i < count; i++)
		fds[i] = connect_to((unsigned)atoi(argv[1]));
	const char *mode = argc > 3 ? argv[3] : "";
	int status = strcmp(mode, "leave") == 0    ? leave(fds, count)
		     : strcmp(mode, "vanish") == 0 ? vanish(fds, count)
						   : be_slow(fds, count);
	free(fds);
	return status;
}
