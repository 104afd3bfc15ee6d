/* What the tests of templates share: a function under construction with its operands and parameters, an epilogue that
 * stores (and may add a residual), runs by the interpreter or as compiled code, random shapes from a printed seed. */
#ifndef LTH_TEST_TEMPLATE_RIG_H
#define LTH_TEST_TEMPLATE_RIG_H

#include "compiler/lower/templates/template.h"

enum { RIG_MAX_POINTERS = 12, RIG_MAX_INTS = 128, RIG_MAX_AXES = 9 };

enum rig_machine { RIG_AVX512, RIG_AVX2, RIG_SSE, RIG_NUM_MACHINES };

struct rig {
	struct lth_arena *arena;
	struct lth_dims *dims;
	struct lth_machine machine;
	struct lth_epilogue epilogue;
	struct lth_emit emit;
	enum lth_dtype compute;
	void *pointers[RIG_MAX_POINTERS];
	lth_dim ints[RIG_MAX_INTS];
	int64_t values[RIG_MAX_INTS];
	bool symbolic; /* every extent a symbol of its own value instead of a constant */
	uint32_t num_symbols;
	/* Outputs of the anchor: strides in elements by logical axis. */
	struct {
		uint32_t rank;
		uint32_t pointer;
		int64_t strides[RIG_MAX_AXES], extents[RIG_MAX_AXES];
		void *data;
		int64_t elements;
	} outputs[3];
	enum rig_machine kind;
	bool relu;              /* the epilogue stores max(value, 0) instead of adding value + 1 to what is there */
	bool native;            /* compile for this machine instead of the kind's least */
	void *library;          /* the compiled kernel's */
	lathe_kernel_fn kernel; /* NULL: interpreted */
	struct lathe_kernel_call call;
	const char *guard; /* 64 bytes behind the scratch */
	int64_t units;
};

void rig_start(struct rig *rig, enum rig_machine machine, enum lth_dtype compute, bool symbolic);
void rig_end(struct rig *rig);
lth_dim rig_dim(struct rig *rig, int64_t value); /* a symbol with this value when the rig is symbolic */
/* An operand over `data`, which must outlive the rig's run. */
struct lth_operand rig_operand(struct rig *rig, void *data, enum lth_dtype memory, bool written);
/* Output `which` with the given axes, `order` listing them outermost first; allocates it filled with nan. */
void rig_output(struct rig *rig, uint32_t which, uint32_t rank, const int64_t *extents, const uint32_t *order);
double rig_at(const struct rig *rig, uint32_t which, const int64_t *index);
void *rig_random(struct rig *rig, int64_t count); /* of the compute type, in (-1, 1) */
double rig_get(const struct rig *rig, const void *data, int64_t index);
int64_t rig_uniform(int64_t low, int64_t high);
void rig_seed(void);
/* Plans, packs constants, emits, evaluates: ready to call. `packed` as for rig_run. */
bool rig_prepare(struct rig *rig, struct lth_problem *problem, struct lth_operand *packed[2],
		 struct lth_template_plan *plan);
lathe_kernel_fn rig_compile(struct rig *rig, double *out_ms); /* out_ms may be NULL: CPU time of LLVM */
bool rig_can_execute(enum rig_machine machine);
/* The same, then compiles (or interprets, where the machine cannot run the code) and runs over the whole range in
 * random pieces. `packed` are the operands that plan.packs[0] and [1] belong to. False when no template takes the
 * problem. */
bool rig_run(struct rig *rig, struct lth_problem *problem, struct lth_operand *packed[2],
	     struct lth_template_plan *plan);
/* |got - expected| within rounding of a sum of `terms` products. */
bool rig_near(const struct rig *rig, double got, double expected, int64_t terms);

#endif
