/* Control flow and sizes that data decides, compiled and run: one small model for each construct with its expected
 * numbers, and random programs of nested branches and loops, whose optimised executables must agree with level 0. A
 * random program is remade from the seed that a failure prints (LATHE_SEED). */
#include "compiler/compile.h"

#include "api/lathe.h"
#include "runtime/base/buf.h"
#include "tests/unit/run_suite.h"

#include <dirent.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_ELEMENTS = 64, MAX_PORTS = 3, RANDOM_PROGRAMS = 12 };

/* A tensor small enough to be written down. */
struct numbers {
	int32_t dtype; /* LATHE_F32, LATHE_I64, LATHE_BOOL */
	uint32_t rank;
	int64_t dims[3];
	double values[MAX_ELEMENTS];
};

struct executable {
	struct lathe_executable *loaded;
	struct lathe_context *context;
};

/* A folder of plain files. */
static void remove_folder(const char *path)
{
	DIR *folder = opendir(path);
	char name[512];
	ck_assert_ptr_nonnull(folder);
	for (struct dirent *entry; (entry = readdir(folder));) {
		snprintf(name, sizeof(name), "%s/%.200s", path, entry->d_name);
		if (entry->d_name[0] != '.')
			unlink(name);
	}
	closedir(folder);
	ck_assert_int_eq(rmdir(path), 0);
}

static void compile(const char *model, const char *options_text, struct executable *out)
{
	struct lth_diag diag = {0};
	char line[2048], folder[] = "control.XXXXXX";
	json_t *options = json_loads(options_text, 0, NULL);
	struct lathe_error error = {0};
	struct lth_compile_result result = {0};
	ck_assert(options && mkdtemp(folder));
	struct lth_compile_request request = {.model = model, .model_size = strlen(model), .model_is_json = true,
					      .options = options, .work_dir = folder, .jobs = 1};
	enum lth_code code = lth_compile(&request, &result, &diag);
	ck_assert_msg(code == LTH_OK, "%s\n%s", lth_diag_line(&diag, line, sizeof(line)), model);
	ck_assert_msg(lathe_load_memory(result.artifacts[0].data, result.artifacts[0].size, &out->loaded, &error) == 0,
		      "%s", error.text);
	ck_assert_msg(lathe_context_create(out->loaded, NULL, &out->context, &error) == 0, "%s", error.text);
	lth_compile_result_free(&result);
	json_decref(options);
	remove_folder(folder);
}

static void end(struct executable *x)
{
	lathe_context_destroy(&x->context);
	lathe_unload(&x->loaded);
}

static size_t width(int32_t dtype)
{
	return dtype == LATHE_F32 ? sizeof(float) : dtype == LATHE_I64 ? sizeof(int64_t) : 1;
}

static void store(int32_t dtype, void *data, size_t i, double value)
{
	if (dtype == LATHE_F32)
		((float *)data)[i] = (float)value;
	else if (dtype == LATHE_I64)
		((int64_t *)data)[i] = (int64_t)value;
	else
		((bool *)data)[i] = value != 0;
}

static double load(int32_t dtype, const void *data, size_t i)
{
	return dtype == LATHE_F32   ? (double)((const float *)data)[i]
	       : dtype == LATHE_I64 ? (double)((const int64_t *)data)[i]
				    : ((const bool *)data)[i];
}

static size_t count_of(const struct numbers *n)
{
	size_t count = 1;
	for (uint32_t i = 0; i < n->rank; i++)
		count *= (size_t)n->dims[i];
	return count;
}

/* Runs twice, for what the first run leaves behind; returns lathe_run's code. */
static int run(struct executable *x, const struct numbers *inputs, size_t num_inputs, struct numbers *outputs,
	       size_t num_outputs, struct lathe_error *error)
{
	struct lathe_tensor in[MAX_PORTS] = {{0}}, out[MAX_PORTS] = {{0}};
	int64_t room[MAX_PORTS][MAX_ELEMENTS];
	int code = 0;
	for (size_t i = 0; i < num_inputs; i++) {
		in[i] = (struct lathe_tensor){.dtype = inputs[i].dtype, .rank = inputs[i].rank, .data = room[i]};
		memcpy(in[i].dims, inputs[i].dims, sizeof(inputs[i].dims));
		for (size_t k = 0; k < count_of(&inputs[i]); k++)
			store(inputs[i].dtype, room[i], k, inputs[i].values[k]);
		in[i].bytes = count_of(&inputs[i]) * width(inputs[i].dtype);
	}
	for (int turn = 0; turn < 2 && code == 0; turn++) {
		memset(out, 0, sizeof(out));
		code = lathe_run(x->context, in, num_inputs, out, num_outputs, error);
		for (size_t i = 0; i < num_outputs && code == 0; i++) {
			outputs[i] = (struct numbers){.dtype = out[i].dtype, .rank = out[i].rank};
			memcpy(outputs[i].dims, out[i].dims, sizeof(outputs[i].dims));
			ck_assert_uint_le(count_of(&outputs[i]), MAX_ELEMENTS);
			for (size_t k = 0; k < count_of(&outputs[i]); k++)
				outputs[i].values[k] = load(out[i].dtype, out[i].data, k);
			lathe_release(x->context, &out[i]);
		}
	}
	return code;
}

