/* Help and manual page, all from the tables of commands, options, and status codes. */
#include "api/cli/cli.h"
#include "config.h"

#include <string.h>

/* Options of a compiled program, which `run` takes. */
static const struct run_option {
	char letter;
	const char *word, *argument, *help;
} run_options[] = {
#define LTH_EXE_OPTION(name, letter, word, argument, help) {letter, word, argument, help},
#include "runtime/exe/options.def"
#undef LTH_EXE_OPTION
};
enum { NUM_RUN_OPTIONS = sizeof(run_options) / sizeof(run_options[0]) };

void lth_cli_each_option(const struct lth_cli_command *command, bool own,
			 void (*print)(struct lth_buf *out, const struct lth_cli_shown *option), struct lth_buf *out)
{
	if (command && command->function == lth_cli_run) {
		for (size_t i = 0; own && i < NUM_RUN_OPTIONS; i++) {
			const struct run_option *o = &run_options[i];
			print(out, &(struct lth_cli_shown){o->letter, o->word, o->argument, o->help,
							   strstr(o->help, "may repeat")});
		}
		return;
	}
	for (int i = 0; i < LTH_NUM_CLI_OPTIONS; i++) {
		const struct lth_cli_option_row *row = &lth_cli_options_table[i];
		bool for_all = !*row->commands;
		if (own == for_all || (own && !lth_cli_takes(command, (enum lth_cli_option)i)))
			continue;
		print(out, &(struct lth_cli_shown){row->letter, row->word, row->argument, row->help,
						   row->kind == LTH_CLI_KIND_LIST});
	}
}

/* Text in lines of at most 100 columns behind `indent` blanks; the first line stands at `column` already. */
static void wrap(struct lth_buf *out, const char *text, int indent, int column)
{
	enum { WIDTH = 100 };
	while (*text) {
		int length = (int)strcspn(text, " ");
		if (column > indent && column + 1 + length > WIDTH) {
			lth_buf_printf(out, "\n%*s", indent, "");
			column = indent;
		} else if (column > indent) {
			lth_buf_putc(out, ' ');
			column++;
		}
		lth_buf_append(out, text, (size_t)length);
		column += length;
		text += length;
		text += *text == ' ';
	}
	lth_buf_putc(out, '\n');
}

static void print_option(struct lth_buf *out, const struct lth_cli_shown *o)
{
	enum { COLUMN = 30 };
	char left[64], letter[8] = "    ";
	if (o->letter)
		snprintf(letter, sizeof(letter), "-%c, ", o->letter);
	snprintf(left, sizeof(left), "  %s--%s%s%s", letter, o->word, o->argument ? " " : "",
		 o->argument ? o->argument : "");
	lth_buf_printf(out, "%-*s", COLUMN, left);
	if (strlen(left) >= COLUMN)
		lth_buf_printf(out, "\n%*s", COLUMN, "");
	wrap(out, o->help, COLUMN, COLUMN);
}

/* Codes by exit status, each status once. */
static void each_exit(void (*print)(struct lth_buf *out, int exit, const char *slugs), struct lth_buf *out)
{
	enum { MOST = 64 };
	print(out, 0, "success");
	print(out, 1, "the command worked, and found something wrong: a case of a suite, a plan that is not valid");
	for (int status = 2; status < MOST; status++) {
		struct lth_buf slugs = {0};
		for (int i = 1; i < LTH_NUM_CODES; i++)
			if (lth_code_exit((enum lth_code)i) == status)
				lth_buf_printf(&slugs, "%s%s", slugs.size ? ", " : "", lth_code_slug((enum lth_code)i));
		if (slugs.size)
			print(out, status, lth_buf_text(&slugs));
		lth_buf_free(&slugs);
	}
}

static void print_exit(struct lth_buf *out, int status, const char *slugs)
{
	lth_buf_printf(out, "  %-4d", status);
	wrap(out, slugs, 6, 6);
}

static void print_program(struct lth_buf *out)
{
	lth_buf_puts(out, "Usage: lathe COMMAND [OPTION...] ARGUMENT...\n"
			  "Compiles tensor graphs with a lathed, runs them, and shows what they cost.\n\nCommands:\n");
	for (int i = 0; i < LTH_NUM_CLI_COMMANDS; i++)
		lth_buf_printf(out, "  %-12s%s\n", lth_cli_commands[i].word, lth_cli_commands[i].summary);
	lth_buf_puts(out, "\nOptions of all commands (lathe COMMAND --help has a command's own):\n");
	lth_cli_each_option(NULL, false, print_option, out);
	lth_buf_puts(out, "\nExit status, by the type of the problem:\n");
	each_exit(print_exit, out);
}

