/* A model file on its way to the daemon, and artifacts on their way back. External data is found by scanning the model
 * for the entries that name it ("location" in TensorProto.external_data); only files beside or below the model count.
 */
#include "api/cli/cli.h"
#include "runtime/base/io.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static enum lth_code add_file(struct lth_cli *cli, struct lth_cli_model *model, const char *name, const char *path)
{
	char *bytes;
	size_t size;
	enum lth_code code = lth_read_file(path, 0, &bytes, &size, &cli->diag);
	if (code != LTH_OK)
		return code;
	struct lathe_file *files = realloc(model->files, (model->num_files + 1) * sizeof(*files));
	char *copy = strdup(name);
	if (files)
		model->files = files;
	if (!files || !copy) {
		free(copy);
		free(bytes);
		return lth_diag_fail(&cli->diag, LTH_OUT_OF_MEMORY, path, NULL, NULL, "no memory for it");
	}
	files[model->num_files++] = (struct lathe_file){.name = copy, .bytes = bytes, .size = size};
	return LTH_OK;
}

static bool has_file(const struct lth_cli_model *model, const char *name)
{
	for (size_t i = 0; i < model->num_files; i++)
		if (strcmp(model->files[i].name, name) == 0)
			return true;
	return false;
}

static enum lth_code add_named_files(struct lth_cli *cli, struct lth_cli_model *model)
{
	for (size_t i = 0; i < cli->num_given; i++) {
		char name[1024];
		const char *text = cli->given[i].text;
		if (cli->given[i].option != LTH_CLI_FILE)
			continue;
		size_t length = strcspn(text, "=");
		if (!text[length] || length == 0 || length >= sizeof(name))
			return lth_diag_fail(&cli->diag, LTH_INVALID_OPTION, "--file", "NAME=FILE", NULL, "'%s'", text);
		snprintf(name, sizeof(name), "%.*s", (int)length, text);
		enum lth_code code = add_file(cli, model, name, text + length + 1);
		if (code != LTH_OK)
			return code;
	}
	return LTH_OK;
}

/* A name that stays below the model's folder. */
static bool is_below(const char *name)
{
	if (name[0] == '/' || name[0] == 0)
		return false;
	for (const char *at = name; at; at = strchr(at, '/') ? strchr(at, '/') + 1 : NULL)
		if (strncmp(at, "..", 2) == 0 && (at[2] == 0 || at[2] == '/'))
			return false;
	return true;
}

static enum lth_code add_beside(struct lth_cli *cli, struct lth_cli_model *model, const char *name)
{
	char path[4096];
	const char *slash = strrchr(model->path, '/');
	int folder = slash ? (int)(slash - model->path) + 1 : 0;
	int length = snprintf(path, sizeof(path), "%.*s%s", folder, model->path, name);
	if (has_file(model, name) || !is_below(name) || length < 0 || (size_t)length >= sizeof(path) ||
	    access(path, R_OK) != 0)
		return LTH_OK; /* the compiler will say that it is missing, and for which tensor */
	return add_file(cli, model, name, path);
}

/* StringStringEntryProto {key = "location", value = NAME}: tag, length, bytes; tag, length, bytes. */
static enum lth_code add_external_data(struct lth_cli *cli, struct lth_cli_model *model)
{
	static const char mark[] = "\x0a\x08location\x12";
	const size_t mark_size = sizeof(mark) - 1;
	const char *at = model->bytes, *end = model->bytes + model->size;
	while ((at = memmem(at, (size_t)(end - at), mark, mark_size))) {
		char name[1024];
		size_t length = 0;
		unsigned shift = 0;
		at += mark_size;
		while (at < end && shift < 21) {
			unsigned char byte = (unsigned char)*at++;
			length |= (size_t)(byte & 0x7F) << shift;
			shift += 7;
			if (!(byte & 0x80))
				break;
		}
		if (length == 0 || length >= sizeof(name) || length > (size_t)(end - at))
			continue;
		memcpy(name, at, length);
		name[length] = 0;
		enum lth_code code = strlen(name) == length ? add_beside(cli, model, name) : LTH_OK;
		if (code != LTH_OK)
			return code;
	}
	return LTH_OK;
}

enum lth_code lth_cli_model_read(struct lth_cli *cli, const char *path, struct lth_cli_model *out_model)
{
	struct lth_cli_model model = {.path = path};
	enum lth_code code = lth_read_file(path, 0, &model.bytes, &model.size, &cli->diag);
	if (code == LTH_OK)
		code = add_named_files(cli, &model);
	if (code == LTH_OK)
		code = add_external_data(cli, &model);
	if (code != LTH_OK)
		lth_cli_model_free(&model);
	else
		*out_model = model;
	return code;
}

void lth_cli_model_free(struct lth_cli_model *model)
{
	for (size_t i = 0; i < model->num_files; i++) {
		char *name, *bytes; /* both are ours, whatever the type promises to others */
		memcpy(&name, &model->files[i].name, sizeof(name));
		memcpy(&bytes, &model->files[i].bytes, sizeof(bytes));
		free(name);
		free(bytes);
	}
	free(model->files);
	free(model->bytes);
	*model = (struct lth_cli_model){0};
}

enum lth_code lth_cli_compile_model(struct lth_cli *cli, const struct lth_cli_model *model, const char *query,
				    const char *options, json_t **out_result)
{
	struct lathe_reply reply;
	struct lathe_problem problem;
	struct lathe_compile compile = {
		.model = model->bytes,
		.model_bytes = model->size,
		.files = model->files,
		.num_files = model->num_files,
		.query = query,
		.options = options,
		.no_cache = lth_cli_has(cli, LTH_CLI_NO_CACHE),
		.prefer = lth_cli_has(cli, LTH_CLI_ASYNC) ? "respond-async" : NULL,
	};
	if (lathe_client_compile(cli->client, &compile, &reply, &problem))
		return lth_cli_problem(cli, &problem);
	return lth_cli_parse_reply(cli, &reply, out_result);
}

enum lth_code lth_cli_fetch(struct lth_cli *cli, const json_t *artifact, const char *path)
{
	struct lathe_reply reply;
	struct lathe_problem problem;
	const char *kind = lth_cli_member(artifact, "kind");
	bool program = strcmp(kind, "exe") == 0 || strcmp(kind, "so") == 0;
	enum lth_code code = LTH_OK;
	if (lathe_client_blob(cli->client, lth_cli_member(artifact, "digest"), &reply, &problem))
		return lth_cli_problem(cli, &problem);
	if (strcmp(path, "-") != 0)
		code = lth_write_file(path, reply.body, reply.bytes, program, &cli->diag);
	else if (fwrite(reply.body, 1, reply.bytes, stdout) != reply.bytes)
		code = lth_diag_fail(&cli->diag, LTH_IO_ERROR, "standard output", NULL, NULL, "writing failed");
	lathe_reply_free(&reply);
	return code;
}