static void check_same(const struct numbers *got, const struct numbers *expected, const char *what)
{
	ck_assert_msg(got->dtype == expected->dtype && got->rank == expected->rank, "%s: type or rank", what);
	for (uint32_t i = 0; i < got->rank; i++)
		ck_assert_msg(got->dims[i] == expected->dims[i], "%s: axis %u is %lld, not %lld", what, i,
			      (long long)got->dims[i], (long long)expected->dims[i]);
	for (size_t k = 0; k < count_of(got); k++) {
		double a = got->values[k], b = expected->values[k];
		ck_assert_msg(fabs(a - b) <= 1e-5 * (1 + fabs(b)) || (isnan(a) && isnan(b)), "%s: element %zu is %g, not %g",
			      what, k, a, b);
	}
}

static const char *const settings[] = {
	"{\"opt_level\":0,\"artifacts\":[\"so\"]}",
	"{\"opt_level\":2,\"artifacts\":[\"so\"]}",
	"{\"opt_level\":2,\"disabled_passes\":[\"MemoryPlan\",\"AliasViews\"],\"artifacts\":[\"so\"]}",
};
enum { NUM_SETTINGS = sizeof(settings) / sizeof(settings[0]) };

/* ---- one model a construct ---- */

struct example {
	const char *name, *model;
	struct numbers inputs[MAX_PORTS];
	size_t num_inputs;
	struct numbers outputs[MAX_PORTS];
	size_t num_outputs;
	const char *error; /* part of the run's message, where it must fail */
};

#define F32(...) .dtype = LATHE_F32, .values = {__VA_ARGS__}
#define I64(...) .dtype = LATHE_I64, .values = {__VA_ARGS__}
#define BOOL(...) .dtype = LATHE_BOOL, .values = {__VA_ARGS__}

/* x[n]: where n is 1, squeezed and multiplied by a vector of its own; else a sum over the axis. */
#define RANKS                                                                                                          \
	"{\"opset\":17,\"inputs\":[{\"name\":\"x\",\"type\":\"f32\",\"shape\":[\"n\",2]}],\"constants\":["              \
	"{\"name\":\"one\",\"type\":\"i64\",\"shape\":[1],\"values\":[1]},"                                           \
	"{\"name\":\"zero\",\"type\":\"i64\",\"shape\":[1],\"values\":[0]},"                                          \
	"{\"name\":\"zf\",\"type\":\"f32\",\"shape\":[1],\"values\":[7]}],\"nodes\":["                               \
	"{\"op\":\"Shape\",\"inputs\":[\"x\"],\"outputs\":[\"s\"],\"attributes\":{\"start\":0,\"end\":1}},"              \
	"{\"op\":\"Equal\",\"inputs\":[\"s\",\"one\"],\"outputs\":[\"c\"]},"                                            \
	"{\"op\":\"If\",\"inputs\":[\"c\"],\"outputs\":[\"y\"],\"attributes\":{"                                        \
	"\"then_branch\":{\"graph\":{\"nodes\":[{\"op\":\"Squeeze\",\"inputs\":[\"x\",\"zero\"],\"outputs\":[\"a\"]}],"  \
	"\"outputs\":[\"a\"]}},"                                                                                       \
	"\"else_branch\":{\"graph\":{\"nodes\":[{\"op\":\"Identity\",\"inputs\":[\"x\"],\"outputs\":[\"b\"]}],"          \
	"\"outputs\":[\"b\"]}}}},"
/* Squeeze of x[n, 2] in one branch of an If by `condition`, -x in the other; and what is behind it. */
#define SQUEEZED(condition, behind)                                                                                        \
	"{\"opset\":17,\"inputs\":[{\"name\":\"x\",\"type\":\"f32\",\"shape\":[\"n\",2]},"                               \
	"{\"name\":\"c\",\"type\":\"bool\",\"shape\":[]}],\"constants\":["                                              \
	"{\"name\":\"yes\",\"type\":\"bool\",\"shape\":[],\"values\":[true]},"                                          \
	"{\"name\":\"zf\",\"type\":\"f32\",\"shape\":[1],\"values\":[7]}],\"nodes\":["                               \
	"{\"op\":\"If\",\"inputs\":[" condition "],\"outputs\":[\"y\"],\"attributes\":{"                                    \
	"\"then_branch\":{\"graph\":{\"nodes\":[{\"op\":\"Squeeze\",\"inputs\":[\"x\"],\"outputs\":[\"a\"]}],"             \
	"\"outputs\":[\"a\"]}},"                                                                                       \
	"\"else_branch\":{\"graph\":{\"nodes\":[{\"op\":\"Neg\",\"inputs\":[\"x\"],\"outputs\":[\"b\"]}],"                 \
	"\"outputs\":[\"b\"]}}}}," behind "],\"outputs\":[\"z\"]}"
