/* What the files of the graph parser share: graph_parse.c reads the structure, graph_parse_data.c constants and
 * attribute values. */
#ifndef LTH_IR_GRAPH_PARSE_H
#define LTH_IR_GRAPH_PARSE_H

#include "compiler/ir/graph.h"
#include "compiler/ir/text.h"

/* A symbol's bound may name symbols of lines below, so it is read when all are there. */
struct lth_graph_bound {
	lth_dim symbol;
	struct lth_text text; /* where it begins; it ends with the line */
};

struct lth_graph_parser {
	struct lth_text text;
	struct lth_arena *arena;
	struct lth_graph *graph;
	struct lth_graph_bound *bounds;
	uint32_t num_bounds, cap_bounds;
	unsigned depth; /* of regions */
};

enum lth_code lth_parse_fail(struct lth_graph_parser *parser, const char *expected);
enum lth_code lth_parse_memory(struct lth_graph_parser *parser);
LTH_MUST_CHECK enum lth_code lth_parse_expect(struct lth_graph_parser *parser, char c);
LTH_MUST_CHECK enum lth_code lth_parse_type(struct lth_graph_parser *parser, struct lth_type *out);

/* A constant's value after `=`: numbers or strings, hex bytes, or a digest. */
LTH_MUST_CHECK enum lth_code lth_parse_constant(struct lth_graph_parser *parser, const struct lth_type *type,
						const int64_t *shape, struct lth_constant *out);
/* A number, a string, or a list of one kind, into kind, count and value. */
LTH_MUST_CHECK enum lth_code lth_parse_attr_value(struct lth_graph_parser *parser, struct lth_attr *out);

#endif
