/* Points of the box that a program's symbols span: the hint, the top, and a fixed sequence of samples between, the same
 * in every compile. Thread rule: reads the program only. */
#include "compiler/memory/memory.h"

#include "runtime/base/checked.h"
#include "runtime/base/hash.h"

void lth_symbols_at_hint(const struct lth_program *program, int64_t *out)
{
	for (uint32_t i = 0; i < program->num_symbols; i++)
		out[i] = program->symbols[i].hint;
}

bool lth_symbols_at_top(const struct lth_program *program, int64_t *out)
{
	bool bounded = true;
	for (uint32_t i = 0; i < program->num_symbols; i++) {
		const struct lth_symbol *symbol = &program->symbols[i];
		bounded &= symbol->max != INT64_MAX || symbol->source == LTH_SOURCE_DATA;
		out[i] = symbol->max == INT64_MAX ? symbol->hint : symbol->max;
	}
	return bounded;
}

/* Where there is no top, planning looks this many times the hint far. */
enum { OPEN_REACH = 16 };

static int64_t top_of(const struct lth_symbol *symbol)
{
	int64_t reach;
	if (symbol->max != INT64_MAX)
		return symbol->max;
	return lth_mul_i64(symbol->hint, OPEN_REACH, &reach) ? reach : symbol->hint;
}

/* Value `k` of those that the symbol can have. Without sign: one that data bind may span more than an int64 counts. */
static int64_t value_at(const struct lth_symbol *symbol, uint64_t k)
{
	int64_t first = lth_ceildiv_i64(symbol->min, symbol->multiple) * symbol->multiple;
	return (int64_t)((uint64_t)first + k * (uint64_t)symbol->multiple);
}

static uint64_t values_of(const struct lth_symbol *symbol)
{
	int64_t first = lth_ceildiv_i64(symbol->min, symbol->multiple) * symbol->multiple, top = top_of(symbol);
	return top < first ? 1 : ((uint64_t)top - (uint64_t)first) / (uint64_t)symbol->multiple + 1;
}

/* A place in the range by 1/65536ths. Odd samples crowd towards the low end, where shapes differ most in kind. */
static uint64_t random_place(uint64_t number, uint32_t symbol, uint64_t values)
{
	uint64_t part = lth_hash_u64(number * 2654435761u + symbol, 0x5eed) & 0xffff;
	if (number & 1)
		part = part * part >> 16;
	return values < UINT64_C(1) << 40 ? values * part >> 16 : (values >> 16) * part;
}

void lth_symbols_sample(const struct lth_program *program, uint64_t number, int64_t *out)
{
	for (uint32_t i = 0; i < program->num_symbols; i++) {
		const struct lth_symbol *symbol = &program->symbols[i];
		uint64_t values = values_of(symbol), place = 0;
		bool odd = i & 1;
		switch (number) {
		case 0:
			out[i] = symbol->hint;
			continue;
		case 1:
			place = values - 1;
			break;
		case 2:
			break;
		case 3:
			place = values / 2;
			break;
		case 4:
			place = odd ? values - 1 : 0;
			break;
		case 5:
			place = odd ? 0 : values - 1;
			break;
		default:
			place = random_place(number, i, values);
		}
		out[i] = value_at(symbol, place);
	}
}
