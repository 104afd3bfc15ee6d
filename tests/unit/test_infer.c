/* Shape inference. Golden: the graphs of infer/ carry the types and guards that inference must find when they are
 * erased. Property: for random sizes, what was inferred with symbols, evaluated, is what is inferred with numbers.
 * Refusals: each names its node and the rule; and each node of the golden graphs, and of the models of numeric/cases/,
 * with each rule of its row broken in turn. Seeds: LATHE_SEED, else fixed. */
#include "compiler/import/import.h"
#include "compiler/ops/build.h"
#include "compiler/ops/history.h"
#include "compiler/ops/op.h"
#include "runtime/base/io.h"
#include "tests/unit/run_suite.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_VALUES = 256, MAX_SYMBOLS = 64, TRIALS = 40 };

static uint64_t state;

static int64_t dice(int64_t sides)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (int64_t)((state >> 33) % (uint64_t)sides);
}

static uint64_t first_seed(void)
{
	const char *text = getenv("LATHE_SEED");
	return text ? strtoull(text, NULL, 10) : 20260102;
}

/* A graph read from text, with what the text says of its values and guards. */
struct subject {
	struct lth_arena *arena;
	struct lth_graph *graph;
	struct lth_type types[MAX_VALUES];
	uint32_t num_values;
	struct lth_guard guards[MAX_VALUES];
	uint32_t num_guards;
	struct lth_diag diag;
};

static const char *text_of(const struct subject *subject)
{
	static char line[2048];
	return lth_diag_line(&subject->diag, line, sizeof(line));
}

/* Parses, remembers and erases the types of what nodes define. */
static void read_subject(const char *text, size_t size, struct subject *out)
{
	memset(out, 0, sizeof(*out));
	out->arena = lth_arena_create(0);
	enum lth_code code = lth_graph_parse(text, size, out->arena, &out->graph, &out->diag);
	ck_assert_msg(code == LTH_OK, "%s\n%.*s", text_of(out), (int)size, text);
	struct lth_graph *graph = out->graph;
	ck_assert_uint_lt(graph->num_values, MAX_VALUES);
	ck_assert_uint_lt(graph->num_guards, MAX_VALUES);
	out->num_values = graph->num_values;
	for (lth_value_id id = 0; id < graph->num_values; id++) {
		struct lth_value *value = &graph->values[id];
		out->types[id] = value->type;
		if (value->def == LTH_DEF_NODE)
			value->type = (struct lth_type){.kind = LTH_TYPE_TENSOR, .dtype = LTH_NUM_DTYPES,
							.rank = LTH_RANK_UNKNOWN};
	}
	out->num_guards = graph->num_guards;
	if (graph->num_guards)
		memcpy(out->guards, graph->guards, graph->num_guards * sizeof(*graph->guards));
	graph->num_guards = 0;
}

static void print_and_fail(const struct subject *subject, const char *what)
{
	struct lth_buf buf = {0};
	lth_graph_print(subject->graph, false, &buf);
	printf("%s\n", lth_buf_text(&buf)); /* it may be longer than a message of the library */
	ck_abort_msg("%s: not as expected", what);
}

static void check_golden(const char *text, size_t size)
{
	struct subject subject;
	read_subject(text, size, &subject);
	struct lth_graph *graph = subject.graph;
	ck_assert_msg(lth_infer_graph(graph, &subject.diag) == LTH_OK, "%s\n%.*s", text_of(&subject), (int)size, text);
	ck_assert_msg(lth_graph_verify(graph, &subject.diag) == LTH_OK, "%s", text_of(&subject));
	for (lth_value_id id = 0; id < subject.num_values; id++) {
		const struct lth_type *wanted = &subject.types[id], *got = &graph->values[id].type;
		if (graph->values[id].def == LTH_DEF_DELETED)
			continue;
		if (got->dtype != wanted->dtype || got->rank != wanted->rank)
			print_and_fail(&subject, graph->values[id].name);
		for (uint32_t axis = 0; axis < got->rank; axis++)
			if (got->dims[axis] != wanted->dims[axis])
				print_and_fail(&subject, graph->values[id].name);
	}
	if (graph->num_guards != subject.num_guards)
		print_and_fail(&subject, "other guards");
	for (uint32_t i = 0; i < graph->num_guards; i++)
		if (graph->guards[i].a != subject.guards[i].a || graph->guards[i].b != subject.guards[i].b ||
		    graph->guards[i].relation != subject.guards[i].relation)
			print_and_fail(&subject, "another guard");
	/* Passes infer nodes again: nothing may change. */
	uint32_t num_guards = graph->num_guards;
	ck_assert_msg(lth_infer_graph(graph, &subject.diag) == LTH_OK, "again: %s", text_of(&subject));
	ck_assert_uint_eq(graph->num_guards, num_guards);
	lth_arena_destroy(&subject.arena);
}

/* ---- the property ---- */

/* Small values in the symbols' boxes; false when there is a data symbol, whose value is the run's. */
static bool draw_symbols(const struct lth_dims *dims, int64_t *out)
{
	uint32_t count = lth_dims_num_symbols(dims);
	ck_assert_uint_le(count, MAX_SYMBOLS);
	for (uint32_t i = 0; i < count; i++) {
		const struct lth_dim_symbol *symbol = lth_dims_symbol(dims, i);
		if (symbol->from_data)
			return false;
		int64_t low = (symbol->min + symbol->multiple - 1) / symbol->multiple;
		int64_t high = symbol->max == INT64_MAX ? low + 12 : symbol->max / symbol->multiple;
		out[i] = (low + dice((high - low < 12 ? high - low : 12) + 1)) * symbol->multiple;
	}
	return true;
}

