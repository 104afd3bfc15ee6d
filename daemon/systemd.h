/* What a service manager expects of a daemon (sd_notify(3), sd_listen_fds(3)), without its library: three environment
 * variables and a datagram. All of it does nothing where there is no such manager. Thread rule: loop thread. */
#ifndef LTH_DAEMON_SYSTEMD_H
#define LTH_DAEMON_SYSTEMD_H

#include <stdint.h>

/* "READY=1", "RELOADING=1", "STOPPING=1", "WATCHDOG=1", "STATUS=..." */
void lth_systemd_notify(const char *state);
/* The socket that was handed over (the first), close-on-exec from now on; -1 when there is none. */
int lth_systemd_socket(void);
/* How often WATCHDOG=1 is wanted, in ms; 0 for never. */
uint64_t lth_systemd_watchdog_ms(void);

#endif
