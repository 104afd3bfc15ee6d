/* What the files of emit/ share: the object that holds the image, and patches to linked files. */
#ifndef LTH_EMIT_ELF_WRITE_H
#define LTH_EMIT_ELF_WRITE_H

#include "compiler/emit/emit.h"
#include "runtime/base/buf.h"

/* The constants' section, the last of the address space. Through the linker goes a stand-in of a few bytes. */
#define LTH_CONSTANTS_SECTION ".lathe_constants"
#define LTH_GAP_SECTION ".lathe_gap" /* before it: a few bytes without contents, like .bss */
enum { LTH_PAGE = 4096, LTH_CONSTANTS_STAND_IN = 64 };

/* How the image object is made. */
struct lth_blob_options {
	bool exported;         /* symbols have default visibility */
	bool inline_constants; /* the constants' bytes are part of it; else a stand-in is */
};

/* The relocatable object of runtime/exec/image.h's symbols, without the constants' bytes: those, if inline, belong between
 * `head` and `tail`. blob.c */
void lth_blob_write(const struct lth_emit_input *input, struct lth_blob_options options, struct lth_buf *head,
		    struct lth_buf *tail);

/* Attaches the constants to a linked file, in place. It is trusted output of the linker, yet checked. attach.c */
LTH_MUST_CHECK enum lth_code lth_attach_constants(const char *path, const struct lth_emit_input *input,
						  struct lth_diag *diag);
/* The constants into zeroed memory, or into a file from `base` on: 0, or the errno of what failed. constants.c */
void lth_place_constants(const struct lth_emit_input *input, void *zeroed);
LTH_MUST_CHECK int lth_write_constants(const struct lth_emit_input *input, int fd, uint64_t base);

/* An archive with one member that defines `symbol`. archive.c */
LTH_MUST_CHECK enum lth_code lth_archive_write(const char *member, const char *symbol, const void *data, size_t size,
					       void **out_data, size_t *out_size, struct lth_diag *diag);

/* Runs the linker on `arguments` (NULL-terminated, without the program's own name) in `work_dir`. link.c */
LTH_MUST_CHECK enum lth_code lth_link_run(const char *work_dir, const char *const *arguments, struct lth_diag *diag);

#endif
