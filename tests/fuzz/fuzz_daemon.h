/* What the daemon's fuzz targets share: a description as workers send it, with an option of every type. */
#ifndef LTH_FUZZ_DAEMON_H
#define LTH_FUZZ_DAEMON_H

#include "daemon/description.h"

#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void load_description(struct lth_description *description)
{
	static const char table[] =
		"{\"build\":\"b\",\"passes\":[{\"name\":\"FoldConstant\"},{\"name\":\"MemoryPlan\"}],\"options\":["
		"{\"path\":\"opt_level\",\"type\":\"int\",\"min\":0,\"max\":3,\"default\":2},"
		"{\"path\":\"disabled_passes\",\"type\":\"list\",\"singular\":\"disabled_pass\",\"values_from\":"
		"\"passes\",\"set\":true},"
		"{\"path\":\"dims\",\"type\":\"dims\",\"singular\":\"dim\"},{\"path\":\"memory.seed\",\"type\":\"int\"},"
		"{\"path\":\"measure.dims\",\"type\":\"map\"},{\"path\":\"ratio\",\"type\":\"number\"},"
		"{\"path\":\"variants\",\"type\":\"variants\"},{\"path\":\"target\",\"type\":\"any\"},"
		"{\"path\":\"strategy\",\"type\":\"enum\",\"values\":[\"exact\",\"best\"]},"
		"{\"path\":\"verify\",\"type\":\"bool\"},{\"path\":\"timeout_ms\",\"type\":\"int\",\"key\":false}]}";
	struct lth_diag diag = {0};
	if (!description->root && lth_description_load(description, table, sizeof(table) - 1, &diag) != LTH_OK)
		abort();
}

#endif
