/* Completion code for bash, zsh and fish, printed from the tables of commands and options. What an argument is called
 * there decides what completes it: words between bars are the words themselves, FILE and the like are files, anything
 * else is the user's own. */
#include "api/cli/cli.h"

#include <string.h>

static bool is_choice(const char *argument)
{
	return argument && strchr(argument, '|') && !strpbrk(argument, " [");
}

static bool is_file(const char *argument)
{
	static const char *const names[] = {"FILE", "DIR", "MODEL", "INPUT"};
	for (size_t i = 0; argument && i < sizeof(names) / sizeof(names[0]); i++)
		if (strstr(argument, names[i]))
			return true;
	return false;
}

static void put_choices(struct lth_buf *out, const char *argument)
{
	for (; *argument; argument++)
		lth_buf_putc(out, *argument == '|' ? ' ' : *argument);
}

/* Text inside of single quotes. bash and zsh end the quotes for one, fish escapes it. */
static void put_quoted(struct lth_buf *out, const char *text, const char *quote)
{
	for (; *text; text++) {
		if (*text == '\'')
			lth_buf_puts(out, quote);
		else
			lth_buf_putc(out, *text);
	}
}

/* --- bash */
static void add_words(struct lth_buf *out, const struct lth_cli_shown *o)
{
	lth_buf_printf(out, " --%s", o->word);
	if (o->letter)
		lth_buf_printf(out, " -%c", o->letter);
}

static void add_valued_words(struct lth_buf *out, const struct lth_cli_shown *o)
{
	if (o->argument)
		add_words(out, o);
}

static void bash_choices(struct lth_buf *out, const struct lth_cli_shown *o)
{
	if (!is_choice(o->argument))
		return;
	lth_buf_printf(out, "\t--%s) words='", o->word);
	put_choices(out, o->argument);
	lth_buf_puts(out, "' ;;\n");
}

/* The command is the first word that is no option, nor the value of one of those that may stand before it. */
static void bash(struct lth_buf *out)
{
	lth_buf_puts(out, "_lathe() {\n\tlocal word=${COMP_WORDS[COMP_CWORD]} command= i words= valued='");
	lth_cli_each_option(NULL, false, add_valued_words, out);
	lth_buf_puts(out, " '\n\tfor ((i = 1; i < COMP_CWORD; i++)); do\n"
			  "\t\t[[ ${COMP_WORDS[i]} == -* || $valued == *\" ${COMP_WORDS[i - 1]} \"* ]] && continue\n"
			  "\t\tcommand=${COMP_WORDS[i]}\n\t\tbreak\n\tdone\n"
			  "\tcase ${COMP_WORDS[COMP_CWORD - 1]} in\n");
	for (int i = 0; i < LTH_NUM_CLI_COMMANDS; i++)
		lth_cli_each_option(&lth_cli_commands[i], true, bash_choices, out);
	lth_buf_puts(out, "\tesac\n\tif [[ -n $words ]]; then\n\t\tCOMPREPLY=($(compgen -W \"$words\" -- \"$word\"))\n"
			  "\t\treturn\n\tfi\n\tcase $command in\n");
	for (int i = 0; i < LTH_NUM_CLI_COMMANDS; i++) {
		const struct lth_cli_command *command = &lth_cli_commands[i];
		lth_buf_printf(out, "\t%s) words='", command->word);
		if (is_choice(command->arguments))
			put_choices(out, command->arguments);
		lth_cli_each_option(command, true, add_words, out);
		lth_cli_each_option(command, false, add_words, out);
		lth_buf_puts(out, "' ;;\n");
	}
	lth_buf_puts(out, "\t*) words='");
	for (int i = 0; i < LTH_NUM_CLI_COMMANDS; i++)
		lth_buf_printf(out, " %s", lth_cli_commands[i].word);
	lth_cli_each_option(NULL, false, add_words, out);
	lth_buf_puts(out, "' ;;\n\tesac\n\t[[ $word == -* || -z $command || $words != ' '* ]] &&\n"
			  "\t\tCOMPREPLY=($(compgen -W \"$words\" -- \"$word\"))\n"
			  "}\ncomplete -o default -F _lathe lathe\n");
}