static bool guards_hold(const struct lth_graph *graph, const int64_t *symbols)
{
	for (uint32_t i = 0; i < graph->num_guards; i++) {
		int64_t a, b;
		const struct lth_guard *guard = &graph->guards[i];
		ck_assert(lth_dim_eval(graph->dims, guard->a, symbols, &a));
		ck_assert(lth_dim_eval(graph->dims, guard->b, symbols, &b));
		bool holds = guard->relation == LTH_REL_EQ   ? a == b
			     : guard->relation == LTH_REL_LE ? a <= b
							     : b % a == 0;
		if (!holds)
			return false;
	}
	return true;
}

/* Replaces the inputs' dimensions by numbers. */
static void make_static(struct subject *subject, const int64_t *symbols)
{
	struct lth_graph *graph = subject->graph;
	for (lth_value_id id = 0; id < graph->num_values; id++) {
		struct lth_value *value = &graph->values[id];
		lth_dim dims[LTH_MAX_RANK];
		if (value->def != LTH_DEF_INPUT)
			continue;
		for (uint32_t axis = 0; axis < value->type.rank; axis++) {
			int64_t extent;
			ck_assert(lth_dim_eval(graph->dims, value->type.dims[axis], symbols, &extent));
			dims[axis] = lth_dim_const(graph->dims, extent);
		}
		value->type = lth_type_tensor(graph, value->type.dtype, value->type.rank, dims);
	}
}

static void check_property(const char *text, size_t size)
{
	struct subject symbolic, fixed;
	int64_t symbols[MAX_SYMBOLS];
	read_subject(text, size, &symbolic);
	ck_assert_int_eq(lth_infer_graph(symbolic.graph, &symbolic.diag), LTH_OK);
	for (int trial = 0; trial < TRIALS && draw_symbols(symbolic.graph->dims, symbols); trial++) {
		if (!guards_hold(symbolic.graph, symbols))
			continue;
		read_subject(text, size, &fixed);
		make_static(&fixed, symbols);
		ck_assert_msg(lth_infer_graph(fixed.graph, &fixed.diag) == LTH_OK, "%s\n%.*s", text_of(&fixed),
			      (int)size, text);
		for (lth_value_id id = 0; id < fixed.num_values; id++) {
			const struct lth_type *a = &symbolic.graph->values[id].type, *b = &fixed.graph->values[id].type;
			if (fixed.graph->values[id].def == LTH_DEF_DELETED)
				continue;
			ck_assert_uint_eq(a->rank, b->rank);
			for (uint32_t axis = 0; axis < a->rank; axis++) {
				int64_t wanted, got;
				ck_assert(lth_dim_eval(symbolic.graph->dims, a->dims[axis], symbols, &wanted));
				ck_assert(lth_dim_is_const(fixed.graph->dims, b->dims[axis], &got));
				if (wanted != got)
					print_and_fail(&fixed, fixed.graph->values[id].name);
			}
		}
		lth_arena_destroy(&fixed.arena);
	}
	lth_arena_destroy(&symbolic.arena);
}

/* ---- every rule of a row broken ---- */

/* What is done to a node, in as many variants as there are; false when there are no more. The graph's memory is its
 * arena's. */
typedef bool (*break_fn)(struct lth_graph *graph, struct lth_node *node, uint32_t variant);

static void put_attr(struct lth_graph *graph, struct lth_node *node, const struct lth_attr *attr)
{
	struct lth_attr *attrs = lth_arena_array(graph->arena, node->num_attrs + 1, sizeof(*attrs));
	ck_assert_ptr_nonnull(attrs);
	if (node->num_attrs)
		memcpy(attrs, node->attrs, node->num_attrs * sizeof(*attrs));
	attrs[node->num_attrs++] = *attr;
	node->attrs = attrs;
}

static bool unknown_attribute(struct lth_graph *graph, struct lth_node *node, uint32_t variant)
{
	const struct lth_attr attr = lth_attr_int("nonsense", 1);
	if (variant == 0)
		put_attr(graph, node, &attr);
	return variant == 0;
}

static bool other_kind(struct lth_graph *graph, struct lth_node *node, uint32_t variant)
{
	(void)graph;
	if (variant >= node->num_attrs)
		return false;
	struct lth_attr *attr = &node->attrs[variant];
	const struct lth_attr text = {.name = attr->name, .kind = LTH_ATTR_STRING, .count = 1, .s = {"x", 1}};
	const struct lth_attr number = lth_attr_int(attr->name, 1);
	*attr = attr->kind == LTH_ATTR_INT ? text : number;
	return true;
}

/* The list with as many entries as asked for, the first one over and over behind its end. */
static lth_value_id *resized(struct lth_graph *graph, const lth_value_id *list, uint32_t count, uint32_t wanted)
{
	lth_value_id *longer = lth_arena_array(graph->arena, wanted + 1, sizeof(*longer));
	ck_assert_ptr_nonnull(longer);
	for (uint32_t i = 0; i < wanted; i++)
		longer[i] = i < count ? list[i] : list[0];
	return longer;
}

static bool wrong_count(struct lth_graph *graph, struct lth_node *node, uint32_t variant)
{
	uint32_t most = node->op->max_inputs, least = node->op->min_inputs;
	if (variant > 1 || node->num_inputs == 0)
		return false;
	uint32_t wanted = variant == 0 && most != UINT32_MAX ? most + 1 : least ? least - 1 : UINT32_MAX;
	if (wanted == UINT32_MAX)
		return false;
	node->inputs = resized(graph, node->inputs, node->num_inputs, wanted);
	node->num_inputs = wanted;
	return true;
}

