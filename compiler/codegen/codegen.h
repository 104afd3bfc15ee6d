/* Code generation: from kernels in loop IR to relocatable objects. LLVM stays behind this header (no other folder
 * includes its headers). A kernel's identity is the SHA-256 of its canonical text, the target and this generator's
 * version; its symbol is "lth_k_" + identity. Equal kernels are compiled once; objects come from the cache folder where
 * it has them.
 *
 * Thread rule: all functions may be called from any thread; lth_codegen_objects starts its own. */
#ifndef LTH_CODEGEN_CODEGEN_H
#define LTH_CODEGEN_CODEGEN_H

#include "compiler/lower/loop.h"

#define LTH_KERNEL_PREFIX "lth_k_"
enum { LTH_KERNEL_HEX = 64 };

/* What the request says; NULL or "" is the default: the triple x86_64-unknown-linux-gnu, the cpu "host". `features` is a
 * list like "+avx512vnni,-avx512f" on top of the cpu's own. */
struct lth_codegen_request {
	const char *triple, *cpu, *features;
};

/* The target as resolved. */
struct lth_codegen_target {
	char triple[64];
	char name[32];        /* as asked: "host", "x86-64-v3" */
	char cpu[64];         /* as LLVM calls it */
	char features[2048];  /* for LLVM */
	unsigned vector_bytes; /* of the widest useful unit: 64, 32 or 16 */
	unsigned registers;    /* vector registers: 32 or 16 */
	bool fma, f16c, vnni, prefetchw;
};
/* LTH_INVALID_OPTION (naming the nearest known) or LTH_UNSUPPORTED. */
LTH_MUST_CHECK enum lth_code lth_codegen_target_resolve(const struct lth_codegen_request *request,
							struct lth_codegen_target *out, struct lth_diag *diag);
/* Names for `targets` of the description: entry `index`, NULL behind the last. */
const char *lth_codegen_target_name(unsigned index);
const char *lth_codegen_target_description(unsigned index);
const char *lth_codegen_llvm_version(void);

/* One kernel of the list. */
struct lth_codegen_kernel {
	const struct lth_loop_fn *fn;
	char name[LTH_KERNEL_HEX + 1]; /* out: hex identity, of this target; empty until then */
	uint32_t object;               /* out: number of its identity, and of the object that defines it */
};

/* `data` (malloc'ed) is an ELF relocatable followed by 16 bytes: a mark and a hash of all before them, which linkers
 * ignore and a reader of the cache checks. Stored as NAME.o. */
struct lth_codegen_object {
	char name[LTH_KERNEL_HEX + 1];
	unsigned char *data;
	size_t size;
	bool from_cache;
};

struct lth_codegen_result {
	struct lth_codegen_object *objects; /* distinct kernels in the order they first appear */
	uint32_t num_objects;
	uint32_t from_cache;
	double cpu_ms; /* spent in LLVM, all threads together */
};

/* Compiles what is not in `cache_dir` (NULL: none) on `jobs` threads. A damaged cache entry is compiled anew. The result
 * is the caller's, to be freed by lth_codegen_result_free; untouched on failure. */
LTH_MUST_CHECK enum lth_code lth_codegen_objects(const struct lth_codegen_target *target,
						 struct lth_codegen_kernel *kernels, uint32_t count, unsigned jobs,
						 const char *cache_dir, struct lth_codegen_result *out_result,
						 struct lth_diag *diag);
void lth_codegen_result_free(struct lth_codegen_result *result);

/* Fills in `name` of each kernel that has none, and `object` of all, in the order in which identities first appear;
 * compiles nothing. */
LTH_MUST_CHECK enum lth_code lth_codegen_identify(const struct lth_codegen_target *target,
						  struct lth_codegen_kernel *kernels, uint32_t count,
						  uint32_t *out_objects, struct lth_diag *diag);
/* True when bytes are a whole object as struct lth_codegen_object holds it. */
bool lth_codegen_object_valid(const void *data, size_t size);

enum lth_codegen_text { LTH_CODEGEN_LLVM, LTH_CODEGEN_ASM };
/* The kernels' LLVM IR or assembly, each under a comment with its description, appended to `out`. */
LTH_MUST_CHECK enum lth_code lth_codegen_text(const struct lth_codegen_target *target,
					      const struct lth_codegen_kernel *kernels, uint32_t count,
					      enum lth_codegen_text kind, struct lth_buf *out, struct lth_diag *diag);

#endif
