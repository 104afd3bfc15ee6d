/* A proxy that breaks connections: `cutting-proxy PORT-FILE DAEMON-PORT BYTES CUTS` listens on a free port of loopback,
 * writes it to PORT-FILE, and passes one connection at a time on to the daemon. The first CUTS connections on which the
 * client has sent BYTES bytes are cut then. Runs until it is killed. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { CLIENT, DAEMON, BLOCK = 16 << 10 };

static struct sockaddr_in loopback(unsigned port)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	return address;
}

static int listen_and_tell(const char *port_file)
{
	struct sockaddr_in address = loopback(0);
	socklen_t size = sizeof(address);
	char temporary[4096];
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	if (fd < 0 || bind(fd, (struct sockaddr *)&address, size) != 0 || listen(fd, 16) != 0 ||
	    getsockname(fd, (struct sockaddr *)&address, &size) != 0)
		return -1;
	snprintf(temporary, sizeof(temporary), "%s.tmp", port_file);
	FILE *file = fopen(temporary, "w");
	if (!file || fprintf(file, "%u\n", ntohs(address.sin_port)) < 0 || fclose(file) != 0 ||
	    rename(temporary, port_file) != 0)
		return -1;
	return fd;
}

static bool pass(int from, int to, size_t *out_passed)
{
	static char block[BLOCK];
	ssize_t size = recv(from, block, sizeof(block), 0);
	for (ssize_t sent = 0, now; sent < size; sent += now)
		if ((now = send(to, block + sent, (size_t)(size - sent), MSG_NOSIGNAL)) <= 0)
			return false;
	*out_passed += size > 0 ? (size_t)size : 0;
	return size > 0;
}

/* True when it was cut. */
static bool carry(int client, int daemon, size_t most)
{
	struct pollfd both[2] = {{.fd = client, .events = POLLIN}, {.fd = daemon, .events = POLLIN}};
	size_t sent = 0, received = 0;
	while (sent < most && poll(both, 2, -1) > 0) {
		if (both[CLIENT].revents && !pass(client, daemon, &sent))
			return false;
		if (both[DAEMON].revents && !pass(daemon, client, &received))
			return false;
	}
	return sent >= most;
}

int main(int argc, char **argv)
{
	if (argc != 5)
		return 2;
	struct sockaddr_in address = loopback((unsigned)atoi(argv[2]));
	size_t most = strtoul(argv[3], NULL, 10);
	int cuts = atoi(argv[4]), listener = listen_and_tell(argv[1]);
	signal(SIGPIPE, SIG_IGN);
	for (int client; listener >= 0 && (client = accept(listener, NULL, NULL)) >= 0; close(client)) {
		int daemon = socket(AF_INET, SOCK_STREAM, 0);
		if (daemon >= 0 && connect(daemon, (struct sockaddr *)&address, sizeof(address)) == 0 &&
		    carry(client, daemon, cuts > 0 ? most : (size_t)-1))
			cuts--;
		if (daemon >= 0)
			close(daemon);
	}
	return 1;
}
