/* Artifacts: writes the linker's inputs into the work folder, links, and reads the result back. See emit.h. */
#include "compiler/emit/emit.h"

#include "compiler/emit/elf_write.h"
#include "runtime/base/io.h"
#include "runtime/base/place.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifndef LTH_LIBEXEC
#error "LTH_LIBEXEC is the folder of the prelinked runtime, from configure"
#endif

/* The constants come last, in a segment of their own; the dynamic symbols of an executable are this one. */
static const char script_sections[] =
	"SECTIONS { " LTH_GAP_SECTION " : { KEEP(*(" LTH_GAP_SECTION ")) } "
	LTH_CONSTANTS_SECTION " : ALIGN(CONSTANT(MAXPAGESIZE)) { KEEP(*(" LTH_CONSTANTS_SECTION ")) } } INSERT AFTER .bss;\n";
static const char script_exports[] = "VERSION { { global: lathe_query; local: *; }; }\n";

static const char *const kind_names[LTH_NUM_EMITS] = {
	[LTH_EMIT_SO] = "so",
	[LTH_EMIT_EXE] = "exe",
	[LTH_EMIT_OBJECT] = "obj",
	[LTH_EMIT_ARCHIVE] = "a",
};

enum lth_emit_kind lth_emit_kind_by_name(const char *name)
{
	for (int kind = 0; kind < LTH_NUM_EMITS; kind++)
		if (kind_names[kind] && strcmp(kind_names[kind], name) == 0)
			return (enum lth_emit_kind)kind;
	return LTH_NUM_EMITS;
}

void lth_emit_runtime_file(const char *file, char *out, size_t size)
{
	/* Installed beside the worker; where configure said; in a build folder, from one or two folders down. */
	static const char *const below[] = {"lathe/", "../runtime/exec/", "../../runtime/exec/", "../runtime/media/",
					    "../../runtime/media/"};
	const char *set = getenv("LATHE_LIBEXEC");
	if (set && *set) {
		snprintf(out, size, "%s/%s", set, file);
		return;
	}
	for (size_t k = 0; k < sizeof(below) / sizeof(below[0]); k++) {
		lth_own_file(below[k], file, out, size);
		if (*out && access(out, R_OK) == 0)
			return;
	}
	snprintf(out, size, "%s/%s", LTH_LIBEXEC, file);
}

/* The argument vector grows in one arena-like block of strings. */
struct arguments {
	const char **list;
	uint32_t count, capacity;
	bool failed;
};

static void add(struct arguments *arguments, const char *word)
{
	if (arguments->failed || arguments->count + 1 >= arguments->capacity) {
		arguments->failed = true;
		return;
	}
	arguments->list[arguments->count++] = word;
}

struct job {
	enum lth_emit_kind kind;
	const struct lth_emit_input *input;
	struct lth_diag *diag;
	char (*paths)[4096]; /* of the kernels' objects, then the fixed files below */
	struct arguments arguments;
};

enum fixed_file { FILE_BLOB, FILE_SCRIPT, FILE_OUT, FILE_RUNTIME, FILE_MEDIA, FILE_LIBC, FILE_LIBM, NUM_FIXED_FILES };

static char *path_of(const struct job *job, enum fixed_file file)
{
	return job->paths[job->input->num_objects + file];
}

static enum lth_code set_path(struct job *job, char path[4096], const char *folder, const char *name)
{
	int length = snprintf(path, 4096, "%s/%s", folder, name);
	if (length < 0 || length >= 4096)
		return lth_diag_fail(job->diag, LTH_IO_ERROR, folder, "a shorter path", NULL, "%d bytes", length);
	return LTH_OK;
}

/* Writes three pieces as one file. */
static enum lth_code write_pieces(struct job *job, const char *path, const struct lth_emit_object pieces[3])
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	bool ok = fd >= 0;
	for (int k = 0; k < 3 && ok; k++)
		ok = pieces[k].size == 0 || lth_write_full(fd, pieces[k].data, pieces[k].size);
	int error = errno;
	if (fd >= 0 && close(fd) != 0 && ok) {
		ok = false;
		error = errno;
	}
	if (!ok)
		return lth_diag_fail(job->diag, error == ENOSPC ? LTH_DISK_FULL : LTH_IO_ERROR, path, NULL, NULL, "%s",
				     strerror(error));
	return LTH_OK;
}

static enum lth_code write_kernels(struct job *job)
{
	for (uint32_t k = 0; k < job->input->num_objects; k++) {
		char name[32];
		snprintf(name, sizeof(name), "k%u.o", k);
		enum lth_code code = set_path(job, job->paths[k], job->input->work_dir, name);
		const struct lth_emit_object pieces[3] = {job->input->objects[k]};
		if (code == LTH_OK)
			code = write_pieces(job, job->paths[k], pieces);
		if (code != LTH_OK)
			return code;
	}
	return LTH_OK;
}

