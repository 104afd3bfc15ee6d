/* What commands ask the daemon: the connection, problems, queries, progress on a terminal. */
#include "api/cli/cli.h"
#include "runtime/base/io.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum lth_code lth_cli_problem(struct lth_cli *cli, const struct lathe_problem *problem)
{
	enum lth_code code = lth_code_by_slug(problem->type);
	if (code == LTH_NUM_CODES || code == LTH_OK)
		code = LTH_INTERNAL;
	return lth_diag_fail(&cli->diag, code, problem->place, problem->expected, problem->advice, "%s",
			     problem->found);
}

/* One line on a terminal that is written over: uploads, waiting, a busy daemon. */
static void show_progress(void *context, const struct lathe_progress *p)
{
	struct lth_cli *cli = context;
	char sent[32], all[32];
	if (p->retry_after > 0)
		fprintf(stderr, "\r\033[Kthe daemon is busy; again in %.0f s", p->retry_after);
	else if (p->send_bytes > (1 << 20) && p->sent_bytes < p->send_bytes) {
		lth_cli_bytes((int64_t)p->sent_bytes, sent, sizeof(sent));
		lth_cli_bytes((int64_t)p->send_bytes, all, sizeof(all));
		fprintf(stderr, "\r\033[Ksending: %s of %s", sent, all);
	} else if (p->seconds > 1)
		fprintf(stderr, "\r\033[Kwaiting: %.0f s", p->seconds);
	else
		return;
	cli->progress_shown = true;
}

static enum lth_code create_client(struct lth_cli *cli, const char *server, bool progress, struct lathe_client **out)
{
	struct lathe_client_settings settings = {
		.server = server,
		.token = lth_cli_value(cli, LTH_CLI_TOKEN),
		.ca_file = lth_cli_value(cli, LTH_CLI_CA),
		.cert_file = lth_cli_value(cli, LTH_CLI_CERT),
		.key_file = lth_cli_value(cli, LTH_CLI_KEY),
		.retries = (int)lth_cli_count(cli, LTH_CLI_RETRIES, -1),
		.context = cli,
	};
	struct lathe_problem problem;
	if (progress)
		settings.on_progress = show_progress;
	return lathe_client_create(&settings, out, &problem) ? lth_cli_problem(cli, &problem) : LTH_OK;
}

enum lth_code lth_cli_connect(struct lth_cli *cli)
{
	const char *server = lth_cli_value(cli, LTH_CLI_SERVER);
	enum lth_code code = LTH_OK;
	if (lth_cli_has(cli, LTH_CLI_LOCAL))
		code = lth_cli_local_start(cli, &server);
	if (code == LTH_OK)
		code = create_client(cli, server, isatty(2), &cli->client);
	if (code == LTH_OK && lth_cli_has(cli, LTH_CLI_VERBOSE))
		fprintf(stderr, "daemon: %s\n", lathe_client_server(cli->client));
	return code;
}

enum lth_code lth_cli_another_client(struct lth_cli *cli, struct lathe_client **out_client)
{
	return create_client(cli, lathe_client_server(cli->client), false, out_client);
}

enum lth_code lth_cli_parse_reply(struct lth_cli *cli, struct lathe_reply *reply, json_t **out_json)
{
	json_error_t error;
	json_t *json = json_loadb(reply->body ? reply->body : "", reply->bytes, JSON_DECODE_ANY, &error);
	lathe_reply_free(reply);
	lth_cli_clear_progress(cli);
	if (!json)
		return lth_diag_fail(&cli->diag, LTH_INTERNAL, lathe_client_server(cli->client), "JSON",
				     "is this the address of a lathed?", "%s", error.text);
	*out_json = json;
	return LTH_OK;
}

enum lth_code lth_cli_get(struct lth_cli *cli, const char *path, json_t **out_json)
{
	struct lathe_call call = {.method = "GET", .path = path, .accept = "application/json"};
	struct lathe_reply reply;
	struct lathe_problem problem;
	if (lathe_client_call(cli->client, &call, &reply, &problem))
		return lth_cli_problem(cli, &problem);
	return lth_cli_parse_reply(cli, &reply, out_json);
}

static void escape(struct lth_buf *out, const char *text)
{
	for (; *text; text++) {
		unsigned char c = (unsigned char)*text;
		if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || strchr("-._~:,/", c))
			lth_buf_putc(out, (char)c);
		else
			lth_buf_printf(out, "%%%02X", c);
	}
}

void lth_cli_query_add(struct lth_buf *query, const char *name, const char *value)
{
	if (query->size)
		lth_buf_putc(query, '&');
	escape(query, name);
	lth_buf_putc(query, '=');
	escape(query, value);
}

/* Whether the same option is given again behind this place, and is one of a single value. */
static bool is_superseded(const struct lth_cli *cli, size_t place)
{
	enum lth_cli_option option = cli->given[place].option;
	bool again = false;
	for (size_t i = place + 1; i < cli->num_given; i++)
		again |= cli->given[i].option == option;
	return again && lth_cli_options_table[option].kind != LTH_CLI_KIND_LIST;
}

enum lth_code lth_cli_query(struct lth_cli *cli, struct lth_buf *out)
{
	for (size_t i = 0; i < cli->num_given; i++) {
		const struct lth_cli_option_row *row = &lth_cli_options_table[cli->given[i].option];
		const char *text = cli->given[i].text;
		char number[32], name[128];
		if (!row->query || !text || is_superseded(cli, i))
			continue;
		if (row->kind == LTH_CLI_KIND_BYTES) {
			snprintf(number, sizeof(number), "%lld",
				 (long long)lth_cli_count(cli, cli->given[i].option, 0));
			text = number;
		}
		if (row->query[0]) {
			lth_cli_query_add(out, row->query, text);
			continue;
		}
		size_t length = strcspn(text, "="); /* the option carries its name */
		if (!text[length] || length == 0 || length >= sizeof(name))
			return lth_diag_fail(&cli->diag, LTH_INVALID_OPTION, "--option", "PATH=VALUE",
					     "lathe options lists them", "'%s'", text);
		snprintf(name, sizeof(name), "%.*s", (int)length, text);
		lth_cli_query_add(out, name, text + length + 1);
	}
	return lth_buf_ok(out)
		       ? LTH_OK
		       : lth_diag_fail(&cli->diag, LTH_OUT_OF_MEMORY, "request", NULL, NULL, "no memory for it");
}