#define SUM "{\"op\":\"ReduceSum\",\"inputs\":[\"y\"],\"outputs\":[\"z\"],\"attributes\":{\"keepdims\":0}}"
#define JOINED "{\"op\":\"Concat\",\"inputs\":[\"y\",\"zf\"],\"outputs\":[\"z\"],\"attributes\":{\"axis\":0}}"
#define COUNTED_LOOP(more)                                                                                             \
	"{\"opset\":17,\"inputs\":[{\"name\":\"m\",\"type\":\"i64\",\"shape\":[]},"                                     \
	"{\"name\":\"x\",\"type\":\"f32\",\"shape\":[\"n\"]}],"                                                        \
	"\"constants\":[{\"name\":\"go\",\"type\":\"bool\",\"shape\":[],\"values\":[true]}],\"nodes\":["             \
	"{\"op\":\"Loop\",\"inputs\":[\"m\",\"go\",\"x\"],\"outputs\":[\"last\",\"all\"],\"attributes\":{\"body\":"     \
	"{\"graph\":{\"inputs\":[{\"name\":\"i\",\"type\":\"i64\",\"shape\":[]},"                                       \
	"{\"name\":\"g\",\"type\":\"bool\",\"shape\":[]},{\"name\":\"v\",\"type\":\"f32\",\"shape\":[\"k\"]}],"         \
	"\"nodes\":[" more "}}}}],\"outputs\":[\"last\",\"all\"]}"

/* A node on x[2, 3] and a list a of the run, of `count` entries; "two" is a constant of one entry. */
#define BY_LIST(count, nodes)                                                                                          \
	"{\"opset\":17,\"inputs\":[{\"name\":\"x\",\"type\":\"f32\",\"shape\":[2,3]},"                               \
	"{\"name\":\"a\",\"type\":\"i64\",\"shape\":[" count "]}],\"constants\":["                                     \
	"{\"name\":\"two\",\"type\":\"i64\",\"shape\":[1],\"values\":[2]}],\"nodes\":[" nodes "],\"outputs\":[\"y\"]}"
#define X23 {F32(1, 2, 3, 4, 5, 6), .rank = 2, .dims = {2, 3}}

/* Row sums of each row's running sums: a Scan whose slices another Scan goes through. */
#define SCAN_IN_SCAN                                                                                                   \
	"{\"opset\":17,\"inputs\":[{\"name\":\"x\",\"type\":\"f32\",\"shape\":[2,3]}],\"constants\":["                    \
	"{\"name\":\"zero\",\"type\":\"f32\",\"shape\":[],\"values\":[0]}],\"nodes\":["                                    \
	"{\"op\":\"Scan\",\"inputs\":[\"zero\",\"x\"],\"outputs\":[\"all\",\"y\"],\"attributes\":{\"num_scan_inputs\":1,"         \
	"\"body\":{\"graph\":{\"inputs\":[{\"name\":\"t\",\"type\":\"f32\",\"shape\":[]},"                               \
	"{\"name\":\"row\",\"type\":\"f32\",\"shape\":[3]}],\"nodes\":["                                               \
	"{\"op\":\"Scan\",\"inputs\":[\"t\",\"row\"],\"outputs\":[\"u\",\"sums\"],\"attributes\":{\"num_scan_inputs\":1,"         \
	"\"body\":{\"graph\":{\"inputs\":[{\"name\":\"a\",\"type\":\"f32\",\"shape\":[]},"                               \
	"{\"name\":\"e\",\"type\":\"f32\",\"shape\":[]}],\"nodes\":["                                                 \
	"{\"op\":\"Add\",\"inputs\":[\"a\",\"e\"],\"outputs\":[\"b\"]}],\"outputs\":[\"b\",\"b\"]}}}}],"                         \
	"\"outputs\":[\"u\",\"sums\"]}}}}],\"outputs\":[\"all\",\"y\"]}"

