/* fp_path.h: the call-path tree: frames -> nodes, one for each distinct (parent node, label).
 *
 * A tree is a parent[] array in which parents come before their children, -1 at the roots. */
#ifndef FP_PATH_H
#define FP_PATH_H

#include <stdint.h>

#include "fp_status.h"
#include "fp_tree.h"

/* node[i] of every frame i. label[i] is the frame's label; one with wanted[label] == 0 is left out,
 * and its node is its parent's (wanted NULL: all are wanted). New nodes are added to `nodes`. */
fp_status fp_path(const int32_t *parent, const int32_t *label, int32_t n, const uint8_t *wanted,
                  int32_t n_labels, fp_tree *nodes, int32_t *node);

/* out[i] = own[i] if that is not -1, else what the parent has: the innermost value around i. */
fp_status fp_path_innermost(const int32_t *parent, const int32_t *own, int32_t n, int32_t *out);

enum { FP_NO_RANK = 255 };

/* out[i]: of the entries on the way from the root to i those whose labels have the least rank, and
 * of these the outermost; -1 where none has a rank below FP_NO_RANK. */
fp_status fp_path_best(const int32_t *parent, const int32_t *label, int32_t n, const uint8_t *rank,
                       int32_t n_labels, int32_t *out);

/* What a label says of the direction of its frame and of those inside. */
enum {
  FP_SAYS_BACKWARD = 1, /* they run backward */
  FP_SAYS_FORWARD = 2,  /* they do not, though they are inside a backward range */
  FP_SAYS_TORCH = 4,    /* torch or an annotation made it: they run forward if not backward */
};

enum { FP_NOWHERE = 0, FP_FORWARD = 1, FP_BACKWARD = 2 };

/* The direction of every entry of a tree, by what the labels say: says[label], FP_SAYS_*. */
fp_status fp_path_directions(const int32_t *parent, const int32_t *label, int32_t n,
                             const uint8_t *says, int32_t n_labels, uint8_t *direction);

/* Adds to the value of every entry those of all entries inside it; sums wrap around. */
fp_status fp_path_sums(const int32_t *parent, int32_t n, int64_t *value);

/* Length of the longest chain; parents come before their children. depth: scratch, [n]. */
int32_t fp_path_depth(const int32_t *parent, int32_t n, int32_t *depth);

/* How many frames are not where they belong: the parent of a frame's node is not its parent's node.
 * -1 if a parent does not come before its child, or a node is not there.
 *   parent, node  [n] of frames
 *   above         [n_nodes] parent of each node, -1 at the roots */
int32_t fp_path_misplaced(const int32_t *parent, const int32_t *node, int32_t n,
                          const int32_t *above, int32_t n_nodes);

#endif
