/* Random programs of fake kernels, with branches, loops, parts written by several calls and scratch, and a small model
 * that runs them: every storage is a few cells, a call writes hashes of what it reads. LTH_TEST_SEED chooses the
 * programs. */
#ifndef LTH_TEST_RANDOM_PROGRAMS_H
#define LTH_TEST_RANDOM_PROGRAMS_H

#include "compiler/memory/memory.h"

extern struct lth_arena *random_arena; /* of the test that runs, and its diagnostics */
extern struct lth_diag random_diag;
extern uint64_t random_first_seed;

void random_setup(void);
void random_teardown(void);
uint32_t random_below(uint32_t limit);
/* Fails the test with the seed and the diagnostics. */
void random_must(enum lth_code code);
/* Two symbols, batch and seq; two outputs. */
struct lth_program *random_make_program(uint64_t seed);
/* What the outputs hold at batch 2 and seq 3. With a plan, storages lie where it puts them; else each by itself. */
void random_run_model(const struct lth_program *program, uint64_t out[2]);

#endif
