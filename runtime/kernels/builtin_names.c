/* Names of the C kernels. A file apart from their table of functions, so that the compiler can read and write programs
 * without linking the kernels. */
#include "runtime/kernels/builtin.h"
#include "runtime/media/media.h"

#include <assert.h>
#include <string.h>

static const char *const names[LTH_NUM_BUILTINS] = {
#define LTH_BUILTIN(name, text, function, description) [LTH_BUILTIN_##name] = text,
#include "runtime/kernels/builtins.def"
#undef LTH_BUILTIN
};

const char *lth_builtin_text(enum lth_builtin builtin)
{
	assert(builtin < LTH_NUM_BUILTINS);
	return names[builtin];
}

enum lth_builtin lth_builtin_by_text(const char *text)
{
	for (int i = 0; i < LTH_NUM_BUILTINS; i++)
		if (strcmp(names[i], text) == 0)
			return (enum lth_builtin)i;
	return LTH_NUM_BUILTINS;
}

const char *lth_builtin_library(enum lth_builtin builtin)
{
	bool media = builtin == LTH_BUILTIN_IMAGE_DECODE || builtin == LTH_BUILTIN_REGEX_FULL_MATCH;
	return media ? LATHE_MEDIA_SONAME : NULL;
}
