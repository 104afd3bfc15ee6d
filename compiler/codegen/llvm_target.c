/* Targets: resolving what a request names, and LLVM's machine for it. See codegen.h, llvm.h. */
#include "compiler/codegen/llvm.h"

#include <llvm-c/Target.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
	const char *name, *cpu, *features, *description;
} targets[] = {
#define LTH_TARGET(name, cpu, features, description) {name, cpu, features, description},
#include "compiler/codegen/targets.def"
#undef LTH_TARGET
};
enum { NUM_TARGETS = sizeof(targets) / sizeof(targets[0]) };

#define DEFAULT_TRIPLE "x86_64-unknown-linux-gnu"

static pthread_once_t initialized = PTHREAD_ONCE_INIT;

static void initialize(void)
{
	LLVMInitializeX86TargetInfo();
	LLVMInitializeX86Target();
	LLVMInitializeX86TargetMC();
	LLVMInitializeX86AsmPrinter();
}

const char *lth_codegen_target_name(unsigned index)
{
	return index < NUM_TARGETS ? targets[index].name : NULL;
}

const char *lth_codegen_target_description(unsigned index)
{
	return index < NUM_TARGETS ? targets[index].description : NULL;
}

const char *lth_codegen_llvm_version(void)
{
	return LLVM_VERSION_STRING;
}

/* Whether the list switches `feature` on; the last word counts. */
static bool has_feature(const char *list, const char *feature)
{
	size_t length = strlen(feature);
	bool on = false;
	for (const char *at = list; at && *at; at = strchr(at, ',')) {
		at += *at == ',';
		if ((*at == '+' || *at == '-') && strncmp(at + 1, feature, length) == 0 &&
		    (at[1 + length] == ',' || at[1 + length] == 0))
			on = *at == '+';
	}
	return on;
}

/* "+word,-word": letters, digits, dots and hyphens. */
static bool valid_features(const char *list)
{
	for (const char *at = list; *at;) {
		if (*at != '+' && *at != '-')
			return false;
		size_t length = strspn(++at, "abcdefghijklmnopqrstuvwxyz0123456789.-_");
		if (length == 0 || (at[length] != ',' && at[length] != 0))
			return false;
		at += length + (at[length] == ',');
		if (at[-1] == ',' && *at == 0)
			return false;
	}
	return true;
}

static int find_target(const char *name)
{
	for (int k = 0; k < NUM_TARGETS; k++)
		if (strcmp(targets[k].name, name) == 0)
			return k;
	return -1;
}

static enum lth_code unknown_cpu(const char *name, struct lth_diag *diag)
{
	const char *names[NUM_TARGETS];
	char advice[128] = "GET /v1/targets lists the targets";
	for (int k = 0; k < NUM_TARGETS; k++)
		names[k] = targets[k].name;
	const char *near = lth_nearest(name, names, NUM_TARGETS);
	if (near)
		snprintf(advice, sizeof(advice), "did you mean \"%s\"?", near);
	return lth_diag_fail(diag, LTH_INVALID_OPTION, "target.cpu", "host, x86-64-v2, x86-64-v3 or x86-64-v4", advice,
			     "\"%.100s\"", name);
}

/* The facts that shape code, from the whole list of features. */
static void look_at_features(struct lth_codegen_target *target, const char *known)
{
	char all[sizeof(target->features) + 256];
	snprintf(all, sizeof(all), "%s%s%s", known, *known && *target->features ? "," : "", target->features);
	bool wide = has_feature(all, "avx512f") && has_feature(all, "avx512bw") && has_feature(all, "avx512dq") &&
		    has_feature(all, "avx512vl");
	target->vector_bytes = wide ? 64 : has_feature(all, "avx2") ? 32 : 16;
	target->registers = wide ? 32 : 16;
	target->fma = has_feature(all, "fma");
	target->f16c = has_feature(all, "f16c");
	target->vnni = (wide && has_feature(all, "avx512vnni")) || (!wide && has_feature(all, "avxvnni"));
	target->prefetchw = has_feature(all, "prfchw");
}

enum lth_code lth_codegen_target_resolve(const struct lth_codegen_request *request, struct lth_codegen_target *out,
					 struct lth_diag *diag)
{
	struct lth_codegen_target target = {0};
	const char *triple = request->triple && *request->triple ? request->triple : DEFAULT_TRIPLE;
	const char *cpu = request->cpu && *request->cpu ? request->cpu : "host";
	const char *features = request->features ? request->features : "";
	if (strcmp(triple, DEFAULT_TRIPLE) != 0 && strcmp(triple, "x86_64-linux-gnu") != 0 &&
	    strcmp(triple, "x86_64-pc-linux-gnu") != 0)
		return lth_diag_fail(diag, LTH_UNSUPPORTED, "target.triple", DEFAULT_TRIPLE, NULL, "\"%.100s\"", triple);
	int row = find_target(cpu);
	if (row < 0)
		return unknown_cpu(cpu, diag);
	if (!valid_features(features))
		return lth_diag_fail(diag, LTH_INVALID_OPTION, "target.features", "a list like \"+avx512vnni,-avx512f\"",
				     NULL, "\"%.100s\"", features);
	pthread_once(&initialized, initialize);
	char *host_cpu = targets[row].cpu ? NULL : LLVMGetHostCPUName();
	char *host_features = targets[row].cpu ? NULL : LLVMGetHostCPUFeatures();
	snprintf(target.triple, sizeof(target.triple), "%s", DEFAULT_TRIPLE);
	snprintf(target.name, sizeof(target.name), "%s", cpu);
	snprintf(target.cpu, sizeof(target.cpu), "%s", host_cpu ? host_cpu : targets[row].cpu);
	int length = snprintf(target.features, sizeof(target.features), "%s%s%s", host_features ? host_features : "",
			      host_features && *host_features && *features ? "," : "", features);
	LLVMDisposeMessage(host_cpu);
	LLVMDisposeMessage(host_features);
	if (length < 0 || (size_t)length >= sizeof(target.features))
		return lth_diag_fail(diag, LTH_INVALID_OPTION, "target.features", "a shorter list", NULL, "%d bytes", length);
	look_at_features(&target, targets[row].features);
	*out = target;
	return LTH_OK;
}

LLVMTargetMachineRef lth_llvm_machine(const struct lth_codegen_target *target, struct lth_diag *diag)
{
	LLVMTargetRef llvm_target;
	char *message = NULL;
	pthread_once(&initialized, initialize);
	if (LLVMGetTargetFromTriple(target->triple, &llvm_target, &message)) {
		lth_diag_fail(diag, LTH_UNSUPPORTED, "target.triple", NULL, NULL, "%s", message);
		LLVMDisposeMessage(message);
		return NULL;
	}
	LLVMTargetMachineRef machine =
		LLVMCreateTargetMachine(llvm_target, target->triple, target->cpu, target->features, LLVMCodeGenLevelLess,
					LLVMRelocPIC, LLVMCodeModelDefault);
	if (!machine)
		lth_diag_fail(diag, LTH_UNSUPPORTED, "target", NULL, NULL, "%s, which LLVM cannot set up", target->cpu);
	return machine;
}
