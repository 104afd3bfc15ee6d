/* Any bytes, with the hash that loading asks for: refused, or a program that prints and runs. Kernels do nothing, so what
 * is tried is the decoder, the verifier, and that what it lets through keeps to its storages. Programs with loops are
 * not run, since they need not end, nor those that want much memory. */
#include "runtime/base/hash.h"
#include "runtime/exec/query.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_PORTS = 16, MAX_BYTES = 1 << 20 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int nothing(const struct lathe_kernel_call *call, int64_t begin, int64_t end)
{
	(void)call, (void)begin, (void)end;
	return 0;
}

static bool may_run(const struct lathe_executable *x, const int64_t *symbols)
{
	const struct lth_program *program = x->program;
	struct lathe_memory memory;
	struct lathe_error error;
	if (program->num_inputs > MAX_PORTS || program->num_outputs > MAX_PORTS)
		return false;
	for (uint32_t i = 0; i < program->num_instrs; i++)
		if (program->instrs[i].op == LTH_INSTR_LOOP)
			return false;
	for (uint32_t i = 0; i < program->num_storages; i++)
		if (program->storages[i].kind == LTH_STORAGE_POOL)
			return false;
	return lth_query_memory(x, symbols, &memory, &error) == 0 && memory.naive_bytes < MAX_BYTES &&
	       memory.arena_bytes < MAX_BYTES && memory.io_bytes < MAX_BYTES;
}

static void run(const struct lathe_executable *x, const int64_t *symbols)
{
	static uint64_t zeros[MAX_BYTES / 8];
	struct lathe_tensor inputs[MAX_PORTS], outputs[MAX_PORTS];
	struct lathe_context *context;
	struct lathe_error error;
	memset(inputs, 0, sizeof(inputs));
	memset(outputs, 0, sizeof(outputs));
	for (uint32_t i = 0; i < x->description.num_inputs; i++) {
		const struct lathe_port *port = &x->description.inputs[i];
		inputs[i].dtype = port->dtype;
		inputs[i].rank = port->rank;
		for (uint32_t axis = 0; axis < port->rank; axis++)
			inputs[i].dims[axis] = port->dim_symbols[axis] >= 0 ? symbols[port->dim_symbols[axis]]
									    : port->static_dims[axis];
		inputs[i].data = zeros;
		inputs[i].bytes = sizeof(zeros);
	}
	if (lth_query_context_create(x, NULL, &context, &error) != 0)
		return;
	for (int round = 0; round < 2; round++)
		if (lth_query_run(context, inputs, x->description.num_inputs, outputs, x->description.num_outputs,
				  &error) == 0)
			for (uint32_t i = 0; i < x->description.num_outputs; i++)
				lth_context_release(context, &outputs[i]);
	lth_context_destroy(&context);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct lathe_api api = {LTH_QUERY_FUNCTIONS};
	static _Alignas(64) const char constants[4096];
	static const lathe_kernel_fn kernels[64] = {nothing, nothing, nothing, nothing};
	if (size < 16 || size > 65536)
		return 0;
	uint8_t *bytes = malloc(size);
	memcpy(bytes, data, size);
	uint64_t hash = lth_hash_bytes(bytes, size - 8, 0);
	memcpy(bytes + size - 8, &hash, 8);
	for (uint64_t num_kernels = 0; num_kernels <= 4; num_kernels++) {
		struct lth_image image = {.program = bytes, .program_bytes = size, .constants = constants,
					  .constants_bytes = sizeof(constants), .kernels = kernels,
					  .num_kernels = num_kernels, .info = "", .info_bytes = 0};
		struct lathe_executable *x = NULL;
		struct lathe_error error;
		if (lth_query_open(&image, &api, &x, &error) != 0)
			continue;
		struct lth_buf text = {0};
		lth_program_print(x->program, &text);
		lth_buf_free(&text);
		int64_t *symbols = calloc(x->program->num_symbols + 1, sizeof(*symbols));
		for (uint32_t i = 0; i < x->program->num_symbols; i++)
			symbols[i] = x->program->symbols[i].hint;
		if (may_run(x, symbols))
			run(x, symbols);
		free(symbols);
		lth_executable_unload(&x);
	}
	free(bytes);
	return 0;
}
