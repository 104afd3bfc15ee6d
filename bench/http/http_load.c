/* Load on a daemon of this machine: keeps N connections to 127.0.0.1 busy for some seconds, one request at a time on each,
 * and prints what it saw as JSON: how many requests, their statuses, latency percentiles. `#` in the body becomes the
 * number of the request, so that each can be another job. One thread, epoll. Never talks to another machine. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { ANSWER_BYTES = 1 << 16, HEAD_BYTES = 4096, MOST_SAMPLES = 1 << 23, PATIENCE_S = 60 };

struct connection {
	int fd;
	char *request, *answer;
	size_t request_size, sent, received, expected; /* expected: 0 until the header is complete */
	uint64_t began_ns;
	int status;
	bool closes;
};

struct load {
	unsigned port, connections;
	double seconds;
	const char *path, *body, *headers;
	int epoll;
	uint64_t number, end_ns;
	unsigned long statuses[600], broken;
	float *latency_ms;
	size_t num_samples;
	unsigned open;
};

static uint64_t now_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static bool connect_one(struct load *load, struct connection *c)
{
	int one = 1;
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)load->port)};
	struct epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLET, .data.ptr = c};
	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	c->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (c->fd < 0 || connect(c->fd, (struct sockaddr *)&address, sizeof(address)) != 0) {
		if (c->fd >= 0)
			close(c->fd);
		c->fd = -1;
		return false;
	}
	setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	fcntl(c->fd, F_SETFL, O_NONBLOCK);
	epoll_ctl(load->epoll, EPOLL_CTL_ADD, c->fd, &event);
	load->open++;
	return true;
}

static void hang_up(struct load *load, struct connection *c)
{
	close(c->fd);
	c->fd = -1;
	load->open--;
}

static void write_request(struct load *load, struct connection *c)
{
	char body[1024], number[24];
	size_t size = 0;
	snprintf(number, sizeof(number), "%llu", (unsigned long long)load->number++);
	for (const char *in = load->body; *in && size < sizeof(body) - sizeof(number); in++) {
		const char *piece = *in == '#' ? number : (char[]){*in, 0};
		size_t length = strlen(piece);
		memcpy(body + size, piece, length);
		size += length;
	}
	body[size] = 0;
	int length = snprintf(c->request, HEAD_BYTES, "%s %s HTTP/1.1\r\nHost: 127.0.0.1\r\n%s",
			      *load->body ? "POST" : "GET", load->path, load->headers);
	length += snprintf(c->request + length, HEAD_BYTES - (size_t)length,
			   *load->body ? "Content-Length: %zu\r\n\r\n%s" : "\r\n", size, body);
	c->request_size = (size_t)length;
	c->sent = c->received = c->expected = 0;
	c->closes = false;
	c->began_ns = now_ns();
}

static void read_header(struct connection *c)
{
	c->answer[c->received] = 0;
	char *end = strstr(c->answer, "\r\n\r\n");
	if (!end)
		return;
	char *length = strcasestr(c->answer, "\r\nContent-Length:");
	char *closes = strcasestr(c->answer, "\r\nConnection: close");
	size_t body = length && length < end ? strtoul(length + 17, NULL, 10) : 0;
	c->status = atoi(c->answer + 9);
	c->closes = closes && closes < end;
	c->expected = (size_t)(end + 4 - c->answer) + body;
}

static void note(struct load *load, const struct connection *c)
{
	if (load->num_samples < MOST_SAMPLES)
		load->latency_ms[load->num_samples++] = (float)((double)(now_ns() - c->began_ns) / 1e6);
	load->statuses[c->status > 0 && c->status < 600 ? c->status : 0]++;
}

/* 1: the answer is complete; 0: more is to come; -1: the connection broke. */
static int take(struct connection *c)
{
	for (;;) {
		char beyond[4096]; /* of a body that does not fit: only its length matters */
		bool fits = c->received < ANSWER_BYTES - 1;
		ssize_t count = recv(c->fd, fits ? c->answer + c->received : beyond,
				     fits ? ANSWER_BYTES - 1 - c->received : sizeof(beyond), 0);
		if (count < 0)
			return errno == EAGAIN || errno == EINTR ? 0 : -1;
		if (count == 0)
			return -1;
		c->received += (size_t)count;
		if (!c->expected)
			read_header(c);
		if (c->expected && c->received >= c->expected)
			return 1;
	}
}

