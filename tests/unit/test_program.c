/* Unit tests of runtime/program: folding, evaluation, text and binary forms, and what the verifier refuses. */
#include "runtime/base/hash.h"
#include "runtime/program/program.h"
#include "tests/unit/run_suite.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct lth_arena *arena;

static void setup(void)
{
	arena = lth_arena_create(0);
}

static void teardown(void)
{
	lth_arena_destroy(&arena);
}

/* A program that uses every kind of line. */
static const char sample[] = "program \"sample \\\"net\\\"\" {\n"
			     "\tfused_sizes true\n"
			     "\tconstants 128\n"
			     "\tcertificate \"optimal: arena equals live bound\"\n"
			     "\tsymbol $batch in [1, 64] multiple 1 hint 8 input 0 axis 0\n"
			     "\tsymbol $\"x[1]\" in [0, inf] multiple 4 hint 4 input 0 axis 1\n"
			     "\tsymbol $n in [0, inf] multiple 1 hint 1 data\n"
			     "\tsymbol $turn in [0, 9] multiple 1 hint 0 data\n"
			     "\te0 = $batch * $\"x[1]\"\n"
			     "\te1 = e0 * 4\n"
			     "\te2 = e0 * 8\n"
			     "\te3 = $n * 8\n"
			     "\te4 = real $batch\n"
			     "\te5 = e4 rmul #0.5\n"
			     "\te6 = rfloor e5\n"
			     "\te7 = int e6\n"
			     "\te8 = $batch + -1\n"
			     "\tbound $n e0\n"
			     "\tstorage s0 \"x\" input 0 bytes e1\n"
			     "\tstorage s1 arena bytes e1 live [0, 3)\n"
			     "\tstorage s2 pool bytes e3 align 16\n"
			     "\tstorage s3 \"y\" output 0 bytes e1\n"
			     "\tstorage s4 constant 64 bytes 64\n"
			     "\tstorage s5 arena bytes 8\n"
			     "\tstorage s6 arena bytes 1\n"
			     "\tkernel k0 \"00ff\" \"add+relu\" pointers 3 ints 1\n"
			     "\ttensor t0 \"x\" f32[$batch, $\"x[1]\"] in s0\n"
			     "\ttensor t1 f32[$batch, $\"x[1]\"] in s1\n"
			     "\ttensor t2 f32[$\"x[1]\", $batch] strides [1, $\"x[1]\"] at 0 in s1\n"
			     "\ttensor t3 \"y\" f32[$batch, $\"x[1]\"] in s3\n"
			     "\ttensor t4 f32[16] in s4\n"
			     "\ttensor t5 i64[] in s5\n"
			     "\ttensor t6 bool[] in s6\n"
			     "\ttensor t7 i64[$n] strides [1] in s2\n"
			     "\tinput \"x\" t0\n"
			     "\toutput \"y\" t3\n"
			     "\toutput \"n\" t5\n"
			     "\t0: alloc s1\n"
			     "\t1: call k0 writes (t1) reads (t0, _) ints (e7) range $batch grain 16 scratch s1"
			     " bytes 64 flops 4096 node \"conv1\"\n"
			     "\t2: guard $batch <= 64 \"too many\"\n"
			     "\t3: alloc s5\n"
			     "\t4: alloc s6\n"
			     "\t5: builtin \"non_zero\" writes (t7, t5) reads (t1) ints (e8, 0) attributes \"a=1\"\n"
			     "\t6: if t6\n"
			     "\t7:   copy t3 from t1\n"
			     "\t8: else\n"
			     "\t9:   loop while t6 trips 9 turn $turn\n"
			     "\t10:     guard $turn == $turn\n"
			     "\t11:   endloop\n"
			     "\t12: endif\n"
			     "\t13: kill s1\n"
			     "\t14: return\n"
			     "\torientation {\n"
			     "\t\ts1 base 0\n"
			     "\t\ts5 base 0 over (s1)\n"
			     "\t\ts6 base 64 over (s1, s5)\n"
			     "\t}\n"
			     "}\n";

