/* The list of kernels: identities, the cache of objects, and the threads that compile what is missing. See codegen.h. */
#include "compiler/codegen/llvm.h"

#include "runtime/base/hash.h"
#include "runtime/base/io.h"
#include "runtime/base/sha256.h"
#include "runtime/base/team.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Counts up whenever the same loop IR gives other code: it is part of every kernel's identity. */
#define GENERATOR "lathe-codegen 2, LLVM " LLVM_VERSION_STRING

/* Behind an object's ELF bytes. */
#define TRAILER_MARK "LTHKERN1"
enum { TRAILER = 16, SMALLEST_ELF = 64 };

static uint64_t trailer_hash(const unsigned char *data, size_t size)
{
	return lth_hash_bytes(data, size, 0x6c746865);
}

bool lth_codegen_object_valid(const void *data, size_t size)
{
	const unsigned char *bytes = data;
	if (size < SMALLEST_ELF + TRAILER || memcmp(bytes, "\177ELF\2\1\1", 7) != 0)
		return false;
	if (bytes[16] != 1 || bytes[17] != 0 || bytes[18] != 62 || bytes[19] != 0) /* relocatable, x86-64 */
		return false;
	uint64_t stored;
	memcpy(&stored, bytes + size - 8, sizeof(stored));
	return memcmp(bytes + size - TRAILER, TRAILER_MARK, 8) == 0 && stored == trailer_hash(bytes, size - TRAILER);
}

static void add_trailer(struct lth_buf *object)
{
	uint64_t hash = lth_buf_ok(object) ? trailer_hash((unsigned char *)object->data, object->size) : 0;
	lth_buf_append(object, TRAILER_MARK, 8);
	lth_buf_u64(object, hash);
}

static enum lth_code identify(const struct lth_codegen_target *target, struct lth_codegen_kernel *kernel,
			      struct lth_diag *diag)
{
	char text[LTH_DIGEST_TEXT];
	struct lth_buf canonical = {0};
	lth_buf_printf(&canonical, "%s\n%s %s %s\n", GENERATOR, target->triple, target->cpu, target->features);
	lth_loop_print(kernel->fn, &canonical);
	bool ok = lth_buf_ok(&canonical);
	if (ok)
		lth_sha256_text(canonical.data, canonical.size, text);
	lth_buf_free(&canonical);
	if (!ok)
		return lth_diag_fail(diag, LTH_OUT_OF_MEMORY, "code generation", NULL, NULL, "no memory for a kernel's text");
	memcpy(kernel->name, text + strlen("sha256:"), LTH_KERNEL_HEX + 1);
	return LTH_OK;
}

/* Numbers the identities: kernels of one share an object. */
static uint32_t number_objects(struct lth_codegen_kernel *kernels, uint32_t count, uint32_t *slots, uint32_t num_slots)
{
	uint32_t used = 0;
	for (uint32_t k = 0; k < count; k++) {
		uint32_t at = (uint32_t)(lth_hash_bytes(kernels[k].name, LTH_KERNEL_HEX, 0) % num_slots);
		while (slots[at] != 0 && strcmp(kernels[slots[at] - 1].name, kernels[k].name) != 0)
			at = (at + 1) % num_slots;
		kernels[k].object = slots[at] == 0 ? used++ : kernels[slots[at] - 1].object;
		slots[at] = slots[at] == 0 ? k + 1 : slots[at];
	}
	return used;
}

enum lth_code lth_codegen_identify(const struct lth_codegen_target *target, struct lth_codegen_kernel *kernels,
				   uint32_t count, uint32_t *out_objects, struct lth_diag *diag)
{
	for (uint32_t k = 0; k < count; k++) {
		enum lth_code code = kernels[k].name[0] ? LTH_OK : identify(target, &kernels[k], diag);
		if (code != LTH_OK)
			return code;
	}
	uint32_t *slots = calloc((size_t)count * 2 + 1, sizeof(*slots));
	if (!slots)
		return lth_diag_fail(diag, LTH_OUT_OF_MEMORY, "code generation", NULL, NULL,
				     "no memory for the kernel list");
	*out_objects = number_objects(kernels, count, slots, count * 2 + 1);
	free(slots);
	return LTH_OK;
}

struct member {
	double cpu_ms;
	struct lth_diag diag;
};

/* What the threads share. `next` hands out work; each slot is one thread's until all are joined. */
struct team {
	const struct lth_codegen_target *target;
	struct lth_codegen_object *objects;
	const struct lth_codegen_kernel *const *first; /* by object: a kernel it comes from */
	const uint32_t *missing;
	uint32_t num_missing;
	struct member *members;
	atomic_uint next;
	atomic_bool failed;
};

