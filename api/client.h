/* What the files of liblathe-client and the command line share beyond lathe_client.h. */
#ifndef LTH_CLIENT_H
#define LTH_CLIENT_H

#include "api/lathe_client.h"
#include "runtime/base/diag.h"

/* Fills `problem` (which may be NULL) from a diag and returns its exit code. client.c */
int lathe_problem_set(struct lathe_problem *problem, const struct lth_diag *diag, int status);

#endif
