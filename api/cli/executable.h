/* Compiled models in the command line's own process. */
#ifndef LTH_CLI_EXECUTABLE_H
#define LTH_CLI_EXECUTABLE_H

#include "api/cli/cli.h"
#include "runtime/exe/exe.h"
#include "runtime/program/program.h"

/* Maps a shared object that Lathe made; it stays mapped. run.c */
LTH_MUST_CHECK enum lth_code lth_cli_load(struct lth_cli *cli, const char *path, lathe_query_fn *out_query);
/* The same from memory; `name` is for messages. run.c */
LTH_MUST_CHECK enum lth_code lth_cli_load_bytes(struct lth_cli *cli, const char *name, const void *bytes, size_t size,
						lathe_query_fn *out_query);
/* The values of --dim, as the runtime's own options hold them. program.c */
void lth_cli_exe_dims(const struct lth_cli *cli, struct lth_exe_options *out_options);

/* A program that Lathe made is an ELF file without a name to be loaded by. program.c */
bool lth_cli_is_program(const char *path);
/* What `path what` prints, with the values of --dim where `what` takes them. program.c */
LTH_MUST_CHECK enum lth_code lth_cli_ask_program(struct lth_cli *cli, const char *path, const char *what,
						 struct lth_buf *out);

/* The program that an executable carries, at a shape: what --dim says, else the hints. program.c */
struct lth_cli_view {
	struct lth_arena *arena;
	struct lth_program *program;
	int64_t *symbols; /* in the arena */
};
LTH_MUST_CHECK enum lth_code lth_cli_view_open(struct lth_cli *cli, const char *path, struct lth_cli_view *out_view);
void lth_cli_view_close(struct lth_cli_view *view);

#endif