static bool is_relocatable(enum lth_emit_kind kind)
{
	return kind == LTH_EMIT_OBJECT || kind == LTH_EMIT_ARCHIVE;
}

static enum lth_code write_blob(struct job *job)
{
	struct lth_buf head = {0}, tail = {0};
	struct lth_blob_options options = {
		.exported = job->kind == LTH_EMIT_KERNELS,
		.inline_constants = is_relocatable(job->kind),
	};
	lth_blob_write(job->input, options, &head, &tail);
	enum lth_code code = LTH_OK;
	void *constants = NULL;
	if (options.inline_constants) {
		constants = calloc(1, job->input->constants_size + 1);
		if (constants)
			lth_place_constants(job->input, constants);
	}
	if (!lth_buf_ok(&head) || !lth_buf_ok(&tail) || (options.inline_constants && !constants))
		code = lth_diag_fail(job->diag, LTH_OUT_OF_MEMORY, "executable", NULL, NULL, "no memory for the image");
	const struct lth_emit_object pieces[3] = {
		{head.data, head.size},
		{constants, options.inline_constants ? job->input->constants_size : 0},
		{tail.data, tail.size},
	};
	if (code == LTH_OK)
		code = write_pieces(job, path_of(job, FILE_BLOB), pieces);
	free(constants);
	lth_buf_free(&head);
	lth_buf_free(&tail);
	return code;
}

static enum lth_code write_script(struct job *job)
{
	bool exports = job->kind == LTH_EMIT_SO;
	const struct lth_emit_object pieces[3] = {
		{script_sections, sizeof(script_sections) - 1},
		{script_exports, exports ? sizeof(script_exports) - 1 : 0},
	};
	return write_pieces(job, path_of(job, FILE_SCRIPT), pieces);
}

/* Of the files that were linked ahead: which this job takes. */
static bool is_linked(const struct job *job, enum fixed_file file)
{
	if (file == FILE_LIBC || file == FILE_LIBM)
		return !is_relocatable(job->kind);
	return job->kind != LTH_EMIT_KERNELS && (file == FILE_RUNTIME || job->input->media);
}

static enum lth_code set_paths(struct job *job)
{
	const char *folder = job->input->work_dir;
	enum lth_code code = set_path(job, path_of(job, FILE_BLOB), folder, "image.o");
	if (code == LTH_OK)
		code = set_path(job, path_of(job, FILE_SCRIPT), folder, "image.ld");
	if (code == LTH_OK)
		code = set_path(job, path_of(job, FILE_OUT), folder, "out");
	lth_emit_runtime_file(job->kind == LTH_EMIT_EXE ? "rt-exe.o" : "rt-so.o", path_of(job, FILE_RUNTIME), 4096);
	lth_emit_runtime_file("rt-media.o", path_of(job, FILE_MEDIA), 4096);
	lth_emit_runtime_file("stub-libc.so.6", path_of(job, FILE_LIBC), 4096);
	lth_emit_runtime_file("stub-libm.so.6", path_of(job, FILE_LIBM), 4096);
	for (enum fixed_file file = FILE_RUNTIME; file < NUM_FIXED_FILES && code == LTH_OK; file++)
		if (is_linked(job, file) && access(path_of(job, file), R_OK) != 0)
			code = lth_diag_fail(job->diag, LTH_IO_ERROR, path_of(job, file), "the runtime, linked ahead",
					     "install Lathe whole, or set LATHE_LIBEXEC to its folder", "%s",
					     strerror(errno));
	return code;
}

static void add_options(struct job *job)
{
	static const char *const shared[] = {"-shared", "-z", "nodelete", NULL};
	static const char *const program[] = {"-pie", "--dynamic-linker", "/lib64/ld-linux-x86-64.so.2", NULL};
	static const char *const relocatable[] = {"-r", NULL};
	static const char *const common[] = {"-z", "noexecstack", "-z", "relro", "-z", "now", "-z", "max-page-size=4096",
					     "--hash-style=gnu", "--eh-frame-hdr", "-T", NULL};
	const char *const *own = is_relocatable(job->kind) ? relocatable : job->kind == LTH_EMIT_EXE ? program : shared;
	for (; *own; own++)
		add(&job->arguments, *own);
	add(&job->arguments, "--build-id=none");
	add(&job->arguments, "--strip-debug");
	if (job->kind == LTH_EMIT_SO || job->kind == LTH_EMIT_EXE)
		add(&job->arguments, "--gc-sections");
	for (const char *const *word = common; !is_relocatable(job->kind) && *word; word++)
		add(&job->arguments, *word);
	if (!is_relocatable(job->kind))
		add(&job->arguments, path_of(job, FILE_SCRIPT));
}

