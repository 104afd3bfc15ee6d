/* The image: what the compiler's last step puts into an executable, and how the runtime linked beside it finds it.
 *
 * The compiler emits relocatable objects for the kernels and one "blob" object that defines the symbols below, all with
 * hidden visibility; they are linked with rt-so.o or rt-exe.o, in which image.c refers to them. Sections:
 *   lth_image_program, lth_image_constants, lth_image_info and the three sizes: .rodata (constants may have a section
 *   of their own, as long as it is read only and allocated);
 *   lth_image_kernels: .data.rel.ro, since its entries are relocated when the executable is loaded.
 *
 * Tests and liblathe make the same descriptor by hand. Thread rule: immutable. */
#ifndef LTH_EXEC_IMAGE_H
#define LTH_EXEC_IMAGE_H

#include "runtime/program/kernel_abi.h"

#include <stddef.h>
#include <stdint.h>

/* The descriptor that the loader takes; everything is borrowed and must outlive what is loaded from it. */
struct lth_image {
	const void *program;            /* as lth_program_encode wrote it; any alignment */
	uint64_t program_bytes;
	const void *constants;          /* aligned to LTH_IMAGE_ALIGNMENT; may be NULL when constants_bytes is 0 */
	uint64_t constants_bytes;       /* equal to program->constants_bytes */
	const lathe_kernel_fn *kernels; /* in the order of program->kernels */
	uint64_t num_kernels;           /* equal to program->num_kernels */
	const char *info;               /* JSON text for `inspect`, not interpreted by the runtime */
	uint64_t info_bytes;            /* without a terminator */
};

enum { LTH_IMAGE_ALIGNMENT = 64 };

#define LTH_IMAGE_SYMBOL extern __attribute__((visibility("hidden")))

/* Defined by the blob object. Sizes are objects of eight bytes, not absolute symbols. A table or blob that is empty is
 * still defined (at any address) with a size of 0. */
LTH_IMAGE_SYMBOL const unsigned char lth_image_program[];
LTH_IMAGE_SYMBOL const uint64_t lth_image_program_bytes;
LTH_IMAGE_SYMBOL const unsigned char lth_image_constants[];
LTH_IMAGE_SYMBOL const uint64_t lth_image_constants_bytes;
LTH_IMAGE_SYMBOL const lathe_kernel_fn lth_image_kernels[];
LTH_IMAGE_SYMBOL const uint64_t lth_image_num_kernels;
LTH_IMAGE_SYMBOL const char lth_image_info[];
LTH_IMAGE_SYMBOL const uint64_t lth_image_info_bytes;

/* The descriptor of the executable this code is linked into. image.c, only in rt-so.o and rt-exe.o. */
struct lth_image lth_image_self(void);

#endif
