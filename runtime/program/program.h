/* The program: a linear list of instructions over explicit storages, which the memory passes rewrite and the runtime
 * executes. One struct serves both; it has a text form (program_text.c, prints and parses), a binary form that travels
 * in executables (program_binary.c), and one verifier (program_verify.c) after which the interpreter checks nothing
 * more.
 *
 * Ids are indices into the arrays below. Expressions form a list in which operands come before users, so one pass
 * evaluates all. Each tensor is a strided window on a storage; views (transposes, slices, reshapes) are tensors that
 * share a storage and cost nothing.
 *
 * Thread rule: a program is built by one thread, and immutable once verified. All memory is the arena's. */
#ifndef LTH_PROGRAM_H
#define LTH_PROGRAM_H

#include "runtime/base/arena.h"
#include "runtime/base/buf.h"
#include "runtime/base/diag.h"
#include "runtime/tensor/dtype.h"

enum { LTH_MAX_RANK = 16 };
#define LTH_NONE UINT32_MAX /* the invalid id */

enum lth_expr_op {
#define LTH_EXPR(name, text, operands, real, commutes) LTH_EXPR_##name,
#include "runtime/program/exprs.def"
#undef LTH_EXPR
	LTH_NUM_EXPRS
};

struct lth_expr {
	enum lth_expr_op op;
	uint32_t a, b; /* operands: expressions with smaller ids; SYMBOL: a is the symbol */
	int64_t value; /* CONST, RCONST (bits of a double) */
};

/* Where a symbol's value comes from. */
enum lth_symbol_source {
	LTH_SOURCE_INPUT, /* dimension `axis` of input `input`, before the first instruction */
	LTH_SOURCE_DATA,  /* set by BIND instructions in the course of a run */
	LTH_NUM_SOURCES
};

struct lth_symbol {
	const char *name;
	int64_t min, max; /* inclusive; max INT64_MAX: no bound */
	int64_t multiple; /* every value is a multiple of this, at least 1 */
	int64_t hint;     /* a typical value, for planning and for figures */
	enum lth_symbol_source source;
	uint32_t input, axis;
	uint32_t bound; /* DATA: expression over INPUT symbols that is never exceeded, or LTH_NONE */
};

enum lth_storage_kind {
	LTH_STORAGE_ARENA,    /* between ALLOC and KILL; planned into the arena, or from the pool where no plan is */
	LTH_STORAGE_POOL,     /* always from the counted pool at ALLOC: its size is not known before the run */
	LTH_STORAGE_INPUT,    /* the caller's input `index`, read only; no ALLOC or KILL */
	/* Output `index`: the caller's buffer, or the runtime's from the pool, handed over; no ALLOC or KILL. Its size
	 * is over INPUT symbols only: an output without a bound before the run lives in a POOL storage instead. */
	LTH_STORAGE_OUTPUT,
	LTH_STORAGE_CONSTANT, /* bytes [index, index + size) of the executable's constants, read only */
	LTH_NUM_STORAGES
};

struct lth_storage {
	enum lth_storage_kind kind;
	int64_t index;      /* see the kinds */
	uint32_t size;      /* expression, bytes; but for POOL over INPUT symbols only (data symbols at their bound) */
	int64_t alignment;  /* bytes, a power of two */
	uint32_t first, last; /* live range in instruction positions, half-open; filled by ManifestLifetimes */
	const char *name;   /* of the value it was made for; for people */
};

struct lth_tensor {
	enum lth_dtype dtype;
	uint32_t rank;
	uint32_t dims[LTH_MAX_RANK];    /* expressions, elements */
	uint32_t strides[LTH_MAX_RANK]; /* expressions, elements; sub-byte types must be dense */
	uint32_t offset;                /* expression, bytes from the storage's start */
	uint32_t storage;
	const char *name;
};