static bool absent_input(struct lth_graph *graph, struct lth_node *node, uint32_t variant)
{
	(void)graph;
	if (variant >= node->num_inputs)
		return false;
	node->inputs[variant] = LTH_NONE;
	return true;
}

/* Other element types, and one axis more or less, of each input that is the model's. */
static bool other_type(struct lth_graph *graph, struct lth_node *node, uint32_t variant)
{
	static const enum lth_dtype dtypes[] = {LTH_DTYPE_STRING, LTH_DTYPE_BOOL, LTH_DTYPE_U8, LTH_DTYPE_I64, LTH_DTYPE_F16};
	enum { WAYS = sizeof(dtypes) / sizeof(*dtypes) + 2 };
	uint32_t input = variant / WAYS, way = variant % WAYS;
	if (input >= node->num_inputs)
		return false;
	struct lth_value *value = node->inputs[input] == LTH_NONE ? NULL : &graph->values[node->inputs[input]];
	lth_dim dims[LTH_MAX_RANK + 1] = {lth_dim_const(graph->dims, 2)};
	if (!value || value->def != LTH_DEF_INPUT || value->type.kind != LTH_TYPE_TENSOR || value->type.rank == LTH_MAX_RANK ||
	    (way == WAYS - 1 && value->type.rank == 0))
		return true; /* nothing to do */
	struct lth_type *type = &value->type;
	memcpy(dims + 1, type->dims, type->rank * sizeof(*dims));
	if (way == WAYS - 2)
		*type = lth_type_tensor(graph, type->dtype, type->rank + 1, dims);
	else if (way == WAYS - 1)
		*type = lth_type_tensor(graph, type->dtype, type->rank - 1, dims + 2);
	else
		type->dtype = dtypes[way];
	return true;
}

static bool extreme_number(struct lth_graph *graph, struct lth_node *node, uint32_t variant)
{
	static const int64_t numbers[] = {INT64_MIN, INT64_MAX, -1000, 0, 1000000};
	enum { WAYS = sizeof(numbers) / sizeof(*numbers) };
	if (variant / WAYS >= node->num_attrs)
		return false;
	struct lth_attr *attr = &node->attrs[variant / WAYS];
	if (attr->kind == LTH_ATTR_INT)
		attr->i = numbers[variant % WAYS];
	if (attr->kind != LTH_ATTR_INTS || attr->count == 0)
		return true;
	int64_t *list = lth_arena_memdup(graph->arena, attr->ints, attr->count * sizeof(*list));
	ck_assert_ptr_nonnull(list);
	list[attr->count - 1] = numbers[variant % WAYS];
	attr->ints = list;
	return true;
}

static const struct {
	const char *what;
	break_fn apply;
	bool refused; /* always; the others are an error with a place, or give a graph that is one */
} breaks[] = {
	{"an unknown attribute", unknown_attribute, true},
	{"an attribute of another kind", other_kind, true},
	{"a wrong number of inputs", wrong_count, true},
	{"an absent input", absent_input, false},
	{"an input of another type", other_type, false},
	{"an extreme number", extreme_number, false},
};

/* A graph as text, or a model in JSON. */
static void read_broken(const char *text, size_t size, struct subject *out)
{
	if (text[0] != '{') {
		read_subject(text, size, out);
		return;
	}
	memset(out, 0, sizeof(*out));
	out->arena = lth_arena_create(0);
	enum lth_code code = lth_import_json(text, size, NULL, 0, NULL, out->arena, &out->graph, &out->diag);
	ck_assert_msg(code == LTH_OK, "%s\n%.*s", text_of(out), (int)size, text);
}

/* False when there is no such variant. */
static bool check_break(const char *text, size_t size, uint32_t at, size_t way, uint32_t variant)
{
	struct subject subject;
	char what[512];
	read_broken(text, size, &subject);
	struct lth_node *node = &subject.graph->nodes[subject.graph->regions[0].nodes[at]];
	snprintf(what, sizeof(what), "%s of %s, variant %u", breaks[way].what, node->op->name, variant);
	const char *name = node->name;
	bool some = breaks[way].apply(subject.graph, node, variant);
	if (some) {
		enum lth_code code = lth_infer_graph(subject.graph, &subject.diag);
		if (breaks[way].refused)
			ck_assert_msg(code == LTH_INVALID_GRAPH && strstr(text_of(&subject), name), "%s: %s\n%.*s", what,
				      text_of(&subject), (int)size, text);
		else if (code == LTH_OK)
			ck_assert_msg(lth_graph_verify(subject.graph, &subject.diag) == LTH_OK, "%s: %s\n%.*s", what,
				      text_of(&subject), (int)size, text);
		else
			ck_assert_msg((code == LTH_INVALID_GRAPH || code == LTH_UNSUPPORTED) && subject.diag.place[0],
				      "%s: %s\n%.*s", what, text_of(&subject), (int)size, text);
	}
	lth_arena_destroy(&subject.arena);
	return some;
}

static void check_breaks(const char *text, size_t size)
{
	struct subject subject;
	read_broken(text, size, &subject);
	uint32_t num_nodes = subject.graph->regions[0].num_nodes;
	lth_arena_destroy(&subject.arena);
	for (uint32_t at = 0; at < num_nodes; at++)
		for (size_t way = 0; way < sizeof(breaks) / sizeof(*breaks); way++)
			for (uint32_t variant = 0; check_break(text, size, at, way, variant);)
				variant++;
}

/* ---- files of cases ---- */

static int is_text(const struct dirent *entry)
{
	size_t length = strlen(entry->d_name);
	return length > 4 && strcmp(entry->d_name + length - 4, ".txt") == 0;
}

/* What a file holds of cases, each handed to `check`. */
typedef void (*check_fn)(const char *text, size_t size);
typedef void (*split_fn)(const char *text, check_fn check);

