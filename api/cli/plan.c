/* lathe plan: buffers from a file to the daemon's planner, and through its independent checker. */
#include "api/cli/cli.h"
#include "runtime/base/io.h"

#include <stdlib.h>
#include <string.h>

static enum lth_code read_all(struct lth_cli *cli, const char *path, char **out_bytes, size_t *out_size)
{
	struct lth_buf all = {0};
	char chunk[65536];
	size_t size;
	if (strcmp(path, "-") != 0)
		return lth_read_file(path, 0, out_bytes, out_size, &cli->diag);
	while ((size = fread(chunk, 1, sizeof(chunk), stdin)) > 0)
		lth_buf_append(&all, chunk, size);
	if (!lth_buf_ok(&all))
		return lth_diag_fail(&cli->diag, LTH_OUT_OF_MEMORY, "standard input", NULL, NULL, "no memory for it");
	*out_bytes = all.data;
	*out_size = all.size;
	return LTH_OK;
}

static bool looks_like_json(const char *bytes, size_t size)
{
	size_t at = 0;
	while (at < size && strchr(" \t\r\n", bytes[at]) && bytes[at])
		at++;
	return at < size && bytes[at] == '{';
}

static enum lth_code ask(struct lth_cli *cli, const char *path, const char *bytes, size_t size, json_t **out_answer)
{
	struct lathe_call call = {
		.method = "POST",
		.path = path,
		.body = bytes ? bytes : "",
		.body_bytes = size,
		.type = looks_like_json(bytes ? bytes : "", size) ? "application/json" : "text/csv",
		.accept = "application/json",
	};
	struct lathe_reply reply;
	struct lathe_problem problem;
	if (lathe_client_call(cli->client, &call, &reply, &problem))
		return lth_cli_problem(cli, &problem);
	return lth_cli_parse_reply(cli, &reply, out_answer);
}

/* Columns of a CSV line: at most `most` of them; returns how many there are. */
static size_t split(char *line, char **columns, size_t most)
{
	size_t count = 0;
	line[strcspn(line, "\r\n")] = 0;
	for (char *at = line; at && count < most;) {
		columns[count++] = at;
		at = strchr(at, ',');
		if (at)
			*at++ = 0;
	}
	return count;
}

/* The CSV with an offset behind every buffer, in the file's order; the planner answers in that order too. */
static enum lth_code placed_csv(struct lth_cli *cli, const char *bytes, const json_t *buffers, struct lth_buf *out)
{
	enum { MOST_COLUMNS = 16 };
	char *copy = strdup(bytes), *rest = NULL, *columns[MOST_COLUMNS];
	size_t row = 0, known = MOST_COLUMNS;
	bool head = true, whole = copy != NULL;
	for (char *line = copy ? strtok_r(copy, "\n", &rest) : NULL; line; line = strtok_r(NULL, "\n", &rest)) {
		size_t count = split(line, columns, MOST_COLUMNS);
		if (count < 2)
			continue;
		for (size_t i = 0; head && i < count; i++)
			if (strcmp(columns[i], "offset") == 0)
				known = i;
		for (size_t i = 0; i < count; i++)
			if (i != known)
				lth_buf_printf(out, "%s,", columns[i]);
		if (head)
			lth_buf_puts(out, "offset\n");
		else
			lth_buf_printf(out, "%lld\n", (long long)lth_cli_int(json_array_get(buffers, row++), "offset"));
		head = false;
	}
	free(copy);
	if (whole && row == json_array_size(buffers))
		return LTH_OK;
	return lth_diag_fail(&cli->diag, LTH_INTERNAL, "plan", NULL, NULL,
			     "%zu buffers in the file and %zu in the answer", row, json_array_size(buffers));
}

/* {"buffers": [...]} with the offsets of the answer. */
static enum lth_code placed_json(struct lth_cli *cli, const char *bytes, size_t size, const json_t *buffers,
				 struct lth_buf *out)
{
	json_t *document = json_loadb(bytes, size, 0, NULL), *row;
	size_t index;
	json_array_foreach(json_object_get(document, "buffers"), index, row)
		json_object_set(row, "offset", json_object_get(json_array_get(buffers, index), "offset"));
	json_object_del(document, "options");
	char *text = json_dumps(document, JSON_INDENT(1));
	if (text)
		lth_buf_puts(out, text);
	free(text);
	json_decref(document);
	return text ? LTH_OK
		    : lth_diag_fail(&cli->diag, LTH_OUT_OF_MEMORY, "plan", NULL, NULL, "no memory to print it");
}

