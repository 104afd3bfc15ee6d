/* How far a client has read. Thread rule: any thread. */
#ifndef LTH_DAEMON_ACKED_H
#define LTH_DAEMON_ACKED_H

#include <stdbool.h>
#include <stdint.h>

/* Bytes of this connection that have arrived at its other end, and whether more wait to. False where the kernel does not
 * say: of a Unix socket. */
bool lth_socket_acked(int fd, uint64_t *out_bytes, bool *out_waits);

#endif