static const struct example examples[] = {
	{"zeros around nothing",
	 "{\"opset\":17,\"inputs\":[{\"name\":\"x\",\"type\":\"f32\",\"shape\":[1]},{\"name\":\"a\",\"type\":\"i64\",\"shape\":[1]}],\"constants\":["
	 "{\"name\":\"two\",\"type\":\"i64\",\"shape\":[2],\"values\":[2,1]}],\"nodes\":["
	 "{\"op\":\"Expand\",\"inputs\":[\"x\",\"a\"],\"outputs\":[\"e\"]},"
	 "{\"op\":\"Exp\",\"inputs\":[\"e\"],\"outputs\":[\"w\"]},"
	 "{\"op\":\"Pad\",\"inputs\":[\"w\",\"two\"],\"outputs\":[\"y\"],\"attributes\":{\"mode\":\"constant\"}}],\"outputs\":[\"y\"]}",
	 {{F32(0), .rank = 1, .dims = {1}}, {I64(0), .rank = 1, .dims = {1}}}, 2, {{F32(0, 0, 0), .rank = 1, .dims = {3}}}, 1, NULL},
	{"nothing cannot be repeated",
	 "{\"opset\":17,\"inputs\":[{\"name\":\"x\",\"type\":\"f32\",\"shape\":[1]},{\"name\":\"a\",\"type\":\"i64\",\"shape\":[1]}],\"constants\":["
	 "{\"name\":\"two\",\"type\":\"i64\",\"shape\":[2],\"values\":[2,1]}],\"nodes\":["
	 "{\"op\":\"Expand\",\"inputs\":[\"x\",\"a\"],\"outputs\":[\"e\"]},"
	 "{\"op\":\"Exp\",\"inputs\":[\"e\"],\"outputs\":[\"w\"]},"
	 "{\"op\":\"Pad\",\"inputs\":[\"w\",\"two\"],\"outputs\":[\"y\"],\"attributes\":{\"mode\":\"wrap\"}}],\"outputs\":[\"y\"]}",
	 {{F32(0), .rank = 1, .dims = {1}}, {I64(0), .rank = 1, .dims = {1}}}, 2, {{F32(0)}}, 1, "elements to take from"},
	{"a scan inside a scan", SCAN_IN_SCAN, {X23}, 1,
	 {{F32(21), .rank = 0}, {F32(1, 3, 6, 10, 15, 21), .rank = 2, .dims = {2, 3}}}, 2, NULL},
	{"a list that another value stands for",
	 BY_LIST("2", "{\"op\":\"Identity\",\"inputs\":[\"a\"],\"outputs\":[\"b\"]},"
		      "{\"op\":\"Tile\",\"inputs\":[\"x\",\"b\"],\"outputs\":[\"y\"]}"),
	 {X23, {I64(1, 2), .rank = 1, .dims = {2}}}, 2,
	 {{F32(1, 2, 3, 1, 2, 3, 4, 5, 6, 4, 5, 6), .rank = 2, .dims = {2, 6}}}, 1, NULL},
	{"equal lists that become one",
	 BY_LIST("2", "{\"op\":\"Mul\",\"inputs\":[\"a\",\"two\"],\"outputs\":[\"b\"]},"
		      "{\"op\":\"Mul\",\"inputs\":[\"a\",\"two\"],\"outputs\":[\"c\"]},"
		      "{\"op\":\"Tile\",\"inputs\":[\"x\",\"b\"],\"outputs\":[\"u\"]},"
		      "{\"op\":\"Tile\",\"inputs\":[\"x\",\"c\"],\"outputs\":[\"v\"]},"
		      "{\"op\":\"Sub\",\"inputs\":[\"u\",\"v\"],\"outputs\":[\"y\"]}"),
	 {X23, {I64(0, 1), .rank = 1, .dims = {2}}}, 2, {{F32(0), .rank = 2, .dims = {0, 6}}}, 1, NULL},
	{"axes that the run adds", BY_LIST("1", "{\"op\":\"Unsqueeze\",\"inputs\":[\"x\",\"a\"],\"outputs\":[\"y\"]}"),
	 {X23, {I64(-2), .rank = 1, .dims = {1}}}, 2, {{F32(1, 2, 3, 4, 5, 6), .rank = 3, .dims = {2, 1, 3}}}, 1, NULL},
	{"a list of any length", BY_LIST("\"n\"", "{\"op\":\"ReduceSum\",\"inputs\":[\"x\",\"a\"],\"outputs\":[\"y\"]}"),
	 {X23, {I64(-1), .rank = 1, .dims = {1}}}, 2, {{F32(6, 15), .rank = 2, .dims = {2, 1}}}, 1, NULL},
	{"a list of all axes",
	 BY_LIST("\"n\"", "{\"op\":\"ReduceSum\",\"inputs\":[\"x\",\"a\"],\"outputs\":[\"y\"]}"),
	 {X23, {I64(1, 0), .rank = 1, .dims = {2}}}, 2, {{F32(21), .rank = 2, .dims = {1, 1}}}, 1, NULL},
	{"a list that is too long", BY_LIST("\"n\"", "{\"op\":\"Tile\",\"inputs\":[\"x\",\"a\"],\"outputs\":[\"y\"]}"),
	 {X23, {I64(1, 1, 1), .rank = 1, .dims = {3}}}, 2, {{F32(0)}}, 1, "the number of entries in input 1 'a'"},
	{"a carried list that is a shape",
	 "{\"opset\":17,\"inputs\":[{\"name\":\"m\",\"type\":\"i64\",\"shape\":[]},"
	 "{\"name\":\"a\",\"type\":\"i64\",\"shape\":[1]}],\"constants\":["
	 "{\"name\":\"go\",\"type\":\"bool\",\"shape\":[],\"values\":[true]},"
	 "{\"name\":\"one\",\"type\":\"i64\",\"shape\":[1],\"values\":[1]}],\"nodes\":["
	 "{\"op\":\"Loop\",\"inputs\":[\"m\",\"go\",\"a\"],\"outputs\":[\"last\",\"all\"],\"attributes\":{\"body\":"
	 "{\"graph\":{\"inputs\":[{\"name\":\"i\",\"type\":\"i64\",\"shape\":[]},"
	 "{\"name\":\"g\",\"type\":\"bool\",\"shape\":[]},{\"name\":\"v\",\"type\":\"i64\",\"shape\":[1]}],\"nodes\":["
	 "{\"op\":\"Expand\",\"inputs\":[\"one\",\"v\"],\"outputs\":[\"e\"]},"
	 "{\"op\":\"ReduceSum\",\"inputs\":[\"e\"],\"outputs\":[\"t\"]},"
	 "{\"op\":\"Add\",\"inputs\":[\"v\",\"one\"],\"outputs\":[\"w\"]}],\"outputs\":[\"g\",\"w\",\"t\"]}}}}],"
	 "\"outputs\":[\"last\",\"all\"]}",
	 {{I64(3), .rank = 0}, {I64(2), .rank = 1, .dims = {1}}}, 2,
	 {{I64(5), .rank = 1, .dims = {1}}, {I64(2, 3, 4), .rank = 2, .dims = {3, 1}}}, 2, NULL},
	{"ranks of branches differ, both go on",
	 RANKS "{\"op\":\"ReduceSum\",\"inputs\":[\"y\"],\"outputs\":[\"z\"],\"attributes\":{\"keepdims\":0}}],"
	       "\"outputs\":[\"z\"]}",
	 {{F32(1, 2, 3, 4), .rank = 2, .dims = {2, 2}}}, 1, {{F32(10), .rank = 0}}, 1, NULL},
	{"ranks of branches differ, one cannot go on",
	 RANKS "{\"op\":\"Concat\",\"inputs\":[\"y\",\"zf\"],\"outputs\":[\"z\"],\"attributes\":{\"axis\":0}}],"
	       "\"outputs\":[\"z\"]}",
	 {{F32(5, 6), .rank = 2, .dims = {1, 2}}}, 1, {{F32(5, 6, 7), .rank = 1, .dims = {3}}}, 1, NULL},
	{"the branch that cannot go on is refused in the run",
	 RANKS "{\"op\":\"Concat\",\"inputs\":[\"y\",\"zf\"],\"outputs\":[\"z\"],\"attributes\":{\"axis\":0}}],"
	       "\"outputs\":[\"z\"]}",
	 {{F32(5, 6, 7, 8), .rank = 2, .dims = {2, 2}}}, 1, {{F32(0)}}, 1, "size 1"},
	{"a branch that ends in ranks that differ", SQUEEZED("\"c\"", SUM),
	 {{F32(1, 2), .rank = 2, .dims = {1, 2}}, {BOOL(1), .rank = 0}}, 2, {{F32(3), .rank = 0}}, 1, NULL},
	{"its other branch", SQUEEZED("\"c\"", SUM),
	 {{F32(1, 2, 3, 4), .rank = 2, .dims = {2, 2}}, {BOOL(0), .rank = 0}}, 2, {{F32(-10), .rank = 0}}, 1, NULL},
	{"of all branches one can go on", SQUEEZED("\"c\"", JOINED),
	 {{F32(1, 2), .rank = 2, .dims = {1, 2}}, {BOOL(1), .rank = 0}}, 2,
	 {{F32(1, 2, 7), .rank = 1, .dims = {3}}}, 1, NULL},
	{"by a size, a branch cannot go on", SQUEEZED("\"c\"", JOINED),
	 {{F32(1, 2, 3, 4), .rank = 2, .dims = {2, 2}}, {BOOL(1), .rank = 0}}, 2, {{F32(0)}}, 1, "size 1"},
	{"by a condition, a branch cannot go on", SQUEEZED("\"c\"", JOINED),
	 {{F32(1, 2), .rank = 2, .dims = {1, 2}}, {BOOL(0), .rank = 0}}, 2, {{F32(0)}}, 1, "a condition that is true"},
	{"a branch known to be taken ends in ranks that differ",
	 SQUEEZED("\"yes\"", SUM), {{F32(1, 2, 3, 4), .rank = 2, .dims = {2, 2}}, {BOOL(0), .rank = 0}}, 2,
	 {{F32(10), .rank = 0}}, 1, NULL},
	{"a state that grows each turn, and a counter collected",
	 COUNTED_LOOP("{\"op\":\"Concat\",\"inputs\":[\"v\",\"v\"],\"outputs\":[\"w\"],\"attributes\":{\"axis\":0}}],"
		      "\"outputs\":[\"g\",\"w\",\"i\"]"),
	 {{I64(3), .rank = 0}, {F32(1, 2), .rank = 1, .dims = {2}}}, 2,
	 {{F32(1, 2, 1, 2, 1, 2, 1, 2, 1, 2, 1, 2, 1, 2, 1, 2), .rank = 1, .dims = {16}},
	  {I64(0, 1, 2), .rank = 1, .dims = {3}}}, 2, NULL},
	{"no turn",
	 COUNTED_LOOP("{\"op\":\"Add\",\"inputs\":[\"v\",\"v\"],\"outputs\":[\"w\"]}],\"outputs\":[\"g\",\"w\",\"v\"]"),
	 {{I64(0), .rank = 0}, {F32(1, 2), .rank = 1, .dims = {2}}}, 2,
	 {{F32(1, 2), .rank = 1, .dims = {2}}, {F32(0), .rank = 2, .dims = {0, 2}}}, 2, NULL},
	{"slices collected over turns without a bound",
	 COUNTED_LOOP("{\"op\":\"Add\",\"inputs\":[\"v\",\"v\"],\"outputs\":[\"w\"]}],\"outputs\":[\"g\",\"w\",\"v\"]"),
	 {{I64(3), .rank = 0}, {F32(1, 2), .rank = 1, .dims = {2}}}, 2,
	 {{F32(8, 16), .rank = 1, .dims = {2}}, {F32(1, 2, 2, 4, 4, 8), .rank = 2, .dims = {3, 2}}}, 2, NULL},
};

