/* Compiled models as the commands that look at them see them: programs are asked, shared objects opened, and the program
 * that either carries is decoded and verified. */
#include "api/cli/cli.h"
#include "api/cli/executable.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* The values of --dim, as the runtime's own options hold them. */
void lth_cli_exe_dims(const struct lth_cli *cli, struct lth_exe_options *out_options)
{
	*out_options = (struct lth_exe_options){.program = "lathe"};
	for (size_t i = 0; i < cli->num_given; i++)
		if (cli->given[i].option == LTH_CLI_DIM && out_options->num_dims < LTH_EXE_MAX_DIMS)
			out_options->dims[out_options->num_dims++] = cli->given[i].text;
}

static void become_program(const struct lth_cli *cli, const char *path, const char *what, int out)
{
	enum { MOST = 2 * LTH_EXE_MAX_DIMS + 3 };
	const char *words[MOST] = {path, what};
	int count = 2;
	for (size_t i = 0; i < cli->num_given && count + 3 < MOST; i++)
		if (cli->given[i].option == LTH_CLI_DIM) {
			words[count++] = "--dim";
			words[count++] = cli->given[i].text;
		}
	char *arguments[MOST];
	memcpy(arguments, words, sizeof(words)); /* execv does not write to its arguments */
	dup2(out, 1);
	execv(path, arguments);
	_exit(127);
}

enum lth_code lth_cli_ask_program(struct lth_cli *cli, const char *path, const char *what, struct lth_buf *out)
{
	int ends[2], status = 0;
	char chunk[4096], name[4096];
	if (pipe(ends) != 0)
		return lth_diag_fail(&cli->diag, LTH_IO_ERROR, path, NULL, NULL, "pipe: %s", strerror(errno));
	snprintf(name, sizeof(name), "%s%s", strchr(path, '/') ? "" : "./", path);
	pid_t child = fork();
	if (child == 0)
		become_program(cli, name, what, ends[1]);
	close(ends[1]);
	for (ssize_t size; child > 0 && (size = read(ends[0], chunk, sizeof(chunk))) != 0;)
		if (size > 0)
			lth_buf_append(out, chunk, (size_t)size);
		else if (errno != EINTR)
			break;
	close(ends[0]);
	while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	if (child < 0 || status != 0)
		return lth_diag_fail(&cli->diag, LTH_BAD_EXECUTABLE, path, "a compiled model (.so, or a program)", NULL,
				     "a program that does not answer to %s", what);
	return LTH_OK;
}

bool lth_cli_is_program(const char *path)
{
	size_t length = strlen(path);
	return access(path, X_OK) == 0 && (length < 3 || strcmp(path + length - 3, ".so") != 0);
}

static enum lth_code bytes_of_library(struct lth_cli *cli, const char *path, struct lth_buf *out)
{
	struct lth_exe exe = {0};
	lathe_query_fn query;
	const void *program;
	uint64_t bytes;
	enum lth_code code = lth_cli_load(cli, path, &query);
	if (code == LTH_OK)
		code = lth_exe_open(&exe, query, &cli->diag);
	if (code == LTH_OK)
		code = lth_exe_program(&exe, &program, &bytes, &cli->diag);
	if (code == LTH_OK)
		lth_buf_append(out, program, bytes);
	lth_exe_close(&exe);
	return code;
}

/* The values of --dim, by the rules that a description's symbols have. */
static enum lth_code bind_dims(struct lth_cli *cli, struct lth_cli_view *view)
{
	const struct lth_program *program = view->program;
	struct lathe_symbol *symbols = lth_arena_array(view->arena, program->num_symbols, sizeof(*symbols));
	view->symbols = lth_arena_array(view->arena, program->num_symbols, sizeof(*view->symbols));
	if (!symbols || !view->symbols)
		return lth_diag_fail(&cli->diag, LTH_OUT_OF_MEMORY, "program", NULL, NULL, "no memory for its symbols");
	for (uint32_t i = 0; i < program->num_symbols; i++) {
		const struct lth_symbol *s = &program->symbols[i];
		symbols[i] = (struct lathe_symbol){.name = s->name, .min = s->min, .max = s->max, .multiple = s->multiple,
						   .hint = s->hint, .from_data = s->source == LTH_SOURCE_DATA};
	}
	struct lathe_description description = {.symbols = symbols, .num_symbols = program->num_symbols};
	struct lth_exe exe = {.description = &description, .symbols = view->symbols};
	struct lth_exe_options options;
	lth_cli_exe_dims(cli, &options);
	return lth_exe_bind_dims(&exe, &options, &cli->diag);
}

enum lth_code lth_cli_view_open(struct lth_cli *cli, const char *path, struct lth_cli_view *out_view)
{
	struct lth_cli_view view = {.arena = lth_arena_create(0)};
	struct lth_buf bytes = {0};
	enum lth_code code = LTH_OK;
	if (!view.arena)
		code = lth_diag_fail(&cli->diag, LTH_OUT_OF_MEMORY, path, NULL, NULL, "no memory to open it");
	else if (lth_cli_is_program(path))
		code = lth_cli_ask_program(cli, path, "--program", &bytes);
	else
		code = bytes_of_library(cli, path, &bytes);
	if (code == LTH_OK)
		code = lth_program_decode(lth_buf_text(&bytes), bytes.size, view.arena, &view.program, &cli->diag);
	if (code == LTH_OK)
		code = lth_program_verify(view.program, &cli->diag);
	if (code == LTH_OK)
		code = bind_dims(cli, &view);
	lth_buf_free(&bytes);
	if (code == LTH_OK)
		*out_view = view;
	else
		lth_cli_view_close(&view);
	return code;
}

void lth_cli_view_close(struct lth_cli_view *view)
{
	lth_arena_destroy(&view->arena);
}
