/* Between server.c, request.c, waiting.c and connection.c: the callbacks that libmicrohttpd is given. Only these and
 * reply.c include it.
 * Thread rule: loop thread. */
#ifndef LTH_DAEMON_HTTP_H
#define LTH_DAEMON_HTTP_H

#include "daemon/server.h"

#include <gnutls/abstract.h>
#include <microhttpd.h>

enum MHD_Result lth_http_request(void *server, struct MHD_Connection *connection, const char *url, const char *method,
				 const char *version, const char *data, size_t *size, void **state);
void lth_http_completed(void *server, struct MHD_Connection *connection, void **state,
			enum MHD_RequestTerminationCode why);
void lth_http_connection(void *server, struct MHD_Connection *connection, void **state,
			 enum MHD_ConnectionNotificationCode what);
/* The server's certificate and key for a handshake: GnuTLS' gnutls_certificate_retrieve_function3. */
gnutls_certificate_retrieve_function3 lth_tls_certificate;
/* Of a request that is suspended no more. */
void lth_http_stop_watching(struct lth_request *request);
/* Cuts connections whose header or body arrives too slowly. */
void lth_http_sweep(struct lth_server *server);
/* Wakes every suspended request with a problem: before the daemon stops. */
void lth_http_wake_all(struct lth_server *server);
/* Is an answer being made or on its way? What waits for a job, or streams its events, ends with the daemon and does not
 * count. */
bool lth_http_answers(const struct lth_server *server);

#endif
