/* Checks of evaluated shapes: extents inside storages, ranges of symbols, guards. */
#include "runtime/base/checked.h"
#include "runtime/exec/signature.h"

#include <stdio.h>

/* Adds (dim - 1) * stride to the lowest or highest element's place. */
static bool extend(int64_t dim, int64_t stride, int64_t *low, int64_t *high)
{
	int64_t reach;
	if (!lth_mul_i64(dim - 1, stride, &reach))
		return false;
	return reach < 0 ? lth_add_i64(*low, reach, low) : lth_add_i64(*high, reach, high);
}

static const char *name_of(const struct lth_program *program, uint32_t tensor)
{
	const char *name = program->tensors[tensor].name;
	name = name ? name : program->storages[program->tensors[tensor].storage].name;
	return name ? name : "unnamed";
}

enum lth_code lth_tensor_check(const struct lth_program *program, uint32_t tensor, const int64_t *values,
			       int64_t limit, struct lth_diag *diag)
{
	const struct lth_tensor *t = &program->tensors[tensor];
	int64_t low = 0, high = 0, bytes, offset = values[t->offset];
	bool empty = false, fits = true;
	char place[256];
	for (uint32_t axis = 0; axis < t->rank; axis++) {
		int64_t dim = values[t->dims[axis]];
		if (dim < 0) {
			snprintf(place, sizeof(place), "tensor %u (%.100s)", tensor, name_of(program, tensor));
			return lth_diag_fail(diag, LTH_RUNTIME_ERROR, place, "dimensions of 0 or more", NULL,
					     "%lld at axis %u", (long long)dim, axis);
		}
		empty = empty || dim == 0;
		fits = fits && (dim == 0 || extend(dim, values[t->strides[axis]], &low, &high));
	}
	if (empty)
		return LTH_OK;
	unsigned bits = lth_dtype_bits(t->dtype);
	fits = fits && high < INT64_MAX && lth_dtype_bytes(t->dtype, high + 1, &bytes) && low > INT64_MIN / 16 &&
	       (bits >= 8 || low == 0) && lth_add_i64(offset, bytes, &bytes) && bytes <= limit &&
	       lth_add_i64(offset, low * (int64_t)(bits / 8), &low) && low >= 0;
	if (fits)
		return LTH_OK;
	snprintf(place, sizeof(place), "tensor %u (%.100s)", tensor, name_of(program, tensor));
	return lth_diag_fail(diag, LTH_RUNTIME_ERROR, place, NULL, "report it: the compiler's bound was too small",
			     "an extent outside its storage of %lld bytes", (long long)limit);
}

enum lth_code lth_symbol_check(const struct lth_symbol *symbol, int64_t value, enum lth_code code, const char *place,
			       struct lth_diag *diag)
{
	char expected[256], max[32] = "";
	if (value >= symbol->min && value <= symbol->max && value % symbol->multiple == 0)
		return LTH_OK;
	if (symbol->max != INT64_MAX)
		snprintf(max, sizeof(max), "%lld", (long long)symbol->max);
	if (symbol->multiple > 1)
		snprintf(expected, sizeof(expected), "%.100s in [%lld, %s], a multiple of %lld", symbol->name,
			 (long long)symbol->min, max[0] ? max : "inf", (long long)symbol->multiple);
	else
		snprintf(expected, sizeof(expected), "%.100s in [%lld, %s]", symbol->name, (long long)symbol->min,
			 max[0] ? max : "inf");
	return lth_diag_fail(diag, code, place, expected,
			     symbol->source == LTH_SOURCE_INPUT ? "a compile chooses the range (dims)" : NULL, "%lld",
			     (long long)value);
}

enum lth_code lth_guard_check(const struct lth_instr *instr, uint32_t position, const int64_t *values,
			      struct lth_diag *diag)
{
	static const char *const words[LTH_NUM_RELATIONS] = {"equal to", "at most", "a divisor of"};
	int64_t a = values[instr->ints[0]], b = values[instr->ints[1]];
	if (lth_relation_holds(instr->relation, a, b))
		return LTH_OK;
	char place[300], expected[64];
	if (instr->node)
		snprintf(place, sizeof(place), "node '%.200s'", instr->node);
	else
		snprintf(place, sizeof(place), "instruction %u", position);
	snprintf(expected, sizeof(expected), "%s %lld", words[instr->relation], (long long)b);
	return lth_diag_fail(diag, LTH_RUNTIME_ERROR, place, expected, NULL, "%s%s%lld", instr->text ? instr->text : "",
			     instr->text ? ": " : "", (long long)a);
}
