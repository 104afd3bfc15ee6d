/* See template_rig.h. Compiled kernels are linked into a shared object with the linker that lathe-worker uses, and
 * loaded; a machine that lacks the target's instructions runs the interpreter alone. */
#include "tests/unit/template_rig.h"

#include "compiler/codegen/codegen.h"
#include "runtime/base/io.h"

#include <assert.h>
#include <dlfcn.h>
#include <elf.h>
#include <math.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static uint64_t random_state = 1;

static uint64_t random_next(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state;
}

void rig_seed(void)
{
	const char *text = getenv("LATHE_SEED");
	random_state = text ? strtoull(text, NULL, 10) : 20240611;
	printf("LATHE_SEED=%llu\n", (unsigned long long)random_state);
}

int64_t rig_uniform(int64_t low, int64_t high)
{
	return low + (int64_t)(random_next() % (uint64_t)(high - low + 1));
}

static lth_lv rig_param(void *context, lth_dim dim)
{
	struct rig *rig = context;
	uint32_t id = lth_loop_add_int(rig->emit.fn);
	assert(id < RIG_MAX_INTS);
	rig->ints[id] = dim;
	return lth_loop_int(rig->emit.fn, id);
}

static void rig_apply(void *context, uint32_t output, const lth_lv *index, uint32_t axis, lth_lv value, unsigned lanes,
		      lth_lv mask)
{
	struct rig *rig = context;
	struct lth_loop_fn *fn = rig->emit.fn;
	lth_lv offset = lth_loop_i64(fn, 0);
	for (uint32_t i = 0; i < rig->outputs[output].rank; i++)
		offset = lth_loop_op2(
			fn, LTH_SCALAR_ADD, offset,
			lth_loop_op2(fn, LTH_SCALAR_MUL, index[i], lth_loop_i64(fn, rig->outputs[output].strides[i])));
	lth_lv place = lth_loop_offset(fn, lth_loop_pointer(fn, rig->outputs[output].pointer), offset, rig->compute);
	int64_t step = rig->outputs[output].strides[axis];
	/* out += value + 1: an element that is finished twice is wrong by more than any rounding. */
	lth_lv one = rig->compute == LTH_DTYPE_I32 ? lth_loop_const_i(fn, rig->compute, 1)
						   : lth_loop_const_f(fn, rig->compute, 1);
	if (rig->relu) {
		value = lth_loop_op2(fn, LTH_SCALAR_MAX, value, lth_loop_const_f(fn, rig->compute, 0));
		lth_loop_store(fn, place, value, rig->compute, mask);
		return;
	}
	if (lanes > 1 && step != 1) {
		lth_lv ramp = lth_loop_op2(fn, LTH_SCALAR_MUL, lth_loop_ramp(fn, lth_loop_i64(fn, 0), lanes),
					   lth_loop_i64(fn, step));
		lth_lv old = lth_loop_gather(fn, place, ramp, rig->compute, mask);
		value = lth_loop_op2(fn, LTH_SCALAR_ADD, old, lth_loop_op2(fn, LTH_SCALAR_ADD, value, one));
		lth_loop_scatter(fn, place, ramp, value, rig->compute, mask);
		return;
	}
	lth_lv old = lth_loop_load(fn, place, rig->compute, lanes, mask);
	value = lth_loop_op2(fn, LTH_SCALAR_ADD, old, lth_loop_op2(fn, LTH_SCALAR_ADD, value, one));
	lth_loop_store(fn, place, value, rig->compute, mask);
}

static void rig_prefetch(void *context, uint32_t output, const lth_lv *index)
{
	struct rig *rig = context;
	struct lth_loop_fn *fn = rig->emit.fn;
	lth_lv offset = lth_loop_i64(fn, 0);
	for (uint32_t i = 0; i < rig->outputs[output].rank; i++)
		offset = lth_loop_op2(
			fn, LTH_SCALAR_ADD, offset,
			lth_loop_op2(fn, LTH_SCALAR_MUL, index[i], lth_loop_i64(fn, rig->outputs[output].strides[i])));
	lth_loop_prefetch(fn,
			  lth_loop_offset(fn, lth_loop_pointer(fn, rig->outputs[output].pointer), offset, rig->compute),
			  true);
}