static struct lth_program *parse_ok(const char *text)
{
	struct lth_program *program = NULL;
	struct lth_diag diag = {0};
	char line[4096];
	enum lth_code code = lth_program_parse(text, strlen(text), arena, &program, &diag);
	ck_assert_msg(code == LTH_OK, "%s", lth_diag_line(&diag, line, sizeof(line)));
	return program;
}

static char *print(const struct lth_program *program)
{
	struct lth_buf buf = {0};
	lth_program_print(program, &buf);
	ck_assert(lth_buf_ok(&buf));
	char *text = lth_arena_strdup(arena, lth_buf_text(&buf));
	lth_buf_free(&buf);
	return text;
}

/* The text with one part replaced. */
static char *edit(const char *text, const char *from, const char *to)
{
	const char *at = strstr(text, from);
	ck_assert_msg(at != NULL, "no '%s' in the text", from);
	return lth_arena_printf(arena, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
}

START_TEST(text_round_trip)
{
	/* Strides that are the dense ones are left out, and so is an offset of 0. */
	const char *canonical = edit(edit(sample, "[$n] strides [1] in", "[$n] in"), " at 0 in", " in");
	ck_assert_str_eq(print(parse_ok(sample)), canonical);
	ck_assert_str_eq(print(parse_ok(canonical)), canonical);
}
END_TEST

static struct lth_program *decode_ok(const struct lth_buf *bytes)
{
	struct lth_program *program = NULL;
	struct lth_diag diag = {0};
	char line[4096];
	enum lth_code code = lth_program_decode(bytes->data, bytes->size, arena, &program, &diag);
	ck_assert_msg(code == LTH_OK, "%s", lth_diag_line(&diag, line, sizeof(line)));
	return program;
}

static void check_binary(const struct lth_program *program)
{
	struct lth_buf bytes = {0}, again = {0};
	lth_program_encode(program, &bytes);
	struct lth_program *copy = decode_ok(&bytes);
	ck_assert_str_eq(print(copy), print(program));
	lth_program_encode(copy, &again);
	ck_assert_uint_eq(bytes.size, again.size);
	ck_assert_int_eq(memcmp(bytes.data, again.data, bytes.size), 0);
	lth_buf_free(&bytes);
	lth_buf_free(&again);
}

START_TEST(binary_round_trip)
{
	check_binary(parse_ok(sample));
}
END_TEST

START_TEST(binary_damage_is_found)
{
	struct lth_buf bytes = {0};
	lth_program_encode(parse_ok(sample), &bytes);
	for (size_t i = 0; i < bytes.size; i++) {
		struct lth_program *program;
		struct lth_diag diag = {0};
		bytes.data[i] ^= 0x10;
		ck_assert_int_eq(lth_program_decode(bytes.data, bytes.size, arena, &program, &diag),
				 LTH_BAD_EXECUTABLE);
		bytes.data[i] ^= 0x10;
	}
	for (size_t size = 0; size < bytes.size; size += 7) {
		struct lth_program *program;
		struct lth_diag diag = {0};
		ck_assert_int_eq(lth_program_decode(bytes.data, size, arena, &program, &diag), LTH_BAD_EXECUTABLE);
	}
	lth_buf_free(&bytes);
}
END_TEST

/* With the hash made right again, damage reaches decoder and verifier: an error or a program, never a crash. */
START_TEST(hostile_bytes)
{
	struct lth_buf bytes = {0};
	lth_program_encode(parse_ok(sample), &bytes);
	for (size_t i = 8; i < bytes.size - 8; i++)
		for (int value = 0; value < 256; value += 51) {
			struct lth_arena *own = lth_arena_create(1 << 20);
			struct lth_program *program;
			struct lth_diag diag = {0};
			char kept = bytes.data[i];
			bytes.data[i] = (char)(kept ^ value);
			uint64_t hash = lth_hash_bytes(bytes.data, bytes.size - 8, 0);
			memcpy(bytes.data + bytes.size - 8, &hash, 8);
			if (lth_program_decode(bytes.data, bytes.size, own, &program, &diag) == LTH_OK &&
			    lth_program_verify(program, &diag) == LTH_OK) {
				struct lth_buf text = {0};
				lth_program_print(program, &text);
				lth_buf_free(&text);
			}
			bytes.data[i] = kept;
			lth_arena_destroy(&own);
		}
	lth_buf_free(&bytes);
}
END_TEST

static void verify_is(const char *text, const char *place, const char *expected)
{
	struct lth_diag diag = {0};
	char line[4096];
	enum lth_code code = lth_program_verify(parse_ok(text), &diag);
	if (!place) {
		ck_assert_msg(code == LTH_OK, "%s", lth_diag_line(&diag, line, sizeof(line)));
		return;
	}
	ck_assert_msg(code == LTH_BAD_EXECUTABLE, "accepted: %s", text);
	ck_assert_msg(strstr(diag.place, place) && strstr(diag.expected, expected), "got: %s",
		      lth_diag_line(&diag, line, sizeof(line)));
}

/* The sample, corrected: $n is bound, s2 allocated. */
static char *verified_sample(void)
{
	char *text = edit(sample, "\t5: builtin \"non_zero\" writes (t7, t5)",
			  "\tbind $n from t5 at 0\n\talloc s2\n\t5: builtin \"non_zero\" writes (t7, t5)");
	return edit(text, "reads (t0, _)", "reads (t0, t4)");
}

START_TEST(verifier)
{
	const char *good = verified_sample();
	verify_is(good, NULL, NULL);
	verify_is(sample, "instruction 5", "alive");
	verify_is(edit(good, "\talloc s2\n", ""), "instruction 6", "alive");
	verify_is(edit(good, "\tbind $n from t5 at 0\n", ""), "instruction 5", "bound");
	verify_is(edit(good, "\t0: alloc s1\n", "\t0: alloc s1\n\talloc s1\n"), "instruction 1", "not alive");
	verify_is(edit(good, "\t13: kill s1\n", "\tkill s5\n"), "instruction 16", "alive"); /* output n at return */
	verify_is(edit(good, "\t10:     guard", "\tkill s1\n\t10: guard"), "instruction 14", "outlive");
	verify_is(edit(good, "\t7:   copy t3 from t1", "\tkill s1"), "instruction 15", "alive");
	verify_is(edit(good, "writes (t1) reads (t0", "writes (t0) reads (t1"), "instruction 1", "written");
	verify_is(edit(good, "pointers 3", "pointers 2"), "instruction 1", "kernel");
	verify_is(edit(good, "grain 16", "grain 0"), "instruction 1", "grain");
	verify_is(edit(good, "7:   copy t3 from t1", "7: copy t3 from t5"), "instruction 9", "one type");
	verify_is(edit(good, "if t6", "if t5"), "instruction 8", "bool");
	verify_is(edit(good, "bind $n from t5", "bind $batch from t5"), "instruction 5", "data symbol");
	verify_is(edit(good, "bind $n from t5", "bind $n from t1"), "instruction 5", "integer tensor");
	verify_is(edit(good, "while t6 trips 9", "while _ trips _"), "instruction 11", "trip count");
	verify_is(edit(good, "\t14: return\n", "\t14: return\n\treturn\n"), "instruction 16", "one return");
	verify_is(edit(good, "s1 base 0", "s1 base 32"), "orientation 0", "aligned");
	verify_is(edit(good, "\torientation {", "\torientation { s1 base 0 }\n\torientation {"), "orientation 1",
		  "storages of the first");
	verify_is(edit(good, "constant 64 bytes 64", "constant 64 bytes 65"), "storage 4", "inside");
	verify_is(edit(good, "constant 64 bytes", "constant 9223372036854775807 bytes"), "storage 4", "inside");
	verify_is(edit(good, "align 16", "align 24"), "storage 2", "power of two");
	verify_is(edit(good, "s1 arena bytes e1", "s1 arena bytes e3"), "storage 1", "input dimensions");
	verify_is(edit(good, "output 0 bytes", "output 2 bytes"), "storage 3", "input or output");
	verify_is(edit(good, "input 0 axis 1", "input 0 axis 0"), "symbol 1", "dimension");
	verify_is(edit(good, "input 0 axis 1", "input 7 axis 0"), "symbol 1", "dimension");
	verify_is(edit(good, "in [1, 64]", "in [65, 64]"), "symbol 0", "min <=");
	verify_is(edit(good, "e4 rmul #0.5", "e4 * 3"), "expression", "integer operands");
	verify_is(edit(good, "bytes e1 live", "bytes e4 live"), "storage 1", "integer size");
	verify_is(edit(good, "input \"x\" t0", "input \"x\" t1"), "input 0", "own storage");
	verify_is(edit(good, "bound $n e0", "bound $n e3"), "symbol 2", "bound");
}
END_TEST

static const char swapping[] =
	"program \"swap\" {\n\te0 = 4 * 4\n\tstorage s0 arena bytes 64\n\tstorage s1 arena bytes 64\n"
	"\tstorage s2 output 0 bytes 64\n\tstorage s3 pool bytes 64\n\tstorage s4 pool bytes 128\n\tstorage s5 arena bytes 128\n"
	"\ttensor t0 f32[16] in s0\n\ttensor t1 f32[16] in s1\n\ttensor t2 f32[16] in s2\n\ttensor t3 f32[16] in s3\n"
	"\ttensor t4 f32[16] in s4\n\ttensor t5 f32[16] in s5\n\toutput t2\n"
	"\talloc s0\n\talloc s1\n\talloc s3\n\talloc s4\n\talloc s5\n"
	"\tloop while _ trips 3\n\t\tswap t0 with t1\n\t\tswap t3 with t4 times 3\n\t\tkill s4\n\t\talloc s4\n\tendloop\n"
	"\tkill s0\n\tkill s1\n\treturn\n}\n";

START_TEST(what_swaps_lives_together)
{
	verify_is(swapping, NULL, NULL);
	verify_is(edit(swapping, "\tkill s0\n", ""), "instruction 11", "live together");
	verify_is(edit(swapping, "\tkill s0\n", "\tkill s0\n\tcopy t2 from t5\n"), "instruction 11", "live together");
	verify_is(edit(swapping, "\talloc s1\n", "\tcopy t2 from t0\n\talloc s1\n"), "instruction 0", "live together");
	verify_is(edit(swapping, "swap t0 with t1", "swap t0 with t0"), "instruction 6", "two storages");
	verify_is(edit(swapping, "swap t0 with t1", "swap t0 with t3"), "instruction 6", "two storages");
	verify_is(edit(swapping, "swap t0 with t1", "swap t0 with t5"), "instruction 6", "one size");
	/* who swaps with an output lives to the end */
	verify_is(edit(swapping, "swap t0 with t1", "swap t0 with t2"), "instruction 11", "live together");
	verify_is(edit(edit(swapping, "swap t0 with t1", "swap t0 with t2"), "\tkill s0\n\tkill s1\n", ""), NULL, NULL);
}
END_TEST

START_TEST(parse_errors_have_places)
{
	static const struct {
		const char *text, *place, *expected;
	} cases[] = {
		{"", "1:1", "'program'"},
		{"program \"x\" {\n\tfoo\n}", "2:2", "line of a program"},
		{"program \"x\" {\n\tstorage s1 arena bytes 4\n}", "2:10", "s0, the next number"},
		{"program \"x\" {\n\ttensor t0 f32[] in s0\n}", "2:21", "declaration of s0"},
		{"program \"x\" {\n\te0 = 1 ** 2\n}", "2:10", "value"},
		{"program \"x\" {\n\te0 = $y + 2\n}", "2:7", "declared above"},
		{"program \"x\" {\n\te0 = 99999999999999999999 + 2\n}", "2:7", "64 bits"},
		{"program \"x\" {\n\tbuiltin \"nope\" writes () reads ()\n}", "2:10", "builtin"},
		{"program \"x\" {\n\telse\n}", "instruction 0", "inside an if"},
		{"program \"x\" {\n\tloop while _ trips 2\n}", "instruction 0", "end for every block"},
		{"program \"x\" {\n\tendloop\n}", "instruction 0", "inside a loop"},
		{"program \"\\u0000\" {\n}", "1:9", "escapes"},
		{"program \"x", "1:9", "closing quote"},
		{"program \"x\" {\n}\nx", "3:1", "nothing behind"},
		{"program \"x\" {\n\tsymbol $a in [1, 2] data\n\tsymbol $a in [1, 2] data\n}", "3:9", "no other"},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct lth_program *program;
		struct lth_diag diag = {0};
		char line[4096];
		enum lth_code code =
			lth_program_parse(cases[i].text, strlen(cases[i].text), arena, &program, &diag);
		ck_assert_msg(code == LTH_INVALID_GRAPH, "case %zu", i);
		ck_assert_msg(strstr(diag.place, cases[i].place) && strstr(diag.expected, cases[i].expected),
			      "case %zu: %s", i, lth_diag_line(&diag, line, sizeof(line)));
	}
}
END_TEST

START_TEST(expressions_fold_and_are_shared)
{
	struct lth_program *p = lth_program_create(arena);
	struct lth_symbol s = {.name = "s", .min = 1, .max = 9, .multiple = 1, .hint = 1, .bound = LTH_NONE};
	uint32_t sym = lth_program_expr(p, LTH_EXPR_SYMBOL, lth_program_symbol(p, &s), LTH_NONE, 0);
	uint32_t two = lth_program_const(p, 2), three = lth_program_const(p, 3);
	ck_assert_uint_eq(lth_program_expr(p, LTH_EXPR_ADD, two, three, 0), lth_program_const(p, 5));
	ck_assert_uint_eq(lth_program_expr(p, LTH_EXPR_MUL, two, sym, 0),
			  lth_program_expr(p, LTH_EXPR_MUL, sym, two, 0));
	ck_assert_uint_eq(lth_program_expr(p, LTH_EXPR_MUL, lth_program_const(p, 1), sym, 0), sym);
	ck_assert_uint_eq(lth_program_expr(p, LTH_EXPR_ADD, lth_program_const(p, 0), sym, 0), sym);
	ck_assert_uint_eq(lth_program_expr(p, LTH_EXPR_MAX, sym, sym, 0), sym);
	uint32_t zero = lth_program_expr(p, LTH_EXPR_FLOORDIV, two, lth_program_const(p, 0), 0);
	ck_assert_int_eq(p->exprs[zero].op, LTH_EXPR_FLOORDIV); /* stays, and fails when evaluated */
	uint32_t count = p->num_exprs;
	ck_assert_uint_eq(lth_program_find_expr(p, LTH_EXPR_ADD, sym, three, 0), LTH_NONE);
	ck_assert_uint_eq(p->num_exprs, count);
	for (int i = 0; i < 1000; i++)
		lth_program_expr(p, LTH_EXPR_MUL, sym, lth_program_const(p, i), 0);
	for (int i = 2; i < 1000; i++)
		ck_assert_uint_ne(lth_program_find_expr(p, LTH_EXPR_MUL, lth_program_const(p, i), sym, 0), LTH_NONE);
}
END_TEST

static int64_t applied(enum lth_expr_op op, int64_t a, int64_t b)
{
	int64_t value = -99;
	ck_assert(lth_expr_apply(op, a, b, &value));
	return value;
}

static int64_t bits(double value)
{
	int64_t b;
	memcpy(&b, &value, sizeof(b));
	return b;
}

START_TEST(operators)
{
	int64_t value;
	ck_assert_int_eq(applied(LTH_EXPR_FLOORDIV, -7, 2), -4);
	ck_assert_int_eq(applied(LTH_EXPR_CEILDIV, -7, 2), -3);
	ck_assert_int_eq(applied(LTH_EXPR_CEILDIV, 7, 2), 4);
	ck_assert_int_eq(applied(LTH_EXPR_MOD, -7, 3), 2);
	ck_assert_int_eq(applied(LTH_EXPR_MOD, 7, -3), -2);
	ck_assert(!lth_expr_apply(LTH_EXPR_MOD, INT64_MIN, -1, &value));
	ck_assert(!lth_expr_apply(LTH_EXPR_FLOORDIV, INT64_MIN, -1, &value));
	ck_assert(!lth_expr_apply(LTH_EXPR_ADD, INT64_MAX, 1, &value));
	ck_assert(!lth_expr_apply(LTH_EXPR_MUL, INT64_MAX, 2, &value));
	ck_assert_int_eq(applied(LTH_EXPR_TOINT, bits(-2.9), 0), -2);
	ck_assert(!lth_expr_apply(LTH_EXPR_TOINT, bits((double)NAN), 0, &value));
	ck_assert(!lth_expr_apply(LTH_EXPR_TOINT, bits(0x1p63), 0, &value));
	ck_assert_int_eq(applied(LTH_EXPR_TOINT, bits(-0x1p63), 0), INT64_MIN);
	ck_assert_int_eq(applied(LTH_EXPR_RROUND, bits(2.5), 0), bits(2.0));
	ck_assert_int_eq(applied(LTH_EXPR_RF32, bits(0.1), 0), bits((double)0.1f));
}
END_TEST

START_TEST(evaluation_skips_what_is_unknown)
{
	struct lth_program *p = parse_ok(sample);
	int64_t symbols[4] = {8, 4, 0, 0}, *values = calloc(p->num_exprs, sizeof(*values));
	bool known[4] = {true, true, false, false}, *defined = calloc(p->num_exprs, sizeof(*defined));
	struct lth_diag diag = {0};
	ck_assert_int_eq(lth_program_eval(p, symbols, known, values, defined, &diag), LTH_OK);
	ck_assert_int_eq(values[p->storages[0].size], 8 * 4 * 4);
	ck_assert(!defined[p->storages[2].size]);
	symbols[2] = INT64_MAX;
	ck_assert_int_eq(lth_program_eval(p, symbols, NULL, values, NULL, &diag), LTH_RUNTIME_ERROR);
	ck_assert_ptr_nonnull(strstr(diag.found, "9223372036854775807 * 8"));
	free(values);
	free(defined);
}
END_TEST

/* Random programs. They are built, not always right: the forms must agree in any case. */
static uint64_t random_state;

static uint32_t random_below(uint32_t limit)
{
	random_state = lth_hash_u64(random_state, 1);
	return (uint32_t)(random_state % limit);
}

static uint32_t random_int_expr(struct lth_program *p, uint32_t limit)
{
	for (;;) {
		uint32_t id = random_below(limit);
		if (!lth_expr_is_real(p->exprs[id].op))
			return id;
	}
}

static void add_random_expr(struct lth_program *p)
{
	enum lth_expr_op op = (enum lth_expr_op)random_below(LTH_NUM_EXPRS);
	unsigned operands = lth_expr_operands(op);
	if (operands == 0) {
		bool symbol = op == LTH_EXPR_SYMBOL;
		double real = random_below(1000) / 7.0;
		lth_program_expr(p, op, symbol ? random_below(p->num_symbols) : LTH_NONE, LTH_NONE,
				 op == LTH_EXPR_RCONST ? bits(real) : (int64_t)random_below(100) - 20);
		return;
	}
	uint32_t a = random_below(p->num_exprs), b = random_below(p->num_exprs);
	bool real = lth_expr_takes_real(op);
	if (lth_expr_is_real(p->exprs[a].op) == real && lth_expr_is_real(p->exprs[b].op) == real)
		lth_program_expr(p, op, a, b, 0);
}

static void add_random_tensor(struct lth_program *p)
{
	struct lth_tensor t = {.dtype = (enum lth_dtype)random_below(LTH_NUM_DTYPES), .rank = random_below(5),
			       .storage = random_below(p->num_storages), .offset = random_int_expr(p, p->num_exprs)};
	for (uint32_t i = 0; i < t.rank; i++) {
		t.dims[i] = random_int_expr(p, p->num_exprs);
		t.strides[i] = random_int_expr(p, p->num_exprs);
	}
	if (random_below(2))
		lth_program_dense_strides(p, t.rank, t.dims, t.strides);
	t.name = random_below(2) ? "name with \"quotes\" \t and \x01 \xc3\xa9" : NULL;
	lth_program_tensor(p, &t);
}

static void add_random_instr(struct lth_program *p, uint32_t depth)
{
	uint32_t tensors[4], ints[4];
	for (int i = 0; i < 4; i++) {
		tensors[i] = random_below(p->num_tensors);
		ints[i] = random_int_expr(p, p->num_exprs);
	}
	struct lth_instr instr = {
		.op = (enum lth_instr_op)random_below(LTH_NUM_INSTRS), .callee = 0,
		.tensors = tensors, .ints = ints,
		.storage = random_below(p->num_storages), .symbol = random_below(p->num_symbols), .grain = 1,
		.target = LTH_NONE, .range = ints[3], .scratch = LTH_NONE, .scratch_bytes = LTH_NONE,
		.node = random_below(2) ? "n" : NULL,
	};
	static const unsigned char counts[][2] = {
		[LTH_INSTR_CALL] = {3, 2}, [LTH_INSTR_BUILTIN] = {2, 1}, [LTH_INSTR_COPY] = {2, 0},
		[LTH_INSTR_BIND] = {1, 1}, [LTH_INSTR_SET] = {0, 1}, [LTH_INSTR_GUARD] = {0, 2},   [LTH_INSTR_IF] = {1, 0},
		[LTH_INSTR_LOOP] = {1, 1}, [LTH_INSTR_ELSE] = {0, 0}, [LTH_INSTR_GROW] = {1, 1},   [LTH_INSTR_SWAP] = {2, 1},
	};
	if (instr.op == LTH_INSTR_ELSE || instr.op == LTH_INSTR_ENDIF || instr.op == LTH_INSTR_ENDLOOP ||
	    instr.op == LTH_INSTR_RETURN)
		return;
	instr.num_tensors = counts[instr.op][0];
	instr.num_ints = counts[instr.op][1];
	instr.num_outputs = instr.op == LTH_INSTR_COPY || instr.op == LTH_INSTR_CALL || instr.op == LTH_INSTR_GROW;
	if (instr.op == LTH_INSTR_SWAP) {
		instr.num_outputs = 2;
		ints[0] = random_below(2) ? LTH_NONE : ints[0];
	}
	lth_program_instr(p, &instr);
	if (instr.op != LTH_INSTR_IF && instr.op != LTH_INSTR_LOOP)
		return;
	for (uint32_t i = random_below(4); i-- > 0 && depth < 4;)
		add_random_instr(p, depth + 1);
	struct lth_instr end = {.op = LTH_INSTR_ENDLOOP, .callee = LTH_NONE, .storage = LTH_NONE, .symbol = LTH_NONE,
				.target = LTH_NONE, .range = LTH_NONE, .scratch = LTH_NONE,
				.scratch_bytes = LTH_NONE};
	if (instr.op == LTH_INSTR_IF && random_below(2)) {
		end.op = LTH_INSTR_ELSE;
		lth_program_instr(p, &end);
	}
	end.op = instr.op == LTH_INSTR_IF ? LTH_INSTR_ENDIF : LTH_INSTR_ENDLOOP;
	lth_program_instr(p, &end);
}

static struct lth_program *random_program(void)
{
	struct lth_program *p = lth_program_create(arena);
	for (uint32_t i = 0, n = 1 + random_below(4); i < n; i++) {
		const char *name = lth_arena_printf(arena, random_below(2) ? "s%u" : "in[%u]", i);
		struct lth_symbol s = {.name = name, .min = 1, .max = 1 + random_below(5), .multiple = 1, .hint = 1,
				       .source = (enum lth_symbol_source)random_below(2), .bound = LTH_NONE};
		lth_program_symbol(p, &s);
	}
	lth_program_const(p, 4);
	for (uint32_t i = 0, n = random_below(60); i < n; i++)
		add_random_expr(p);
	for (uint32_t i = 0, n = 1 + random_below(6); i < n; i++) {
		struct lth_storage s = {.kind = (enum lth_storage_kind)random_below(LTH_NUM_STORAGES),
					.size = random_int_expr(p, p->num_exprs), .alignment = 64,
					.index = random_below(3)};
		if (s.kind == LTH_STORAGE_ARENA || s.kind == LTH_STORAGE_POOL)
			s.index = 0;
		lth_program_storage(p, &s);
	}
	struct lth_kernel k = {.name = "aa", .num_pointers = 3, .num_ints = 2};
	lth_program_kernel(p, &k);
	for (uint32_t i = 0, n = 1 + random_below(8); i < n; i++)
		add_random_tensor(p);
	lth_program_output(p, random_below(2) ? "o" : NULL, 0, random_below(2) ? "seq(f32[*])" : NULL);
	for (uint32_t i = 0, n = random_below(20); i < n; i++)
		add_random_instr(p, 0);
	struct lth_diag diag = {0};
	ck_assert_int_eq(lth_program_link_blocks(p, &diag), LTH_OK);
	return p;
}

START_TEST(random_programs_agree_in_all_forms)
{
	const char *given = getenv("LATHE_SEED");
	uint64_t first = given ? strtoull(given, NULL, 0) : 1, last = given ? first : 300;
	for (uint64_t seed = first; seed <= last; seed++) {
		random_state = seed;
		struct lth_program *p = random_program();
		struct lth_diag diag = {0};
		const char *text = print(p);
		const char *again = print(parse_ok(text));
		ck_assert_msg(strcmp(text, again) == 0, "LATHE_SEED=%llu\n%s\n%s", (unsigned long long)seed, text,
			      again);
		enum lth_code ignored = lth_program_verify(p, &diag); /* must not crash */
		(void)ignored;
		/* Field values that an instruction does not use need not survive, so compare by text. */
		struct lth_buf bytes = {0};
		lth_program_encode(p, &bytes);
		ck_assert_str_eq(print(decode_ok(&bytes)), text);
		lth_buf_free(&bytes);
		teardown();
		setup();
	}
}
END_TEST

/* The n-th allocation fails: an out-of-memory error, never a crash. */
START_TEST(parsing_survives_a_failing_arena)
{
	for (size_t n = 1; n < 2000; n++) {
		struct lth_arena *own = lth_arena_create(0);
		struct lth_program *program = NULL;
		struct lth_diag diag = {0};
		lth_arena_fail_after(own, n);
		enum lth_code code = lth_program_parse(sample, strlen(sample), own, &program, &diag);
		lth_arena_destroy(&own);
		if (code == LTH_OK)
			return;
		ck_assert_msg(code == LTH_OUT_OF_MEMORY, "allocation %zu: %s: %s", n, diag.place, diag.found);
	}
	ck_abort_msg("never succeeded");
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("program");
	TCase *tests = tcase_create("program");
	tcase_add_checked_fixture(tests, setup, teardown);
	tcase_set_timeout(tests, 60);
	tcase_add_test(tests, text_round_trip);
	tcase_add_test(tests, binary_round_trip);
	tcase_add_test(tests, binary_damage_is_found);
	tcase_add_test(tests, hostile_bytes);
	tcase_add_test(tests, verifier);
	tcase_add_test(tests, what_swaps_lives_together);
	tcase_add_test(tests, parse_errors_have_places);
	tcase_add_test(tests, expressions_fold_and_are_shared);
	tcase_add_test(tests, operators);
	tcase_add_test(tests, evaluation_skips_what_is_unknown);
	tcase_add_test(tests, random_programs_agree_in_all_forms);
	tcase_add_test(tests, parsing_survives_a_failing_arena);
	suite_add_tcase(suite, tests);
	return run_suite(suite);
}
