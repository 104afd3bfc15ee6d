/* Inputs of a compiled program: values of symbols, files, and random tensors. */
#include "runtime/base/checked.h"
#include "runtime/base/hash.h"
#include "runtime/exe/exe.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int find_symbol(const struct lathe_description *d, const char *name, size_t length)
{
	for (uint32_t i = 0; i < d->num_symbols; i++)
		if (!d->symbols[i].from_data && strlen(d->symbols[i].name) == length &&
		    memcmp(d->symbols[i].name, name, length) == 0)
			return (int)i;
	return -1;
}

/* The names that would have been right, for a message. */
static void list_symbols(const struct lathe_description *d, char *out, size_t size)
{
	size_t used = (size_t)snprintf(out, size, "one of");
	bool any = false;
	for (uint32_t i = 0; i < d->num_symbols && used < size; i++) {
		if (d->symbols[i].from_data)
			continue;
		used += (size_t)snprintf(out + used, size - used, "%s %s", any ? "," : "", d->symbols[i].name);
		any = true;
	}
	if (!any)
		snprintf(out, size, "none: every dimension of this model is fixed");
}

static void describe_range(const struct lathe_symbol *s, char *out, size_t size)
{
	char top[32] = "inf", multiple[48] = "";
	if (s->max != INT64_MAX)
		snprintf(top, sizeof(top), "%lld", (long long)s->max);
	if (s->multiple > 1)
		snprintf(multiple, sizeof(multiple), ", a multiple of %lld", (long long)s->multiple);
	snprintf(out, size, "%s in [%lld, %s]%s", s->name, (long long)s->min, top, multiple);
}

enum lth_code lth_exe_bind_dims(struct lth_exe *exe, const struct lth_exe_options *options, struct lth_diag *diag)
{
	const struct lathe_description *d = exe->description;
	for (uint32_t i = 0; i < d->num_symbols; i++)
		exe->symbols[i] = d->symbols[i].hint;
	for (uint32_t i = 0; i < options->num_dims; i++) {
		const char *text = options->dims[i], *equals = strrchr(text, '=');
		char *end, expected[400];
		errno = 0;
		long long value = equals ? strtoll(equals + 1, &end, 10) : 0;
		if (!equals || !equals[1] || *end || errno)
			return lth_diag_fail(diag, LTH_INVALID_OPTION, "--dim", "NAME=VALUE", NULL, "'%s'", text);
		int symbol = find_symbol(d, text, (size_t)(equals - text));
		if (symbol < 0) {
			list_symbols(d, expected, sizeof(expected));
			return lth_diag_fail(diag, LTH_INVALID_OPTION, "--dim", expected, NULL, "'%.*s'",
					     (int)(equals - text), text);
		}
		const struct lathe_symbol *s = &d->symbols[symbol];
		if (value < s->min || value > s->max || value % s->multiple != 0) {
			describe_range(s, expected, sizeof(expected));
			return lth_diag_fail(diag, LTH_INVALID_OPTION, "--dim", expected, NULL, "%lld", value);
		}
		exe->symbols[symbol] = value;
	}
	return LTH_OK;
}

enum lth_code lth_exe_read_input(struct lth_exe *exe, uint32_t input, const char *path, struct lth_diag *diag)
{
	const char *type = exe->description->input_types[input];
	struct lth_host_tensor *file = &exe->files[input];
	struct lathe_value *value = &exe->values[input];
	lth_host_tensor_free(file);
	lth_value_free(value);
	enum lth_code code = type ? lth_value_read_file(path, type, value, diag) : lth_host_read_file(path, file, diag);
	if (code != LTH_OK)
		return code;
	exe->inputs[input] = type ? (struct lathe_tensor){.dtype = LATHE_OBJECT, .data = value, .bytes = sizeof(*value)}
				  : lth_tensor_of_host(file);
	return LTH_OK;
}

static bool is_given(const struct lth_exe *exe, uint32_t input)
{
	return exe->inputs[input].data != NULL;
}

/* The input that NAME=FILE names, and the file; -1 when the text does not begin with an input's name. */
static int named_input(const struct lathe_description *d, const char *text, const char **out_file)
{
	for (uint32_t i = 0; i < d->num_inputs; i++) {
		size_t length = strlen(d->inputs[i].name);
		if (length && strncmp(text, d->inputs[i].name, length) == 0 && text[length] == '=') {
			*out_file = text + length + 1;
			return (int)i;
		}
	}
	return -1;
}

