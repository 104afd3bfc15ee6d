/* Messages with descriptors over a socket pair. See wire.h. */
#include "runtime/base/wire.h"
#include "runtime/base/io.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

union control {
	struct cmsghdr header; /* for alignment */
	char bytes[CMSG_SPACE(LTH_WIRE_FDS_MAX * sizeof(int))];
};

bool lth_wire_pair(int out_ends[2])
{
	return socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, out_ends) == 0;
}

bool lth_wire_send(int fd, const char *text, size_t size, const int *fds, unsigned num_fds)
{
	if (!size || size > LTH_WIRE_TEXT_MAX || num_fds > LTH_WIRE_FDS_MAX) {
		errno = EMSGSIZE; /* an empty packet would read as the end of the stream */
		return false;
	}
	union control control;
	char text_copy[LTH_WIRE_TEXT_MAX];
	memcpy(text_copy, text, size);
	struct iovec part = {.iov_base = text_copy, .iov_len = size};
	struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
	if (num_fds) {
		memset(&control, 0, sizeof(control));
		message.msg_control = control.bytes;
		message.msg_controllen = CMSG_SPACE(num_fds * sizeof(int));
		struct cmsghdr *header = CMSG_FIRSTHDR(&message);
		header->cmsg_level = SOL_SOCKET;
		header->cmsg_type = SCM_RIGHTS;
		header->cmsg_len = CMSG_LEN(num_fds * sizeof(int));
		memcpy(CMSG_DATA(header), fds, num_fds * sizeof(int));
	}
	ssize_t sent;
	do
		sent = sendmsg(fd, &message, MSG_NOSIGNAL);
	while (sent < 0 && errno == EINTR);
	return sent == (ssize_t)size;
}

static void take_fds(struct msghdr *message, struct lth_wire_message *out)
{
	for (struct cmsghdr *header = CMSG_FIRSTHDR(message); header; header = CMSG_NXTHDR(message, header)) {
		if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS)
			continue;
		size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		for (size_t i = 0; i < count; i++) {
			int fd;
			memcpy(&fd, CMSG_DATA(header) + i * sizeof(int), sizeof(int));
			if (out->num_fds < LTH_WIRE_FDS_MAX)
				out->fds[out->num_fds++] = fd;
			else
				close(fd);
		}
	}
}

enum lth_wire_status lth_wire_receive(int fd, struct lth_wire_message *out_message)
{
	union control control;
	struct iovec part = {.iov_base = out_message->text, .iov_len = LTH_WIRE_TEXT_MAX};
	struct msghdr message = {.msg_iov = &part,
				 .msg_iovlen = 1,
				 .msg_control = control.bytes,
				 .msg_controllen = sizeof(control.bytes)};
	out_message->num_fds = 0;
	out_message->size = 0;
	ssize_t got;
	do
		got = recvmsg(fd, &message, MSG_CMSG_CLOEXEC);
	while (got < 0 && errno == EINTR);
	if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
		return LTH_WIRE_AGAIN;
	if (got < 0)
		return errno == ECONNRESET ? LTH_WIRE_CLOSED : LTH_WIRE_ERROR;
	take_fds(&message, out_message);
	if (message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) {
		lth_wire_close(out_message);
		errno = EMSGSIZE;
		return LTH_WIRE_ERROR;
	}
	out_message->size = (size_t)got;
	out_message->text[got] = 0;
	return got ? LTH_WIRE_MESSAGE : LTH_WIRE_CLOSED;
}

void lth_wire_close(struct lth_wire_message *message)
{
	for (unsigned i = 0; i < message->num_fds; i++)
		if (message->fds[i] >= 0)
			close(message->fds[i]);
	message->num_fds = 0;
}

int lth_wire_memfd(const char *name, const void *bytes, size_t size)
{
	int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0)
		return -1;
	if (lth_write_full(fd, bytes, size) &&
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL) == 0)
		return fd;
	int error = errno;
	close(fd);
	errno = error;
	return -1;
}

bool lth_wire_map(int fd, size_t limit, struct lth_wire_view *out_view)
{
	struct stat info;
	if (fstat(fd, &info) != 0)
		return false;
	if (!S_ISREG(info.st_mode)) {
		errno = EINVAL;
		return false;
	}
	size_t size = (size_t)info.st_size;
	if (limit && size > limit) {
		errno = EFBIG;
		return false;
	}
	void *data = NULL;
	if (size) {
		data = mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0);
		if (data == MAP_FAILED)
			return false;
	}
	*out_view = (struct lth_wire_view){size ? data : "", size};
	return true;
}

void lth_wire_unmap(struct lth_wire_view *view)
{
	if (view->size) {
		struct lth_wire_view copy = *view;
		void *data;
		memcpy(&data, &copy.data, sizeof(data));
		munmap(data, copy.size);
	}
	*view = (struct lth_wire_view){"", 0};
}
