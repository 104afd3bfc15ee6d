/* The command line's parser: options may stand anywhere, as -o FILE, -oFILE, --output FILE, --output=FILE; what follows
 * `--` is arguments. `run` takes the rest as the compiled program would. */
#include "api/cli/cli.h"
#include "runtime/base/checked.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static enum lth_code unknown_option(struct lth_cli *cli, const char *given)
{
	const char *words[LTH_NUM_CLI_OPTIONS];
	char advice[128], word[64];
	for (int i = 0; i < LTH_NUM_CLI_OPTIONS; i++)
		words[i] = lth_cli_options_table[i].word;
	snprintf(word, sizeof(word), "%.*s", (int)strcspn(given + strspn(given, "-"), "="), given + strspn(given, "-"));
	const char *near = lth_nearest(word, words, LTH_NUM_CLI_OPTIONS);
	if (near)
		snprintf(advice, sizeof(advice), "did you mean --%s?", near);
	else
		snprintf(advice, sizeof(advice), "lathe %s--help lists them", cli->command ? "COMMAND " : "");
	return lth_diag_fail(&cli->diag, LTH_INVALID_OPTION, given, "an option", advice, "an unknown one");
}

static enum lth_code unknown_command(struct lth_cli *cli, const char *given)
{
	const char *words[LTH_NUM_CLI_COMMANDS];
	char advice[128] = "lathe --help lists them";
	for (int i = 0; i < LTH_NUM_CLI_COMMANDS; i++)
		words[i] = lth_cli_commands[i].word;
	const char *near = lth_nearest(given, words, LTH_NUM_CLI_COMMANDS);
	if (near)
		snprintf(advice, sizeof(advice), "did you mean %s?", near);
	return lth_diag_fail(&cli->diag, LTH_INVALID_OPTION, given, "a command", advice, "an unknown one");
}

/* The option that `word` names; *out_value is what follows its "=" or its letter, if anything does. */
static int find(const char *word, const char **out_value)
{
	*out_value = NULL;
	for (int i = 0; i < LTH_NUM_CLI_OPTIONS; i++) {
		const struct lth_cli_option_row *row = &lth_cli_options_table[i];
		size_t length = strlen(row->word);
		if (word[1] == '-' && strncmp(word + 2, row->word, length) == 0 &&
		    (word[2 + length] == 0 || word[2 + length] == '=')) {
			*out_value = word[2 + length] ? word + 3 + length : NULL;
			return i;
		}
		if (word[1] != '-' && row->letter && word[1] == row->letter && (row->argument || !word[2])) {
			*out_value = word[2] ? word + 2 : NULL;
			return i;
		}
	}
	return -1;
}

/* A whole number with a unit; negative when it is none. */
static int64_t parse_bytes(const char *text)
{
	static const struct {
		const char *word;
		unsigned shift;
	} units[] = {{"", 0}, {"B", 0}, {"KiB", 10}, {"MiB", 20}, {"GiB", 30}, {"TiB", 40}};
	char *end;
	errno = 0;
	long long value = strtoll(text, &end, 10);
	if (end == text || errno || value < 0)
		return -1;
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		int64_t bytes;
		if (strcmp(end, units[i].word) == 0)
			return lth_mul_i64(value, (int64_t)1 << units[i].shift, &bytes) ? bytes : -1;
	}
	return -1;
}

static enum lth_code check_value(struct lth_cli *cli, const struct lth_cli_option_row *row, const char *value)
{
	static const char *const expected[] = {
		[LTH_CLI_KIND_COUNT] = "a whole number",
		[LTH_CLI_KIND_NUMBER] = "a number of 0 or more",
		[LTH_CLI_KIND_BYTES] = "bytes: 4096, 64MiB",
	};
	char place[40], *end;
	bool good = true;
	errno = 0;
	if (row->kind == LTH_CLI_KIND_COUNT)
		good = strtoll(value, &end, 10) >= 0 && end != value && !*end && !errno;
	else if (row->kind == LTH_CLI_KIND_NUMBER)
		good = strtod(value, &end) >= 0 && end != value && !*end;
	else if (row->kind == LTH_CLI_KIND_BYTES)
		good = parse_bytes(value) >= 0;
	if (good)
		return LTH_OK;
	snprintf(place, sizeof(place), "--%s", row->word);
	return lth_diag_fail(&cli->diag, LTH_INVALID_OPTION, place, expected[row->kind], NULL, "'%s'", value);
}

