/* lathe blob, jobs, cancel: the daemon's store and its jobs. */
#include "api/cli/cli.h"
#include "runtime/base/io.h"

#include <stdlib.h>
#include <string.h>

static enum lth_code put_blobs(struct lth_cli *cli)
{
	enum lth_code code = LTH_OK;
	json_t *list = lth_cli_has(cli, LTH_CLI_JSON) ? json_array() : NULL;
	for (size_t i = 1; i < cli->num_arguments && code == LTH_OK; i++) {
		char *bytes, digest[LATHE_DIGEST_TEXT];
		size_t size;
		struct lathe_problem problem;
		code = lth_read_file(cli->arguments[i], 0, &bytes, &size, &cli->diag);
		if (code != LTH_OK)
			break;
		if (lathe_client_upload(cli->client, bytes, size, digest, &problem))
			code = lth_cli_problem(cli, &problem);
		free(bytes);
		lth_cli_clear_progress(cli);
		if (code == LTH_OK && list)
			json_array_append_new(list, json_pack("{s:s, s:s, s:I}", "file", cli->arguments[i], "digest",
							      digest, "bytes", (json_int_t)size));
		else if (code == LTH_OK)
			printf("%s  %s\n", digest, cli->arguments[i]);
	}
	if (code == LTH_OK && list)
		lth_cli_print_json(list);
	json_decref(list);
	return code;
}

enum lth_code lth_cli_blob(struct lth_cli *cli)
{
	if (strcmp(cli->arguments[0], "put") == 0)
		return put_blobs(cli);
	if (strcmp(cli->arguments[0], "get") != 0 || cli->num_arguments != 2)
		return lth_diag_fail(&cli->diag, LTH_INVALID_OPTION, "lathe blob", "put FILE... or get DIGEST", NULL,
				     "'%s'", cli->arguments[0]);
	const char *output = lth_cli_value(cli, LTH_CLI_OUTPUT);
	json_t *artifact = json_pack("{s:s, s:s}", "digest", cli->arguments[1], "kind", "");
	enum lth_code code = lth_cli_fetch(cli, artifact, output ? output : "-");
	json_decref(artifact);
	return code;
}

void lth_cli_job_row(struct lth_cli_table *table, const json_t *job)
{
	double ms = lth_cli_real(job, "ms");
	lth_cli_cell(table, "%s", lth_cli_member(job, "id"));
	lth_cli_cell(table, "%s", lth_cli_member(job, "kind"));
	lth_cli_cell(table, "%s", lth_cli_member(job, "state"));
	lth_cli_cell(table, "%s",
		     *lth_cli_member(job, "problem") ? lth_cli_member(job, "problem") : lth_cli_member(job, "stage"));
	lth_cli_cell(table, ms < 0 ? "-" : "%.1f", ms);
	lth_cli_cell(table, "%.19s", lth_cli_member(job, "model"));
	lth_cli_cell(table, "%s", lth_cli_member(job, "client"));
}

void lth_cli_job_head(struct lth_cli_table *table)
{
	static const char *const names[] = {"job", "kind", "state", "stage", "ms", "model", "client"};
	table->columns = sizeof(names) / sizeof(names[0]);
	for (size_t i = 0; i < table->columns; i++)
		lth_cli_cell(table, "%s", names[i]);
}

static enum lth_code list_jobs(struct lth_cli *cli)
{
	struct lth_buf path = {0}, query = {0};
	json_t *document = NULL, *job;
	size_t index;
	enum lth_code code = lth_cli_query(cli, &query);
	lth_buf_printf(&path, "/v1/jobs%s%s", query.size ? "?" : "", lth_buf_text(&query));
	if (code == LTH_OK)
		code = lth_cli_get(cli, lth_buf_text(&path), &document);
	if (code == LTH_OK && lth_cli_has(cli, LTH_CLI_JSON)) {
		lth_cli_print_json(document);
	} else if (code == LTH_OK) {
		struct lth_cli_table table = {0};
		lth_cli_job_head(&table);
		json_array_foreach(json_object_get(document, "jobs"), index, job)
			lth_cli_job_row(&table, job);
		lth_cli_table_print(&table, stdout);
	}
	json_decref(document);
	lth_buf_free(&path);
	lth_buf_free(&query);
	return code;
}

/* A path with an id that may be anything; what is no part of a path is refused. */
static enum lth_code job_path(struct lth_cli *cli, const char *id, char *out, size_t size)
{
	if (!*id || strlen(id) > 64 || id[strspn(id, "abcdefghijklmnopqrstuvwxyz0123456789-")])
		return lth_diag_fail(&cli->diag, LTH_INVALID_OPTION, "job", "an id as lathe jobs lists them", NULL,
				     "'%s'", id);
	snprintf(out, size, "/v1/jobs/%s", id);
	return LTH_OK;
}

enum lth_code lth_cli_jobs(struct lth_cli *cli)
{
	char path[128];
	json_t *document;
	if (!cli->num_arguments)
		return list_jobs(cli);
	enum lth_code code = job_path(cli, cli->arguments[0], path, sizeof(path));
	if (code == LTH_OK && lth_cli_has(cli, LTH_CLI_WAIT)) {
		size_t length = strlen(path);
		snprintf(path + length, sizeof(path) - length, "?wait=%lld",
			 (long long)lth_cli_count(cli, LTH_CLI_WAIT, 0));
	}
	if (code == LTH_OK)
		code = lth_cli_get(cli, path, &document);
	if (code != LTH_OK)
		return code;
	lth_cli_print_json(document);
	json_decref(document);
	return LTH_OK;
}

enum lth_code lth_cli_cancel(struct lth_cli *cli)
{
	for (size_t i = 0; i < cli->num_arguments; i++) {
		char path[128];
		struct lathe_reply reply;
		struct lathe_problem problem;
		enum lth_code code = job_path(cli, cli->arguments[i], path, sizeof(path));
		if (code != LTH_OK)
			return code;
		struct lathe_call call = {.method = "DELETE", .path = path};
		json_t *job;
		if (lathe_client_call(cli->client, &call, &reply, &problem))
			return lth_cli_problem(cli, &problem);
		code = lth_cli_parse_reply(cli, &reply, &job);
		if (code != LTH_OK)
			return code;
		if (lth_cli_has(cli, LTH_CLI_JSON))
			lth_cli_print_json(job);
		else
			printf("%s: %s\n", cli->arguments[i], lth_cli_member(job, "state"));
		json_decref(job);
	}
	return LTH_OK;
}