/* A compiled kernel: its symbol in the executable is "lth_k_" + name. */
struct lth_kernel {
	const char *name;         /* hex identity */
	const char *description;  /* what it computes, for people: "conv2d+relu" */
	uint32_t num_pointers, num_ints;
};

enum lth_instr_op {
#define LTH_INSTR(name, text, description) LTH_INSTR_##name,
#include "runtime/program/instrs.def"
#undef LTH_INSTR
	LTH_NUM_INSTRS
};

enum lth_relation { LTH_REL_EQ, LTH_REL_LE, LTH_REL_DIVIDES, LTH_NUM_RELATIONS };

/* Operands by instruction:
 *   ALLOC, KILL  storage
 *   CALL         callee: kernel; tensors (num_outputs first ones are written); ints; range: expression, units of
 *                parallel work; grain: fewest units worth a task, at least 1; scratch: a storage that holds
 *                `scratch_bytes` (expression) for each thread, or LTH_NONE for both. The call runs on at most
 *                size / scratch_bytes threads.
 *   BUILTIN      callee: enum lth_builtin (runtime/kernels/builtin.h); tensors (num_outputs first ones are written);
 *                ints; text: attributes the builtin reads (JSON-free "key=value;..." form), or NULL
 *   COPY         tensors: destination, source (same dims)
 *   SWAP         tensors: two, each on a storage of its own, both written; ints: how often (LTH_NONE: once; what is even
 *                or below zero changes nothing)
 *   GROW         tensors: one on a POOL storage; ints: bytes that the storage then holds at least
 *   BIND         symbol (DATA source); tensors: one of integers or bools; ints: element index
 *   SET          symbol (DATA source); ints: its value
 *   GUARD        ints: a, b; relation; text: message
 *   IF           tensors: one bool scalar; target: position of its ELSE or ENDIF
 *   ELSE         target: position of its ENDIF
 *   LOOP         tensors: condition (bool scalar, LTH_NONE: true), read before every turn; ints: trip count, read once
 *                (LTH_NONE: no end; one of the two must be there); symbol: the turn number's symbol (DATA source) or
 *                LTH_NONE; target: position of its ENDLOOP
 *   ENDLOOP      target: position of its LOOP
 * An ALLOC that a loop's turn meets while the storage still lives from the turn before begins it anew.
 * Storages that swap, directly or through others, form a class: any may stand at any one's place. In the arena they have one
 * size and begin and end to live together, so that all places are theirs as long as one is in use. Where some are OUTPUTs,
 * the others live to the end, and the run ends by bringing the outputs' bytes to their own places. In the POOL a block
 * belongs to whom it was swapped to, and no more is asked.
 * Every program ends with its only RETURN, outside all blocks. */
struct lth_instr {
	enum lth_instr_op op;
	uint32_t callee, storage, symbol, target;
	uint32_t num_tensors, num_outputs, num_ints;
	const uint32_t *tensors; /* tensor ids; LTH_NONE for an absent optional operand; outputs first */
	const uint32_t *ints;    /* expression ids */
	uint32_t range, grain, scratch, scratch_bytes;
	uint32_t flops; /* CALL: expression of its floating-point operations, for profiles; LTH_NONE: not known */
	enum lth_relation relation; /* GUARD: a == b, a <= b, a divides b */
	const char *text; /* BUILTIN: attributes; GUARD: message */
	const char *node; /* name of the graph node it came from, for errors and profiles; may be NULL */
	/* CALL, compile time only: bit k: tensor k is read only at the element that is then written to tensor 0. */
	uint32_t in_place;
};

/* An input or output of the whole program. The tensor of input i is dense, at offset 0 of a storage of kind INPUT and
 * index i. That of output i may live anywhere: on OUTPUT storage i it is dense at offset 0 and nothing is copied; on
 * any other storage, which must be alive at RETURN, the runtime copies it out (or hands a whole POOL storage over).
 * A sequence, optional or map is a scalar of type OBJECT, its handle; never on an OUTPUT storage. */
