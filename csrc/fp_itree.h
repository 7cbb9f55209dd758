/* fp_itree.h: ranges in any arrangement -> all that are open at an instant, by an interval tree.
 *
 * For ranges that belong to no one thread (phases of a process), which a sweep by thread cannot
 * order. The tree lies in the sorted array itself: the root of [first, last) is its middle element,
 * and max_end[] holds the largest end below each root, so that a look-up leaves out what ends too
 * early (an augmented interval tree; Cormen et al., Introduction to Algorithms, 14.3). */
#ifndef FP_ITREE_H
#define FP_ITREE_H

#include <stdint.h>

#include "fp_status.h"
#include "fp_tree.h"

typedef struct {
  const int64_t *start, *end; /* sorted as fp_order.h says */
  const int64_t *max_end;
  int32_t n;
} fp_itree;

/* max_end of the tree over the sorted ranges [0, n). */
void fp_itree_build(const int64_t *end, int32_t n, int64_t *max_end);

/* Indices, ascending, of the ranges with start <= t < end, the first `limit` of them; returns how
 * many there are in all. `found` may be NULL when limit is 0. */
int32_t fp_itree_open_at(fp_itree tree, int64_t t, int32_t *found, int32_t limit);

/* What is open at each of n instants, as nodes of a tree of labels: equal chains of labels are the
 * same node. `nodes` grows.
 *   label   [tree.n]
 *   found   scratch, [tree.n]
 *   node    [n], -1 where nothing is open */
fp_status fp_itree_nodes(fp_itree tree, const int32_t *label, const int64_t *t, int32_t n,
                         fp_tree *nodes, int32_t *found, int32_t *node);

#endif