START_TEST(example)
{
	const struct example *e = &examples[_i];
	for (int s = 0; s < NUM_SETTINGS; s++) {
		struct executable x = {0};
		struct numbers got[MAX_PORTS];
		struct lathe_error error = {0};
		compile(e->model, settings[s], &x);
		int code = run(&x, e->inputs, e->num_inputs, got, e->num_outputs, &error);
		if (e->error) {
			ck_assert_msg(code != 0 && strstr(error.text, e->error), "%s: %s", e->name, error.text);
		} else {
			ck_assert_msg(code == 0, "%s: %s", e->name, error.text);
			for (size_t k = 0; k < e->num_outputs; k++)
				check_same(&got[k], &e->outputs[k], e->name);
		}
		end(&x);
	}
}
END_TEST

/* ---- random programs ---- */

static uint64_t random_state;

static uint32_t dice(uint32_t sides)
{
	random_state = random_state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(random_state >> 33) % sides;
}

struct writer {
	struct lth_buf text;
	uint32_t next;
	bool first;
};

static void node(struct writer *w, const char *op, const char *inputs, const char *outputs, const char *attributes)
{
	lth_buf_printf(&w->text, "%s{\"op\":\"%s\",\"inputs\":[%s],\"outputs\":[%s],\"attributes\":{%s}}",
		       w->first ? "" : ",", op, inputs, outputs, attributes);
	w->first = false;
}

