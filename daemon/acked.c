/* What of the bytes sent on a connection has arrived. See acked.h. Apart from its caller, since the kernel's header of
 * tcp_info, the only one that has this figure, does not go together with the C library's. */
#include "daemon/acked.h"

#include <linux/tcp.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

bool lth_socket_acked(int fd, uint64_t *out_bytes, bool *out_waits)
{
	struct tcp_info info;
	socklen_t size = sizeof(info);
	memset(&info, 0, sizeof(info));
	if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) != 0)
		return false;
	*out_bytes = info.tcpi_bytes_acked;
	*out_waits = info.tcpi_unacked || info.tcpi_notsent_bytes;
	return true;
}
