/* The table of settings for people: --help, a configuration file with every line a comment, and the manual page
 * lathed(8). See config.h. */
#include <config.h>
#include "daemon/config.h"

#include <string.h>

struct row {
	const char *name, *value, *argument, *help;
	bool reload;
};

static const struct row rows[] = {
#define LTH_CONFIG(name, type, value, argument, reload, help) {#name, value, argument, help, reload},
#include "daemon/config.def"
#undef LTH_CONFIG
};
enum { NUM_ROWS = sizeof(rows) / sizeof(rows[0]) };

/* "worker_jobs" as a flag: "worker-jobs". */
static const char *flag_name(const char *name, char out[64])
{
	snprintf(out, 64, "%s", name);
	for (char *c = out; *c; c++)
		*c = *c == '_' ? '-' : *c;
	return out;
}

void lth_config_help(FILE *out)
{
	fprintf(out, "usage: lathed [--config FILE] [--SETTING VALUE ...]\n\n"
		     "The daemon of the Lathe compiler. Each setting is a flag, a line `name = value` of the file,\n"
		     "or an environment variable LATHED_NAME. The file is the --config, $LATHED_CONFIG, "
		     "or\n" LATHE_SYSCONFDIR "/lathe/lathed.conf. --print-config prints them all as such a file,\n"
		     "--print-manual as the manual page.\n\n");
	for (size_t i = 0; i < NUM_ROWS; i++) {
		char flag[64], both[128];
		snprintf(both, sizeof(both), "--%s %s", flag_name(rows[i].name, flag), rows[i].argument);
		fprintf(out, "  %-36s %s%s%s%s\n", both, rows[i].help, rows[i].value[0] ? " (" : "", rows[i].value,
			rows[i].value[0] ? ")" : "");
	}
}

void lth_config_reference(FILE *out)
{
	fprintf(out,
		"# Settings of lathed. Each may also be a flag (--name value) or LATHED_NAME in the environment; flags "
		"win\n"
		"# over the environment, the environment over this file. [restart]: a reload does not change it.\n\n");
	for (size_t i = 0; i < NUM_ROWS; i++)
		fprintf(out, "# %s%s\n# %s = %s\n\n", rows[i].help, rows[i].reload ? "" : " [restart]", rows[i].name,
			rows[i].value);
}

/* --- the manual page, in man(7) */
static void put_roff(FILE *out, const char *text)
{
	for (const char *c = text; *c; c++) {
		if (*c == '\\')
			fputs("\\e", out);
		else if (*c == '-')
			fputs("\\-", out);
		else if ((*c == '.' || *c == '\'') && c == text)
			fprintf(out, "\\&%c", *c);
		else
			fputc(*c, out);
	}
}

static void put_setting(FILE *out, const struct row *row)
{
	char flag[64];
	fputs(".TP\n.BI \\-\\-", out);
	put_roff(out, flag_name(row->name, flag));
	fprintf(out, " \" %s\"\n", row->argument);
	put_roff(out, row->help);
	fputs(".\n", out);
	if (row->value[0]) {
		fputs("Default: ", out);
		put_roff(out, row->value);
		fputs(".\n", out);
	}
	if (!row->reload)
		fputs("Takes effect at the next start.\n", out);
}

void lth_config_manual(FILE *out)
{
	fputs(".TH LATHED 8 \"" PACKAGE_DATE "\" \"Lathe " PACKAGE_VERSION "\" \"System administration\"\n"
	      ".SH NAME\nlathed \\- the daemon of the Lathe compiler\n"
	      ".SH SYNOPSIS\n.B lathed\n[\\fB\\-\\-config\\fP \\fIFILE\\fP] [\\fB\\-\\-\\fISETTING VALUE\\fR ...]\n.br\n"
	      ".B lathed\n\\fB\\-\\-help\\fP | \\fB\\-\\-version\\fP | \\fB\\-\\-print\\-config\\fP | "
	      "\\fB\\-\\-print\\-manual\\fP\n"
	      ".SH DESCRIPTION\n.B lathed\ntakes models of tensor graphs over HTTP, has them compiled by a pool of worker "
	      "processes, and answers with native executables and what they cost in time and memory. "
	      "The interface is described at its address /openapi.yaml.\n.PP\n"
	      "It listens on the loopback address unless told otherwise. Any other address needs credentials: a token "
	      "file, or client certificates.\n"
	      ".SH SETTINGS\nEach is a flag, a line\n.RI ` name \" = \" value '\nof the configuration file (with "
	      "underscores for dashes), or an environment variable LATHED_\\fINAME\\fR. Flags win over the environment, the "
	      "environment over the file. Sizes take B, KiB, MiB, GiB, TiB; times ms, s, min, h.\n",
	      out);
	for (size_t i = 0; i < NUM_ROWS; i++)
		put_setting(out, &rows[i]);
	fputs(".SH SIGNALS\n.TP\n.BR SIGTERM \", \" SIGINT\n"
	      "Drain: new jobs are refused, running ones and answers under way end within drain\\-timeout\\-ms, "
	      "jobs whose address was given out are kept for the next start. A second one is fast.\n"
	      ".TP\n.B SIGHUP\nRead the settings and the token file again. When they do not parse, the old ones stay.\n"
	      ".SH EXIT STATUS\n0 after an orderly end. 2 for a setting that is unknown or not allowed; other codes are those "
	      "of\n.BR lathe (1).\n"
	      ".SH FILES\n.TP\n.I " LATHE_SYSCONFDIR "/lathe/lathed.conf\nThe settings, unless \\-\\-config or "
	      "$LATHED_CONFIG names another file.\n"
	      ".TP\n.I $XDG_STATE_HOME/lathe\nThe state: blobs, results, jobs, and in quarantine/ the problem, request and "
	      "model of what killed workers.\n"
	      ".SH SEE ALSO\n.BR lathe (1)\n",
	      out);
}
