/* From kernels, constants and a program to a native file. Linking is GNU ld as a child, in the compile's own work folder,
 * with a fixed argument vector and a runtime that was linked ahead when Lathe was built (rt-so.o, rt-exe.o; rt-media.o), so that the
 * machine needs neither compiler nor headers. The constants never pass through the linker: it reserves their place in the
 * address space, and their bytes are packed and attached to its output. Equal inputs give equal bytes; no path or time gets in.
 *
 * Thread rule: one artifact of a work folder at a time. */
#ifndef LTH_EMIT_EMIT_H
#define LTH_EMIT_EMIT_H

#include "runtime/base/diag.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum lth_emit_kind {
	LTH_EMIT_SO,      /* shared object: dlopen and lathe.h suffice */
	LTH_EMIT_EXE,     /* program */
	LTH_EMIT_OBJECT,  /* one relocatable object: runtime, kernels, constants */
	LTH_EMIT_ARCHIVE, /* the same object as a static library */
	LTH_EMIT_KERNELS, /* shared object without runtime that exports the image's symbols (image.h); for tests */
	LTH_NUM_EMITS
};

struct lth_emit_object {
	const void *data; /* ELF relocatable */
	size_t size;
};

/* A run of constants; between pieces are zeros. */
struct lth_emit_piece {
	const void *data;
	const struct lth_pack *pack; /* how data is laid out on its way (compiler/lower/templates/pack.h); NULL: as it is */
	size_t offset, size;
};

/* Everything is borrowed. */
struct lth_emit_input {
	const void *program; /* as lth_program_encode wrote it */
	size_t program_size;
	const struct lth_emit_piece *constants; /* in order, not overlapping */
	uint32_t num_constants;
	size_t constants_size; /* of all, with what lies between */
	const char *info; /* JSON for `inspect` */
	size_t info_size;
	const char *const *kernels; /* hex identities, in the order of program->kernels */
	uint32_t num_kernels;
	const struct lth_emit_object *objects; /* define "lth_k_" + identity of each */
	uint32_t num_objects;
	unsigned threads; /* that pack and write constants, at least 1 */
	bool media; /* the program needs liblathe-media (runtime/media/media.h) */
	const char *work_dir;
};

/* `*out_data` is malloc'ed and the caller's. LTH_IO_ERROR with the linker's own words when it fails. */
LTH_MUST_CHECK enum lth_code lth_emit_artifact(enum lth_emit_kind kind, const struct lth_emit_input *input,
					       void **out_data, size_t *out_size, struct lth_diag *diag);

/* The same into the file `path` of the work folder, where it stands complete or not at all. Constants go into it from
 * where they lie: 100 MB of weights are written once and never lie in memory a second time. */
LTH_MUST_CHECK enum lth_code lth_emit_file(enum lth_emit_kind kind, const struct lth_emit_input *input,
					   const char *path, struct lth_diag *diag);

/* The kind of an artifact's name ("so", "exe", "obj", "a"), or LTH_NUM_EMITS: then its bytes are a text of the
 * caller's. */
enum lth_emit_kind lth_emit_kind_by_name(const char *name);

/* Where rt-so.o, rt-exe.o or rt-media.o is: in $LATHE_LIBEXEC, else `lathe` beside the running program, else the build
 * folder it stands in, else where configure put it. */
void lth_emit_runtime_file(const char *file, char *out, size_t size);

#endif