enum lth_code lth_exe_read_inputs(struct lth_exe *exe, const struct lth_exe_options *options, struct lth_diag *diag)
{
	const struct lathe_description *d = exe->description;
	uint32_t position = 0;
	for (uint32_t i = 0; i < options->num_inputs; i++) {
		const char *file = options->inputs[i];
		int input = named_input(d, options->inputs[i], &file);
		if (input < 0) {
			while (position < d->num_inputs && is_given(exe, position))
				position++;
			input = (int)position;
		}
		if ((uint32_t)input >= d->num_inputs) {
			char expected[64];
			snprintf(expected, sizeof(expected), "%u inputs", d->num_inputs);
			return lth_diag_fail(diag, LTH_BAD_INPUT, file, expected, NULL, "one more");
		}
		if (is_given(exe, (uint32_t)input))
			return lth_diag_fail(diag, LTH_BAD_INPUT, d->inputs[input].name, "one file for an input", NULL,
					     "a second one, %s", file);
		enum lth_code code = lth_exe_read_input(exe, (uint32_t)input, file, diag);
		if (code == LTH_NOT_FOUND && strchr(file, '='))
			snprintf(diag->advice, sizeof(diag->advice), "--help lists the inputs, for NAME=FILE");
		if (code != LTH_OK)
			return code;
	}
	for (uint32_t i = 0; i < d->num_inputs; i++)
		if (!is_given(exe, i))
			return lth_diag_fail(diag, LTH_BAD_INPUT, d->inputs[i].name, "a file for every input",
					     "--help lists the inputs", "none for input %u", i);
	return LTH_OK;
}

static uint64_t next_random(uint64_t *state)
{
	return *state = lth_hash_u64(*state, 0x6c61746865);
}

/* m / 2048 as float16, exactly. */
static uint16_t half_of(uint32_t m)
{
	if (m == 0)
		return 0;
	uint32_t top = 31 - (uint32_t)__builtin_clz(m);
	return (uint16_t)((top - 11 + 15) << 10 | (m << (10 - top) & 0x3FF));
}

static void fill(void *data, enum lth_dtype dtype, int64_t count, uint64_t *state)
{
	for (int64_t i = 0; i < count; i++) {
		uint64_t bits = next_random(state);
		float single = (float)(bits >> 40) * 0x1p-24f;
		uint32_t word;
		memcpy(&word, &single, sizeof(word));
		switch (dtype) {
		case LTH_DTYPE_F32:
			((float *)data)[i] = single;
			break;
		case LTH_DTYPE_F64:
			((double *)data)[i] = (double)(bits >> 11) * 0x1p-53;
			break;
		case LTH_DTYPE_F16:
			((uint16_t *)data)[i] = half_of((uint32_t)(bits >> 53));
			break;
		case LTH_DTYPE_BF16:
			((uint16_t *)data)[i] = (uint16_t)(word >> 16);
			break;
		default: /* integers and bools; small floats and complex numbers stay 0 */
			if (lth_dtype_class(dtype) != LTH_CLASS_FLOAT && lth_dtype_class(dtype) != LTH_CLASS_COMPLEX &&
			    lth_dtype_bits(dtype) >= 8 && dtype != LTH_DTYPE_STRING)
				((unsigned char *)data)[i * (int64_t)(lth_dtype_bits(dtype) / 8)] = bits >> 63;
		}
	}
}

/* The dims of an input at the symbols in hand. */
static enum lth_code random_dims(const struct lth_exe *exe, uint32_t input, struct lth_host_tensor *t,
				 struct lth_diag *diag)
{
	const struct lathe_port *port = &exe->description->inputs[input];
	t->rank = port->rank;
	for (uint32_t axis = 0; axis < port->rank; axis++) {
		if (port->static_dims[axis] < 0 && port->dim_symbols[axis] < 0)
			return lth_diag_fail(diag, LTH_UNSUPPORTED, port->name, "dims that are numbers or symbols",
					     "give the input as a file", "'%s'", port->dims[axis]);
		t->dims[axis] = port->static_dims[axis] >= 0 ? port->static_dims[axis]
							     : exe->symbols[port->dim_symbols[axis]];
	}
	return LTH_OK;
}

enum lth_code lth_exe_random_inputs(struct lth_exe *exe, uint64_t seed, struct lth_diag *diag)
{
	uint64_t state = lth_hash_u64(seed, 1);
	for (uint32_t i = 0; i < exe->description->num_inputs; i++) {
		struct lth_host_tensor *t = &exe->files[i];
		int64_t count;
		if (exe->description->input_types[i])
			return lth_diag_fail(diag, LTH_UNSUPPORTED, exe->description->inputs[i].name, NULL,
					     "give the inputs as files", "random values of type %s",
					     exe->description->input_types[i]);
		enum lth_code code = random_dims(exe, i, t, diag);
		if (code != LTH_OK)
			return code;
		t->dtype = lth_dtype_by_onnx(exe->description->inputs[i].dtype);
		if (!lth_host_count(t->rank, t->dims, &count) || !lth_dtype_bytes(t->dtype, count, &t->bytes))
			return lth_diag_fail(diag, LTH_BAD_INPUT, exe->description->inputs[i].name, NULL, NULL,
					     "dims whose product is no int64");
		t->data = calloc(1, (size_t)t->bytes + 64);
		if (!t->data)
			return lth_diag_fail(diag, LTH_OUT_OF_MEMORY, exe->description->inputs[i].name, NULL, NULL,
					     "%lld bytes", (long long)t->bytes);
		fill(t->data, t->dtype, count, &state);
		exe->inputs[i] = lth_tensor_of_host(t);
	}
	return LTH_OK;
}
