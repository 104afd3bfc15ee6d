/* Options of a variant to what the stages need. */
#include "compiler/driver/variant.h"

#include "compiler/emit/emit.h"

#include <string.h>

const json_t *lth_variant_option(const struct lth_variant *variant, enum lth_option_id id)
{
	return lth_option_get(variant->options, variant->defaults, id);
}

int64_t lth_variant_int(const struct lth_variant *variant, enum lth_option_id id)
{
	return json_integer_value(lth_variant_option(variant, id));
}

bool lth_variant_wants(const struct lth_variant *variant, const char *artifact)
{
	const json_t *list = lth_variant_option(variant, LTH_OPTION_ID_ARTIFACTS);
	for (size_t i = 0; i < json_array_size(list); i++)
		if (strcmp(json_string_value(json_array_get(list, i)), artifact) == 0)
			return true;
	return false;
}

bool lth_variant_needs_code(const struct lth_variant *variant)
{
	const json_t *list = lth_variant_option(variant, LTH_OPTION_ID_ARTIFACTS);
	bool needs = json_array_size(list) == 0 || lth_variant_int(variant, LTH_OPTION_ID_MEASURE_RUNS) > 0 ||
		     json_array_size(json_object_get(variant->request->options, "variants")) > 0;
	for (size_t i = 0; i < json_array_size(list); i++)
		needs |= lth_emit_kind_by_name(json_string_value(json_array_get(list, i))) != LTH_NUM_EMITS;
	return needs;
}

static enum lth_code resolve_passes(struct lth_variant *variant)
{
	const json_t *lists[2] = {lth_variant_option(variant, LTH_OPTION_ID_REQUIRED),
				  lth_variant_option(variant, LTH_OPTION_ID_DISABLED)};
	const char **names[2];
	size_t counts[2];
	for (int k = 0; k < 2; k++) {
		counts[k] = json_array_size(lists[k]);
		names[k] = lth_arena_array(variant->arena, counts[k] + 1, sizeof(char *));
		if (!names[k])
			return lth_diag_fail(variant->diag, LTH_OUT_OF_MEMORY, "options", NULL, NULL, "no memory");
		for (size_t i = 0; i < counts[k]; i++)
			names[k][i] = json_string_value(json_array_get(lists[k], i));
	}
	return lth_pass_select(variant->opt_level, names[0], counts[0], names[1], counts[1], &variant->passes,
			       variant->diag);
}

static enum lth_code resolve_target(struct lth_variant *variant)
{
	const json_t *target = lth_variant_option(variant, LTH_OPTION_ID_TARGET);
	struct lth_codegen_request request = {0};
	if (json_is_string(target)) {
		request.cpu = json_string_value(target);
	} else {
		request.triple = json_string_value(json_object_get(target, "triple"));
		request.cpu = json_string_value(json_object_get(target, "cpu"));
		request.features = json_string_value(json_object_get(target, "features"));
	}
	enum lth_code code = lth_codegen_target_resolve(&request, &variant->target, variant->diag);
	if (code != LTH_OK)
		return code;
	variant->lower_target = (struct lth_lower_target){.vector_bytes = variant->target.vector_bytes,
							  .registers = variant->target.registers,
							  .fma = variant->target.fma,
							  .dot4 = variant->target.vnni,
							  .l1_bytes = 32 * 1024,
							  .l2_bytes = 1024 * 1024};
	return LTH_OK;
}

/* Search nodes of the exact strategy by level: some milliseconds at 2, as long as it takes within reason at 3. */
static int64_t default_effort(unsigned opt_level)
{
	return opt_level >= 3 ? 20000000 : 20000;
}

enum lth_code lth_variant_resolve(struct lth_variant *variant)
{
	variant->opt_level = (unsigned)lth_variant_int(variant, LTH_OPTION_ID_OPT_LEVEL);
	variant->threads = lth_variant_int(variant, LTH_OPTION_ID_THREADS);
	variant->verify = json_is_true(lth_variant_option(variant, LTH_OPTION_ID_VERIFY));
	struct lth_memory_options *memory = &variant->memory_options;
	const char *strategy = json_string_value(lth_variant_option(variant, LTH_OPTION_ID_STRATEGY));
	if (!lth_option_given(variant->options, LTH_OPTION_ID_STRATEGY) && variant->opt_level < 2)
		strategy = "greedy_by_size";
	memory->strategy = lth_plan_strategy_by_name(strategy);
	memory->effort = lth_variant_int(variant, LTH_OPTION_ID_EFFORT);
	memory->effort = memory->effort ? memory->effort : default_effort(variant->opt_level);
	memory->seed = (uint64_t)lth_variant_int(variant, LTH_OPTION_ID_SEED);
	memory->time_limit_ms = lth_variant_int(variant, LTH_OPTION_ID_TIME_LIMIT);
	memory->budget_bytes = lth_variant_int(variant, LTH_OPTION_ID_BUDGET);
	memory->budget_total_bytes = lth_variant_int(variant, LTH_OPTION_ID_BUDGET_TOTAL);
	memory->source_order =
		strcmp(json_string_value(lth_variant_option(variant, LTH_OPTION_ID_ORDER)), "source") == 0;
	memory->check = variant->verify;
	memory->alignment = lth_variant_int(variant, LTH_OPTION_ID_ALIGNMENT);
	if (memory->alignment & (memory->alignment - 1))
		return lth_diag_fail(variant->diag, LTH_INVALID_OPTION, "memory.alignment", "a power of two", NULL,
				     "%lld", (long long)memory->alignment);
	enum lth_code code = resolve_passes(variant);
	return code == LTH_OK ? resolve_target(variant) : code;
}
