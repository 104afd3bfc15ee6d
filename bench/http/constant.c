/* The yardstick for the daemon's rate of cached answers: the same libmicrohttpd in its own epoll loop on one thread, with a
 * constant reply of the size given. `constant BYTES` prints its port and serves until its standard input ends. */
#include <microhttpd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct reply {
	struct MHD_Response *response;
	int seen; /* its address marks a request that has been seen before */
};

static enum MHD_Result answer(void *context, struct MHD_Connection *connection, const char *url, const char *method,
			      const char *version, const char *data, size_t *size, void **state)
{
	struct reply *reply = context;
	(void)url, (void)method, (void)version, (void)data;
	if (!*state || *size) {
		*state = &reply->seen;
		*size = 0;
		return MHD_YES;
	}
	return MHD_queue_response(connection, 200, reply->response);
}

int main(int argc, char **argv)
{
	size_t bytes = argc > 1 ? strtoul(argv[1], NULL, 10) : 0;
	char *text = malloc(bytes + 1);
	if (!text)
		return 1;
	memset(text, 'x', bytes);
	struct reply reply = {.response = MHD_create_response_from_buffer(bytes, text, MHD_RESPMEM_MUST_FREE)};
	MHD_add_response_header(reply.response, "Content-Type", "application/json");
	struct MHD_Daemon *daemon =
		MHD_start_daemon(MHD_USE_EPOLL_INTERNAL_THREAD, 0, NULL, NULL, answer, &reply, MHD_OPTION_END);
	const union MHD_DaemonInfo *info = daemon ? MHD_get_daemon_info(daemon, MHD_DAEMON_INFO_BIND_PORT) : NULL;
	if (!info)
		return 1;
	printf("%u\n", (unsigned)info->port);
	fflush(stdout);
	while (getchar() != EOF)
		;
	MHD_stop_daemon(daemon);
	MHD_destroy_response(reply.response);
	return 0;
}