static enum lth_code link_all(struct job *job)
{
	add_options(job);
	add(&job->arguments, "-o");
	add(&job->arguments, path_of(job, FILE_OUT));
	if (is_linked(job, FILE_RUNTIME))
		add(&job->arguments, path_of(job, FILE_RUNTIME));
	if (is_linked(job, FILE_MEDIA))
		add(&job->arguments, path_of(job, FILE_MEDIA));
	add(&job->arguments, path_of(job, FILE_BLOB));
	for (uint32_t k = 0; k < job->input->num_objects; k++)
		add(&job->arguments, job->paths[k]);
	if (!is_relocatable(job->kind)) {
		add(&job->arguments, "--as-needed");
		add(&job->arguments, path_of(job, FILE_LIBM));
		add(&job->arguments, path_of(job, FILE_LIBC));
	}
	if (job->arguments.failed)
		return lth_diag_fail(job->diag, LTH_INTERNAL, "linker", NULL, NULL, "too many arguments");
	return lth_link_run(job->input->work_dir, job->arguments.list, job->diag);
}

static void remove_files(const struct job *job)
{
	for (uint32_t k = 0; k < job->input->num_objects; k++)
		unlink(job->paths[k]);
	unlink(path_of(job, FILE_BLOB));
	unlink(path_of(job, FILE_SCRIPT));
	unlink(path_of(job, FILE_OUT));
}

/* Links; the file is at FILE_OUT then, until end_job. */
static enum lth_code run_job(struct job *job)
{
	enum lth_code code = set_paths(job);
	if (code == LTH_OK)
		code = write_kernels(job);
	if (code == LTH_OK)
		code = write_blob(job);
	if (code == LTH_OK)
		code = write_script(job);
	if (code == LTH_OK)
		code = link_all(job);
	if (code == LTH_OK && !is_relocatable(job->kind))
		code = lth_attach_constants(path_of(job, FILE_OUT), job->input, job->diag);
	return code;
}

static enum lth_code begin_job(struct job *job)
{
	uint32_t num_paths = job->input->num_objects + NUM_FIXED_FILES;
	job->paths = calloc(num_paths, sizeof(*job->paths));
	job->arguments.capacity = num_paths + 48;
	job->arguments.list = calloc(job->arguments.capacity, sizeof(*job->arguments.list));
	if (job->paths && job->arguments.list)
		return LTH_OK;
	return lth_diag_fail(job->diag, LTH_OUT_OF_MEMORY, "executable", NULL, NULL,
			     "no memory for the linker's arguments");
}

static void end_job(struct job *job)
{
	if (job->paths)
		remove_files(job);
	free(job->paths);
	free(job->arguments.list);
}

static enum lth_code read_result(struct job *job, void **out_data, size_t *out_size)
{
	char *linked;
	size_t size;
	enum lth_code code = lth_read_file(path_of(job, FILE_OUT), 0, &linked, &size, job->diag);
	if (code != LTH_OK)
		return code;
	if (job->kind != LTH_EMIT_ARCHIVE) {
		*out_data = linked;
		*out_size = size;
		return LTH_OK;
	}
	code = lth_archive_write("model.o", "lathe_query", linked, size, out_data, out_size, job->diag);
	free(linked);
	return code;
}

enum lth_code lth_emit_artifact(enum lth_emit_kind kind, const struct lth_emit_input *input, void **out_data,
				size_t *out_size, struct lth_diag *diag)
{
	struct job job = {.kind = kind, .input = input, .diag = diag};
	enum lth_code code = begin_job(&job);
	if (code == LTH_OK)
		code = run_job(&job);
	if (code == LTH_OK)
		code = read_result(&job, out_data, out_size);
	end_job(&job);
	return code;
}

enum lth_code lth_emit_file(enum lth_emit_kind kind, const struct lth_emit_input *input, const char *path,
			    struct lth_diag *diag)
{
	struct job job = {.kind = kind, .input = input, .diag = diag};
	assert(kind != LTH_EMIT_ARCHIVE); /* made in memory */
	enum lth_code code = begin_job(&job);
	if (code == LTH_OK)
		code = run_job(&job);
	if (code == LTH_OK && rename(path_of(&job, FILE_OUT), path) != 0)
		code = lth_diag_fail(diag, LTH_IO_ERROR, path, NULL, NULL, "%s", strerror(errno));
	end_job(&job);
	return code;
}
