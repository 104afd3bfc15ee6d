/* lathe: the command line. Finds the command, connects if it needs a daemon, and ends with the exit code of what went
 * wrong. */
#include "api/cli/cli.h"
#include "config.h"
#include "runtime/media/media.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

const struct lth_cli_command lth_cli_commands[LTH_NUM_CLI_COMMANDS] = {
#define LTH_COMMAND(word, name, arguments, least, most, daemon, summary, text)                                         \
	{word, arguments, least, most, daemon, summary, text, lth_cli_##name},
#include "api/cli/commands.def"
#undef LTH_COMMAND
};

const struct lth_cli_option_row lth_cli_options_table[LTH_NUM_CLI_OPTIONS] = {
#define LTH_CLI_OPTION(name, letter, word, kind, argument, commands, query, help)                                      \
	{letter, word, LTH_CLI_KIND_##kind, argument, commands, query, help},
#include "api/cli/options.def"
#undef LTH_CLI_OPTION
};

bool lth_cli_takes(const struct lth_cli_command *command, enum lth_cli_option option)
{
	const char *at = lth_cli_options_table[option].commands;
	size_t length = strlen(command->word);
	if (!*at)
		return true;
	while (*at) {
		size_t word = strcspn(at, " ");
		if (word == length && memcmp(at, command->word, length) == 0)
			return true;
		at += word + strspn(at + word, " ");
	}
	return false;
}

static enum lth_code print_help(const struct lth_cli *cli)
{
	struct lth_buf text = {0};
	lth_cli_help(cli->command, &text);
	fputs(lth_buf_text(&text), stdout);
	lth_buf_free(&text);
	return LTH_OK;
}

static enum lth_code execute(struct lth_cli *cli)
{
	if (lth_cli_has(cli, LTH_CLI_VERSION)) {
		puts("lathe " PACKAGE_VERSION);
		return LTH_OK;
	}
	if (lth_cli_has(cli, LTH_CLI_HELP))
		return print_help(cli);
	if (!cli->command)
		return lth_diag_fail(&cli->diag, LTH_INVALID_OPTION, "command line", "a command",
				     "lathe --help lists them", "none");
	enum lth_code code = cli->command->daemon ? lth_cli_connect(cli) : LTH_OK;
	return code == LTH_OK ? cli->command->function(cli) : code;
}

static void print_problem(const struct lth_cli *cli)
{
	char line[4096];
	const struct lth_diag *diag = &cli->diag;
	if (!lth_cli_has(cli, LTH_CLI_JSON)) {
		fprintf(stderr, "lathe%s%s: %s\n", cli->command ? " " : "", cli->command ? cli->command->word : "",
			lth_diag_line(diag, line, sizeof(line)));
		return;
	}
	json_t *problem = json_pack(
		"{s:s+, s:s, s:i, s:i, s:s, s:s, s:s, s:s}", "type", "about:lathe:", lth_code_slug(diag->code), "title",
		lth_code_text(diag->code), "status", lth_code_http(diag->code), "exit", lth_code_exit(diag->code),
		"place", diag->place, "found", diag->found, "expected", diag->expected, "advice", diag->advice);
	lth_cli_print_json(problem);
	json_decref(problem);
}

int main(int argc, char **argv)
{
	struct lth_cli cli = {.program = argc ? argv[0] : "lathe"};
	lth_media_locate();
	signal(SIGPIPE, SIG_IGN); /* an end of standard output is an error like others */
	enum lth_code code = lth_cli_parse(&cli, argc, argv);
	if (code == LTH_OK)
		code = execute(&cli);
	lth_cli_clear_progress(&cli);
	errno = 0;
	if (code == LTH_OK && (fflush(stdout) != 0 || ferror(stdout)))
		code = lth_diag_fail(&cli.diag, LTH_IO_ERROR, "standard output", NULL, NULL, "writing failed");
	if (code != LTH_OK && errno != EPIPE) /* `| head` has seen enough: nobody reads a complaint about it */
		print_problem(&cli);
	lathe_client_destroy(&cli.client);
	lth_cli_local_stop(&cli);
	free(cli.given);
	free(cli.arguments);
	return code != LTH_OK ? lth_code_exit(code) : cli.status;
}
