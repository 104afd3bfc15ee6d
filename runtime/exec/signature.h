/* Shape signatures: the values of the input symbols, and all that follows from them, worked out once and kept. The
 * cache is bounded and allocated with the context; the least recently used entry makes place for a new one. Thread
 * rule: one thread a cache. */
#ifndef LTH_EXEC_SIGNATURE_H
#define LTH_EXEC_SIGNATURE_H

#include "runtime/exec/executable.h"

struct lth_signature {
	uint64_t hash, last_used; /* last_used 0: the entry is empty */
	int64_t *symbols;         /* of all symbols; those of DATA are the run's */
	int64_t *values;          /* of all expressions; those over DATA symbols are the run's */
	int64_t *offsets;         /* of each planned storage, in the arena */
	int64_t arena_bytes;
};

struct lth_signatures {
	const struct lathe_executable *x;
	struct lth_signature *entries, *last;
	uint32_t count;
	uint64_t clock, hits, misses;
	int64_t *bound;   /* the symbols of the inputs in hand */
	int64_t *trial;   /* offsets of an orientation on trial */
	bool *known;      /* of each symbol: it is an input's */
	bool *defined;    /* scratch of an evaluation */
};

/* All memory is the arena's. `wanted` entries, or as many as fit some megabytes when 0. False when out of memory. */
bool lth_signatures_init(struct lth_signatures *cache, const struct lathe_executable *x, uint32_t wanted,
			 struct lth_arena *arena);

/* The signature of these inputs, which it checks first: number, types, ranks, dims, bytes. A new signature is
 * evaluated, and everything that shapes decide is checked: sizes, extents, guards. */
LTH_MUST_CHECK enum lth_code lth_signature_find(struct lth_signatures *cache, const struct lathe_tensor *inputs,
						size_t num_inputs, struct lth_signature **out_signature,
						struct lth_diag *diag);

/* Places storages by one orientation for evaluated sizes; offsets by storage id. False on overflow. layout.c */
bool lth_orientation_place(const struct lth_program *program, const struct lth_orientation *orientation,
			   const int64_t *values, int64_t *offsets, int64_t *out_arena_bytes);
/* The best of all orientations; `trial` is scratch of num_storages. layout.c */
bool lth_arena_layout(const struct lth_program *program, const int64_t *values, int64_t *trial, int64_t *out_offsets,
		      int64_t *out_arena_bytes);

/* Whether a tensor lies inside `limit` bytes of its storage, with all dims at least 0. extent.c */
LTH_MUST_CHECK enum lth_code lth_tensor_check(const struct lth_program *program, uint32_t tensor,
					      const int64_t *values, int64_t limit, struct lth_diag *diag);
/* A symbol's range and multiple; `what` says whose value it is. extent.c */
LTH_MUST_CHECK enum lth_code lth_symbol_check(const struct lth_symbol *symbol, int64_t value, enum lth_code code,
					      const char *place, struct lth_diag *diag);
/* A guard's relation. extent.c */
LTH_MUST_CHECK enum lth_code lth_guard_check(const struct lth_instr *instr, uint32_t position, const int64_t *values,
					     struct lth_diag *diag);

#endif
