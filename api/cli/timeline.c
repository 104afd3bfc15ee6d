/* lathe timeline: the memory plan that a compiled model carries, as a picture, trace events or a list. */
#include "api/cli/cli.h"
#include "api/cli/executable.h"
#include "runtime/base/io.h"
#include "runtime/memory/views.h"

#include <string.h>

static const struct lth_memory_view *find_view(const char *format, size_t length)
{
	for (int i = 0; i < LTH_NUM_MEMORY_VIEWS; i++)
		if (strlen(lth_memory_views[i].format) == length &&
		    memcmp(lth_memory_views[i].format, format, length) == 0)
			return &lth_memory_views[i];
	return NULL;
}

/* What --format says; else the suffix of the file; else the picture. */
static enum lth_code choose_view(struct lth_cli *cli, const char *output, const struct lth_memory_view **out_view)
{
	const char *format = lth_cli_value(cli, LTH_CLI_FORMAT), *suffix = output ? strrchr(output, '.') : NULL;
	const struct lth_memory_view *view = &lth_memory_views[0], *found = NULL;
	if (format)
		view = find_view(format, strlen(format));
	else if (lth_cli_has(cli, LTH_CLI_JSON))
		view = find_view("json", 4);
	else if (suffix && (found = find_view(suffix + 1, strlen(suffix + 1))))
		view = found;
	if (!view) {
		struct lth_buf known = {0};
		for (int i = 0; i < LTH_NUM_MEMORY_VIEWS; i++)
			lth_buf_printf(&known, "%s%s", i ? ", " : "one of: ", lth_memory_views[i].format);
		enum lth_code code = lth_diag_fail(&cli->diag, LTH_INVALID_OPTION, "--format", lth_buf_text(&known),
						   NULL, "'%s'", format);
		lth_buf_free(&known);
		return code;
	}
	*out_view = view;
	return LTH_OK;
}

enum lth_code lth_cli_timeline(struct lth_cli *cli)
{
	const char *output = lth_cli_value(cli, LTH_CLI_OUTPUT);
	const struct lth_memory_view *form = NULL;
	struct lth_cli_view view = {0};
	struct lth_buf text = {0};
	enum lth_code code = choose_view(cli, output, &form);
	if (code == LTH_OK)
		code = lth_cli_view_open(cli, cli->arguments[0], &view);
	if (code == LTH_OK)
		code = form->write(view.program, view.symbols, &text, &cli->diag);
	if (code == LTH_OK && !lth_buf_ok(&text))
		code = lth_diag_fail(&cli->diag, LTH_OUT_OF_MEMORY, "timeline", NULL, NULL, "no memory to write it");
	if (code == LTH_OK && output && strcmp(output, "-") != 0)
		code = lth_write_file(output, lth_buf_text(&text), text.size, false, &cli->diag);
	else if (code == LTH_OK)
		fwrite(lth_buf_text(&text), 1, text.size, stdout);
	lth_cli_view_close(&view);
	lth_buf_free(&text);
	return code;
}