/* Writes nodes that make a new vector out of `from`, of any length; the result's name is returned in `out`. */
static void steps(struct writer *w, const char *from, unsigned depth, char out[16]);

static void body(struct writer *w, const char *from, unsigned depth, char out[16])
{
	bool outer_first = w->first;
	w->first = true;
	lth_buf_puts(&w->text, "\"nodes\":[");
	steps(w, from, depth, out);
	lth_buf_puts(&w->text, "]");
	w->first = outer_first;
}

static void branch(struct writer *w, const char *from, unsigned depth, const char *out)
{
	char condition[64], a[16], b[16], total[24];
	snprintf(total, sizeof(total), "\"t%u\"", w->next);
	snprintf(condition, sizeof(condition), "\"c%u\"", w->next++);
	char quoted[24], operands[64];
	snprintf(quoted, sizeof(quoted), "\"%s\"", from);
	node(w, "ReduceSum", quoted, total, "\"keepdims\":0");
	snprintf(operands, sizeof(operands), "%s,\"five\"", total);
	node(w, "Less", operands, condition, "");
	lth_buf_printf(&w->text, ",{\"op\":\"If\",\"inputs\":[%s],\"outputs\":[\"%s\"],\"attributes\":{\"then_branch\":{\"graph\":{",
		       condition, out);
	body(w, from, depth + 1, a);
	lth_buf_printf(&w->text, ",\"outputs\":[\"%s\"]}},\"else_branch\":{\"graph\":{", a);
	body(w, from, depth + 1, b);
	lth_buf_printf(&w->text, ",\"outputs\":[\"%s\"]}}}}", b);
}

static void loop(struct writer *w, const char *from, unsigned depth, const char *out)
{
	uint32_t number = w->next++;
	char state[16], after[16];
	snprintf(state, sizeof(state), "v%u", number);
	lth_buf_printf(&w->text,
		       "%s{\"op\":\"Loop\",\"inputs\":[\"%s\",\"\",\"%s\"],\"outputs\":[\"%s\"],\"attributes\":{\"body\":{\"graph\":{"
		       "\"inputs\":[{\"name\":\"i%u\",\"type\":\"i64\",\"shape\":[]},{\"name\":\"g%u\",\"type\":\"bool\",\"shape\":[]},"
		       "{\"name\":\"%s\",\"type\":\"f32\",\"shape\":[\"k%u\"]}],",
		       w->first ? "" : ",", dice(2) ? "two" : "m", from, out, number, number, state, number);
	w->first = false;
	body(w, state, depth + 1, after);
	lth_buf_printf(&w->text, ",\"outputs\":[\"g%u\",\"%s\"]}}}}", number, after);
}

static void steps(struct writer *w, const char *from, unsigned depth, char out[16])
{
	char current[16], next[16], operands[64], quoted[24];
	snprintf(current, sizeof(current), "%s", from);
	for (uint32_t i = 0, count = 1 + dice(3); i < count; i++) {
		snprintf(next, sizeof(next), "x%u", w->next++);
		snprintf(quoted, sizeof(quoted), "\"%s\"", next);
		uint32_t kind = dice(depth < 2 ? 6 : 4);
		if (kind == 0) {
			snprintf(operands, sizeof(operands), "\"%s\",\"half\"", current);
			node(w, dice(2) ? "Add" : "Mul", operands, quoted, "");
		} else if (kind == 1) {
			snprintf(operands, sizeof(operands), "\"%s\"", current);
			node(w, dice(2) ? "Neg" : "Tanh", operands, quoted, "");
		} else if (kind == 2) {
			snprintf(operands, sizeof(operands), "\"%s\",\"start\",\"end\"", current);
			node(w, "Slice", operands, quoted, "");
		} else if (kind == 3) {
			snprintf(operands, sizeof(operands), "\"%s\",\"pair\"", current);
			node(w, "Concat", operands, quoted, "\"axis\":0");
		} else {
			(kind == 4 ? branch : loop)(w, current, depth, next);
			w->first = false;
		}
		snprintf(current, sizeof(current), "%s", next);
	}
	snprintf(out, 16, "x%u", w->next++);
	snprintf(quoted, sizeof(quoted), "\"%s\"", out);
	snprintf(operands, sizeof(operands), "\"%s\"", current);
	node(w, "Identity", operands, quoted, "");
}