struct lth_port {
	const char *name;
	uint32_t tensor;
	const char *type; /* of an object: text of value_type.h; else NULL */
};

/* One way to lay out the arena (MEMORY.md, orientation plans): storages in topological order; the offset of entry i is
 *   max(base[i], max over j in below[edge[i] .. edge[i+1]) of align(offset(j) + size(j)))
 * A static plan has bases and no edges; a symbolic one edges and zero bases. */
struct lth_orientation {
	uint32_t num_storages, num_edges;
	const uint32_t *storages; /* topological order */
	const int64_t *base;      /* bytes */
	const uint32_t *edges;    /* num_storages + 1 positions into below */
	const uint32_t *below;    /* positions in `storages`, smaller than the entry's own */
};

struct lth_program {
	struct lth_arena *arena;
	const char *name;
	struct lth_symbol *symbols;
	struct lth_expr *exprs;
	struct lth_storage *storages;
	struct lth_tensor *tensors;
	struct lth_kernel *kernels;
	struct lth_instr *instrs;
	struct lth_port *inputs, *outputs;
	struct lth_orientation *orientations; /* none: no arena, ARENA storages come from the pool */
	uint32_t num_symbols, num_exprs, num_storages, num_tensors, num_kernels, num_instrs;
	uint32_t num_inputs, num_outputs, num_orientations;
	uint32_t cap_symbols, cap_exprs, cap_storages, cap_tensors, cap_kernels, cap_instrs;
	uint32_t cap_inputs, cap_outputs, cap_orientations;
	bool fused_sizes; /* FuseSizes: all sizes are evaluated once a signature; else at each ALLOC, in every run */
	uint64_t constants_bytes;
	const char *certificate; /* the plan's, for people; may be NULL */
	uint32_t *interned;      /* hash table over exprs, of builders only */
	uint32_t cap_interned;
};

/* Building: each appends and returns the new id, LTH_NONE when the arena is exhausted (sticky; check once). Expressions
 * are interned: the same operator and operands give the same id; constants fold. */
struct lth_program *lth_program_create(struct lth_arena *arena);
/* Room for so many tensors, as many storages, and so many instructions. More may come. */
bool lth_program_reserve(struct lth_program *program, uint32_t tensors, uint32_t instrs);
/* Names and texts are borrowed by all of these: they live as long as the program's arena. */
uint32_t lth_program_const(struct lth_program *program, int64_t value);
uint32_t lth_program_expr(struct lth_program *program, enum lth_expr_op op, uint32_t a, uint32_t b, int64_t value);
uint32_t lth_program_symbol(struct lth_program *program, const struct lth_symbol *symbol);
uint32_t lth_program_storage(struct lth_program *program, const struct lth_storage *storage);
uint32_t lth_program_tensor(struct lth_program *program, const struct lth_tensor *tensor);
uint32_t lth_program_kernel(struct lth_program *program, const struct lth_kernel *kernel);
/* An instruction that names nothing yet: operands that an instruction does not use stay so. */
static inline struct lth_instr lth_instr_of(enum lth_instr_op op)
{
	return (struct lth_instr){.op = op,
				  .callee = LTH_NONE,
				  .storage = LTH_NONE,
				  .symbol = LTH_NONE,
				  .target = LTH_NONE,
				  .range = LTH_NONE,
				  .scratch = LTH_NONE,
				  .scratch_bytes = LTH_NONE,
				  .flops = LTH_NONE};
}
/* Copies the operand arrays. */
uint32_t lth_program_instr(struct lth_program *program, const struct lth_instr *instr);
uint32_t lth_program_input(struct lth_program *program, const char *name, uint32_t tensor, const char *type);
uint32_t lth_program_output(struct lth_program *program, const char *name, uint32_t tensor, const char *type);
/* Copies the arrays. */
uint32_t lth_program_orientation(struct lth_program *program, const struct lth_orientation *orientation);
/* The expression that lth_program_expr would find or fold to, without adding one; LTH_NONE when there is none. */
uint32_t lth_program_find_expr(const struct lth_program *program, enum lth_expr_op op, uint32_t a, uint32_t b,
			       int64_t value);
