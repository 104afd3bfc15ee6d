/* The table of functions that an executable exports, and what fills it. */
#ifndef LTH_EXEC_QUERY_H
#define LTH_EXEC_QUERY_H

#include "config.h"
#include "runtime/exec/context.h"

/* The one exported symbol. NULL for another version than LATHE_ABI_VERSION. */
__attribute__((visibility("default"))) const struct lathe_api *lathe_query(uint32_t version);

/* What `open` of a table does: an executable from an image, which will call through `api`. */
LTH_MUST_CHECK int lth_query_open(const struct lth_image *image, const struct lathe_api *api,
				  struct lathe_executable **out_executable, struct lathe_error *error);

/* The functions of lathe.h, with an error of lathe.h in place of a diag. */
const struct lathe_description *lth_query_describe(const struct lathe_executable *executable);
int lth_query_memory(const struct lathe_executable *executable, const int64_t *symbols, struct lathe_memory *out_memory,
		     struct lathe_error *error);
int lth_query_fit(const struct lathe_executable *executable, const int64_t *symbols, uint32_t symbol, uint64_t bytes,
		  int64_t *out_value, struct lathe_error *error);
int lth_query_context_create(const struct lathe_executable *executable, const struct lathe_options *options,
			     struct lathe_context **out_context, struct lathe_error *error);
int lth_query_run(struct lathe_context *context, const struct lathe_tensor *inputs, size_t num_inputs,
		  struct lathe_tensor *outputs, size_t num_outputs, struct lathe_error *error);
size_t lth_query_profile(const struct lathe_context *context, struct lathe_profile_entry *out_entries, size_t capacity);
const void *lth_query_program(const struct lathe_executable *executable, uint64_t *out_bytes);

/* All of a table but its `open`. */
#define LTH_QUERY_FUNCTIONS                                                                                          \
	.version = LATHE_ABI_VERSION, .bytes = sizeof(struct lathe_api), .runtime = PACKAGE_VERSION,                 \
	.close = lth_executable_unload, .describe = lth_query_describe, .memory = lth_query_memory,                  \
	.fit = lth_query_fit, .context_create = lth_query_context_create, .context_destroy = lth_context_destroy,    \
	.run = lth_query_run, .release = lth_context_release, .counters = lth_context_counters,                      \
	.profile = lth_query_profile, .program = lth_query_program

#endif
