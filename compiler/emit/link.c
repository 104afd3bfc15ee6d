/* Running the linker: GNU ld, whose path was fixed when Lathe was configured, as a child without a shell. See
 * elf_write.h. */
#include "compiler/emit/elf_write.h"

#include "runtime/base/io.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#ifndef LTH_LD
#error "LTH_LD is the linker's path, from configure"
#endif

/* What the linker said, for the diagnostic. */
static void read_words(const char *path, char *out, size_t size)
{
	char *text;
	size_t length;
	struct lth_diag ignored = {0};
	snprintf(out, size, "no message");
	if (lth_read_file(path, 1 << 20, &text, &length, &ignored) != LTH_OK)
		return;
	if (length)
		snprintf(out, size, "%s", text);
	free(text);
}

static enum lth_code wait_for(pid_t child, const char *words_path, struct lth_diag *diag)
{
	int status;
	char words[1024];
	while (waitpid(child, &status, 0) < 0)
		if (errno != EINTR)
			return lth_diag_fail(diag, LTH_IO_ERROR, "linker", NULL, NULL, "waiting failed: %s", strerror(errno));
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return LTH_OK;
	read_words(words_path, words, sizeof(words));
	if (WIFSIGNALED(status))
		return lth_diag_fail(diag, LTH_IO_ERROR, "linker", NULL, NULL, "killed by signal %d: %s", WTERMSIG(status), words);
	return lth_diag_fail(diag, LTH_IO_ERROR, "linker", NULL, NULL, "exit status %d: %s", WEXITSTATUS(status), words);
}

enum lth_code lth_link_run(const char *work_dir, const char *const *arguments, struct lth_diag *diag)
{
	static char locale[] = "LC_ALL=C", name[] = "ld";
	char *environment[] = {locale, NULL}, words_path[4096];
	size_t count = 0;
	while (arguments[count])
		count++;
	char **argv = calloc(count + 2, sizeof(*argv));
	if (!argv)
		return lth_diag_fail(diag, LTH_OUT_OF_MEMORY, "linker", NULL, NULL, "no memory for its arguments");
	argv[0] = name;
	memcpy(argv + 1, arguments, count * sizeof(*argv));
	snprintf(words_path, sizeof(words_path), "%s/ld.log", work_dir);
	posix_spawn_file_actions_t actions;
	pid_t child;
	int error = posix_spawn_file_actions_init(&actions);
	if (error == 0) {
		posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
		posix_spawn_file_actions_addopen(&actions, 1, words_path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
		posix_spawn_file_actions_adddup2(&actions, 1, 2);
		error = posix_spawn(&child, LTH_LD, &actions, NULL, argv, environment);
		posix_spawn_file_actions_destroy(&actions);
	}
	free(argv);
	if (error)
		return lth_diag_fail(diag, LTH_IO_ERROR, LTH_LD, "the linker of binutils", "apt-get install binutils", "%s",
				     strerror(error));
	return wait_for(child, words_path, diag);
}
