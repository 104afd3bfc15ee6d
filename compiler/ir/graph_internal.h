/* Name tables of a graph: for the files of compiler/ir only. */
#ifndef LTH_IR_GRAPH_INTERNAL_H
#define LTH_IR_GRAPH_INTERNAL_H

#include "compiler/ir/graph.h"
#include "runtime/base/id_table.h"

struct lth_name_table {
	struct lth_id_table ids; /* by hash of their names */
	uint32_t suffix;
	bool of_nodes;
};

struct lth_graph_names {
	struct lth_name_table values, nodes;
};

#endif
