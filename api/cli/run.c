/* lathe run: the program around a compiled model, for a shared object. */
#include "api/cli/cli.h"
#include "api/cli/executable.h"
#include "runtime/base/io.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* `path` is what messages say, `file` what is mapped. */
static enum lth_code load(struct lth_cli *cli, const char *path, const char *file, lathe_query_fn *out_query)
{
	void *library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
	if (!library) {
		const char *why = dlerror();
		size_t length = strlen(file);
		if (why && strncmp(why, file, length) == 0 && strncmp(why + length, ": ", 2) == 0)
			why += length + 2; /* the place says which file */
		bool program = why && strstr(why, "position-independent");
		return lth_diag_fail(&cli->diag, LTH_BAD_EXECUTABLE, path, "a compiled model (.so)",
				     program ? "a program is run as it is" : NULL, "%s", why ? why : "something else");
	}
	void *symbol = dlsym(library, "lathe_query");
	if (!symbol)
		return lth_diag_fail(&cli->diag, LTH_BAD_EXECUTABLE, path, "a compiled model (.so)", NULL,
				     "a library without lathe_query");
	memcpy(out_query, &symbol, sizeof(*out_query)); /* ISO C has no cast from an object's pointer to a function's */
	return LTH_OK;
}

enum lth_code lth_cli_load(struct lth_cli *cli, const char *path, lathe_query_fn *out_query)
{
	char resolved[PATH_MAX];
	if (!realpath(path, resolved)) /* without a slash, dlopen would search elsewhere */
		return lth_diag_fail(&cli->diag, LTH_IO_ERROR, path, "a compiled model (.so)", NULL, "no such file");
	return load(cli, path, resolved, out_query);
}

enum lth_code lth_cli_load_bytes(struct lth_cli *cli, const char *name, const void *bytes, size_t size,
				 lathe_query_fn *out_query)
{
	char file[64];
	int fd = memfd_create("lathe", MFD_CLOEXEC);
	enum lth_code code;
	if (fd < 0 || !lth_write_full(fd, bytes, size)) {
		code = lth_diag_fail(&cli->diag, LTH_IO_ERROR, name, NULL, NULL, "a file in memory: %s",
				     strerror(errno));
	} else {
		snprintf(file, sizeof(file), "/proc/self/fd/%d", fd);
		code = load(cli, name, file, out_query);
	}
	if (fd >= 0 && code != LTH_OK)
		close(fd); /* else it stays: a second library behind the same number would be taken for this one */
	return code;
}

/* The first word that is no option's is the model; the rest is the program's own command line. */
enum lth_code lth_cli_run(struct lth_cli *cli)
{
	lathe_query_fn query;
	char name[PATH_MAX + 16];
	if (cli->num_rest < 2 || strcmp(cli->rest[1], "--help") == 0 || strcmp(cli->rest[1], "-h") == 0) {
		struct lth_buf text = {0};
		lth_cli_help(cli->command, &text);
		fputs(lth_buf_text(&text), cli->num_rest < 2 ? stderr : stdout);
		lth_buf_free(&text);
		return cli->num_rest < 2
			       ? lth_diag_fail(&cli->diag, LTH_INVALID_OPTION, "lathe run", "FILE.so", NULL, "no model")
			       : LTH_OK;
	}
	const char *path = cli->rest[1];
	enum lth_code code = lth_cli_load(cli, path, &query);
	if (code != LTH_OK)
		return code;
	snprintf(name, sizeof(name), "lathe run %s", path);
	cli->rest[1] = name;
	cli->status = lth_exe_main(cli->num_rest - 1, cli->rest + 1, query);
	return LTH_OK;
}
