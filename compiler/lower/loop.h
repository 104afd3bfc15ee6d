/* Loop IR: what kernels are written in. Typed, in SSA form, with scalars and vectors; structured loops with carried
 * values (accumulators never touch memory), no aliasing promises, nothing to optimise after it (KERNELS.md, 6). It
 * prints and parses (docs/IR.md); codegen/ turns it into LLVM one to one; interp.c runs it.
 *
 * Types: compute dtypes of scalars.def times a lane count (1: scalar), and pointers. Memory dtypes stand on loads,
 * stores and offsets; f16, bf16, f8*, f4 widen to f32 and round half to even at the store; sub-byte integers are not
 * addressed here (C kernels unpack them). bool is one byte in memory, 0 or 1.
 *
 * Building never fails but by exhaustion of the arena (sticky). Wrong types are broken invariants (asserts): whoever
 * parses text checks first (loop_parse.c). Thread rule: a function is built by one thread. */
#ifndef LTH_LOWER_LOOP_H
#define LTH_LOWER_LOOP_H

#include "compiler/lower/expr.h"
#include "runtime/base/arena.h"
#include "runtime/base/buf.h"
#include "runtime/base/diag.h"
#include "runtime/program/kernel_abi.h"

typedef uint32_t lth_lv; /* a value: the index of the instruction that defines it */
#define LTH_LV_NONE UINT32_MAX
#define LTH_POINTER_TYPE LTH_NUM_DTYPES /* dtype of pointer values */

enum lth_loop_op {
#define LTH_LOOP(name, text, description) LTH_LOOP_##name,
#include "compiler/lower/loops.def"
#undef LTH_LOOP
	LTH_NUM_LOOPS
};

/* Operands by instruction (a, b, c are values; list is `count` values):
 *   CONST i or f | INT, POINTER: id | OP: scalar; a b c; memory for ROUND_TO | SPLAT a | RAMP a | MASK a
 *   EXTRACT a, i: lane | SHUFFLE a b, list: lane numbers (not values) | PERMUTE a, b: i32 lanes | REDUCE a, scalar: ADD MUL MIN MAX AND OR
 *   OFFSET a: pointer, b: i64, memory | LOAD a: pointer, memory, c: mask or NONE (masked-off lanes are zero)
 *   STORE a: pointer, b: value, memory, c: mask or NONE | GATHER a b memory c | SCATTER a: pointer, b: value,
 *   list[0]: index, memory, c: mask | PREFETCH a, i: 0 read 1 write | DOT4 a: i32 lanes, b: u8, c: i8 of 4x the lanes
 *   FOR a: begin, b: end, c: step (constant > 0), list: initial carried values; its PHIs follow it
 *   PHI i: which, id: its FOR | ENDFOR list, id: its FOR; its RESULTs follow it
 *   IF a | ELSE list, id: its IF | ENDIF list, id: its IF; its RESULTs follow it
 *   RESULT i: which, id: its ENDFOR or ENDIF | FAIL a: bool, i: enum lth_kernel_error
 * CONST, INT, POINTER, SCRATCH, BEGIN and END may stand anywhere and are valid everywhere; other values from where they
 * are defined to the end of their block. Operands of an instruction have equal lanes. */
struct lth_loop_instr {
	enum lth_loop_op op;
	enum lth_scalar_op scalar;
	enum lth_dtype dtype;  /* of the result: compute type or LTH_POINTER_TYPE */
	enum lth_dtype memory;
	uint16_t lanes;
	lth_lv a, b, c;
	uint32_t id, count;
	const uint32_t *list;
	union {
		int64_t i;
		double f;
	};
};

struct lth_loop_param {
	enum lth_dtype memory; /* element type, for people and the interpreter's bounds */
	bool written;
};

struct lth_loop_fn {
	struct lth_arena *arena;
	const char *description; /* for people: "conv2d+relu"; not part of the identity */
	struct lth_loop_param *pointers;
	struct lth_loop_instr *instrs;
	uint32_t num_pointers, num_ints, num_instrs;
	uint32_t cap_pointers, cap_instrs;
	struct lth_loop_builder *builder; /* loop.c's own */
};

/* Lanes of a vector: 2 .. LTH_MAX_LANES, 1 is a scalar. */
enum { LTH_MAX_LANES = 256 };

struct lth_loop_fn *lth_loop_create(struct lth_arena *arena, uint32_t num_ints);
uint32_t lth_loop_add_pointer(struct lth_loop_fn *fn, enum lth_dtype memory, bool written); /* its id */
uint32_t lth_loop_add_int(struct lth_loop_fn *fn);                                         /* its id */

lth_lv lth_loop_const_i(struct lth_loop_fn *fn, enum lth_dtype dtype, int64_t value);
lth_lv lth_loop_const_f(struct lth_loop_fn *fn, enum lth_dtype dtype, double value);
lth_lv lth_loop_i64(struct lth_loop_fn *fn, int64_t value);
lth_lv lth_loop_int(struct lth_loop_fn *fn, uint32_t id);
lth_lv lth_loop_pointer(struct lth_loop_fn *fn, uint32_t id);
lth_lv lth_loop_scratch(struct lth_loop_fn *fn);
lth_lv lth_loop_begin(struct lth_loop_fn *fn);
lth_lv lth_loop_end(struct lth_loop_fn *fn);
/* Operands have equal lanes, or some are scalars, which are splatted. Pointers allow SELECT and EQ (scalars only).
 * Constants fold; x + 0, x * 1, select of a constant and the like simplify where that is exact; an equal computation in
 * scope is found again. loop_fold.c */
