/* The command line of a compiled program, from the table options.def. */
#include "runtime/exe/exe.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct option {
	char letter;
	const char *word, *argument, *help;
} options_table[LTH_NUM_EXE_OPTIONS] = {
#define LTH_EXE_OPTION(name, letter, word, argument, help) [LTH_EXE_##name] = {letter, word, argument, help},
#include "runtime/exe/options.def"
#undef LTH_EXE_OPTION
};

static enum lth_code unknown(const char *given, struct lth_diag *diag)
{
	const char *words[LTH_NUM_EXE_OPTIONS];
	char advice[128] = "--help lists them";
	for (int i = 0; i < LTH_NUM_EXE_OPTIONS; i++)
		words[i] = options_table[i].word;
	const char *near = lth_nearest(given + strspn(given, "-"), words, LTH_NUM_EXE_OPTIONS);
	if (near)
		snprintf(advice, sizeof(advice), "did you mean --%s?", near);
	return lth_diag_fail(diag, LTH_INVALID_OPTION, given, "an option", advice, "an unknown one");
}

/* The option that a word names; *out_value is what follows its "=" or its letter, if anything does. */
static int find(const char *word, const char **out_value)
{
	*out_value = NULL;
	for (int i = 0; i < LTH_NUM_EXE_OPTIONS; i++) {
		const struct option *o = &options_table[i];
		size_t length = strlen(o->word);
		if (word[1] == '-' && strncmp(word + 2, o->word, length) == 0 &&
		    (word[2 + length] == 0 || word[2 + length] == '=')) {
			*out_value = word[2 + length] ? word + 3 + length : NULL;
			return i;
		}
		if (word[1] != '-' && o->letter && word[1] == o->letter && (o->argument || !word[2])) {
			*out_value = word[2] ? word + 2 : NULL;
			return i;
		}
	}
	return -1;
}

static enum lth_code parse_int(const char *place, const char *text, int64_t min, int64_t max, int64_t *out,
			       struct lth_diag *diag)
{
	char *end, expected[80];
	errno = 0;
	long long value = strtoll(text, &end, 10);
	if (*text && !*end && !errno && value >= min && value <= max) {
		*out = value;
		return LTH_OK;
	}
	snprintf(expected, sizeof(expected), "an integer in [%lld, %lld]", (long long)min, (long long)max);
	return lth_diag_fail(diag, LTH_INVALID_OPTION, place, expected, NULL, "'%s'", text);
}

static enum lth_code set_option(struct lth_exe_options *o, enum lth_exe_option option, const char *value,
				struct lth_diag *diag)
{
	char place[32];
	snprintf(place, sizeof(place), "--%s", options_table[option].word);
	o->given[option] = true;
	switch (option) {
	case LTH_EXE_OUTPUT:
		o->output = value;
		return LTH_OK;
	case LTH_EXE_BENCH:
		return parse_int(place, value, 1, 10000000, &o->bench, diag);
	case LTH_EXE_WARMUP:
		return parse_int(place, value, 0, 10000000, &o->warmup, diag);
	case LTH_EXE_SEED:
		return parse_int(place, value, 0, INT64_MAX, &o->seed, diag);
	case LTH_EXE_THREADS:
		return parse_int(place, value, 1, 256, &o->threads, diag);
	case LTH_EXE_DIM:
		if (o->num_dims == LTH_EXE_MAX_DIMS)
			return lth_diag_fail(diag, LTH_INVALID_OPTION, place, "at most 64", NULL, "more");
		o->dims[o->num_dims++] = value;
		return LTH_OK;
	default:
		return LTH_OK;
	}
}

enum lth_code lth_exe_parse(int argc, char **argv, struct lth_exe_options *out_options, struct lth_diag *diag)
{
	struct lth_exe_options o = {.program = argc ? argv[0] : "model", .warmup = -1, .seed = 1, .threads = 1};
	uint32_t inputs = 0;
	bool only_inputs = false;
	for (int i = 1; i < argc; i++) {
		const char *value;
		if (only_inputs || argv[i][0] != '-' || !argv[i][1]) {
			argv[inputs++] = argv[i]; /* at most i - 1 of them so far */
			continue;
		}
		if (strcmp(argv[i], "--") == 0) {
			only_inputs = true;
			continue;
		}
		int option = find(argv[i], &value);
		if (option < 0)
			return unknown(argv[i], diag);
		const char *name = argv[i];
		if (options_table[option].argument && !value)
			value = i + 1 < argc ? argv[++i] : NULL;
		if (options_table[option].argument && !value)
			return lth_diag_fail(diag, LTH_INVALID_OPTION, name, options_table[option].argument, NULL,
					     "no argument");
		if (!options_table[option].argument && value)
			return lth_diag_fail(diag, LTH_INVALID_OPTION, name, "a switch", NULL, "'%s'", value);
		enum lth_code code = set_option(&o, (enum lth_exe_option)option, value, diag);
		if (code != LTH_OK)
			return code;
	}
	enum lth_exe_option lonely = o.given[LTH_EXE_PROFILE] ? LTH_EXE_PROFILE : LTH_EXE_WARMUP;
	if (o.given[lonely] && !o.given[LTH_EXE_BENCH])
		return lth_diag_fail(diag, LTH_INVALID_OPTION, lonely == LTH_EXE_PROFILE ? "--profile" : "--warmup",
				     "--bench N beside it", NULL, "no runs to measure");
	o.inputs = (const char *const *)argv;
	o.num_inputs = inputs;
	*out_options = o;
	return LTH_OK;
}

static void print_port(const struct lathe_port *port, const char *type, const char *kind, struct lth_buf *out)
{
	if (type) {
		lth_buf_printf(out, "  %s %s: %s\n", kind, port->name, type);
		return;
	}
	lth_buf_printf(out, "  %s %s: %s[", kind, port->name, lth_dtype_text(lth_dtype_by_onnx(port->dtype)));
	for (uint32_t axis = 0; axis < port->rank; axis++)
		lth_buf_printf(out, "%s%s", axis ? ", " : "", port->dims[axis]);
	lth_buf_puts(out, "]\n");
}

void lth_exe_help(const struct lth_exe_options *options, const struct lathe_description *description,
		  struct lth_buf *out)
{
	lth_buf_printf(out,
		       "Usage: %s [OPTION...] INPUT...\n"
		       "Runs the model '%s'. Inputs are .npy or .pb files (TensorProto, or SequenceProto and its "
		       "kin), by position or as NAME=FILE.\n\n",
		       options->program, description->name);
	for (uint32_t i = 0; i < description->num_inputs; i++)
		print_port(&description->inputs[i], description->input_types[i], "input", out);
	for (uint32_t i = 0; i < description->num_outputs; i++)
		print_port(&description->outputs[i], description->output_types[i], "output", out);
	lth_buf_putc(out, '\n');
	for (int i = 0; i < LTH_NUM_EXE_OPTIONS; i++) {
		const struct option *o = &options_table[i];
		char left[64], letter[8] = "    ";
		if (o->letter)
			snprintf(letter, sizeof(letter), "-%c, ", o->letter);
		snprintf(left, sizeof(left), "%s--%s%s%s", letter, o->word, o->argument ? " " : "",
			 o->argument ? o->argument : "");
		lth_buf_printf(out, "  %-26s%s\n", left, o->help);
	}
}
