/* What the models of ai.onnx.ml share: constants from attributes, scores to labels. Thread rule: as infer.h. */
#ifndef LTH_OPS_ML_H
#define LTH_OPS_ML_H

#include "compiler/ops/build.h"

/* A list attribute of floats, or NULL with count 0. */
const double *lth_ml_floats(const struct lth_infer *infer, const char *name, uint32_t *out_count);
/* A constant f32 tensor from doubles. */
lth_value_id lth_ml_matrix(struct lth_infer *infer, const double *list, uint32_t rank, const int64_t *shape);
/* post_transform of the node on rows of scores. */
lth_value_id lth_ml_post(struct lth_infer *infer, lth_value_id scores);
/* How many class labels the node has. */
uint32_t lth_ml_num_labels(const struct lth_infer *infer);
/* The labels at places; plain places where the node has none. */
lth_value_id lth_ml_labels(struct lth_infer *infer, lth_value_id places);
/* Input 0 as f32, [rows, features]. */
lth_value_id lth_ml_input(struct lth_infer *infer);
/* -s and s side by side. */
lth_value_id lth_ml_both_signs(struct lth_infer *infer, lth_value_id score);
/* The column with the greatest score of each row. */
lth_value_id lth_ml_best(struct lth_infer *infer, lth_value_id scores);

#endif