/* Graphs are separated by lines of `---`. */
static void split_graphs(const char *text, check_fn check)
{
	for (const char *at = text; at;) {
		const char *next = strstr(at, "\n---\n");
		check(at, next ? (size_t)(next + 1 - at) : strlen(at));
		at = next ? next + 5 : NULL;
	}
}

/* Models begin with a brace at a line's begin and end before the first line of values. */
static void split_models(const char *text, check_fn check)
{
	for (const char *at = strstr(text, "\n{"); at; at = strstr(at + 1, "\n{")) {
		const char *in = strstr(at, "\nin "), *out = strstr(at, "\nout ");
		ck_assert_ptr_nonnull(out);
		check(at + 1, (size_t)((in && in < out ? in : out) - at));
	}
}

/* Each case of each file of a folder. */
static void for_each_case_in(const char *name, split_fn split, check_fn check)
{
	char folder[1024], path[2048];
	const char *srcdir = getenv("srcdir");
	struct dirent **entries;
	snprintf(folder, sizeof(folder), "%s/tests/%s", srcdir ? srcdir : ".", name);
	int count = scandir(folder, &entries, is_text, alphasort);
	ck_assert_int_gt(count, 0);
	for (int i = 0; i < count; i++) {
		struct lth_diag diag = {0};
		char *text;
		size_t size;
		snprintf(path, sizeof(path), "%s/%s", folder, entries[i]->d_name);
		ck_assert_int_eq(lth_read_file(path, 0, &text, &size, &diag), LTH_OK);
		split(text, check);
		free(text);
		free(entries[i]);
	}
	free(entries);
}

static void for_each_case(check_fn check)
{
	for_each_case_in("unit/infer", split_graphs, check);
}

START_TEST(golden)
{
	for_each_case(check_golden);
}
END_TEST

START_TEST(symbols_agree_with_numbers)
{
	state = first_seed();
	for_each_case(check_property);
}
END_TEST

START_TEST(broken_rules)
{
	for_each_case(check_breaks);
}
END_TEST

START_TEST(broken_rules_of_models)
{
	for_each_case_in("numeric/cases", split_models, check_breaks);
}
END_TEST

/* ---- refusals ---- */

