/* What the files of liblathe-client and the command line share beyond lathe_client.h. */
#ifndef LTH_CLIENT_H
#define LTH_CLIENT_H

#include "api/lathe_client.h"
#include "runtime/base/diag.h"

/* Fills `problem` (which may be NULL) from a diag and returns its exit code. client.c */
int lathe_problem_set(struct lathe_problem *problem, const struct lth_diag *diag, int status);

enum lth_link { LTH_LINK_HELD, LTH_LINK_BROKEN, LTH_LINK_REFUSED }; /* REFUSED: none was made */
/* lathe_client_call for one who knows better what to do when the connection breaks than to send the same again:
 * `*out_link` says what became of it. What the daemon said of an upload stands in `*out_reply` with a
 * problem too, without a body. client.c */
int lth_client_exchange(struct lathe_client *client, const struct lathe_call *call, enum lth_link *out_link,
			struct lathe_reply *out_reply, struct lathe_problem *problem);
/* Waits after attempt `attempt`, from 0, at something that may work a little later: longer each time. client.c */
void lth_client_pause(int attempt);

#endif