/* Takes the option at argv[*at], and its value, which may be the next word. */
static enum lth_code take_option(struct lth_cli *cli, int argc, char **argv, int *at)
{
	const char *word = argv[*at], *value;
	int option = find(word, &value);
	if (option < 0)
		return unknown_option(cli, word);
	const struct lth_cli_option_row *row = &lth_cli_options_table[option];
	if (row->argument && !value) {
		if (*at + 1 >= argc)
			return lth_diag_fail(&cli->diag, LTH_INVALID_OPTION, word, row->argument, NULL, "no argument");
		value = argv[++*at];
	}
	if (!row->argument && value)
		return lth_diag_fail(&cli->diag, LTH_INVALID_OPTION, word, "a switch", NULL, "the argument '%s'",
				     value);
	enum lth_code code = row->argument ? check_value(cli, row, value) : LTH_OK;
	if (code == LTH_OK)
		cli->given[cli->num_given++] = (struct lth_cli_given){(enum lth_cli_option)option, value};
	return code;
}

static enum lth_code take_command(struct lth_cli *cli, const char *word)
{
	if (strcmp(word, "help") == 0) { /* `lathe help compile`, as other programs have it */
		cli->given[cli->num_given++] = (struct lth_cli_given){LTH_CLI_HELP, NULL};
		return LTH_OK;
	}
	for (int i = 0; i < LTH_NUM_CLI_COMMANDS; i++)
		if (strcmp(lth_cli_commands[i].word, word) == 0) {
			cli->command = &lth_cli_commands[i];
			return LTH_OK;
		}
	return unknown_command(cli, word);
}

/* Options may stand before the command, so what they belong to is known only now. */
static enum lth_code check_all(struct lth_cli *cli)
{
	char place[80], expected[80];
	const struct lth_cli_command *command = cli->command;
	if (!command || lth_cli_has(cli, LTH_CLI_HELP) || lth_cli_has(cli, LTH_CLI_VERSION))
		return LTH_OK;
	snprintf(place, sizeof(place), "lathe %s", command->word);
	for (size_t i = 0; i < cli->num_given; i++)
		if (!lth_cli_takes(command, cli->given[i].option))
			return lth_diag_fail(&cli->diag, LTH_INVALID_OPTION, place, "an option of this command",
					     "--help lists them", "--%s",
					     lth_cli_options_table[cli->given[i].option].word);
	bool few = cli->num_arguments < (size_t)command->least;
	bool many = command->most >= 0 && cli->num_arguments > (size_t)command->most;
	snprintf(expected, sizeof(expected), "%s", *command->arguments ? command->arguments : "no arguments");
	if (few || many)
		return lth_diag_fail(&cli->diag, LTH_INVALID_OPTION, place, expected, "--help says more",
				     "%zu arguments", cli->num_arguments);
	return LTH_OK;
}

enum lth_code lth_cli_parse(struct lth_cli *cli, int argc, char **argv)
{
	bool only_arguments = false;
	cli->given = calloc((size_t)argc + 1, sizeof(*cli->given));
	cli->arguments = calloc((size_t)argc + 1, sizeof(*cli->arguments));
	if (!cli->given || !cli->arguments)
		return lth_diag_fail(&cli->diag, LTH_OUT_OF_MEMORY, "command line", NULL, NULL, "no memory to read it");
	for (int i = 1; i < argc; i++) {
		enum lth_code code = LTH_OK;
		if (!only_arguments && argv[i][0] == '-' && argv[i][1]) {
			only_arguments = strcmp(argv[i], "--") == 0;
			code = only_arguments ? LTH_OK : take_option(cli, argc, argv, &i);
		} else if (cli->command) {
			cli->arguments[cli->num_arguments++] = argv[i];
		} else {
			code = take_command(cli, argv[i]);
			bool runs = code == LTH_OK && cli->command && cli->command->function == lth_cli_run;
			if (runs && !lth_cli_has(cli, LTH_CLI_HELP)) {
				cli->rest = argv + i;
				cli->num_rest = argc - i;
				return LTH_OK;
			}
		}
		if (code != LTH_OK)
			return code;
	}
	return check_all(cli);
}

bool lth_cli_has(const struct lth_cli *cli, enum lth_cli_option option)
{
	for (size_t i = 0; i < cli->num_given; i++)
		if (cli->given[i].option == option)
			return true;
	return false;
}

const char *lth_cli_value(const struct lth_cli *cli, enum lth_cli_option option)
{
	const char *text = NULL;
	for (size_t i = 0; i < cli->num_given; i++)
		if (cli->given[i].option == option)
			text = cli->given[i].text;
	return text;
}

int64_t lth_cli_count(const struct lth_cli *cli, enum lth_cli_option option, int64_t standard)
{
	const char *text = lth_cli_value(cli, option);
	if (!text)
		return standard;
	return lth_cli_options_table[option].kind == LTH_CLI_KIND_BYTES ? parse_bytes(text) : strtoll(text, NULL, 10);
}

double lth_cli_number(const struct lth_cli *cli, enum lth_cli_option option, double standard)
{
	const char *text = lth_cli_value(cli, option);
	return text ? strtod(text, NULL) : standard;
}