lth_lv lth_loop_op1(struct lth_loop_fn *fn, enum lth_scalar_op op, lth_lv a);
lth_lv lth_loop_op2(struct lth_loop_fn *fn, enum lth_scalar_op op, lth_lv a, lth_lv b);
lth_lv lth_loop_op3(struct lth_loop_fn *fn, enum lth_scalar_op op, lth_lv a, lth_lv b, lth_lv c);
lth_lv lth_loop_cast(struct lth_loop_fn *fn, lth_lv a, enum lth_dtype dtype);
lth_lv lth_loop_bitcast(struct lth_loop_fn *fn, lth_lv a, enum lth_dtype dtype);
lth_lv lth_loop_round_to(struct lth_loop_fn *fn, lth_lv a, enum lth_dtype narrow);
lth_lv lth_loop_splat(struct lth_loop_fn *fn, lth_lv a, unsigned lanes);
lth_lv lth_loop_ramp(struct lth_loop_fn *fn, lth_lv a, unsigned lanes);
lth_lv lth_loop_mask(struct lth_loop_fn *fn, lth_lv count, unsigned lanes);
lth_lv lth_loop_extract(struct lth_loop_fn *fn, lth_lv a, unsigned lane);
lth_lv lth_loop_shuffle(struct lth_loop_fn *fn, lth_lv a, lth_lv b, const uint32_t *lanes, unsigned count);
lth_lv lth_loop_permute(struct lth_loop_fn *fn, lth_lv a, lth_lv lanes);
lth_lv lth_loop_reduce(struct lth_loop_fn *fn, enum lth_scalar_op op, lth_lv a);
lth_lv lth_loop_offset(struct lth_loop_fn *fn, lth_lv pointer, lth_lv elements, enum lth_dtype memory);
lth_lv lth_loop_load(struct lth_loop_fn *fn, lth_lv pointer, enum lth_dtype memory, unsigned lanes, lth_lv mask);
void lth_loop_store(struct lth_loop_fn *fn, lth_lv pointer, lth_lv value, enum lth_dtype memory, lth_lv mask);
lth_lv lth_loop_gather(struct lth_loop_fn *fn, lth_lv pointer, lth_lv index, enum lth_dtype memory, lth_lv mask);
void lth_loop_scatter(struct lth_loop_fn *fn, lth_lv pointer, lth_lv index, lth_lv value, enum lth_dtype memory,
		      lth_lv mask);
void lth_loop_prefetch(struct lth_loop_fn *fn, lth_lv pointer, bool write);
lth_lv lth_loop_dot4(struct lth_loop_fn *fn, lth_lv sum, lth_lv unsigned_bytes, lth_lv signed_bytes);

/* for (index = begin; index < end; index += step). `initial` are the carried values, `out_phis` (count entries) their
 * names inside. Returns the index. */
lth_lv lth_loop_for(struct lth_loop_fn *fn, lth_lv begin, lth_lv end, int64_t step, const lth_lv *initial,
		    uint32_t count, lth_lv *out_phis);
/* Ends the innermost for; `out_results` are the carried values behind it. */
void lth_loop_end_for(struct lth_loop_fn *fn, const lth_lv *next, uint32_t count, lth_lv *out_results);
void lth_loop_if(struct lth_loop_fn *fn, lth_lv condition);
void lth_loop_else(struct lth_loop_fn *fn, const lth_lv *yields, uint32_t count);
/* Without an else before it the count must be 0. */
void lth_loop_end_if(struct lth_loop_fn *fn, const lth_lv *yields, uint32_t count, lth_lv *out_results);
/* The kernel will return an error where the condition holds in any lane; it goes on to its end all the same, so what
 * follows must be safe on any value. */
void lth_loop_fail(struct lth_loop_fn *fn, lth_lv condition, enum lth_kernel_error error);

static inline const struct lth_loop_instr *lth_loop_get(const struct lth_loop_fn *fn, lth_lv value)
{
	return &fn->instrs[value];
}

/* Structure and types of a function that came from text (a built one holds by construction). loop_verify.c */
LTH_MUST_CHECK enum lth_code lth_loop_verify(const struct lth_loop_fn *fn, struct lth_diag *diag);
/* A word for each kernel error: "index", ... */
const char *lth_kernel_error_text(enum lth_kernel_error error);
/* Text; the canonical form whose SHA-256, with the target, is the kernel's identity. */
void lth_loop_print(const struct lth_loop_fn *fn, struct lth_buf *out);
LTH_MUST_CHECK enum lth_code lth_loop_parse(const char *text, size_t size, struct lth_arena *arena,
					    struct lth_loop_fn **out_fn, struct lth_diag *diag);
/* Runs the function over units [begin, end) in this process: FoldConstant's engine and the oracle of tests. Same ABI and
 * return value as a compiled kernel. LTH_OUT_OF_MEMORY when it cannot start. interp.c */
LTH_MUST_CHECK enum lth_code lth_loop_interpret(const struct lth_loop_fn *fn, const struct lathe_kernel_call *call,
						int64_t begin, int64_t end, int *out_error, struct lth_diag *diag);

/* One scalar operator on constants; integers in i, floats in f (rounded to dtype). `operand` is the type of the operands
 * (of the last two of SELECT), `result` that of the result; for ROUND_TO it names the narrow type. scalar.c */
union lth_scalar_value {
	int64_t i;
	double f;
};
union lth_scalar_value lth_scalar_eval(enum lth_scalar_op op, enum lth_dtype operand, enum lth_dtype result,
				       union lth_scalar_value a, union lth_scalar_value b, union lth_scalar_value c);
unsigned lth_scalar_arity(enum lth_scalar_op op);
const char *lth_scalar_text(enum lth_scalar_op op);

#endif
