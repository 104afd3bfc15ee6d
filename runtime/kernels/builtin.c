/* The table of C kernels, and what they share: reading attributes, reporting errors. */
#include "runtime/kernels/builtin.h"

#include <assert.h>
#include <locale.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const lth_builtin_fn functions[LTH_NUM_BUILTINS] = {
#define LTH_BUILTIN(name, text, function, description) [LTH_BUILTIN_##name] = lth_builtin_##function,
#include "runtime/kernels/builtins.def"
#undef LTH_BUILTIN
};

lth_builtin_fn lth_builtin_function(enum lth_builtin builtin)
{
	assert(builtin < LTH_NUM_BUILTINS);
	return functions[builtin];
}

/* The text behind "key=", or NULL. */
static const char *find(const struct lth_builtin_call *call, const char *key)
{
	size_t length = strlen(key);
	for (const char *at = call->attributes; at && *at;) {
		if (strncmp(at, key, length) == 0 && at[length] == '=')
			return at + length + 1;
		at = strchr(at, ';');
		at = at ? at + 1 : NULL;
	}
	return NULL;
}

int64_t lth_builtin_int(const struct lth_builtin_call *call, const char *key, int64_t fallback)
{
	const char *text = find(call, key);
	return text ? (int64_t)strtoll(text, NULL, 10) : fallback;
}

double lth_builtin_real(const struct lth_builtin_call *call, const char *key, double fallback)
{
	const char *text = find(call, key);
	if (!text)
		return fallback;
	locale_t plain = newlocale(LC_ALL_MASK, "C", (locale_t)0); /* the program's may have another decimal point */
	double value = plain ? strtod_l(text, NULL, plain) : strtod(text, NULL);
	if (plain)
		freelocale(plain);
	return value;
}

bool lth_builtin_text_attribute(const struct lth_builtin_call *call, const char *key, char *out, size_t size)
{
	const char *text = find(call, key);
	if (!text)
		return false;
	size_t length = strcspn(text, ";");
	if (length >= size)
		return false;
	memcpy(out, text, length);
	out[length] = 0;
	return true;
}

struct lth_builtin_tensor lth_builtin_input(const struct lth_builtin_call *call, uint32_t index)
{
	uint32_t at = call->num_outputs + index;
	return at < call->num_tensors ? call->tensors[at] : (struct lth_builtin_tensor){0};
}

int lth_builtin_fail(struct lth_builtin_call *call, enum lth_kernel_error error, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	vsnprintf(call->message, sizeof(call->message), format, args);
	va_end(args);
	return (int)error;
}