/* Appends as it stands, neither folded nor shared; for program_binary.c, which keeps ids. */
uint32_t lth_program_append_expr(struct lth_program *program, struct lth_expr expr);
/* Fills `strides` with those of a dense row-major tensor of these dims. */
void lth_program_dense_strides(struct lth_program *program, uint32_t rank, const uint32_t *dims, uint32_t *strides);
/* The classes of storages that swap: `out_class`, one a storage, is the same number for those of one class. */
void lth_program_swap_classes(const struct lth_program *program, uint32_t *out_class);
/* Fills in the targets of IF, ELSE, LOOP and ENDLOOP from the nesting; for passes that moved instructions. */
LTH_MUST_CHECK enum lth_code lth_program_link_blocks(struct lth_program *program, struct lth_diag *diag);

/* Facts from the tables. */
const char *lth_expr_text(enum lth_expr_op op);
unsigned lth_expr_operands(enum lth_expr_op op);
bool lth_expr_is_real(enum lth_expr_op op); /* its value is a double */
bool lth_expr_takes_real(enum lth_expr_op op); /* its operands are doubles */
const char *lth_instr_text(enum lth_instr_op op);

/* One operator on evaluated operands; false on overflow, division by zero, or a real without an integer. */
bool lth_expr_apply(enum lth_expr_op op, int64_t a, int64_t b, int64_t *out_value);
/* 0 divides 0 only. */
bool lth_relation_holds(enum lth_relation relation, int64_t a, int64_t b);

/* The error of one that cannot be applied: of `place`, or of the expression by its number where that is NULL. */
enum lth_code lth_expr_failed(const struct lth_program *program, uint32_t id, int64_t a, int64_t b, const char *place,
			      struct lth_diag *diag);

/* Evaluates all expressions for given symbol values into `out_values` (num_exprs; reals as bits of a double). A symbol
 * whose entry in `known` is false, and what depends on it, is skipped: out_defined[i] says which were evaluated. NULL
 * for `known` and `out_defined` means all. LTH_RUNTIME_ERROR on overflow or division by zero. program_eval.c */
LTH_MUST_CHECK enum lth_code lth_program_eval(const struct lth_program *program, const int64_t *symbols,
					      const bool *known, int64_t *out_values, bool *out_defined,
					      struct lth_diag *diag);

/* Text: print(parse(x)) == x. Grammar in docs/PROGRAM.md. Print takes verified
 * programs or what builders made. program_print.c, program_parse.c */
void lth_program_print(const struct lth_program *program, struct lth_buf *out);
LTH_MUST_CHECK enum lth_code lth_program_parse(const char *text, size_t size, struct lth_arena *arena,
					       struct lth_program **out_program, struct lth_diag *diag);
/* An expression for people: "2*batch + 1"; cut with "..." where it is very long. program_expr_text.c */
void lth_program_expr_text(const struct lth_program *program, uint32_t expr, struct lth_buf *out);
/* Binary: little-endian, versioned, hash at the end. program_binary.c */
void lth_program_encode(const struct lth_program *program, struct lth_buf *out);
LTH_MUST_CHECK enum lth_code lth_program_decode(const void *bytes, size_t size, struct lth_arena *arena,
						struct lth_program **out_program, struct lth_diag *diag);
/* Everything untrusted: ids in range, expression order, structured control flow, operands of each instruction, storages
 * alive where used when `lifetimes` (kills present), orientations cover what they must. program_verify.c */
LTH_MUST_CHECK enum lth_code lth_program_verify(const struct lth_program *program, struct lth_diag *diag);

#endif
