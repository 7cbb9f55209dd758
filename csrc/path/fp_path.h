/* fp_path.h: the call-path tree, with one node for each distinct (parent node, label).
 *
 * A tree is an array of parent indices: parents precede their children, roots have -1. */
#pragma once

#include "base/fp_status.h"
#include "path/fp_tree.h"

/* Computes the node of each frame from the frames' labels, adding nodes to `nodes`. Frames whose
 * label has wanted[label] == 0 get their parent's node; wanted may be NULL for all labels. */
fp_status fp_path(const int32_t *parent, const int32_t *label, int32_t n, const uint8_t *wanted,
                  int32_t n_labels, fp_tree *nodes, int32_t *node);

/* out[i] = own[i], or out[parent[i]] if own[i] is -1: the innermost value around i. */
fp_status fp_path_innermost(const int32_t *parent, const int32_t *own, int32_t n, int32_t *out);

/* out[i] = the innermost entry with wanted[label] on the path from the root to i; -1 for none. */
fp_status fp_path_nearest(const int32_t *parent, const int32_t *label, int32_t n,
                          const uint8_t *wanted, int32_t n_labels, int32_t *out);

enum { FP_NO_RANK = 255 };

/* out[i] = the entry with the lowest rank[label] on the path from the root to i, the outermost of
 * several; -1 if no rank on the path is below FP_NO_RANK. */
fp_status fp_path_best(const int32_t *parent, const int32_t *label, int32_t n, const uint8_t *rank,
                       int32_t n_labels, int32_t *out);

/* Numbers the distinct entries in `best`, a result of fp_path_best, whose rank is `only`: replaces
 * them by their numbers, in ascending order of the entries, and others by -1.
 *   entry      out, [n], the entry of each number
 *   n_entries  out */
void fp_path_number(const int32_t *label, int32_t n, const uint8_t *rank, uint8_t only,
                    int32_t *best, int32_t *entry, int32_t *n_entries);

/* The effect of a label on the direction of its frame and the frames inside, as bits. */
enum {
  FP_SAYS_BACKWARD = 1, /* they run backward */
  FP_SAYS_FORWARD = 2,  /* they run forward, even inside a backward range */
  FP_SAYS_TORCH = 4,    /* a range of torch or an annotation: they run forward unless backward */
};

enum { FP_NOWHERE = 0, FP_FORWARD = 1, FP_BACKWARD = 2 };

/* Computes the direction of each entry from says[label], FP_SAYS_* bits. */
fp_status fp_path_directions(const int32_t *parent, const int32_t *label, int32_t n,
                             const uint8_t *says, int32_t n_labels, uint8_t *direction);

/* Adds to each value the values of all entries inside; sums wrap around. */
fp_status fp_path_sums(const int32_t *parent, int32_t n, int64_t *value);

/* The length of the longest chain. depth: scratch, [n]. */
int32_t fp_path_depth(const int32_t *parent, int32_t n, int32_t *depth);

/* The number of frames whose node's parent is not the node of their parent; -1 if a parent does not
 * precede its child or a node index is invalid.
 *   parent, node  [n] parent and node of each frame
 *   above         [n_nodes] parent of each node, -1 at roots */
int32_t fp_path_misplaced(const int32_t *parent, const int32_t *node, int32_t n,
                          const int32_t *above, int32_t n_nodes);