static const struct {
	const char *text;    /* behind `graph "g" opset 28` */
	enum lth_code code;
	const char *message; /* part of the line */
} refusals[] = {
	{"input %a : f32[2, 3]\ninput %b : f32[4]\n%y = com.microsoft.BiasGelu(%a, %b) : f32[]\noutput %y\n",
	 LTH_INVALID_GRAPH, "found 4 and 3, expected input 1 'b' of shape [n]"},
	{"input %a : f32[2, 3]\ninput %b : f32[1, 3]\n%y = com.microsoft.BiasGelu(%a, %b) : f32[]\noutput %y\n",
	 LTH_INVALID_GRAPH, "found input 1 'b' has shape [1, 3], expected shape [n]"},
	{"input %x : f32[2, 4, 3]\ninput %s : f32[3, 4, 3]\ninput %g : f32[3]\n"
	 "%y = com.microsoft.SkipLayerNormalization(%x, %s, %g) : f32[]\noutput %y\n",
	 LTH_INVALID_GRAPH, "found 3 and 2, expected input 1 's' of shape [b? s h]"},
	{"input %x : f32[2, 4, 3]\ninput %g : f32[3]\n"
	 "%y = com.microsoft.SkipLayerNormalization(%x, %x, %g) {epsilon: -1.0} : f32[]\noutput %y\n",
	 LTH_INVALID_GRAPH, "found attribute 'epsilon' is '-1', expected 0.."},
	{"input %x : f64[3]\ninput %s : f64[]\n%y = QuantizeLinear(%x, %s) : u8[]\noutput %y\n", LTH_INVALID_GRAPH,
	 "input 0 'x' is of type f64"},
	{"input %x : f32[1, 1, 4, 4]\ninput %w : f32[2, 1, 2, 2]\ninput %b : f32[1]\n"
	 "%y = Conv(%x, %w, %b) : f32[]\noutput %y\n", LTH_INVALID_GRAPH, "found 1 and 2, expected one bias a channel"},
	{"input %a : f32[3]\ninput %b : f32[4]\n%y = Add(%a, %b) : f32[]\noutput %y\n", LTH_INVALID_GRAPH,
	 "node 'y' (Add): found 3 and 4, expected sizes that agree or are 1"},
	{"input %a : f32[3]\ninput %b : f64[3]\n%y = Add(%a, %b) : f32[]\noutput %y\n", LTH_INVALID_GRAPH,
	 "input 1 'b' is of type f64, unlike input 0"},
	{"input %a : string[3]\n%y = Sqrt(%a) : f32[]\noutput %y\n", LTH_INVALID_GRAPH,
	 "is of type string, expected float"},
	{"input %a : f32[3]\n%y = Softmax(%a) {axs: 0} : f32[]\noutput %y\n", LTH_INVALID_GRAPH,
	 "unknown attribute 'axs', expected axis"},
	{"input %a : f32[3]\n%y = Softmax(%a) {axis: \"0\"} : f32[]\noutput %y\n", LTH_INVALID_GRAPH,
	 "attribute 'axis' is of kind string, expected int"},
	{"input %a : f32[3]\n%y = Softmax(%a) {axis: 1} : f32[]\noutput %y\n", LTH_INVALID_GRAPH,
	 "axis 1, expected in [-1, 1)"},
	{"input %a : f32[3]\n%y = Cast(%a) : f32[]\noutput %y\n", LTH_INVALID_GRAPH, "attribute 'to' is missing"},
	{"input %a : f32[3]\n%y = Cast(%a) {to: 99} : f32[]\noutput %y\n", LTH_INVALID_GRAPH, "attribute 'to' is 99"},
	{"input %a : f32[3]\n%y = Gelu(%a) {approximate: \"tan\"} : f32[]\noutput %y\n", LTH_INVALID_GRAPH,
	 "attribute 'approximate' is 'tan', expected none,tanh"},
	{"input %i : i64[3]\nconst %d : i64[1] = [4]\ninput %v : f32[2, 2]\n%y = OneHot(%i, %d, %v) : f32[]\noutput %y\n",
	 LTH_INVALID_GRAPH, "input 2 'v' has rank 2"},
	{"input %i : i64[3]\nconst %d : i64[1] = [4]\ninput %v : f32[3]\n%y = OneHot(%i, %d, %v) : f32[]\noutput %y\n",
	 LTH_INVALID_GRAPH, "expected two values, off and on"},
	{"input %a : f32[3, 4]\ninput %s : f32[2, 2]\nconst %n : i64[2] = [6, 8]\n"
	 "%y = Resize(%a, _, %s, %n) : f32[]\noutput %y\n", LTH_INVALID_GRAPH, "input 2 's' has rank 2"},
	{"input %a : f32[3, 4]\ninput %s : f32[1]\nconst %n : i64[2] = [6, 8]\n"
	 "%y = Resize(%a, _, %s, %n) : f32[]\noutput %y\n", LTH_INVALID_GRAPH, "one scale a resized axis"},
	{"input %a : f32[3, 4]\ninput %r : f32[2]\nconst %n : i64[2] = [6, 8]\n"
	 "%y = Resize(%a, %r, _, %n) {coordinate_transformation_mode: \"tf_crop_and_resize\"} : f32[]\noutput %y\n",
	 LTH_INVALID_GRAPH, "a begin and an end of each resized axis"},
	{"input %x : f32[1, 64]\nconst %s : i64[1] = [4]\ninput %w : f32[8]\nconst %n : i64[1] = [16]\n"
	 "%y = STFT(%x, %s, %w, %n) : f32[]\noutput %y\n", LTH_INVALID_GRAPH, "a window as long as a frame"},
	{"input %a : f32[3, 4]\nconst %s : i64[2] = [5, -1]\n%y = Reshape(%a, %s) : f32[]\noutput %y\n",
	 LTH_INVALID_GRAPH, "found 5 and 12"},
	{"input %a : f32[3, 4]\ninput %b : f32[5, 6]\n%y = MatMul(%a, %b) : f32[]\noutput %y\n", LTH_INVALID_GRAPH,
	 "4 and 5, expected as many columns"},
	{"input %a : f32[1, 3, 8, 8]\ninput %w : f32[4, 2, 3, 3]\n%y = Conv(%a, %w) : f32[]\noutput %y\n",
	 LTH_INVALID_GRAPH, "3 and 2, expected as many channels"},
	{"input %a : f32[1, 3, 2, 2]\ninput %w : f32[4, 3, 5, 5]\n%y = Conv(%a, %w) : f32[]\noutput %y\n",
	 LTH_INVALID_GRAPH, "windows no larger than the padded input"},
	{"input %x : f32[4]\nconst %s : i64[1, 1] = [4]\n%y = Expand(%x, %s) : f32[]\noutput %y\n", LTH_INVALID_GRAPH,
	 "input 1 's' has rank 2, expected rank 1"},
	{"input %x : f32[4]\nconst %s : i64[] = 4\n%y = Tile(%x, %s) : f32[]\noutput %y\n", LTH_INVALID_GRAPH,
	 "input 1 's' has rank 0, expected rank 1"},
	{"input %x : f32[4]\nconst %s : i64[1, 2] = [1, 1]\n%y = Pad(%x, %s) : f32[]\noutput %y\n", LTH_INVALID_GRAPH,
	 "input 1 's' has rank 2, expected rank 1"},
	{"input %x : f32[4]\n%y = Split(%x) : f32[]\noutput %y\n", LTH_INVALID_GRAPH, "found neither"},
	{"input %x : f32[1, 1, 4]\ninput %w : f32[1, 1, 2]\n"
	 "%y = ConvTranspose(%x, %w) {output_padding: [0, 0]} : f32[]\noutput %y\n", LTH_INVALID_GRAPH,
	 "2 in output_padding for 1 axes"},
	{"input %x : f32[1, 1, 4]\ninput %w : f32[1, 1, 2]\n"
	 "%y = ConvTranspose(%x, %w) {output_shape: [5, 5]} : f32[]\noutput %y\n", LTH_INVALID_GRAPH,
	 "2 in output_shape for 1 axes"},
	{"input %x : f32[1, 8, 2]\n%y = DFT(%x) {onesided: 1} : f32[]\noutput %y\n", LTH_INVALID_GRAPH,
	 "real numbers where one side is enough"},
	{"input %x : f32[4, 4]\nconst %s : i64[2] = [2, 2]\n%y = CenterCropPad(%x, %s) {axes: [0, -2]} : f32[]\noutput %y\n",
	 LTH_INVALID_GRAPH, "axis -2 twice"},
	{"input %t : f32[1, 2, 3]\nconst %s : i64[1, 4] = [1, 1, 2, 2]\n%y = AffineGrid(%t, %s) : f32[]\noutput %y\n",
	 LTH_INVALID_GRAPH, "input 1 's' has rank 2, expected rank 1"},
	{"input %x : f32[3, 2]\n%y = Scan(%x) {body: region(%e : f32[2]) { %f = Neg(%e) : f32[2] output %f }, num_scan_inputs: 1, "
	 "scan_input_directions: [2]} : f32[]\noutput %y\n", LTH_INVALID_GRAPH, "2 in scan_input_directions"},
	{"symbol n in [1, *]\ninput %c : bool[]\ninput %x : f32[n]\n%y, %z = If(%c) {then_branch: region() { %a = Neg(%x) : f32[n] "
	 "output %a }, else_branch: region() { %b = ReduceSum(%x) {keepdims: 0} : f32[] output %b }} : f32[], f32[]\n"
	 "%w = Add(%y, %z) : f32[]\noutput %w\n", LTH_INVALID_GRAPH, "found 1 for 2"},
	{"input %x : u8[4]\n%y = Neg(%x) : u8[]\noutput %y\n", LTH_INVALID_GRAPH, "is of type u8"},
	{"input %x : f32[1, 2, 4]\ninput %w : f32[1, 3, 4]\ninput %r : f32[1, 3, 3]\n"
	 "%y = RNN(%x, %w, %r) {clip: -1.0, hidden_size: 3} : f32[]\noutput %y\n", LTH_INVALID_GRAPH, "clip -1"},
	{"input %x : f32[1, 1, 2, 4]\ninput %c : f32[1, 2, 2]\n"
	 "%y = RotaryEmbedding(%x, %c, %c) {num_heads: -1} : f32[]\noutput %y\n", LTH_INVALID_GRAPH,
	 "attribute 'num_heads' is '-1', expected 0.."},
	{"input %x : i64[3]\n%y = ai.onnx.ml.LabelEncoder(%x) {keys_int64s: [1], keys_strings: [\"a\"], values_int64s: [2]} : "
	 "i64[]\noutput %y\n", LTH_INVALID_GRAPH, "attributes 'keys_strings' and 'keys_int64s'"},
	{"input %a : f32[5]\nconst %i : i64[1] = [5]\n%y = Gather(%a, %i) : f32[]\noutput %y\n", LTH_INVALID_GRAPH,
	 "index 5, expected in [-5, 5)"},
	{"input %a : f32[2, 3]\n%y = Transpose(%a) {perm: [0, 0]} : f32[]\noutput %y\n", LTH_INVALID_GRAPH,
	 "perm names axis 0 twice"},
	{"input %a : f32[2, 3]\ninput %b : f32[3, 4]\n%y = Einsum(%a, %b) {equation: \"ij,kl->im\"} : f32[]\noutput "
	 "%y\n",
	 LTH_INVALID_GRAPH, "an output subscript that no input has"},
	{"input %a : f32[1, 3, 1]\nconst %k : i64[] = 2\n%y = DFT(%a, _, %k) : f32[]\noutput %y\n", LTH_INVALID_GRAPH,
	 "expected an axis before the last"},
	{"symbol n in [1, *]\ninput %a : f32[3]\ninput %s : i64[n]\n%y = Reshape(%a, %s) : f32[]\noutput %y\n",
	 LTH_UNSUPPORTED, "make the number of its elements constant"},
	{"input %a : f32[1, 4, 6]\ninput %w : f32[3, 1, 2]\n%y = CausalConvWithState(%a, %w) : f32[]\noutput %y\n",
	 LTH_INVALID_GRAPH, "weights [channels, 1, taps]"},
	{"input %a : f32[1, 4, 6]\ninput %w : f32[4, 1, 3]\ninput %s : f32[1, 4, 3]\n"
	 "%y = CausalConvWithState(%a, %w, _, %s) : f32[]\noutput %y\n",
	 LTH_INVALID_GRAPH, "a past state [batch, channels, taps - 1]"},
	{"input %q : f32[1, 2, 5]\n%y = LinearAttention(%q, %q, %q) {q_num_heads: 2, kv_num_heads: 2, "
	 "update_rule: \"linear\"} : f32[]\noutput %y\n",
	 LTH_INVALID_GRAPH, "keys and values of whole heads"},
	{"input %a : f32[*]\n%y = Relu(%a) : f32[]\noutput %y\n", LTH_UNSUPPORTED, "has no known rank"},
	{"input %a : f32[2, 3]\n%y = ReduceMax(%a) {keepdims: 2} : f32[]\noutput %y\n", LTH_INVALID_GRAPH,
	 "attribute 'keepdims' is '2', expected 0,1"},
	{"input %x : u8[1, 2, 4]\ninput %s : f32[]\ninput %z : u8[]\ninput %w : i8[3, 2, 1]\ninput %v : f32[1, 3]\n"
	 "input %u : i8[]\n%y = QLinearConv(%x, %s, %z, %w, %v, %u, %s, %z) : u8[]\noutput %y\n",
	 LTH_INVALID_GRAPH, "input 4 'v' has rank 2"},
	{"input %a : u8[2, 3]\ninput %s : f32[]\ninput %z : u8[]\ninput %b : u8[3, 4]\ninput %t : f32[8]\n"
	 "%y = QLinearMatMul(%a, %s, %z, %b, %s, %z, %t, %z) : u8[]\noutput %y\n", LTH_INVALID_GRAPH,
	 "input 6 't' has shape [8], expected one element"},
	{"input %x : f32[9, 2, 3, 4]\ninput %c : f32[2, 3, 2]\n%y = RotaryEmbedding(%x, %c, %c) : f32[]\noutput %y\n",
	 LTH_INVALID_GRAPH, "2 and 9, expected one batch"},
	{"input %x : f32[]\ninput %c : f32[2, 3, 2]\n%y = RotaryEmbedding(%x, %c, %c) : f32[]\noutput %y\n",
	 LTH_INVALID_GRAPH, "has rank 0"},
	{"input %x : f32[3]\nconst %p : i64[2] = [1, 1]\ninput %v : f32[2]\n%y = Pad(%x, %p, %v) : f32[]\noutput %y\n",
	 LTH_INVALID_GRAPH, "input 2 'v' has shape [2], expected one element"},
	{"input %x : f32[2, 1, 3]\ninput %w : f32[1, 8, 3]\ninput %r : f32[1, 8, 2]\n"
	 "%y = LSTM(%x, %w, %r) {hidden_size: 0} : f32[]\noutput %y\n", LTH_INVALID_GRAPH, "hidden_size 0, expected 1"},
	{"input %q : f32[1, 2, 3, 4]\ninput %m : f32[]\n%y = Attention(%q, %q, %q, %m) : f32[]\noutput %y\n",
	 LTH_INVALID_GRAPH, "input 3 'm' has rank 0"},
	{"input %x : f32[3]\ninput %s : f32[]\ninput %z : u8[]\n%y = QuantizeLinear(%x, %s, %z) {output_dtype: 3} : u8[]\n"
	 "output %y\n", LTH_INVALID_GRAPH, "output_dtype as the zero point's type"},
	{"input %x : f32[2]\ninput %i : i64[]\n%y = lathe.ListAt(%x, %i) : f32[]\noutput %y\n", LTH_INVALID_GRAPH,
	 "input 0 'x' is a tensor, expected a sequence, an optional or a map"},
	{"input %l : seq(f32[*])\ninput %i : i64[]\ninput %d : i64[17]\n%y = lathe.ListAt(%l, %i, %d) : f32[]\noutput %y\n",
	 LTH_INVALID_GRAPH, "found 17, expected at most 16 dims"},
	{"input %l : seq(f32[*])\ninput %d : i64[17]\n%y = lathe.ListConcat(%l, %d) {axis: 0, new_axis: 0} : f32[]\n"
	 "output %y\n", LTH_INVALID_GRAPH, "found 17, expected at most 16 dims"},
	{"input %m : map(i64, f32[2])\ninput %k : i64[3]\n%y = lathe.MapFind(%m, %k) : f32[]\noutput %y\n",
	 LTH_UNSUPPORTED, "a map whose values are no scalars"},
	{"input %m : map(string, f32[])\ninput %k : i64[3]\n%y = lathe.MapFind(%m, %k) : f32[]\noutput %y\n",
	 LTH_INVALID_GRAPH, "found keys of type i64, expected string"},
	{"input %x : f32[6]\n%y = lathe.PairCoupling(%x) {classes: 4} : f32[]\noutput %y\n", LTH_INVALID_GRAPH,
	 "input 0 'x' has rank 1, expected rank 2"},
};

