/* Name tables of a graph: for the files of compiler/ir only. */
#ifndef LTH_IR_GRAPH_INTERNAL_H
#define LTH_IR_GRAPH_INTERNAL_H

#include "compiler/ir/graph.h"

struct lth_name_table { /* open addressing; slots hold id + 1 */
	uint32_t *slots;
	uint32_t capacity, count, suffix;
	bool of_nodes;
};

struct lth_graph_names {
	struct lth_name_table values, nodes;
};

#endif
