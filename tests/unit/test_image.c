/* Loads a linked executable by dlopen and lathe.h alone, as a user's program does: argv[1] is its path. */
#include "api/lathe.h"

#include <stdlib.h>

static int failures;

static void expect(int ok, const char *what, const struct lathe_error *error)
{
	if (ok)
		return;
	fprintf(stderr, "failed: %s: %s\n", what, error->text);
	failures++;
}

static void check_model(struct lathe_executable *model)
{
	struct lathe_error error = {0, ""};
	struct lathe_context *context = NULL;
	float x[8] = {0, 0, 0, 0, 10, 10, 10, 10};
	struct lathe_tensor in = {LATHE_F32, 2, {2, 4}, x, sizeof(x)}, out = {0, 0, {0}, NULL, 0};
	const struct lathe_description *d = lathe_describe(model);
	struct lathe_memory memory;
	struct lathe_counters counters;
	int64_t n = 100, most = 0;
	expect(strcmp(d->name, "fixture") == 0 && d->info_bytes == 13, "description", &error);
	expect(lathe_memory(model, &n, &memory, &error) == 0 && memory.arena_bytes == 1600, "memory", &error);
	expect(lathe_fit(model, &n, 0, 1600, &most, &error) == 0 && most == 100, "fit", &error);
	expect(lathe_context_create(model, NULL, &context, &error) == 0, "context", &error);
	expect(lathe_run(context, &in, 1, &out, 1, &error) == 0, "run", &error);
	expect(out.dims[0] == 2 && ((float *)out.data)[7] == 18, "values", &error);
	lathe_release(context, &out);
	in.dims[0] = 2000;
	expect(lathe_run(context, &in, 1, &out, 1, &error) == LATHE_ERROR_INPUT, "wrong input", &error);
	lathe_counters(context, &counters);
	expect(counters.runs == 1, "counters", &error);
	expect(lathe_profile(context, NULL, 0) == 0, "profile", &error);
	uint64_t bytes = 0;
	expect(lathe_program(model, &bytes) && bytes > 0, "program", &error);
	const struct lathe_api *table = LATHE_TABLE(model);
	struct lathe_api older = *table; /* an executable from before there was such a function */
	older.bytes = offsetof(struct lathe_api, program);
	((struct lathe_object *)(void *)model)->api = &older;
	expect(!lathe_program(model, &bytes), "program of an older executable", &error);
	((struct lathe_object *)(void *)model)->api = table;
	lathe_context_destroy(&context);
}

int main(int argc, char **argv)
{
	struct lathe_error error = {0, ""};
	struct lathe_executable *model = NULL;
	char *bytes = malloc(1 << 24);
	FILE *file = argc > 1 ? fopen(argv[1], "rb") : NULL;
	if (!bytes || !file)
		return 1;
	size_t size = fread(bytes, 1, 1 << 24, file);
	fclose(file);
	if (lathe_load(argv[1], &model, &error) == 0)
		check_model(model);
	else
		expect(0, "load", &error);
	lathe_unload(&model);
	if (lathe_load_memory(bytes, size, &model, &error) == 0)
		check_model(model);
	else
		expect(0, "load from memory", &error);
	lathe_unload(&model);
	expect(lathe_load("/nonexistent.so", &model, &error) == LATHE_ERROR_IO, "a path that is none", &error);
	free(bytes);
	char *name = strrchr(argv[1], '/');
	if (name) {
		*name++ = 0;
		expect(chdir(argv[1]) == 0 && lathe_load(name, &model, &error) == 0, "a name alone", &error);
		lathe_unload(&model);
	}
	return failures != 0;
}
