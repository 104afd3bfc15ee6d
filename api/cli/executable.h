/* Compiled models in the command line's own process. */
#ifndef LTH_CLI_EXECUTABLE_H
#define LTH_CLI_EXECUTABLE_H

#include "api/cli/cli.h"
#include "runtime/exe/exe.h"

/* Maps a shared object that Lathe made; it stays mapped. run.c */
LTH_MUST_CHECK enum lth_code lth_cli_load(struct lth_cli *cli, const char *path, lathe_query_fn *out_query);
/* The same from memory; `name` is for messages. run.c */
LTH_MUST_CHECK enum lth_code lth_cli_load_bytes(struct lth_cli *cli, const char *name, const void *bytes, size_t size,
						lathe_query_fn *out_query);
/* The values of --dim, as the runtime's own options hold them. inspect.c */
void lth_cli_exe_dims(const struct lth_cli *cli, struct lth_exe_options *out_options);

#endif