START_TEST(refusal)
{
	char text[2048], line[2048];
	struct lth_diag diag = {0};
	struct lth_arena *arena = lth_arena_create(0);
	struct lth_graph *graph;
	int size = snprintf(text, sizeof(text), "graph \"g\" opset 28\n%s", refusals[_i].text);
	enum lth_code code = lth_graph_parse(text, (size_t)size, arena, &graph, &diag);
	ck_assert_msg(code == LTH_OK, "%s", lth_diag_line(&diag, line, sizeof(line)));
	code = lth_infer_graph(graph, &diag);
	lth_diag_line(&diag, line, sizeof(line));
	ck_assert_msg(code == refusals[_i].code, "%s", line);
	ck_assert_msg(strstr(line, refusals[_i].message) != NULL, "%s", line);
	ck_assert_msg(strstr(line, "node 'y'") != NULL, "%s", line);
	lth_arena_destroy(&arena);
}
END_TEST

/* Loops in loops whose carried value grows: each asks more than once for those inside, 2^24 times the innermost. */
START_TEST(loops_without_end)
{
	enum { DEPTH = 24 };
	char line[2048];
	struct lth_diag diag = {0};
	struct lth_arena *arena = lth_arena_create(64 << 20);
	struct lth_graph *graph;
	struct lth_buf text = {0};
	lth_buf_printf(&text, "graph \"g\" opset 28\ninput %%v%d : f32[2]\nconst %%k : i64[] = 1\n", DEPTH);
	for (int i = DEPTH; i-- > 0;)
		lth_buf_printf(&text, "%%w%d = Loop(%%k, _, %%v%d) {body: region(%%i%d : i64[], %%c%d : bool[], %%v%d : ?[*]) {\n",
			       i + 1, i + 1, i, i, i);
	lth_buf_puts(&text, "%w0 = Concat(%v0, %v0) {axis: 0} : f32[*]\n");
	for (int i = 0; i < DEPTH; i++)
		lth_buf_printf(&text, "output %%c%d, %%w%d }} : f32[*]\n", i, i);
	lth_buf_printf(&text, "output %%w%d\n", DEPTH);
	enum lth_code code = lth_graph_parse(text.data, text.size, arena, &graph, &diag);
	ck_assert_msg(code == LTH_OK, "%s", lth_diag_line(&diag, line, sizeof(line)));
	code = lth_infer_graph(graph, &diag);
	ck_assert_msg(code == LTH_LIMIT_EXCEEDED, "%s", lth_diag_line(&diag, line, sizeof(line)));
	ck_assert_str_eq(diag.found, "regions whose inference does not come to an end");
	lth_buf_free(&text);
	lth_arena_destroy(&arena);
}
END_TEST

