/* fp_nest.h: ranges of a thread -> what was open around each of them and around each API call.
 *
 * A range [s, e) is open at time t when s <= t < e. A *frame* is a range together with all that was
 * open around it on its thread, outermost (earliest in the order of fp_order.h) first: it knows its
 * range and the frame below it. Where the ranges of a thread nest, as push/pop ranges do, there is
 * one frame a range and its parent is the range around it. Where ranges cross (domains, start/end
 * ranges), one that goes on when what lies below it ends gets a new frame without that. */
#ifndef FP_NEST_H
#define FP_NEST_H

#include <stdint.h>

#include "fp_status.h"

typedef struct {
  const int64_t *start, *end; /* sorted as fp_order.h says */
  const int32_t *thread;      /* 0 .. n_threads - 1 */
  int32_t n;
} fp_intervals;

/* API calls, by when they began. */
typedef struct {
  const int64_t *start;  /* ascending */
  const int32_t *thread; /* 0 .. n_threads - 1; -1: not known, in no range */
  int32_t n;
} fp_points;

typedef struct {
  int32_t *parent; /* [capacity], -1 for none, else less than the frame */
  int32_t *range;  /* [capacity] */
  int32_t *first;  /* [capacity], scratch: which range of the frame's chain ends first */
  int32_t n, capacity;
} fp_frames;

/* How far a sweep is: the next range and point; both 0 before it. */
typedef struct {
  int32_t range, point;
} fp_nest_place;

/* One sweep over time; the frames are the stacks of all threads.
 *   ranges, points   what was open when a point began counts
 *   top              scratch, [n_threads], -1 before the sweep: the frame that each thread is in
 *   frames           n is 0 before the sweep
 *   place            where to go on; after FP_MORE, with more capacity and all else as it was left
 *   frame_of_range   [ranges.n]
 *   frame_of_point   [points.n], -1 for none
 * Returns FP_OK, FP_MORE if the capacity does not suffice, FP_E_INDEX, FP_E_ORDER. */
fp_status fp_nest(fp_intervals ranges, fp_points points, int32_t n_threads, int32_t *top,
                  fp_frames *frames, fp_nest_place *place, int32_t *frame_of_range,
                  int32_t *frame_of_point);

#endif