void rig_start(struct rig *rig, enum rig_machine machine, enum lth_dtype compute, bool symbolic)
{
	static const struct lth_machine machines[RIG_NUM_MACHINES] = {
		{64, 32, 32768, 1048576, false},
		{32, 16, 32768, 262144, false},
		{16, 16, 32768, 262144, false},
	};
	memset(rig, 0, sizeof(*rig));
	rig->arena = lth_arena_create(0);
	rig->dims = lth_dims_create(rig->arena);
	rig->machine = machines[machine];
	rig->kind = machine;
	rig->compute = compute;
	rig->symbolic = symbolic;
	rig->epilogue = (struct lth_epilogue){.context = rig,
					      .apply = rig_apply,
					      .prefetch = rig_prefetch,
					      .unit_axis = UINT32_MAX,
					      .cost = rig_uniform(0, 1) ? 2 : 50};
	rig->emit = (struct lth_emit){.fn = lth_loop_create(rig->arena, 0),
				      .dims = rig->dims,
				      .machine = &rig->machine,
				      .epilogue = &rig->epilogue,
				      .param = rig_param,
				      .context = rig};
}

void rig_end(struct rig *rig)
{
	if (rig->library)
		dlclose(rig->library);
	lth_arena_destroy(&rig->arena);
}

lth_dim rig_dim(struct rig *rig, int64_t value)
{
	if (!rig->symbolic)
		return lth_dim_const(rig->dims, value);
	char name[16];
	snprintf(name, sizeof(name), "s%u", rig->num_symbols++);
	return lth_dim_symbol(
		rig->dims,
		&(struct lth_dim_symbol){
			.name = name, .min = 0, .max = INT64_MAX, .multiple = 1, .hint = value, .bound = LTH_DIM_NONE});
}

struct lth_operand rig_operand(struct rig *rig, void *data, enum lth_dtype memory, bool written)
{
	uint32_t id = lth_loop_add_pointer(rig->emit.fn, memory, written);
	assert(id < RIG_MAX_POINTERS);
	rig->pointers[id] = data;
	return (struct lth_operand){.pointer = lth_loop_pointer(rig->emit.fn, id), .memory = memory};
}

static size_t element_bytes(const struct rig *rig)
{
	return lth_dtype_bits(rig->compute) / 8;
}

double rig_get(const struct rig *rig, const void *data, int64_t index)
{
	if (rig->compute == LTH_DTYPE_I32)
		return ((const int32_t *)data)[index];
	return rig->compute == LTH_DTYPE_F32 ? (double)((const float *)data)[index] : ((const double *)data)[index];
}

static void rig_set(const struct rig *rig, void *data, int64_t index, double value)
{
	if (rig->compute == LTH_DTYPE_I32)
		((int32_t *)data)[index] = (int32_t)value;
	else if (rig->compute == LTH_DTYPE_F32)
		((float *)data)[index] = (float)value;
	else
		((double *)data)[index] = value;
}

void *rig_random(struct rig *rig, int64_t count)
{
	/* Exact size with a line of poison in front and behind: reading it and using it shows. */
	char *block = lth_arena_alloc(rig->arena, ((size_t)count + 32) * element_bytes(rig));
	memset(block, 0xff, ((size_t)count + 32) * element_bytes(rig));
	void *data = block + 16 * element_bytes(rig);
	for (int64_t i = 0; i < count; i++)
		rig_set(rig, data, i, (double)rig_uniform(-1000, 1000) / 1000);
	return data;
}