/* --- zsh: see zshcompsys(1), _arguments and _describe */
static const char zsh_quote[] = "'\\''";

/* In the forms `[explanation]` and `:message:action`, brackets and colons are special. */
static void zsh_text(struct lth_buf *out, const char *text)
{
	struct lth_buf escaped = {0};
	for (; *text; text++) {
		if (strchr("[]:\\", *text))
			lth_buf_putc(&escaped, '\\');
		lth_buf_putc(&escaped, *text);
	}
	put_quoted(out, lth_buf_text(&escaped), zsh_quote);
	lth_buf_free(&escaped);
}

static void zsh_argument(struct lth_buf *out, const char *argument)
{
	lth_buf_putc(out, ':');
	zsh_text(out, is_choice(argument) ? "one of" : argument);
	lth_buf_putc(out, ':');
	if (is_choice(argument)) {
		lth_buf_putc(out, '(');
		put_choices(out, argument);
		lth_buf_putc(out, ')');
	} else {
		lth_buf_puts(out, is_file(argument) ? "_files" : " ");
	}
}

static void zsh_option(struct lth_buf *out, const struct lth_cli_shown *o)
{
	const char *value = o->argument ? "=" : "";
	lth_buf_puts(out, "\t\t'");
	if (o->repeats)
		lth_buf_putc(out, '*');
	else if (o->letter)
		lth_buf_printf(out, "(-%c --%s)", o->letter, o->word);
	if (o->letter)
		lth_buf_printf(out, "'{-%c%s,--%s%s}'[", o->letter, o->argument ? "+" : "", o->word, value);
	else
		lth_buf_printf(out, "--%s%s[", o->word, value);
	zsh_text(out, o->help);
	lth_buf_putc(out, ']');
	if (o->argument)
		zsh_argument(out, o->argument);
	lth_buf_puts(out, "'\n");
}

static void zsh_command(struct lth_buf *out, const struct lth_cli_command *command)
{
	struct lth_buf own = {0}, common = {0};
	lth_cli_each_option(command, true, zsh_option, &own);
	lth_cli_each_option(command, false, zsh_option, &common);
	lth_buf_printf(out, "\t%s) options=(%s\n%s\t\t", command->word, common.size ? "$common" : "",
		       lth_buf_text(&own));
	if (command->most != 0) {
		lth_buf_puts(out, command->most == 1 ? "'1" : "'*");
		zsh_argument(out, command->arguments);
		lth_buf_puts(out, "'");
	}
	lth_buf_puts(out, ") ;;\n");
	lth_buf_free(&own);
	lth_buf_free(&common);
}

static void zsh(struct lth_buf *out)
{
	lth_buf_puts(out, "#compdef lathe\n_lathe() {\n\tlocal curcontext=$curcontext state line\n"
			  "\tlocal -A opt_args\n\tlocal -a options commands=(\n");
	for (int i = 0; i < LTH_NUM_CLI_COMMANDS; i++) {
		lth_buf_printf(out, "\t\t'%s:", lth_cli_commands[i].word);
		zsh_text(out, lth_cli_commands[i].summary);
		lth_buf_puts(out, "'\n");
	}
	lth_buf_puts(out, "\t)\n\tlocal -a common=(\n");
	lth_cli_each_option(NULL, false, zsh_option, out);
	lth_buf_puts(out, "\t)\n\t_arguments -C $common '1:command:->command' '*::argument:->argument' && return\n"
			  "\tif [[ $state == command ]]; then\n\t\t_describe -t commands command commands\n\t\treturn\n"
			  "\tfi\n\tcase $words[1] in\n");
	for (int i = 0; i < LTH_NUM_CLI_COMMANDS; i++)
		zsh_command(out, &lth_cli_commands[i]);
	lth_buf_puts(out, "\tesac\n\t_arguments $options\n}\n"
			  "if [[ $funcstack[1] == _lathe ]]; then _lathe \"$@\"; else compdef _lathe lathe; fi\n");
}

