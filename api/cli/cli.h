/* The command line `lathe`: what its files share. A command is a row of commands.def and a function lth_cli_NAME;
 * options are rows of options.def. Errors go to cli->diag and end the program with the exit code of their kind. Thread
 * rule: one thread. */
#ifndef LTH_CLI_H
#define LTH_CLI_H

#include "api/lathe_client.h"
#include "runtime/base/buf.h"
#include "runtime/base/diag.h"

#include <jansson.h>
#include <stdio.h>

enum lth_cli_option {
#define LTH_CLI_OPTION(name, letter, word, kind, argument, commands, query, help) LTH_CLI_##name,
#include "api/cli/options.def"
#undef LTH_CLI_OPTION
	LTH_NUM_CLI_OPTIONS
};

enum lth_cli_kind {
	LTH_CLI_KIND_SWITCH,
	LTH_CLI_KIND_TEXT,
	LTH_CLI_KIND_LIST,
	LTH_CLI_KIND_COUNT,
	LTH_CLI_KIND_NUMBER,
	LTH_CLI_KIND_BYTES
};

struct lth_cli;
typedef enum lth_code (*lth_cli_fn)(struct lth_cli *cli);

struct lth_cli_command {
	const char *word, *arguments;
	int least, most;
	bool daemon;
	const char *summary, *text;
	lth_cli_fn function;
};

struct lth_cli_option_row {
	char letter;
	const char *word;
	enum lth_cli_kind kind;
	const char *argument, *commands, *query, *help;
};

enum {
	LTH_NUM_CLI_COMMANDS = 0
#define LTH_COMMAND(word, name, arguments, least, most, daemon, summary, text) +1
#include "api/cli/commands.def"
#undef LTH_COMMAND
};
extern const struct lth_cli_command lth_cli_commands[LTH_NUM_CLI_COMMANDS];
extern const struct lth_cli_option_row lth_cli_options_table[LTH_NUM_CLI_OPTIONS];
#define LTH_COMMAND(word, name, arguments, least, most, daemon, summary, text)                                         \
	enum lth_code lth_cli_##name(struct lth_cli *cli);
#include "api/cli/commands.def"
#undef LTH_COMMAND

struct lth_cli_given {
	enum lth_cli_option option;
	const char *text; /* borrowed from argv; NULL of a switch */
};

struct lth_cli_local; /* a private daemon */

struct lth_cli {
	const char *program;
	const struct lth_cli_command *command;
	struct lth_cli_given *given;
	size_t num_given;
	const char **arguments;
	size_t num_arguments;
	struct lth_diag diag;
	int status; /* exit status of a command that succeeded in saying that something is wrong */
	struct lathe_client *client; /* set where the command's row asks for a daemon */
	struct lth_cli_local *local;
	bool progress_shown;
	char **rest; /* what follows `run`, as it came */
	int num_rest;
};

/* Which command an option belongs to. main.c */
bool lth_cli_takes(const struct lth_cli_command *command, enum lth_cli_option option);
/* parse.c: the command line to cli->command, given and arguments. */
LTH_MUST_CHECK enum lth_code lth_cli_parse(struct lth_cli *cli, int argc, char **argv);
bool lth_cli_has(const struct lth_cli *cli, enum lth_cli_option option);
/* The last value given, or NULL. Numbers were checked when they were parsed. */
const char *lth_cli_value(const struct lth_cli *cli, enum lth_cli_option option);
int64_t lth_cli_count(const struct lth_cli *cli, enum lth_cli_option option, int64_t standard);
double lth_cli_number(const struct lth_cli *cli, enum lth_cli_option option, double standard);

/* help.c: all of it from the tables. */
void lth_cli_help(const struct lth_cli_command *command, struct lth_buf *out); /* NULL: of the program */
/* An option as all that print it see it; of a command or of a compiled program, which `run` takes. */
struct lth_cli_shown {
	char letter;
	const char *word, *argument, *help;
	bool repeats;
};
/* Calls `print` for the options of a command: NULL, or not `own`: those of all commands. */
void lth_cli_each_option(const struct lth_cli_command *command, bool own,
			 void (*print)(struct lth_buf *out, const struct lth_cli_shown *option), struct lth_buf *out);

/* request.c: what commands ask the daemon. */
enum lth_code lth_cli_problem(struct lth_cli *cli, const struct lathe_problem *problem);
LTH_MUST_CHECK enum lth_code lth_cli_connect(struct lth_cli *cli);
/* A client of its own to the same daemon, for another process. */
LTH_MUST_CHECK enum lth_code lth_cli_another_client(struct lth_cli *cli, struct lathe_client **out_client);
/* GET, parsed; the caller's. */
LTH_MUST_CHECK enum lth_code lth_cli_get(struct lth_cli *cli, const char *path, json_t **out_json);
LTH_MUST_CHECK enum lth_code lth_cli_parse_reply(struct lth_cli *cli, struct lathe_reply *reply, json_t **out_json);
/* The options given that belong into a query, escaped: "dim=...&opt_level=3". */
LTH_MUST_CHECK enum lth_code lth_cli_query(struct lth_cli *cli, struct lth_buf *out);
void lth_cli_query_add(struct lth_buf *query, const char *name, const char *value);

/* model.c: a model file and the external data it names. */
struct lth_cli_model {
	const char *path;
	char *bytes;
	size_t size;
	struct lathe_file *files; /* names and bytes owned */
	size_t num_files;
};
LTH_MUST_CHECK enum lth_code lth_cli_model_read(struct lth_cli *cli, const char *path, struct lth_cli_model *out_model);
void lth_cli_model_free(struct lth_cli_model *model);
/* Compiles; the answer as JSON, the caller's. `options` (JSON text) and `query` may be NULL. */
LTH_MUST_CHECK enum lth_code lth_cli_compile_model(struct lth_cli *cli, const struct lth_cli_model *model,
						   const char *query, const char *options, json_t **out_result);
/* Fetches an artifact of a result document and writes it; programs get their execute bits. */
LTH_MUST_CHECK enum lth_code lth_cli_fetch(struct lth_cli *cli, const json_t *artifact, const char *path);

/* local.c: a private daemon. */
LTH_MUST_CHECK enum lth_code lth_cli_local_start(struct lth_cli *cli, const char **out_server);
void lth_cli_local_stop(struct lth_cli *cli);

/* text.c: for people. */
void lth_cli_bytes(int64_t bytes, char *out, size_t size); /* "12.3 MiB" */
const char *lth_cli_member(const json_t *object, const char *key); /* text, or "" */
int64_t lth_cli_int(const json_t *object, const char *key); /* or -1 */
double lth_cli_real(const json_t *object, const char *key); /* or -1 */
void lth_cli_print_json(const json_t *json);
/* Inputs or outputs of a document, a line each. */
void lth_cli_print_ports(const json_t *ports, const char *label);
void lth_cli_clear_progress(struct lth_cli *cli);

/* A table of text: cells row by row; columns are as wide as their widest cell. Numbers align right. */
struct lth_cli_table {
	char **cells; /* owned */
	size_t num_cells, columns;
	bool failed;
};
void lth_cli_cell(struct lth_cli_table *table, const char *format, ...) LTH_PRINTF(2, 3);
void lth_cli_table_print(struct lth_cli_table *table, FILE *file); /* and empties it */

/* Rows of jobs. store.c */
void lth_cli_job_head(struct lth_cli_table *table); /* sets the columns */
void lth_cli_job_row(struct lth_cli_table *table, const json_t *job);

#endif
