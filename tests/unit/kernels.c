/* Compiled kernels for tests. See kernels.h. */
#include "kernels.h"

#include "compiler/emit/emit.h"
#include "runtime/base/io.h"

#include <check.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool test_can_run(const char *cpu)
{
	if (strcmp(cpu, "x86-64-v4") == 0)
		return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
		       __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
	if (strcmp(cpu, "x86-64-v3") == 0)
		return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2");
	if (strcmp(cpu, "x86-64-v2") == 0)
		return __builtin_cpu_supports("sse4.2");
	return true;
}

static void need(enum lth_code code, const struct lth_diag *diag)
{
	char line[4096];
	if (code != LTH_OK)
		ck_abort_msg("%s", lth_diag_line(diag, line, sizeof(line)));
}

static void *open_bytes(const char *folder, const void *data, size_t size)
{
	char path[256];
	struct lth_diag diag = {0};
	snprintf(path, sizeof(path), "%s/kernels.so", folder);
	need(lth_write_file(path, data, size, true, &diag), &diag);
	void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!handle)
		ck_abort_msg("%s", dlerror());
	unlink(path);
	return handle;
}

struct test_kernels test_kernels_load(const struct lth_loop_fn *const *functions, uint32_t count, const char *cpu)
{
	struct lth_diag diag = {0};
	struct lth_codegen_target target;
	struct lth_codegen_result result;
	char folder[] = "kernels.XXXXXX", path[64];
	struct lth_codegen_kernel *kernels = calloc(count, sizeof(*kernels));
	struct lth_emit_object *objects = calloc(count, sizeof(*objects));
	const char **names = calloc(count, sizeof(*names));
	ck_assert(kernels && objects && names && mkdtemp(folder));
	for (uint32_t k = 0; k < count; k++)
		kernels[k].fn = functions[k];
	need(lth_codegen_target_resolve(&(struct lth_codegen_request){.cpu = cpu}, &target, &diag), &diag);
	need(lth_codegen_objects(&target, kernels, count, 2, NULL, &result, &diag), &diag);
	for (uint32_t k = 0; k < count; k++)
		names[k] = kernels[k].name;
	for (uint32_t k = 0; k < result.num_objects; k++)
		objects[k] = (struct lth_emit_object){result.objects[k].data, result.objects[k].size};
	struct lth_emit_input input = {.kernels = names, .num_kernels = count, .objects = objects,
				       .num_objects = result.num_objects, .work_dir = folder};
	void *data;
	size_t size;
	need(lth_emit_artifact(LTH_EMIT_KERNELS, &input, &data, &size, &diag), &diag);
	struct test_kernels loaded = {.handle = open_bytes(folder, data, size)};
	loaded.functions = dlsym(loaded.handle, "lth_image_kernels");
	ck_assert_ptr_nonnull(loaded.functions);
	snprintf(path, sizeof(path), "%s/ld.log", folder);
	unlink(path);
	rmdir(folder);
	free(data);
	free(kernels);
	free(objects);
	free(names);
	lth_codegen_result_free(&result);
	return loaded;
}

void test_kernels_close(struct test_kernels *kernels)
{
	dlclose(kernels->handle);
}
