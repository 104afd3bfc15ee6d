/* The image of the executable that this runtime is linked into, and the symbol it exports. Only rt-so.o and rt-exe.o
 * have this file. */
#include "runtime/exec/image.h"
#include "runtime/exec/query.h"

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

static int open_self(struct lathe_executable **out_executable, struct lathe_error *error)
{
	struct lth_image image = lth_image_self();
	return lth_query_open(&image, lathe_query(LATHE_ABI_VERSION), out_executable, error);
}

const struct lathe_api *lathe_query(uint32_t version)
{
	static const struct lathe_api api = {LTH_QUERY_FUNCTIONS, .open = open_self};
	return version == LATHE_ABI_VERSION ? &api : NULL;
}