/* ---- the table ---- */

/* Every row is complete: its schema parses, and it has the functions that its kind needs. */
START_TEST(rows)
{
	for (int i = 0; i < LTH_NUM_OPS; i++) {
		const struct lth_op *op = &lth_ops[i];
		const char *cursor = op->attrs;
		struct lth_attr_rule rule;
		while (lth_attr_rule_next(&cursor, &rule))
			ck_assert_uint_gt(rule.name_size, 0);
		ck_assert_ptr_eq(lth_op_find(op->domain, op->name), op);
		ck_assert_msg((op->impl->expand != NULL) == (op->kind == LTH_OP_COMPOSITE), "%s", op->name);
		ck_assert_msg(op->impl->expand || op->impl->infer, "%s", op->name);
		if (op->kind == LTH_OP_ELEMENTWISE || op->kind == LTH_OP_INJECTIVE)
			ck_assert_msg(op->impl->element != NULL, "%s", op->name);
		if (op->kind == LTH_OP_REDUCTION)
			ck_assert_msg(op->impl->element && op->impl->reduction && op->impl->stage, "%s", op->name);
		if (op->kind == LTH_OP_TEMPLATE)
			ck_assert_msg(op->impl->problem || op->impl->reduction, "%s", op->name);
		if (op->kind == LTH_OP_IRREGULAR)
			ck_assert_msg(op->impl->builtin != NULL, "%s", op->name);
	}
	ck_assert_ptr_null(lth_op_find("", "NoSuchOperator"));
	ck_assert_ptr_eq(lth_op_find("ai.onnx", "Conv"), &lth_ops[LTH_OP_ID_Conv]);
}
END_TEST

