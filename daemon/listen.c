/* The listening socket: an address and port, a Unix socket (unix:PATH), or one handed over by systemd. Who may listen
 * where without credentials is decided here. See server.h. */
#include "daemon/server.h"
#include "daemon/systemd.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum { BACKLOG = 1024 };

union address {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
	struct sockaddr_un local;
};

static bool is_local(const union address *address)
{
	switch (address->any.sa_family) {
	case AF_INET: return ntohl(address->v4.sin_addr.s_addr) >> 24 == 127;
	case AF_INET6: return IN6_IS_ADDR_LOOPBACK(&address->v6.sin6_addr);
	default: return address->any.sa_family == AF_UNIX;
	}
}

static enum lth_code failed(const struct lth_server *server, struct lth_diag *diag, const char *why)
{
	return lth_diag_fail(diag, LTH_INVALID_OPTION, "listen", "an address of this machine and a free port", NULL,
			     "%s: %s", server->config.listen, why);
}

/* Anyone who reaches an address that is not loopback could compile here: they must show who they are. */
static enum lth_code check_address(struct lth_server *server, const union address *address, struct lth_diag *diag)
{
	server->loopback = is_local(address);
	if (server->loopback || server->tokens.count || server->config.tls_client_ca[0] || server->config.allow_remote)
		return LTH_OK;
	return lth_diag_fail(diag, LTH_FORBIDDEN, "listen", "a loopback address, a token-file or a tls-client-ca",
			     "--allow-remote yes lets everyone who reaches it compile here", "%s",
			     server->config.listen);
}

static enum lth_code open_at(struct lth_server *server, const union address *address, socklen_t size,
			     struct lth_diag *diag)
{
	int on = 1;
	enum lth_code code = check_address(server, address, diag);
	if (code != LTH_OK)
		return code;
	server->listen_fd = socket(address->any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (server->listen_fd < 0)
		return failed(server, diag, strerror(errno));
	setsockopt(server->listen_fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (bind(server->listen_fd, &address->any, size) == 0 && listen(server->listen_fd, BACKLOG) == 0)
		return LTH_OK;
	code = failed(server, diag, strerror(errno));
	close(server->listen_fd);
	server->listen_fd = -1;
	return code;
}

/* A socket file that nobody answers at is left over from an earlier life. */
static void remove_stale(const union address *address, socklen_t size)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd >= 0 && connect(fd, &address->any, size) != 0 && errno == ECONNREFUSED)
		unlink(address->local.sun_path);
	if (fd >= 0)
		close(fd);
}

static enum lth_code open_local(struct lth_server *server, const char *path, struct lth_diag *diag)
{
	union address address = {.local = {.sun_family = AF_UNIX}};
	if (strlen(path) >= sizeof(address.local.sun_path))
		return failed(server, diag, "a path that is too long for a socket");
	strcpy(address.local.sun_path, path);
	remove_stale(&address, sizeof(address.local));
	mode_t mask = umask(0117); /* owner and group; from its first moment */
	enum lth_code code = open_at(server, &address, sizeof(address.local), diag);
	umask(mask);
	return code;
}

static enum lth_code open_port(struct lth_server *server, struct lth_diag *diag)
{
	struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE}, *list;
	union address address;
	int error = getaddrinfo(server->config.host, server->config.port, &hints, &list);
	if (error)
		return failed(server, diag, gai_strerror(error));
	socklen_t size = list->ai_addrlen;
	memcpy(&address, list->ai_addr, size < sizeof(address) ? size : sizeof(address));
	freeaddrinfo(list);
	return open_at(server, &address, size, diag);
}

/* A client whose machine went without a word would be waited for until its job ends: the kernel asks after it. Accepted
 * sockets inherit this. See tcp(7); a Unix socket has no need of it. */
static void find_the_dead(int fd)
{
	const int on = 1, idle_s = 60, interval_s = 15, count = 4;
	setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof(idle_s));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval_s, sizeof(interval_s));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof(count));
}

enum lth_code lth_server_listen(struct lth_server *server, struct lth_diag *diag)
{
	union address bound = {0};
	socklen_t size = sizeof(bound);
	enum lth_code code = LTH_OK;
	server->listen_fd = lth_systemd_socket();
	if (server->listen_fd >= 0) {
		fcntl(server->listen_fd, F_SETFL, O_NONBLOCK);
		if (getsockname(server->listen_fd, &bound.any, &size) == 0)
			code = check_address(server, &bound, diag);
	} else if (strncmp(server->config.listen, "unix:", 5) == 0) {
		code = open_local(server, server->config.listen + 5, diag);
	} else {
		code = open_port(server, diag);
	}
	if (code != LTH_OK)
		return code;
	find_the_dead(server->listen_fd);
	size = sizeof(bound);
	if (getsockname(server->listen_fd, &bound.any, &size) == 0 && bound.any.sa_family != AF_UNIX)
		server->port = ntohs(bound.any.sa_family == AF_INET ? bound.v4.sin_port : bound.v6.sin6_port);
	return LTH_OK;
}