/* --- fish */
static const char fish_quote[] = "\\'";

static void fish_option(struct lth_buf *out, const struct lth_cli_shown *o)
{
	lth_buf_printf(out, " -l %s", o->word);
	if (o->letter)
		lth_buf_printf(out, " -s %c", o->letter);
	if (is_choice(o->argument)) {
		lth_buf_puts(out, " -x -a '");
		put_choices(out, o->argument);
		lth_buf_putc(out, '\'');
	} else if (o->argument) {
		lth_buf_puts(out, is_file(o->argument) ? " -r -F" : " -x");
	}
	lth_buf_puts(out, " -d '");
	put_quoted(out, o->help, fish_quote);
	lth_buf_puts(out, "'\n");
}

/* The command is found as bash finds it; files are offered only where a command or an option takes them. */
static void fish_functions(struct lth_buf *out)
{
	lth_buf_puts(out, "function __lathe_command_is\n\tset -l before\n\tset -l words (commandline -opc)\n"
			  "\tfor word in $words[2..-1]\n"
			  "\t\tif string match -q -- '-*' $word; or contains -- \"$before\"");
	lth_cli_each_option(NULL, false, add_valued_words, out);
	lth_buf_puts(out, "\n\t\t\tset before $word\n\t\t\tcontinue\n\t\tend\n"
			  "\t\tcontains -- $word $argv\n\t\treturn\n\tend\n\ttest -z \"$argv\"\nend\n"
			  "complete -c lathe -f\n");
}

static void fish_options(struct lth_buf *out, const char *condition, const struct lth_cli_command *command, bool own)
{
	struct lth_buf lines = {0};
	lth_cli_each_option(command, own, fish_option, &lines);
	for (const char *line = lth_buf_text(&lines), *end; *line; line = end + 1) {
		end = strchr(line, '\n');
		lth_buf_printf(out, "complete -c lathe -n '%s'%.*s\n", condition, (int)(end - line), line);
	}
	lth_buf_free(&lines);
}

static void fish(struct lth_buf *out)
{
	char condition[64];
	fish_functions(out);
	for (int i = 0; i < LTH_NUM_CLI_COMMANDS; i++) {
		const struct lth_cli_command *command = &lth_cli_commands[i];
		lth_buf_printf(out, "complete -c lathe -n __lathe_command_is -a %s -d '", command->word);
		put_quoted(out, command->summary, fish_quote);
		lth_buf_puts(out, "'\n");
		snprintf(condition, sizeof(condition), "__lathe_command_is %s", command->word);
		if (is_file(command->arguments)) {
			lth_buf_printf(out, "complete -c lathe -n '%s' -F\n", condition);
		} else if (is_choice(command->arguments)) {
			lth_buf_printf(out, "complete -c lathe -n '%s' -a '", condition);
			put_choices(out, command->arguments);
			lth_buf_puts(out, "'\n");
		}
		fish_options(out, condition, command, true);
	}
	fish_options(out, "not __lathe_command_is run", NULL, false);
}

enum lth_code lth_cli_completion(struct lth_cli *cli)
{
	static const struct {
		const char *name;
		void (*print)(struct lth_buf *out);
	} shells[] = {{"bash", bash}, {"zsh", zsh}, {"fish", fish}};
	for (size_t i = 0; i < sizeof(shells) / sizeof(shells[0]); i++) {
		struct lth_buf out = {0};
		if (strcmp(cli->arguments[0], shells[i].name) != 0)
			continue;
		shells[i].print(&out);
		fputs(lth_buf_text(&out), stdout);
		lth_buf_free(&out);
		return LTH_OK;
	}
	return lth_diag_fail(&cli->diag, LTH_INVALID_OPTION, "lathe completion", "bash, zsh or fish", NULL, "'%s'",
			     cli->arguments[0]);
}
