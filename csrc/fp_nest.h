/* fp_nest.h: ranges of a thread that nest -> parent of each, and the innermost around each point.
 *
 * A range [s, e] encloses [a, b] on the same thread when s <= a and b <= e. Of those that enclose,
 * the innermost is the last in the order (start ascending, end descending, index ascending). */
#ifndef FP_NEST_H
#define FP_NEST_H

#include <stdint.h>

#include "fp_status.h"

typedef struct {
  const int64_t *start, *end; /* sorted as fp_order.h says */
  const int32_t *thread;      /* 0 .. n_threads - 1 */
  int32_t n;
} fp_intervals;

/* One sweep over time; parent[] doubles as the stack of every thread.
 *   ranges, points  both sorted; a point is an API call [start, end]
 *   top             scratch, [n_threads]
 *   crossing        [n_threads], set to 1 for a thread whose ranges cross: what this function
 *                   says of that thread does not hold, see fp_itree.h
 *   parent          [ranges.n], -1 for none
 *   innermost       [points.n], -1 for none
 * Returns FP_OK, FP_CROSSING if any thread has crossing ranges, FP_E_INDEX, FP_E_ORDER. */
fp_status fp_nest(fp_intervals ranges, fp_intervals points, int32_t n_threads, int32_t *top,
                  uint8_t *crossing, int32_t *parent, int32_t *innermost);

#endif
