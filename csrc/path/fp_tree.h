/* fp_tree.h: a tree of labels with one node for each distinct chain of labels.
 *
 * Optimized for repetitive programs: the label to look up below a node is usually the one found
 * there last, or the one added after it. */
#pragma once

#include "base/fp_status.h"

typedef struct fp_tree fp_tree;

/* NULL when out of memory. */
fp_tree *fp_tree_new(void);
void fp_tree_free(fp_tree *tree);

/* Finds or adds the node of `label` below the node `above` (-1 for a root). New nodes get the next
 * number (0, 1, 2, ...), so parents precede children. */
fp_status fp_tree_below(fp_tree *tree, int32_t above, int32_t label, int32_t *node);

int32_t fp_tree_count(const fp_tree *tree);

/* Copies the parent (-1 at roots) and the label of each node; both [count]. */
void fp_tree_read(const fp_tree *tree, int32_t *above, int32_t *label);
