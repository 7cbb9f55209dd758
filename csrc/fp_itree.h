/* fp_itree.h: ranges that may cross -> all that enclose a point, by an implicit interval tree.
 *
 * The tree lies in the sorted array itself: the root of [first, last) is its middle element, and
 * max_end[] holds the largest end below each root, so that a look-up leaves out what ends too
 * early (an augmented interval tree, Cormen et al., Introduction to Algorithms, 14.3).
 *
 * Where ranges cross, what encloses a point is no longer the parents of one range. It is a chain of
 * its own: a frame is (parent frame, range), and equal chains are the same frame. */
#ifndef FP_ITREE_H
#define FP_ITREE_H

#include <stdint.h>

#include "fp_keys.h"
#include "fp_nest.h"
#include "fp_status.h"

/* max_end of the tree over the sorted ranges [0, n). */
void fp_itree_build(const int64_t *end, int32_t n, int64_t *max_end);

/* Indices, ascending, of the ranges with start <= a and end >= b, the first `limit` of them.
 * Returns how many there are in all. `found` may be NULL when limit is 0. */
int32_t fp_itree_enclosing(const int64_t *start, const int64_t *end, const int64_t *max_end,
                           int32_t n, int64_t a, int64_t b, int32_t *found, int32_t limit);

/* The frames of the points of one thread, and of its ranges.
 *   ranges, max_end   the thread's ranges (thread[] is not looked at) and their tree
 *   name_of_range     what identifies a range in a frame: its index among all ranges
 *   frames            pool of frames, key = (parent frame + 1) << 32 | range; grows
 *   found             scratch, [ranges.n]
 *   frame_of_range    [ranges.n]; the range itself is the last of its chain
 *   frame_of_point    [points.n], -1 for none */
fp_status fp_itree_frames(fp_intervals ranges, const int64_t *max_end,
                          const int32_t *name_of_range, fp_intervals points, fp_keys *frames,
                          int32_t *found, int32_t *frame_of_range, int32_t *frame_of_point);

#endif