void rig_output(struct rig *rig, uint32_t which, uint32_t rank, const int64_t *extents, const uint32_t *order)
{
	int64_t elements = 1;
	for (uint32_t i = rank; i-- > 0;) {
		rig->outputs[which].strides[order[i]] = elements;
		rig->outputs[which].extents[order[i]] = extents[order[i]];
		elements *= extents[order[i]];
	}
	rig->outputs[which].rank = rank;
	rig->outputs[which].elements = elements;
	rig->outputs[which].data = rig_random(rig, elements);
	for (int64_t i = 0; i < elements; i++)
		rig_set(rig, rig->outputs[which].data, i, 0);
	struct lth_operand operand = rig_operand(rig, rig->outputs[which].data, rig->compute, true);
	rig->outputs[which].pointer = lth_loop_get(rig->emit.fn, operand.pointer)->id;
}

double rig_at(const struct rig *rig, uint32_t which, const int64_t *index)
{
	int64_t offset = 0;
	for (uint32_t i = 0; i < rig->outputs[which].rank; i++)
		offset += index[i] * rig->outputs[which].strides[i];
	return rig_get(rig, rig->outputs[which].data, offset) - 1;
}

static void rig_pack(struct rig *rig, const struct lth_pack *pack, struct lth_operand *operand)
{
	int64_t bytes;
	if (pack->kind == LTH_PACK_NONE)
		return;
	uint32_t id = lth_loop_get(rig->emit.fn, operand->pointer)->id;
	bool fits = lth_pack_bytes(pack, &bytes);
	assert(fits);
	(void)fits;
	/* 64-byte aligned, as constants of an executable are. */
	char *packed = lth_arena_alloc(rig->arena, (size_t)bytes + 64);
	packed += -(uintptr_t)packed & 63;
	lth_pack_run(pack, rig->pointers[id], packed);
	rig->pointers[id] = packed;
}

/* Kernels are hidden symbols of an executable; here they have to be seen from outside. */
static void export_symbols(unsigned char *object)
{
	const Elf64_Ehdr *header = (const void *)object;
	const Elf64_Shdr *sections = (const void *)(object + header->e_shoff);
	for (int i = 0; i < header->e_shnum; i++) {
		if (sections[i].sh_type != SHT_SYMTAB)
			continue;
		Elf64_Sym *symbols = (void *)(object + sections[i].sh_offset);
		for (size_t k = 0; k < sections[i].sh_size / sizeof(*symbols); k++)
			if (ELF64_ST_BIND(symbols[k].st_info) == STB_GLOBAL)
				symbols[k].st_other = STV_DEFAULT;
	}
}

static int run_linker(char *object, char *library)
{
	char linker[] = "ld", shared[] = "-shared", output[] = "-o";
	char *arguments[] = {linker, shared, output, library, object, NULL};
	pid_t child;
	int status = -1;
	if (posix_spawnp(&child, "ld", NULL, NULL, arguments, environ) != 0)
		return -1;
	waitpid(child, &status, 0);
	return status;
}

lathe_kernel_fn rig_compile(struct rig *rig, double *out_ms)
{
	static const char *const cpus[RIG_NUM_MACHINES] = {"x86-64-v4", "x86-64-v3", "x86-64-v2"};
	struct lth_codegen_request request = {.cpu = rig->native ? "host" : cpus[rig->kind]};
	struct lth_codegen_kernel kernel = {.fn = rig->emit.fn};
	struct lth_codegen_target target;
	struct lth_codegen_result result;
	struct lth_diag diag = {0};
	char folder[] = "/tmp/lathe-test-XXXXXX", object[64], library[64], symbol[128];
	if (lth_codegen_target_resolve(&request, &target, &diag) != LTH_OK ||
	    lth_codegen_objects(&target, &kernel, 1, 1, NULL, &result, &diag) != LTH_OK || !mkdtemp(folder)) {
		fprintf(stderr, "code generation: %s: %s\n", diag.place, diag.found);
		abort();
	}
	if (out_ms)
		*out_ms = result.cpu_ms;
	snprintf(object, sizeof(object), "%s/k.o", folder);
	snprintf(library, sizeof(library), "%s/k.so", folder);
	snprintf(symbol, sizeof(symbol), LTH_KERNEL_PREFIX "%s", kernel.name);
	export_symbols(result.objects[0].data);
	if (lth_write_file(object, result.objects[0].data, result.objects[0].size, false, &diag) != LTH_OK ||
	    run_linker(object, library) != 0)
		abort();
	rig->library = dlopen(library, RTLD_NOW | RTLD_LOCAL);
	unlink(object);
	unlink(library);
	rmdir(folder);
	lth_codegen_result_free(&result);
	lathe_kernel_fn kernel_fn = NULL;
	if (rig->library)
		*(void **)&kernel_fn = dlsym(rig->library, symbol);
	if (!kernel_fn) {
		fprintf(stderr, "cannot load the kernel: %s\n", dlerror());
		abort();
	}
	return kernel_fn;
}

