/* fp_sweep.h: when work of each kind runs, and when none does; the time lines of GPUs. */
#pragma once

#include "base/fp_status.h"

/* A set of kinds is a mask below FP_SWEEP_MASKS. */
enum { FP_SWEEP_KINDS = 3, FP_SWEEP_MASKS = 1 << FP_SWEEP_KINDS };

/* Intervals in order of start, which may overlap. An end before its start counts as the start. */
typedef struct {
  const int64_t *start, *end; /* [n] */
  const uint8_t *kind;        /* [n] mask */
  int64_t n;
} fp_sweep_work;

/* Measures how long work of exactly these kinds runs before each time, from time[0]. Times ascend.
 * Sums wrap at 64 bits; the difference of two rows is the time between them.
 * by_mask: [n_times][FP_SWEEP_MASKS]; mask 0: no work */
fp_status fp_sweep_until(const fp_sweep_work *work, const int64_t *time, int64_t n_times,
                         int64_t *by_mask);

/* A gap without work: from the end of the work `before` to the start of the work `after`. */
typedef struct {
  int64_t start, end;
  int32_t before, after; /* indices: the last to end, ties to the later; the first to start */
} fp_sweep_gap;

/* Finds all gaps between the first and the last work. gaps: [n] */
fp_status fp_sweep_gaps(const fp_sweep_work *work, fp_sweep_gap *gaps, int64_t *n_gaps);

/* A part of a gap within a window. */
typedef struct {
  int64_t start, end;
  int32_t before, after, window;
} fp_sweep_idle_part;

/* Finds the gaps within windows, whose starts and ends ascend: those of fp_sweep_gaps, and the time
 * from `first` to the first work, whose `before` is the first work.
 *   short_ns    parts shorter than this are only summed
 *   short_sum   [n_windows] cleared by the caller; their total
 *   parts       [room] the others; *n_parts counts those beyond `room` too */
fp_status fp_sweep_idle(const fp_sweep_work *work, int64_t first, const int64_t *window_start,
                        const int64_t *window_end, int64_t n_windows, int64_t short_ns,
                        int64_t *short_sum, fp_sweep_idle_part *parts, int64_t room,
                        int64_t *n_parts);

/* Divides the time with work among the work: each moment belongs to one piece, that of the lowest
 * kind, and of these to the first to start. The sum is the length of the union.
 * own: [n] */
fp_status fp_sweep_own(const fp_sweep_work *work, int64_t *own);

/* The parts of work within windows, in order of work, then window; all [room]. */
typedef struct {
  int32_t *interval, *window;
  int64_t *ns;
} fp_sweep_parts;

/* Divides as fp_sweep_own does, and the own time of each piece of work among windows. Starts and
 * ends of windows ascend; they do not overlap. Work without length is in the window that contains
 * its start. *n_parts counts those beyond `room` too; the times are right if there are none. */
fp_status fp_sweep_own_parts(const fp_sweep_work *work, const int64_t *window_start,
                             const int64_t *window_end, int64_t n_windows,
                             const fp_sweep_parts *parts, int64_t room, int64_t *n_parts);

/* Work in order of start. */
typedef struct {
  const int64_t *start;    /* [n] ns, ascending */
  const int64_t *duration; /* [n] ns; negative: unknown, counts as 0 */
  const int32_t *id;       /* [n] 0 .. n_ids - 1 */
  const int32_t *group;    /* [n_ids] below n_groups; negative: left out */
  const uint8_t *mask;     /* [n] 0 for work to leave out; NULL for none */
  int64_t n;
  int32_t n_ids, n_groups;
} fp_busy_work;

/* The time line of each group, [n_groups]: the start of its first and the end of its last work, and
 * the time during which at least one item runs. begin > end for groups without work. A number that
 * exceeds 64 bits is INT64_MAX. */
typedef struct {
  int64_t *begin, *end, *busy;
} fp_busy_lines;

fp_status fp_busy(const fp_busy_work *work, const fp_busy_lines *lines);

/* Counts the work that starts before the preceding work of its id ends, and the longest such
 * overlap, ns. Ignores group and mask. end : [n_ids], scratch. */
fp_status fp_busy_overlaps(const fp_busy_work *work, int64_t *end, int64_t *count,
                           int64_t *longest);
