/* The public functions as the table offers them: each turns a diag into the error of lathe.h. */
#include "runtime/exec/query.h"
#include "runtime/exec/context.h"
#include "runtime/exec/formula.h"

#define SAME_CODE(public, internal) _Static_assert((int)public == (int)internal, "codes of lathe.h are Lathe's own")
SAME_CODE(LATHE_ERROR_OPTION, LTH_INVALID_OPTION);
SAME_CODE(LATHE_ERROR_BUDGET, LTH_BUDGET_UNREACHABLE);
SAME_CODE(LATHE_ERROR_MEMORY, LTH_OUT_OF_MEMORY);
SAME_CODE(LATHE_ERROR_IO, LTH_IO_ERROR);
SAME_CODE(LATHE_ERROR_EXECUTABLE, LTH_BAD_EXECUTABLE);
SAME_CODE(LATHE_ERROR_INPUT, LTH_BAD_INPUT);
SAME_CODE(LATHE_ERROR_ARENA_TOO_SMALL, LTH_ARENA_TOO_SMALL);
SAME_CODE(LATHE_ERROR_RUNTIME, LTH_RUNTIME_ERROR);

static int finish(enum lth_code code, const struct lth_diag *diag, struct lathe_error *error)
{
	return code == LTH_OK ? 0 : lth_error_set(error, diag);
}

const struct lathe_description *lth_query_describe(const struct lathe_executable *executable)
{
	return &executable->description;
}

int lth_query_memory(const struct lathe_executable *executable, const int64_t *symbols,
			struct lathe_memory *out_memory, struct lathe_error *error)
{
	struct lth_diag diag = {0};
	return finish(lth_memory_at(executable, symbols, out_memory, &diag), &diag, error);
}

int lth_query_fit(const struct lathe_executable *executable, const int64_t *symbols, uint32_t symbol,
		     uint64_t bytes, int64_t *out_value, struct lathe_error *error)
{
	struct lth_diag diag = {0};
	return finish(lth_memory_fit(executable, symbols, symbol, bytes, out_value, &diag), &diag, error);
}

int lth_query_context_create(const struct lathe_executable *executable, const struct lathe_options *options,
				struct lathe_context **out_context, struct lathe_error *error)
{
	struct lth_diag diag = {0};
	return finish(lth_context_create(executable, options, out_context, &diag), &diag, error);
}

int lth_query_run(struct lathe_context *context, const struct lathe_tensor *inputs, size_t num_inputs,
		     struct lathe_tensor *outputs, size_t num_outputs, struct lathe_error *error)
{
	struct lth_diag diag;
	diag.code = LTH_OK; /* the texts are written with an error */
	return finish(lth_context_run(context, inputs, num_inputs, outputs, num_outputs, &diag), &diag, error);
}

static const char *text_or(const char *text, const char *other)
{
	return text ? text : other;
}

/* Of one call at the shapes of the last run. */
static uint64_t flops_of(const struct lathe_context *context, const struct lth_instr *instr)
{
	int64_t flops = instr->op == LTH_INSTR_CALL && instr->flops != LTH_NONE && context->signature
				? context->signature->values[instr->flops]
				: 0;
	return flops > 0 ? (uint64_t)flops : 0;
}

size_t lth_query_profile(const struct lathe_context *context, struct lathe_profile_entry *out_entries,
			    size_t capacity)
{
	const struct lth_program *program = context->x->program;
	const struct lth_profiler *profiler = &context->profiler;
	size_t count = 0;
	for (uint32_t i = 0; lth_profiler_on(profiler) && i < program->num_instrs; i++) {
		const struct lth_instr *instr = &program->instrs[i];
		bool call = instr->op == LTH_INSTR_CALL, builtin = instr->op == LTH_INSTR_BUILTIN;
		if (!call && !builtin && instr->op != LTH_INSTR_COPY)
			continue;
		if (count < capacity)
			out_entries[count] = (struct lathe_profile_entry){
				.kernel = call ? text_or(program->kernels[instr->callee].description, "kernel")
					       : builtin ? lth_builtin_text((enum lth_builtin)instr->callee) : "copy",
				.node = text_or(instr->node, ""),
				.calls = profiler->calls[i],
				.ns = profiler->ns[i],
				.bytes = profiler->bytes[i],
				.flops = flops_of(context, instr),
			};
		count++;
	}
	return count;
}

const void *lth_query_program(const struct lathe_executable *executable, uint64_t *out_bytes)
{
	*out_bytes = executable->image.program_bytes;
	return executable->image.program;
}

int lth_query_open(const struct lth_image *image, const struct lathe_api *api, struct lathe_executable **out_executable,
		   struct lathe_error *error)
{
	struct lth_diag diag = {0};
	enum lth_code code = lth_executable_load(image, out_executable, &diag);
	if (code == LTH_OK)
		(*out_executable)->api = api;
	return finish(code, &diag, error);
}
