/* fp_nest.h: sort and nest the ranges of each thread, and find those around each API call; an
 * interval tree for ranges that do not nest.
 *
 * A range [s, e) is open at time t if s <= t < e. A *frame* is a range with the chain of ranges
 * open around it on its thread, in the order of fp_order_sort; it refers to its range and its
 * parent frame. If the ranges of a thread nest, as push/pop ranges do, each range has one frame,
 * and its parent is the enclosing range. If ranges cross (domains, start/end ranges), a range that
 * outlives one below it gets a new frame without that one. */
#pragma once

#include "base/fp_status.h"
#include "path/fp_tree.h"

/* Whether the intervals are sorted by (start ascending, end descending). */
bool fp_order_holds(const int64_t *start, const int64_t *end, int32_t n);

/* order[0 .. n) = the indices sorted by (start ascending, end descending, index ascending).
 * `scratch` is [n]. Nearly linear for nearly sorted input. */
void fp_order_sort(const int64_t *start, const int64_t *end, int32_t n, int32_t *order,
                   int32_t *scratch);

typedef struct {
  const int64_t *start, *end; /* in the order of fp_order_sort */
  const int32_t *thread;      /* 0 .. n_threads - 1 */
  int32_t n;
} fp_intervals;

/* The start times of API calls. */
typedef struct {
  const int64_t *start;  /* ascending */
  const int32_t *thread; /* 0 .. n_threads - 1; -1: unknown, outside all ranges */
  int32_t n;
} fp_points;

typedef struct {
  int32_t *parent; /* [capacity], less than the frame's index, -1 for none */
  int32_t *range;  /* [capacity] */
  int32_t *first;  /* [capacity], scratch: the range of the frame's chain that ends first */
  int32_t n, capacity;
} fp_frames;

/* Progress of a sweep: the next range and point; both 0 initially. */
typedef struct {
  int32_t range, point;
} fp_nest_place;

/* Sweeps once over time and creates the frames of all threads.
 *   ranges, points   a point is in the ranges open at its start
 *   top              scratch, [n_threads], all -1 initially: the current frame of each thread
 *   frames           n is 0 initially
 *   place            progress; after FP_MORE, increase frames->capacity and call again with all
 *                    other arguments unchanged
 *   frame_of_range   out, [ranges.n]
 *   frame_of_point   out, [points.n], -1 for none
 * Returns FP_OK, FP_MORE if the capacity is too small, FP_E_INDEX or FP_E_ORDER. */
fp_status fp_nest(fp_intervals ranges, fp_points points, int32_t n_threads, int32_t *top,
                  fp_frames *frames, fp_nest_place *place, int32_t *frame_of_range,
                  int32_t *frame_of_point);

/* An interval tree, for ranges that overlap in any way because they do not belong to one thread
 * (phases of a process). The tree is implicit in the sorted array: the root of [first, last) is its
 * middle element, and max_end[] holds the largest end of each subtree, which lets a look-up skip
 * subtrees that end too early (Cormen et al., Introduction to Algorithms, 14.3). */
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