/* ---- hints ---- */

#define SHAPE " : f32[1, 1, h, w]\n"
#define POOL(to, from, kernel, stride) "%" to " = MaxPool(%" from ") {kernel_shape: " kernel ", strides: " stride "}" SHAPE
#define HALVE(to, from) POOL(to, from, "[2, 2]", "[2, 2]")

/* Symbols and nodes, and the hints that nobody gave. */
static const struct {
	const char *symbols, *nodes;
	int64_t h, w;
} hints[] = {
	/* The least values do. */
	{"symbol h in [1, *] hint 1\nsymbol w in [1, *] hint 1\n", "%y = Relu(%x)" SHAPE, 1, 1},
	/* Two halvings need 4 of each, ... */
	{"symbol h in [1, *] hint 1\nsymbol w in [1, *] hint 1\n", HALVE("a", "x") HALVE("y", "a"), 4, 4},
	/* ... of an axis that is halved; the other keeps its least value. */
	{"symbol h in [1, *] hint 1\nsymbol w in [1, *] hint 1\n",
	 POOL("y", "x", "[1, 5]", "[1, 1]"), 1, 5},
	/* A given hint stays, */
	{"symbol h in [1, *] hint 1\nsymbol w in [1, *] hint 320\n", HALVE("y", "x"), 2, 320},
	/* multiples are kept, */
	{"symbol h in [3, *] hint 3 multiple 3\nsymbol w in [1, *] hint 1\n",
	 POOL("y", "x", "[4, 1]", "[1, 1]"), 6, 1},
	/* and where no other value helps, nothing moves. */
	{"symbol h in [1, *] hint 2\nsymbol w in [1, *] hint 1\n", POOL("y", "x", "[9, 9]", "[1, 1]"), 2, 1},
};

/* The table of versions is searched by halves, and knows every operator that ONNX publishes. */
START_TEST(versions)
{
	for (uint32_t i = 0; i < lth_num_op_histories; i++) {
		const struct lth_op_history *row = &lth_op_histories[i];
		ck_assert_msg(lth_op_history(row->domain, row->name) == row, "%s stands out of order", row->name);
		ck_assert_int_ge(lth_op_first_version(row), 1);
	}
	for (int i = 0; i < LTH_NUM_OPS; i++) {
		bool published = strncmp(lth_ops[i].domain, "ai.onnx", 7) == 0 || !*lth_ops[i].domain;
		const struct lth_op_history *row = lth_op_history(lth_ops[i].domain, lth_ops[i].name);
		ck_assert_msg(!published || row, "%s has no versions", lth_ops[i].name);
	}
	ck_assert_str_eq(lth_op_versions("", "Clip"), "1 6 11 12 13");
	ck_assert_str_eq(lth_op_versions("com.microsoft", "Gelu"), "1");
	ck_assert_str_eq(lth_op_versions("lathe", "Trees"), "");
}
END_TEST

START_TEST(hint)
{
	char text[2048];
	struct subject subject;
	snprintf(text, sizeof(text), "graph \"g\" opset 17\n%sinput %%x" SHAPE "%soutput %%y\n", hints[_i].symbols,
		 hints[_i].nodes);
	read_subject(text, strlen(text), &subject);
	struct lth_dims *dims = subject.graph->dims;
	ck_assert_msg(lth_infer_graph(subject.graph, &subject.diag) == LTH_OK, "%s", text_of(&subject));
	lth_graph_settle_hints(subject.graph);
	ck_assert_int_eq(lth_dims_symbol(dims, 0)->hint, hints[_i].h);
	ck_assert_int_eq(lth_dims_symbol(dims, 1)->hint, hints[_i].w);
	lth_arena_destroy(&subject.arena);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("infer");
	TCase *tests = tcase_create("infer");
	tcase_set_timeout(tests, 120);
	tcase_add_test(tests, golden);
	tcase_add_test(tests, symbols_agree_with_numbers);
	tcase_add_test(tests, broken_rules);
	tcase_add_test(tests, broken_rules_of_models);
	tcase_add_test(tests, loops_without_end);
	tcase_add_loop_test(tests, refusal, 0, sizeof(refusals) / sizeof(*refusals));
	tcase_add_loop_test(tests, hint, 0, sizeof(hints) / sizeof(*hints));
	tcase_add_test(tests, rows);
	tcase_add_test(tests, versions);
	suite_add_tcase(suite, tests);
	return run_suite(suite);
}
