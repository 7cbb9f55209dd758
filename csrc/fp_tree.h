/* fp_tree.h: chains of labels -> nodes, one for each distinct chain: a node is a label below a
 * node.
 *
 * Made for what a program does over and over: the label that is looked for below a node is mostly
 * the one that was found there last, or the one that came after it the first time. */
#ifndef FP_TREE_H
#define FP_TREE_H

#include <stdint.h>

#include "fp_status.h"

typedef struct fp_tree fp_tree;

/* NULL when out of memory. */
fp_tree *fp_tree_new(void);
void fp_tree_free(fp_tree *tree);

/* The node of `label` below the node `above`, -1 for the roots; a new one (0, 1, 2, ...) when it
 * was not there, so that what is above comes first. */
fp_status fp_tree_below(fp_tree *tree, int32_t above, int32_t label, int32_t *node);

int32_t fp_tree_count(const fp_tree *tree);

/* The node above each node, -1 at the roots, and its label; both [count]. */
void fp_tree_read(const fp_tree *tree, int32_t *above, int32_t *label);

#endif