static bool give(struct connection *c)
{
	while (c->sent < c->request_size) {
		ssize_t count = send(c->fd, c->request + c->sent, c->request_size - c->sent, MSG_NOSIGNAL);
		if (count < 0)
			return errno == EAGAIN || errno == EINTR;
		c->sent += (size_t)count;
	}
	return true;
}

static void again(struct load *load, struct connection *c)
{
	if (c->fd >= 0 && c->closes)
		hang_up(load, c);
	if (now_ns() >= load->end_ns) {
		if (c->fd >= 0)
			hang_up(load, c);
		return;
	}
	if (c->fd < 0 && !connect_one(load, c)) {
		load->broken++;
		return;
	}
	write_request(load, c);
	if (!give(c)) {
		load->broken++;
		hang_up(load, c);
	}
}

static void on_event(struct load *load, struct connection *c)
{
	int done = c->fd >= 0 && give(c) ? take(c) : -1;
	if (c->fd < 0 || done == 0)
		return;
	if (done > 0) {
		note(load, c);
	} else {
		load->broken++;
		hang_up(load, c);
	}
	again(load, c);
}

static int by_value(const void *a, const void *b)
{
	float x = *(const float *)a, y = *(const float *)b;
	return x < y ? -1 : x > y;
}

static void print(struct load *load, double seconds)
{
	size_t count = load->num_samples;
	const float *sorted = load->latency_ms;
	qsort(load->latency_ms, count, sizeof(float), by_value);
	printf("{\"requests\":%zu,\"rate\":%.0f", count, (double)count / seconds);
	if (count)
		printf(",\"latency_ms\":{\"p50\":%.3f,\"p90\":%.3f,\"p99\":%.3f,\"max\":%.3f}", sorted[count / 2],
		       sorted[count * 9 / 10], sorted[count * 99 / 100], sorted[count - 1]);
	printf(",\"statuses\":{");
	const char *comma = "";
	for (int status = 0; status < 600; status++)
		if (load->statuses[status]) {
			printf("%s\"%d\":%lu", comma, status, load->statuses[status]);
			comma = ",";
		}
	printf("},\"broken\":%lu}\n", load->broken);
}

static int run(struct load *load)
{
	struct connection *all = calloc(load->connections, sizeof(*all));
	load->latency_ms = malloc(MOST_SAMPLES * sizeof(float));
	load->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (!all || !load->latency_ms || load->epoll < 0)
		return 1;
	uint64_t start = now_ns();
	load->end_ns = start + (uint64_t)(load->seconds * 1e9);
	for (unsigned i = 0; i < load->connections; i++) {
		all[i] = (struct connection){.fd = -1, .request = malloc(HEAD_BYTES), .answer = malloc(ANSWER_BYTES)};
		again(load, &all[i]);
	}
	while (load->open && now_ns() < load->end_ns + (uint64_t)PATIENCE_S * 1000000000u) {
		struct epoll_event events[64];
		int count = epoll_wait(load->epoll, events, 64, 100);
		for (int i = 0; i < count; i++)
			on_event(load, events[i].data.ptr);
	}
	print(load, (double)(now_ns() - start) / 1e9);
	for (unsigned i = 0; i < load->connections; i++) {
		free(all[i].request);
		free(all[i].answer);
	}
	free(all);
	free(load->latency_ms);
	close(load->epoll);
	return load->open != 0;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {{"port", 1, 0, 'p'}, {"connections", 1, 0, 'c'}, {"seconds", 1, 0, 's'},
						{"path", 1, 0, 'u'}, {"body", 1, 0, 'b'},	 {"header", 1, 0, 'h'},
						{0, 0, 0, 0}};
	char headers[1024] = "";
	struct load load = {.connections = 16, .seconds = 2, .path = "/healthz", .body = "", .headers = headers};
	for (int option; (option = getopt_long(argc, argv, "", options, NULL)) != -1;) {
		switch (option) {
		case 'p': load.port = (unsigned)atoi(optarg); break;
		case 'c': load.connections = (unsigned)atoi(optarg); break;
		case 's': load.seconds = atof(optarg); break;
		case 'u': load.path = optarg; break;
		case 'b': load.body = optarg; break;
		case 'h': snprintf(headers + strlen(headers), sizeof(headers) - strlen(headers), "%s\r\n", optarg); break;
		default: load.port = 0; break;
		}
	}
	if (!load.port || !load.connections || optind != argc) {
		fprintf(stderr, "usage: http_load --port N [--connections N] [--seconds N] [--path PATH] [--body TEXT] "
				"[--header LINE]\n");
		return 2;
	}
	return run(&load);
}
