/* Executables of programs written by hand, with kernels in C: what the tests of the interpreter share. Failures are
 * those of the test that calls. */
#ifndef LTH_TEST_EXEC_FIXTURE_H
#define LTH_TEST_EXEC_FIXTURE_H

#include "runtime/exec/context.h"
#include "runtime/exec/query.h"

extern struct lth_arena *exec_arena; /* of the test that runs */
extern const struct lathe_api exec_api;
extern const float exec_constants[16]; /* of every program */

void exec_setup(void);
void exec_teardown(void);
/* Kernels that a program may name: add_one, double_it, add_constant, is_less, fails_with_index. */
struct lathe_executable *exec_open_text(const char *text);
struct lathe_context *exec_make_context(const struct lathe_executable *executable,
					const struct lathe_options *options);
/* A tensor of floats. */
struct lathe_tensor exec_floats(float *data, uint32_t rank, int64_t d0, int64_t d1);
void exec_run_ok(struct lathe_context *context, const struct lathe_tensor *inputs, size_t num_inputs,
		 struct lathe_tensor *outputs, size_t num_outputs);
void exec_run_fails(struct lathe_context *context, const struct lathe_tensor *inputs, size_t num_inputs,
		    struct lathe_tensor *outputs, size_t num_outputs, int code, const char *text);
void exec_close_all(struct lathe_context **context, struct lathe_executable **executable);
/* Runs the program below at a shape. */
void exec_check_chain(struct lathe_context *context, int64_t n, int64_t m);

/* Two elementwise calls over a planned temporary; then the output. */
#define EXEC_HEAD                                                                                                      \
	"program \"chain\" {\n constants 64\n"                                                                         \
	" symbol $n in [1, 64] multiple 2 hint 8 input 0 axis 0\n"                                                     \
	" symbol $m in [1, inf] hint 4 input 0 axis 1\n"                                                               \
	" e0 = $n * $m\n e1 = e0 * 4\n"                                                                                \
	" storage s0 \"x\" input 0 bytes e1\n storage s1 \"t\" arena bytes e1 live [0, 4)\n"                           \
	" storage s2 \"y\" output 0 bytes e1\n storage s3 constant 0 bytes 16\n"                                       \
	" kernel k0 \"add_one\" \"plus one\" pointers 2 ints 0\n kernel k1 \"double_it\" pointers 2 ints 0\n"          \
	" tensor t0 \"x\" f32[$n, $m] in s0\n tensor t1 f32[$n, $m] in s1\n tensor t2 \"y\" f32[$n, $m] in s2\n"       \
	" tensor t3 f32[4] in s3\n"                                                                                    \
	" input \"x\" t0\n output \"y\" t2\n"
#define EXEC_CHAIN                                                                                                     \
	" alloc s1\n call k0 writes (t1) reads (t0) range e0 grain 8 node \"a\"\n"                                     \
	" call k1 writes (t2) reads (t1) range e0 grain 8 node \"b\"\n kill s1\n return\n"
#define EXEC_PLAN " orientation {\n s1 base 0\n }\n"

#endif
