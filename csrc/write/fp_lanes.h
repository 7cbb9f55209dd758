/* fp_lanes.h: divide slices among lanes in which they nest or follow each other. */
#ifndef FP_LANES_H
#define FP_LANES_H

#include <stdint.h>

#include "base/fp_status.h"

/* Lanes of a track that are searched for room; later slices that fit none get a lane of their own.
 */
enum { FP_LANES_SEARCHED = 64 };

/* Slices in order of (start, -end); an end before its start counts as the start. */
typedef struct {
  const int64_t *start, *end; /* [n] */
  const int32_t *track;       /* [n], 0 .. n_tracks - 1 */
  int64_t n, n_tracks;
  int may_nest; /* a slice may lie within another of its lane */
} fp_lanes_slices;

/* lane [n]: the lane of each slice in its track, from 0: the first in which it crosses no other.
 * n_lanes [n_tracks]: the number of lanes. FP_E_ORDER: starts descend. FP_E_INDEX: a track is out
 * of bounds. FP_E_TOO_MANY: over 2^31 - 1 slices. FP_E_MEMORY. */
fp_status fp_lanes(const fp_lanes_slices *slices, int32_t *lane, int32_t *n_lanes);

#endif
