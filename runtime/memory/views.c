/* The table of views. */
#include "runtime/memory/views.h"

const struct lth_memory_view lth_memory_views[LTH_NUM_MEMORY_VIEWS] = {
#define LTH_MEMORY_VIEW(artifact, format, function, description) {artifact, format, description, function},
#include "runtime/memory/views.def"
#undef LTH_MEMORY_VIEW
};