static void random_model(struct writer *w)
{
	char out[16];
	static const char *const constants[][3] = {{"five", "f32", "0.5"},      {"half", "f32", "0.75"}, {"two", "i64", "2"},
						   {"start", "i64[]", "1"},     {"end", "i64[]", "3"},   {"pair", "f32[]", "0.25,-1.5"}};
	lth_buf_puts(&w->text, "{\"opset\":17,\"inputs\":[{\"name\":\"m\",\"type\":\"i64\",\"shape\":[]},"
			       "{\"name\":\"x\",\"type\":\"f32\",\"shape\":[\"n\"]}],\"constants\":[");
	for (size_t i = 0; i < sizeof(constants) / sizeof(constants[0]); i++) {
		const char *list = strchr(constants[i][1], '['), *comma = strchr(constants[i][2], ',');
		lth_buf_printf(&w->text, "%s{\"name\":\"%s\",\"type\":\"%.3s\",\"shape\":[%s],\"values\":[%s]}",
			       i ? "," : "", constants[i][0], constants[i][1], !list ? "" : comma ? "2" : "1",
			       constants[i][2]);
	}
	lth_buf_puts(&w->text, "],\"nodes\":[");
	w->first = true;
	steps(w, "x", 0, out);
	lth_buf_printf(&w->text, "],\"outputs\":[\"%s\"]}", out);
}

START_TEST(random_programs_agree)
{
	const char *seed = getenv("LATHE_SEED");
	random_state = (seed ? strtoull(seed, NULL, 10) : 20260301) + (uint64_t)_i;
	struct writer w = {0};
	random_model(&w);
	struct executable x[NUM_SETTINGS] = {{0}};
	for (int s = 0; s < NUM_SETTINGS; s++)
		compile(lth_buf_text(&w.text), settings[s], &x[s]);
	for (int64_t m = 0; m < 3; m++) {
		const struct numbers inputs[2] = {{I64((double)m), .rank = 0},
						  {F32(0.5, -1, 2, 0.125), .rank = 1, .dims = {1 + m}}};
		struct numbers expected = {0}, got = {0};
		struct lathe_error first = {0}, other = {0};
		int code = run(&x[0], inputs, 2, &expected, 1, &first);
		ck_assert_msg(code == 0, "seed %llu: %s\n%s", (unsigned long long)random_state, first.text,
			      lth_buf_text(&w.text)); /* nothing in these programs can fail */
		for (int s = 1; s < NUM_SETTINGS; s++) {
			int same = run(&x[s], inputs, 2, &got, 1, &other);
			ck_assert_msg((code == 0) == (same == 0), "seed %llu: %s / %s\n%s", (unsigned long long)random_state,
				      first.text, other.text, lth_buf_text(&w.text));
			if (code == 0)
				check_same(&got, &expected, lth_buf_text(&w.text));
		}
	}
	for (int s = 0; s < NUM_SETTINGS; s++)
		end(&x[s]);
	lth_buf_free(&w.text);
}
END_TEST

/* --- states without copies */

#define MATMUL(a, out) "{\"op\":\"MatMul\",\"inputs\":[\"" a "\",\"W\"],\"outputs\":[\"" out "\"]}"
#define OP(op, a, b, out) "{\"op\":\"" op "\",\"inputs\":[\"" a "\",\"" b "\"],\"outputs\":[\"" out "\"]}"

/* Loops over two states a and b of 8x8, by the nodes and the next states of their bodies. What comes in is copied once; more
 * is what the loop's end must, since an output is the caller's buffer. */
static const struct {
	const char *name, *nodes, *next;
	uint64_t copies; /* at most, of any number of turns */
} copied[] = {
	{"products", MATMUL("a", "t") "," MATMUL("b", "u"), "\"c\",\"t\",\"u\"", 4},
	{"one product", MATMUL("a", "t"), "\"c\",\"t\",\"b\"", 2},
	{"a rotation", OP("Add", "a", "b", "unused"), "\"c\",\"b\",\"a\"", 4},
	{"a delay", OP("Add", "a", "b", "t"), "\"c\",\"t\",\"a\"", 5},
	{"in place", OP("Add", "a", "W", "t") "," OP("Mul", "b", "W", "u"), "\"c\",\"t\",\"u\"", 2},
	{"element by element, both of both", OP("Sub", "a", "b", "t") "," OP("Mul", "a", "b", "u"), "\"c\",\"t\",\"u\"", 4},
};

static void write_copied(struct lth_buf *out, size_t number, int trips)
{
	lth_buf_printf(out,
		       "{\"opset\":17,\"inputs\":[{\"name\":\"x\",\"type\":\"f32\",\"shape\":[8,8]}],\"constants\":["
		       "{\"name\":\"M\",\"type\":\"i64\",\"shape\":[],\"values\":[%d]},"
		       "{\"name\":\"yes\",\"type\":\"bool\",\"shape\":[],\"values\":[1]},"
		       "{\"name\":\"W\",\"type\":\"f32\",\"shape\":[8,8],\"values\":[",
		       trips);
	for (int i = 0; i < MAX_ELEMENTS; i++)
		lth_buf_printf(out, "%s%g", i ? "," : "", (double)(i * 37 % 19 - 9) / 16);
	lth_buf_printf(out,
		       "]}],\"nodes\":[{\"op\":\"Loop\",\"inputs\":[\"M\",\"yes\",\"x\",\"W\"],\"outputs\":[\"y\",\"z\"],"
		       "\"attributes\":{\"body\":{\"graph\":{\"inputs\":[{\"name\":\"i\",\"type\":\"i64\",\"shape\":[]},"
		       "{\"name\":\"c\",\"type\":\"bool\",\"shape\":[]},{\"name\":\"a\",\"type\":\"f32\",\"shape\":[8,8]},"
		       "{\"name\":\"b\",\"type\":\"f32\",\"shape\":[8,8]}],\"nodes\":[%s],\"outputs\":[%s]}}}}],"
		       "\"outputs\":[\"y\",\"z\"]}",
		       copied[number].nodes, copied[number].next);
}

