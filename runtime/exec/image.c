/* The image of the executable that this runtime is linked into. See image.h. */
#include "runtime/exec/image.h"

struct lth_image lth_image_self(void)
{
	struct lth_image image = {
		.program = lth_image_program,
		.program_bytes = lth_image_program_bytes,
		.constants = lth_image_constants,
		.constants_bytes = lth_image_constants_bytes,
		.kernels = lth_image_kernels,
		.num_kernels = lth_image_num_kernels,
		.info = lth_image_info,
		.info_bytes = lth_image_info_bytes,
	};
	return image;
}
