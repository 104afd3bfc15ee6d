/* The tables and their lookup. See history.h. */
#include "compiler/ops/history.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

const struct lth_op_history lth_op_histories[] = {
#define LTH_HISTORY(domain, name, removed, versions) {domain, name, removed, versions},
#include "compiler/ops/history.def"
#undef LTH_HISTORY
};
const uint32_t lth_num_op_histories = sizeof(lth_op_histories) / sizeof(lth_op_histories[0]);

static const struct {
	const char *domain, *name;
	uint32_t cases;
} tested[] = {
#define LTH_CASES(domain, name, cases) {domain, name, cases},
#include "compiler/ops/cases.def"
#undef LTH_CASES
};

const struct lth_op_history *lth_op_history(const char *domain, const char *name)
{
	uint32_t low = 0, high = lth_num_op_histories;
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		const struct lth_op_history *row = &lth_op_histories[middle];
		int order = strcmp(domain, row->domain);
		order = order ? order : strcmp(name, row->name);
		if (order == 0)
			return row;
		if (order < 0)
			high = middle;
		else
			low = middle + 1;
	}
	return NULL;
}

const char *lth_op_versions(const char *domain, const char *name)
{
	const struct lth_op_history *history = lth_op_history(domain, name);
	return history ? history->versions : strcmp(domain, "lathe") == 0 ? "" : "1";
}

int64_t lth_op_first_version(const struct lth_op_history *history)
{
	return strtoll(history->versions, NULL, 10);
}

uint32_t lth_op_cases(const char *domain, const char *name)
{
	for (size_t i = 0; i < sizeof(tested) / sizeof(tested[0]); i++)
		if (strcmp(tested[i].domain, domain) == 0 && strcmp(tested[i].name, name) == 0)
			return tested[i].cases;
	return 0;
}