START_TEST(states_swap)
{
	struct numbers x = {.dtype = LATHE_F32, .rank = 2, .dims = {8, 8}}, expected[2], got[2];
	struct lathe_error error = {0};
	for (int i = 0; i < MAX_ELEMENTS; i++)
		x.values[i] = (double)(i % 7 - 3) / 4;
	for (int trips = 0; trips < 6; trips++) {
		struct lth_buf model = {0};
		struct executable plain, swapped;
		struct lathe_counters counters;
		write_copied(&model, (size_t)_i, trips);
		compile(lth_buf_text(&model), settings[0], &plain);
		compile(lth_buf_text(&model), "{\"artifacts\":[\"so\"],\"verify\":true}", &swapped);
		ck_assert_int_eq(run(&plain, &x, 1, expected, 2, &error), 0);
		ck_assert_int_eq(run(&swapped, &x, 1, got, 2, &error), 0);
		check_same(&got[0], &expected[0], copied[_i].name);
		check_same(&got[1], &expected[1], copied[_i].name);
		lathe_counters(swapped.context, &counters);
		ck_assert_msg(counters.last_run_copies <= copied[_i].copies, "%s: %llu copies in %d turns", copied[_i].name,
			      (unsigned long long)counters.last_run_copies, trips);
		ck_assert_uint_ge(counters.last_run_copies, 2);
		end(&plain);
		end(&swapped);
		lth_buf_free(&model);
	}
}
END_TEST

/* A loop behind more and more values: what ManifestAlloc keeps grows under its hands at some length or other. */
START_TEST(loops_behind_any_number_of_values)
{
	for (int length = 0; length < 130; length++) {
		struct lth_buf model = {0};
		struct executable x = {0};
		struct lathe_error error = {0};
		struct numbers in = {F32(1), .rank = 1, .dims = {1}}, expected = {F32(length + 3), .rank = 1, .dims = {1}}, got;
		lth_buf_puts(&model, "{\"opset\":17,\"inputs\":[{\"name\":\"x0\",\"type\":\"f32\",\"shape\":[1]}],\"constants\":["
				     "{\"name\":\"M\",\"type\":\"i64\",\"shape\":[],\"values\":[2]},"
				     "{\"name\":\"yes\",\"type\":\"bool\",\"shape\":[],\"values\":[1]},"
				     "{\"name\":\"one\",\"type\":\"f32\",\"shape\":[],\"values\":[1]},"
				     "{\"name\":\"high\",\"type\":\"f32\",\"shape\":[],\"values\":[1000]}],\"nodes\":[");
		for (int i = 0; i < length; i++)
			lth_buf_printf(&model, "{\"op\":\"Add\",\"inputs\":[\"x%d\",\"one\"],\"outputs\":[\"x%d\"]},", i, i + 1);
		lth_buf_printf(&model,
			       "{\"op\":\"Loop\",\"inputs\":[\"M\",\"yes\",\"x%d\"],\"outputs\":[\"y\"],\"attributes\":{\"body\":{\"graph\":{"
			       "\"inputs\":[{\"name\":\"i\",\"type\":\"i64\",\"shape\":[]},{\"name\":\"c\",\"type\":\"bool\",\"shape\":[]},"
			       "{\"name\":\"s\",\"type\":\"f32\",\"shape\":[1]}],\"nodes\":[" OP("Add", "s", "one", "t") ",%s" OP("Less", "m", "high", "d")
			       "],\"outputs\":[\"d\",\"t\"]}}}}],\"outputs\":[\"y\"]}",
			       length, "{\"op\":\"ReduceMax\",\"inputs\":[\"t\"],\"outputs\":[\"m\"],\"attributes\":{\"keepdims\":0}},");
		compile(lth_buf_text(&model), "{\"opt_level\":0,\"artifacts\":[\"so\"],\"verify\":true}", &x);
		ck_assert_int_eq(run(&x, &in, 1, &got, 1, &error), 0);
		check_same(&got, &expected, "a loop");
		end(&x);
		lth_buf_free(&model);
	}
}
END_TEST

int main(void)
{
	setenv("LATHE_LIBEXEC", "runtime/exec", 0); /* tests run in the build folder */
	Suite *suite = suite_create("control");
	TCase *cases = tcase_create("control");
	tcase_set_timeout(cases, 120);
	tcase_add_loop_test(cases, example, 0, (int)(sizeof(examples) / sizeof(examples[0])));
	tcase_add_test(cases, loops_behind_any_number_of_values);
	tcase_add_loop_test(cases, states_swap, 0, (int)(sizeof(copied) / sizeof(copied[0])));
	tcase_add_loop_test(cases, random_programs_agree, 0, RANDOM_PROGRAMS);
	suite_add_tcase(suite, cases);
	return run_suite(suite);
}