static double thread_cpu_ms(void)
{
	struct timespec now;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

static void compile_one(struct team *team, LLVMTargetMachineRef machine, uint32_t index, struct lth_diag *diag)
{
	struct lth_codegen_object *object = &team->objects[index];
	const struct lth_loop_fn *fn = team->first[index]->fn;
	struct lth_buf bytes = {0};
	char symbol[sizeof(LTH_KERNEL_PREFIX) + LTH_KERNEL_HEX];
	snprintf(symbol, sizeof(symbol), "%s%s", LTH_KERNEL_PREFIX, object->name);
	enum lth_code code = lth_llvm_compile(fn, team->target, machine, symbol, LLVMObjectFile, &bytes, diag);
	if (code == LTH_OK)
		add_trailer(&bytes);
	if (code == LTH_OK && !lth_buf_ok(&bytes))
		code = lth_diag_fail(diag, LTH_OUT_OF_MEMORY, "code generation", NULL, NULL, "no memory for an object");
	if (code != LTH_OK) {
		lth_diag_within(diag, "kernel %s", fn->description);
		lth_buf_free(&bytes);
		atomic_store(&team->failed, true);
		return;
	}
	object->data = (unsigned char *)bytes.data;
	object->size = bytes.size;
}

static void work(void *context, unsigned number)
{
	struct team *team = context;
	struct member *member = &team->members[number];
	double start = thread_cpu_ms();
	LLVMTargetMachineRef machine = lth_llvm_machine(team->target, &member->diag);
	if (!machine)
		atomic_store(&team->failed, true);
	while (machine && !atomic_load(&team->failed)) {
		unsigned turn = atomic_fetch_add(&team->next, 1);
		if (turn >= team->num_missing)
			break;
		compile_one(team, machine, team->missing[turn], &member->diag);
	}
	if (machine)
		LLVMDisposeTargetMachine(machine);
	member->cpu_ms = thread_cpu_ms() - start;
}

static enum lth_code run_team(struct team *team, unsigned jobs, double *cpu_ms, struct lth_diag *diag)
{
	jobs = jobs < 1 ? 1 : jobs > team->num_missing ? team->num_missing : jobs;
	team->members = calloc(jobs, sizeof(*team->members));
	if (!team->members)
		return lth_diag_fail(diag, LTH_OUT_OF_MEMORY, "code generation", NULL, NULL, "no memory for threads");
	lth_team_run(jobs, work, team);
	for (unsigned k = 0; k < jobs; k++) {
		*cpu_ms += team->members[k].cpu_ms;
		if (team->members[k].diag.code != LTH_OK && diag->code == LTH_OK)
			*diag = team->members[k].diag;
	}
	free(team->members);
	return diag->code;
}

static void load_cached(const char *cache_dir, struct lth_codegen_object *object)
{
	char path[4096], *data;
	size_t size;
	struct lth_diag ignored = {0};
	int length = snprintf(path, sizeof(path), "%s/%s.o", cache_dir, object->name);
	if (length < 0 || (size_t)length >= sizeof(path) || lth_read_file(path, 0, &data, &size, &ignored) != LTH_OK)
		return;
	if (!lth_codegen_object_valid(data, size)) {
		free(data);
		return;
	}
	object->data = (unsigned char *)data;
	object->size = size;
	object->from_cache = true;
}

void lth_codegen_result_free(struct lth_codegen_result *result)
{
	for (uint32_t k = 0; result->objects && k < result->num_objects; k++)
		free(result->objects[k].data);
	free(result->objects);
	*result = (struct lth_codegen_result){0};
}

enum lth_code lth_codegen_objects(const struct lth_codegen_target *target, struct lth_codegen_kernel *kernels,
				  uint32_t count, unsigned jobs, const char *cache_dir,
				  struct lth_codegen_result *out_result, struct lth_diag *diag)
{
	struct lth_codegen_result result = {0};
	enum lth_code code = lth_codegen_identify(target, kernels, count, &result.num_objects, diag);
	if (code != LTH_OK)
		return code;
	size_t room = (size_t)result.num_objects + 1;
	result.objects = calloc(room, sizeof(*result.objects));
	const struct lth_codegen_kernel **first = calloc(room, sizeof(const struct lth_codegen_kernel *));
	uint32_t *missing = calloc(room, sizeof(*missing));
	if (!result.objects || !first || !missing) {
		code = lth_diag_fail(diag, LTH_OUT_OF_MEMORY, "code generation", NULL, NULL, "no memory for the kernel list");
		goto done;
	}
	for (uint32_t k = count; k-- > 0;)
		first[kernels[k].object] = &kernels[k];
	for (uint32_t k = 0; k < result.num_objects; k++)
		memcpy(result.objects[k].name, first[k]->name, sizeof(result.objects[k].name));
	struct team team = {.target = target, .objects = result.objects, .first = first, .missing = missing};
	for (uint32_t k = 0; k < result.num_objects; k++) {
		if (cache_dir)
			load_cached(cache_dir, &result.objects[k]);
		result.from_cache += result.objects[k].from_cache;
		if (!result.objects[k].from_cache)
			missing[team.num_missing++] = k;
	}
	if (team.num_missing > 0)
		code = run_team(&team, jobs, &result.cpu_ms, diag);
	if (code == LTH_OK) {
		*out_result = result;
		result = (struct lth_codegen_result){0};
	}
done:
	free(first);
	free(missing);
	lth_codegen_result_free(&result);
	return code;
}

enum lth_code lth_codegen_text(const struct lth_codegen_target *target, const struct lth_codegen_kernel *kernels,
			       uint32_t count, enum lth_codegen_text kind, struct lth_buf *out, struct lth_diag *diag)
{
	LLVMTargetMachineRef machine = lth_llvm_machine(target, diag);
	enum lth_code code = machine ? LTH_OK : diag->code;
	for (uint32_t k = 0; k < count && code == LTH_OK; k++) {
		char symbol[sizeof(LTH_KERNEL_PREFIX) + LTH_KERNEL_HEX];
		snprintf(symbol, sizeof(symbol), "%s%s", LTH_KERNEL_PREFIX, kernels[k].name);
		lth_buf_printf(out, "%s %s\n", kind == LTH_CODEGEN_LLVM ? ";" : "#", kernels[k].fn->description);
		code = kind == LTH_CODEGEN_LLVM ?
			       lth_llvm_ir(kernels[k].fn, target, machine, symbol, out, diag) :
			       lth_llvm_compile(kernels[k].fn, target, machine, symbol, LLVMAssemblyFile, out, diag);
		lth_buf_putc(out, '\n');
	}
	if (machine)
		LLVMDisposeTargetMachine(machine);
	return code;
}