static void print_plan(struct lth_cli *cli, const json_t *answer)
{
	char height[32], bound[32];
	if (lth_cli_has(cli, LTH_CLI_JSON)) {
		lth_cli_print_json(answer);
		return;
	}
	lth_cli_bytes(lth_cli_int(answer, "height"), height, sizeof(height));
	lth_cli_bytes(lth_cli_int(answer, "live_bound_bytes"), bound, sizeof(bound));
	printf("height      %lld (%s)\nlive bound  %lld (%s)\ngap         %.3f %%\ncertificate %s\nstrategy    %s, "
	       "%lld "
	       "nodes%s\nbuffers     %zu\n",
	       (long long)lth_cli_int(answer, "height"), height, (long long)lth_cli_int(answer, "live_bound_bytes"),
	       bound, 100 * lth_cli_real(answer, "gap"), lth_cli_member(answer, "certificate"),
	       lth_cli_member(answer, "strategy"), (long long)lth_cli_int(answer, "nodes"),
	       json_is_true(json_object_get(answer, "cut_short")) ? ", cut short" : "",
	       json_array_size(json_object_get(answer, "buffers")));
}

static enum lth_code check(struct lth_cli *cli, const char *bytes, size_t size)
{
	json_t *answer, *violation;
	size_t index;
	enum lth_code code = ask(cli, "/v1/plan/check", bytes, size, &answer);
	if (code != LTH_OK)
		return code;
	bool valid = json_is_true(json_object_get(answer, "valid"));
	cli->status = valid ? 0 : 1;
	if (lth_cli_has(cli, LTH_CLI_JSON)) {
		lth_cli_print_json(answer);
	} else {
		printf("check       %s, height %lld\n", valid ? "valid" : "NOT VALID",
		       (long long)lth_cli_int(answer, "height"));
		json_array_foreach(json_object_get(answer, "violations"), index, violation)
			printf("  %s: %s\n", lth_cli_member(violation, "kind"), lth_cli_member(violation, "text"));
	}
	json_decref(answer);
	return LTH_OK;
}

static bool has_offsets(const char *bytes, size_t size)
{
	const char *end = memchr(bytes, '\n', size);
	size_t head = end ? (size_t)(end - bytes) : size;
	if (looks_like_json(bytes, size))
		return memmem(bytes, size, "\"offset\"", 8) != NULL;
	return memmem(bytes, head, "offset", 6) != NULL;
}

static enum lth_code plan(struct lth_cli *cli, const char *bytes, size_t size)
{
	struct lth_buf path = {0}, query = {0}, placed = {0};
	json_t *answer = NULL;
	const char *output = lth_cli_value(cli, LTH_CLI_OUTPUT);
	enum lth_code code = lth_cli_query(cli, &query);
	lth_buf_printf(&path, "/v1/plan%s%s", query.size ? "?" : "", lth_buf_text(&query));
	if (code == LTH_OK)
		code = ask(cli, lth_buf_text(&path), bytes, size, &answer);
	if (code == LTH_OK && (!output || strcmp(output, "-") != 0))
		print_plan(cli, answer);
	const json_t *buffers = json_object_get(answer, "buffers");
	if (code == LTH_OK && (output || lth_cli_has(cli, LTH_CLI_CHECK)))
		code = looks_like_json(bytes, size) ? placed_json(cli, bytes, size, buffers, &placed)
						    : placed_csv(cli, bytes, buffers, &placed);
	if (code == LTH_OK && output && strcmp(output, "-") == 0)
		fwrite(lth_buf_text(&placed), 1, placed.size, stdout);
	else if (code == LTH_OK && output)
		code = lth_write_file(output, lth_buf_text(&placed), placed.size, false, &cli->diag);
	if (code == LTH_OK && lth_cli_has(cli, LTH_CLI_CHECK))
		code = check(cli, lth_buf_text(&placed), placed.size);
	json_decref(answer);
	lth_buf_free(&path);
	lth_buf_free(&query);
	lth_buf_free(&placed);
	return code;
}

/* With --check, a file that has offsets already is a plan to be checked; one without is planned first. */
enum lth_code lth_cli_plan(struct lth_cli *cli)
{
	char *bytes;
	size_t size;
	enum lth_code code = read_all(cli, cli->arguments[0], &bytes, &size);
	if (code != LTH_OK)
		return code;
	bool planned = size && has_offsets(bytes, size);
	if (lth_cli_has(cli, LTH_CLI_CHECK) && planned && !lth_cli_has(cli, LTH_CLI_STRATEGY))
		code = check(cli, bytes, size);
	else
		code = plan(cli, bytes, size);
	free(bytes);
	return code;
}
