/* Messages between a daemon and its workers: one packet of a SOCK_SEQPACKET socket pair is one message, a short text (JSON
 * by convention of its users) with file descriptors beside it (SCM_RIGHTS). What is large travels in a descriptor: a
 * sealed memfd for what must not change any more, a file for results. Thread rule: one thread a socket end. */
#ifndef LTH_BASE_WIRE_H
#define LTH_BASE_WIRE_H

#include "runtime/base/status.h"

#include <stdbool.h>
#include <stddef.h>

enum {
	LTH_WIRE_TEXT_MAX = 48 * 1024, /* bytes of text in one message; below the kernel's packet limit */
	LTH_WIRE_FDS_MAX = 250,        /* descriptors in one message; the kernel allows 253 */
};

struct lth_wire_message {
	char text[LTH_WIRE_TEXT_MAX + 1]; /* NUL-terminated behind `size` bytes */
	size_t size;
	int fds[LTH_WIRE_FDS_MAX]; /* owned by the receiver */
	unsigned num_fds;
};

enum lth_wire_status { LTH_WIRE_MESSAGE, LTH_WIRE_CLOSED, LTH_WIRE_AGAIN, LTH_WIRE_ERROR };

/* A connected pair, close-on-exec. False with errno. */
bool lth_wire_pair(int out_ends[2]);

/* Sends one message; the caller keeps its descriptors. False with errno: EMSGSIZE when too large, EPIPE when the other
 * end is gone, EAGAIN when `fd` does not block and its buffer is full. Raises no SIGPIPE. */
bool lth_wire_send(int fd, const char *text, size_t size, const int *fds, unsigned num_fds);

/* Receives one message. A cut message or lost descriptors are LTH_WIRE_ERROR; nothing stays open then. */
enum lth_wire_status lth_wire_receive(int fd, struct lth_wire_message *out_message);

/* Closes the descriptors that a message brought and were not taken (taken ones are set to -1). */
void lth_wire_close(struct lth_wire_message *message);

/* A sealed memory file that holds a copy of the bytes; -1 with errno. */
int lth_wire_memfd(const char *name, const void *bytes, size_t size);

/* A read-only view of a whole regular file or memfd; an empty one gives a valid pointer. False with errno; EFBIG above
 * `limit` when limit is not 0. */
struct lth_wire_view {
	const void *data;
	size_t size;
};
bool lth_wire_map(int fd, size_t limit, struct lth_wire_view *out_view);
void lth_wire_unmap(struct lth_wire_view *view);

#endif
