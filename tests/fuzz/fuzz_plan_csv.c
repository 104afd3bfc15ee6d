/* Fuzz target of the planner's CSV reader: whatever is read is written, read again and written the same; small tables are
 * planned, and the plan is checked. */
#include "compiler/memory/plan/plan.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void round_trip(const struct lth_plan_table *table)
{
	const struct lth_plan_reading reading = {.alignment = 1};
	struct lth_plan_table again = {0};
	struct lth_diag diag = {0};
	char *first = NULL, *second = NULL;
	enum lth_code code = lth_plan_write_csv(table, table->offsets, &first, &diag);
	assert(code == LTH_OK);
	code = lth_plan_read_csv(first, strlen(first), &reading, &again, &diag);
	assert(code == LTH_OK);
	code = lth_plan_write_csv(&again, again.offsets, &second, &diag);
	assert(code == LTH_OK && strcmp(first, second) == 0);
	free(first);
	free(second);
	lth_plan_table_free(&again);
}

static void plan(const struct lth_plan_table *table)
{
	const struct lth_plan_options options = {.strategy = LTH_PLAN_EXACT, .effort = 200};
	struct lth_plan_result result = {0};
	struct lth_plan_check check = {0};
	struct lth_diag diag = {0};
	if (lth_plan(table->buffers, table->count, &options, &result, &diag) != LTH_OK)
		return;
	enum lth_code code = lth_plan_check(table->buffers, result.offsets, table->count, &check, &diag);
	assert(code == LTH_OK && check.num_violations == 0 && check.height == result.height);
	lth_plan_result_free(&result);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct lth_plan_reading reading = {.alignment = 1, .offsets_are_fixed = true};
	struct lth_plan_table table = {0};
	struct lth_diag diag = {0};
	if (lth_plan_read_csv((const char *)data, size, &reading, &table, &diag) != LTH_OK)
		return 0;
	round_trip(&table);
	if (table.count <= 64)
		plan(&table);
	lth_plan_table_free(&table);
	return 0;
}
