/* fp_itree.h: an interval tree that finds all ranges open at an instant.
 *
 * For ranges that overlap in any way because they do not belong to one thread (phases of a
 * process). The tree is implicit in the sorted array: the root of [first, last) is its middle
 * element, and max_end[] holds the largest end of each subtree, which lets a look-up skip subtrees
 * that end too early (Cormen et al., Introduction to Algorithms, 14.3). */
#pragma once

#include "base/fp_status.h"
#include "path/fp_tree.h"

typedef struct {
  const int64_t *start, *end; /* in the order of fp_order_sort */
  const int64_t *max_end;
  int32_t n;
} fp_itree;

/* Computes max_end for n sorted ranges. */
void fp_itree_build(const int64_t *end, int32_t n, int64_t *max_end);

/* Stores the ascending indices of the ranges with start <= t < end, and returns their number.
 * found: [tree.n] */
int32_t fp_itree_open_at(fp_itree tree, int64_t t, int32_t *found);

/* Finds the ranges open at each of n instants, as a node of a tree of labels: equal chains of
 * labels give the same node. Adds nodes to `nodes`. Fastest for ascending instants.
 *   label   [tree.n]
 *   found   scratch, [tree.n]
 *   node    out, [n], -1 if no range is open */
fp_status fp_itree_nodes(fp_itree tree, const int32_t *label, const int64_t *t, int32_t n,
                         fp_tree *nodes, int32_t *found, int32_t *node);
