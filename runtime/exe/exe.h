/* The program around a compiled model (artifact `exe`, and `lathe run` for a shared object): reads inputs, runs or
 * measures, writes outputs. Works through the table of lathe.h only, so it is also that interface's first user. Thread rule: one thread. */
#ifndef LTH_EXE_H
#define LTH_EXE_H

#ifndef LATHE_LINKED
#define LATHE_LINKED /* declarations only; calls go through the table */
#endif
#include "api/lathe.h"
#include "runtime/exe/value.h"
#include "runtime/tensor/host.h"

enum lth_exe_option {
#define LTH_EXE_OPTION(name, letter, word, argument, help) LTH_EXE_##name,
#include "runtime/exe/options.def"
#undef LTH_EXE_OPTION
	LTH_NUM_EXE_OPTIONS
};

enum { LTH_EXE_MAX_DIMS = 64 };

struct lth_exe_options {
	const char *program;
	bool given[LTH_NUM_EXE_OPTIONS];
	const char *output;
	int64_t bench, warmup, seed, threads;
	const char *dims[LTH_EXE_MAX_DIMS]; /* NAME=VALUE */
	uint32_t num_dims;
	const char *const *inputs; /* files or NAME=FILE */
	uint32_t num_inputs;
};

/* A loaded model with the inputs of a run. */
struct lth_exe {
	const struct lathe_api *api;
	struct lathe_executable *executable;
	const struct lathe_description *description;
	struct lathe_context *context;
	int64_t *symbols; /* values, as --dim says or at their hints */
	struct lth_host_tensor *files; /* of inputs that are tensors */
	struct lathe_value *values;    /* of those that are not */
	struct lathe_tensor *inputs, *outputs;
};

/* Parses the command line; `out_options->inputs` are in `argv`, which is reordered. options.c */
LTH_MUST_CHECK enum lth_code lth_exe_parse(int argc, char **argv, struct lth_exe_options *out_options,
					   struct lth_diag *diag);
void lth_exe_help(const struct lth_exe_options *options, const struct lathe_description *description,
		  struct lth_buf *out);

/* Sets exe->symbols from the options. inputs.c */
LTH_MUST_CHECK enum lth_code lth_exe_bind_dims(struct lth_exe *exe, const struct lth_exe_options *options,
					       struct lth_diag *diag);
/* Reads the inputs named in the options, by position or by name. inputs.c */
LTH_MUST_CHECK enum lth_code lth_exe_read_inputs(struct lth_exe *exe, const struct lth_exe_options *options,
						 struct lth_diag *diag);
/* Reads one input from a file, as the model takes it. inputs.c */
LTH_MUST_CHECK enum lth_code lth_exe_read_input(struct lth_exe *exe, uint32_t input, const char *path,
						struct lth_diag *diag);
/* Makes inputs: floats uniform in [0, 1), integers and bools 0 or 1. inputs.c */
LTH_MUST_CHECK enum lth_code lth_exe_random_inputs(struct lth_exe *exe, uint64_t seed, struct lth_diag *diag);

/* JSON for --describe and --bench. report.c */
LTH_MUST_CHECK enum lth_code lth_exe_describe(const struct lth_exe *exe, struct lth_buf *out, struct lth_diag *diag);
LTH_MUST_CHECK enum lth_code lth_exe_bench(struct lth_exe *exe, const struct lth_exe_options *options,
					   struct lth_buf *out, struct lth_diag *diag);
/* Opens what `query` gives; lth_exe_close ends it, also half open. program.c */
LTH_MUST_CHECK enum lth_code lth_exe_open(struct lth_exe *exe, lathe_query_fn query, struct lth_diag *diag);
void lth_exe_close(struct lth_exe *exe);
/* The whole program, for any model: prints, and returns the exit status. program.c */
int lth_exe_main(int argc, char **argv, lathe_query_fn query);
/* The program as the executable carries it, borrowed. Executables made before they could tell are refused. program.c */
LTH_MUST_CHECK enum lth_code lth_exe_program(const struct lth_exe *exe, const void **out_program, uint64_t *out_bytes,
					     struct lth_diag *diag);
/* Makes a diag of an error of lathe.h. */
enum lth_code lth_exe_error(struct lth_diag *diag, const struct lathe_error *error);

#endif