bool rig_can_execute(enum rig_machine machine)
{
	switch (machine) {
	case RIG_AVX512:
		return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
		       __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq");
	case RIG_AVX2: return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
	default: return __builtin_cpu_supports("sse4.2");
	}
}

static void rig_call(struct rig *rig, const struct lathe_kernel_call *call, int64_t begin, int64_t end)
{
	struct lth_diag diag = {0};
	int error = 0;
	enum lth_code code = LTH_OK;
	if (rig->kernel)
		error = rig->kernel(call, begin, end);
	else
		code = lth_loop_interpret(rig->emit.fn, call, begin, end, &error, &diag);
	if (code != LTH_OK || error) {
		fprintf(stderr, "kernel failed: %d %s: %s\n", error, diag.place, diag.found);
		abort();
	}
}

bool rig_prepare(struct rig *rig, struct lth_problem *problem, struct lth_operand *packed[2],
		 struct lth_template_plan *plan)
{
	int64_t symbols[RIG_MAX_INTS], scratch_bytes;
	if (!lth_template_plan(rig->dims, &rig->machine, problem, plan))
		return false;
	for (int i = 0; i < 2; i++)
		rig_pack(rig, &plan->packs[i], packed[i]);
	lth_template_emit(&rig->emit, problem, plan);
	for (uint32_t i = 0; i < rig->num_symbols; i++)
		symbols[i] = lth_dims_symbol(rig->dims, i)->hint;
	for (uint32_t i = 0; i < rig->emit.fn->num_ints; i++)
		if (!lth_dim_eval(rig->dims, rig->ints[i], symbols, &rig->values[i]))
			abort();
	if (!lth_dim_eval(rig->dims, rig->emit.units, symbols, &rig->units) ||
	    !lth_dim_eval(rig->dims, rig->emit.scratch_bytes, symbols, &scratch_bytes))
		abort();
	char *scratch = lth_arena_alloc(rig->arena, (size_t)scratch_bytes + 128);
	scratch += -(uintptr_t)scratch & 63;
	memset(scratch, 0xff, (size_t)scratch_bytes + 64);
	rig->guard = scratch + scratch_bytes;
	rig->call = (struct lathe_kernel_call){.pointers = rig->pointers, .ints = rig->values, .scratch = scratch};
	return true;
}

bool rig_run(struct rig *rig, struct lth_problem *problem, struct lth_operand *packed[2],
	     struct lth_template_plan *plan)
{
	if (!rig_prepare(rig, problem, packed, plan))
		return false;
	if (rig_can_execute(rig->kind) && getenv("LATHE_INTERPRET") == NULL)
		rig->kernel = rig_compile(rig, NULL);
	int64_t cut = rig_uniform(0, rig->units);
	rig_call(rig, &rig->call, cut, rig->units);
	rig_call(rig, &rig->call, 0, cut);
	for (int i = 0; i < 64; i++)
		if (rig->guard[i] != (char)0xff) {
			fprintf(stderr, "the kernel wrote behind its scratch\n");
			abort();
		}
	return true;
}

bool rig_near(const struct rig *rig, double got, double expected, int64_t terms)
{
	double unit = rig->compute == LTH_DTYPE_F32 ? 6e-8 : 1.2e-16;
	return fabs(got - expected) <= unit * (32 + 16 * sqrt((double)terms) + (double)terms + 8 * fabs(expected));
}
