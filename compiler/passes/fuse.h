/* The state of FuseOps and its questions: groups under construction, who reads what, limits, cycles (fuse_graph.c); the
 * two sweeps that use them are fuse_ops.c. Thread rule: as the graph's. */
#ifndef LTH_PASSES_FUSE_H
#define LTH_PASSES_FUSE_H

#include "compiler/ops/op.h"

/* How often an element is read, from best to worst (fusion.def). */
enum lth_fuse_reads {
	LTH_FUSE_ONCE,
	LTH_FUSE_FEW,
	LTH_FUSE_MANY,
	LTH_FUSE_FLAT,
	LTH_FUSE_WINDOW,
};

struct lth_fuse_group {
	lth_node_id head, tail;  /* members, linked by fuser.next */
	lth_node_id anchor;      /* LTH_NONE: none */
	lth_value_id shape;      /* the running value: its type and layout are those of the outputs */
	uint32_t count;
	uint32_t first, last;    /* places of its first and last member */
	bool closed;             /* takes nothing and is not taken */
	bool view;               /* one node that costs nothing by itself */
};

/* Groups are numbered by the node that each began with. */
struct lth_fuser {
	struct lth_graph *graph;
	struct lth_fuse_group *groups;    /* by node */
	uint32_t *group_of;      /* by node */
	lth_node_id *next;       /* by node: the next member of its group, or LTH_NONE */
	uint32_t *place;         /* by node: position in its region */
	enum lth_fuse_reads *repeats;     /* by node: how often one of its elements is evaluated inside its group */
	bool *needed;            /* by node */
	bool *pinned;            /* by value: a region gives it back, or an inner region reads it */
	/* Readers of value v: nodes at readers[first_reader[v]] .. readers[first_reader[v + 1] - 1]. */
	uint32_t *first_reader;
	lth_node_id *readers;
	/* What a node reads: values at reads[first_read[n]] .. ; control nodes with what their regions capture. */
	uint32_t *first_read;
	lth_value_id *reads;
	uint32_t num_reads, cap_reads;
	uint32_t *mark;          /* by value or by group, as the search goes: the last search that saw it */
	uint32_t search;
	uint32_t *stack;
};

/* Reads, readers and what is needed; false when memory is exhausted. */
bool lth_fuse_prepare(struct lth_fuser *fuser);
/* Makes the node a group of its own. */
void lth_fuse_begin(struct lth_fuser *fuser, lth_node_id id, uint32_t place);
/* The group that makes a value in this region, or NULL. */
struct lth_fuse_group *lth_fuse_maker(const struct lth_fuser *fuser, lth_value_id value, lth_region_id region);
/* Members of `from` become members of `into`. */
void lth_fuse_merge(struct lth_fuser *fuser, struct lth_fuse_group *into, struct lth_fuse_group *from);

/* Does anybody outside of groups `a` and `b` read the value? */
bool lth_fuse_read_outside(const struct lth_fuser *fuser, lth_value_id value, uint32_t a, uint32_t b);
/* May the union of two groups be one, by its size and operands? */
bool lth_fuse_within_limits(struct lth_fuser *fuser, const struct lth_fuse_group *a, const struct lth_fuse_group *b);
/* True if `node`, a group of its own, may need a result of `group` through a third one. */
bool lth_fuse_depends(struct lth_fuser *fuser, lth_node_id node, const struct lth_fuse_group *group);

/* Templates, and copies that turn (fuse_graph.c): they read memory, nothing is pulled into them. */
bool lth_fuse_is_template(const struct lth_graph *graph, const struct lth_node *node);
bool lth_fuse_same_shape(const struct lth_graph *graph, lth_value_id a, lth_value_id b);
lth_value_id lth_fuse_first_output(const struct lth_node *node);

#endif