void lth_cli_help(const struct lth_cli_command *command, struct lth_buf *out)
{
	if (!command) {
		print_program(out);
		return;
	}
	lth_buf_printf(out, "Usage: lathe %s%s%s\n", command->word, *command->arguments ? " " : "", command->arguments);
	lth_buf_printf(out, "%c%s.", command->summary[0] - 'a' + 'A', command->summary + 1);
	lth_buf_putc(out, '\n');
	if (*command->text) {
		lth_buf_putc(out, '\n');
		wrap(out, command->text, 0, 0);
	}
	struct lth_buf own = {0};
	lth_cli_each_option(command, true, print_option, &own);
	if (own.size)
		lth_buf_printf(out, "\nOptions:\n%s", lth_buf_text(&own));
	lth_buf_free(&own);
	if (command->function != lth_cli_run) {
		lth_buf_puts(out, "\nOptions of all commands:\n");
		lth_cli_each_option(command, false, print_option, out);
	}
}

/* --- the manual page */
static void man_text(struct lth_buf *out, const char *text)
{
	for (; *text; text++) {
		if (*text == '-' || *text == '\\')
			lth_buf_putc(out, '\\');
		lth_buf_putc(out, *text);
	}
}

static void man_option(struct lth_buf *out, const struct lth_cli_shown *o)
{
	lth_buf_puts(out, ".TP\n");
	if (o->letter)
		lth_buf_printf(out, "\\fB\\-%c\\fR, ", o->letter);
	lth_buf_puts(out, "\\fB\\-\\-");
	man_text(out, o->word);
	lth_buf_puts(out, "\\fR");
	if (o->argument) {
		lth_buf_puts(out, " \\fI");
		man_text(out, o->argument);
		lth_buf_puts(out, "\\fR");
	}
	lth_buf_putc(out, '\n');
	man_text(out, o->help);
	lth_buf_putc(out, '\n');
}

static void man_exit(struct lth_buf *out, int status, const char *slugs)
{
	lth_buf_printf(out, ".TP\n\\fB%d\\fR\n", status);
	man_text(out, slugs);
	lth_buf_putc(out, '\n');
}

static void man_command(struct lth_buf *out, const struct lth_cli_command *command)
{
	lth_buf_printf(out, ".SS lathe %s ", command->word);
	man_text(out, command->arguments);
	lth_buf_printf(out, "\n%c", command->summary[0] - 'a' + 'A');
	man_text(out, command->summary + 1);
	lth_buf_puts(out, ".\n");
	if (*command->text) {
		man_text(out, command->text);
		lth_buf_putc(out, '\n');
	}
	lth_cli_each_option(command, true, man_option, out);
}

enum lth_code lth_cli_man(struct lth_cli *cli)
{
	struct lth_buf out = {0};
	(void)cli;
	lth_buf_printf(
		&out,
		".TH LATHE 1 \"%s\" \"Lathe %s\" \"User Commands\"\n.SH NAME\nlathe \\- compile tensor graphs, run "
		"them, and show what they cost\n.SH SYNOPSIS\n\\fBlathe\\fR \\fICOMMAND\\fR [\\fIOPTION\\fR...] "
		"\\fIARGUMENT\\fR...\n.SH COMMANDS\n",
		PACKAGE_DATE, PACKAGE_VERSION);
	for (int i = 0; i < LTH_NUM_CLI_COMMANDS; i++)
		man_command(&out, &lth_cli_commands[i]);
	lth_buf_puts(&out, ".SH OPTIONS OF ALL COMMANDS\n");
	lth_cli_each_option(NULL, false, man_option, &out);
	lth_buf_puts(
		&out,
		".SH ENVIRONMENT\n.TP\n\\fBLATHE_SERVER\\fR\nthe daemon, where \\-\\-server does not name one\n"
		".TP\n\\fBLATHE_TOKEN\\fR\nthe credential, where \\-\\-token does not give one\n.SH EXIT STATUS\n");
	each_exit(man_exit, &out);
	lth_buf_puts(&out, ".SH SEE ALSO\n\\fBlathed\\fR(8)\n");
	fputs(lth_buf_text(&out), stdout);
	lth_buf_free(&out);
	return LTH_OK;
}
