/* fp_groups.h: kernels by cell and by group: numbering, statistics, sums over calls and steps. */
#pragma once

#include "base/fp_status.h"

/* Numbers, and the group of each. */
typedef struct {
  const int32_t *group; /* [n] 0 .. n_groups - 1; negative: in no group */
  const int64_t *value; /* [n] */
  int64_t n;
  int64_t none; /* the unknown value, which is left out */
  int32_t n_groups;
} fp_groups_rows;

/* Statistics of the known numbers of each group, [n_groups] each. A sum that exceeds 64 bits is
 * INT64_MAX. min and max of a group without known numbers are `none`. */
typedef struct {
  int64_t *count, *sum, *min, *max;
  double *squares; /* sum of the squared distances from the mean */
} fp_groups_stats;

fp_status fp_groups_reduce(const fp_groups_rows *rows, const fp_groups_stats *stats);

/* sum[g] = the sum of the known, positive numbers of each group where mask is not 0. A sum that
 * exceeds 64 bits is INT64_MAX. mask: [n], NULL for all numbers */
fp_status fp_groups_sum_where(const fp_groups_rows *rows, const uint8_t *mask, int64_t *sum);

/* count[g] = the number of distinct ids of each group, of ids that occur in one group only;
 * negative ids are left out. home[id] = that group, -1 if none, FP_GROUPS_SEVERAL if several. id:
 * [n], below n_ids; home: [n_ids]; count: [n_groups] */
#define FP_GROUPS_SEVERAL (-2)
fp_status fp_groups_distinct(const fp_groups_rows *rows, const int32_t *id, int32_t n_ids,
                             int32_t *home, int64_t *count);

/* median[g] of the known numbers of each group; the mean of the middle two if their number is even;
 * NaN if there are none. count: as of fp_groups_reduce. scratch: [n]; ends: [n_groups]. */
fp_status fp_groups_median(const fp_groups_rows *rows, const int64_t *count, int64_t *scratch,
                           int64_t *ends, double *median);

/* Cells are sets of kernels that agree in all but their numbers.
 *
 * refined[i] = the number of the pair (cell[i], id[i]), in order of first appearance;
 * first[number]: the first i of each number. cell: 0 .. n_cells - 1; id: -1 .. n_ids - 1; table:
 * zeros, [n_cells * (n_ids + 1)]; first: [the number of pairs], at most n and the size of the
 * table. */
fp_status fp_cells_refine(const int32_t *cell, const int32_t *id, int64_t n, int32_t n_cells,
                          int32_t n_ids, int32_t *table, int32_t *refined, int32_t *first,
                          int32_t *n_refined);

/* Kernels, [n], and properties of their cells, [n_cells]. */
typedef struct {
  const int32_t *cell;     /* 0 .. n_cells - 1 */
  const int64_t *duration; /* ns */
  const int64_t *flops, *bytes;
  int64_t n;
  int32_t n_cells;
  const uint8_t *is_small;           /* whether the kernels of the cell do not fill the GPU */
  const double *per_flop, *per_byte; /* ns of ideal time */
} fp_cells_kernels;

/* time[cell] = the GPU time, ns, of kernels shorter than `longest` that do not fill the GPU or
 * whose ideal time is shorter than `least`. Negative numbers are unknown and count as 0. A sum that
 * exceeds 64 bits is INT64_MAX. */
fp_status fp_cells_short(const fp_cells_kernels *kernels, int64_t longest, double least,
                         int64_t *time);

/* Groups with special meaning. The first kernel of a call decides to which group the call belongs;
 * FP_LAUNCHED_OTHER are rows that are no kernels and decide nothing. */
enum { FP_LAUNCHED_NO_GROUP = -1, FP_LAUNCHED_OTHER = -2 };

typedef struct {
  const int32_t *group; /* [n] below n_groups */
  const int32_t *call;  /* [n] the call that launched each, -1 if none */
  const int64_t *start; /* [n] ns */
  int64_t n;
} fp_launched_kernels;

/* Times in ns. Calls whose end is INT64_MAX were not closed, and count as not recorded. */
typedef struct {
  const int64_t *start, *end; /* [n] */
  int64_t n;
} fp_launched_calls;

typedef struct {
  int64_t *launches; /* [n_groups] calls */
  int64_t *host;     /* [n_groups] their host time, ns; at most INT64_MAX */
  int64_t *on_time;  /* [n_groups] kernels that start at or after the start of their call */
  int64_t *starved; /* [n_groups] of these, those that start less than `starved_ns` after its end */
} fp_launched_sums;

/* Adds to the sums, which the caller clears.
 *   seen  scratch, [calls->n / 8 + 1], cleared */
fp_status fp_launched(const fp_launched_kernels *kernels, const fp_launched_calls *calls,
                      int32_t n_groups, int64_t starved_ns, uint8_t *seen,
                      const fp_launched_sums *sums);

typedef struct {
  const int32_t *group;    /* [n] below n_groups, negative for none */
  const int32_t *step;     /* [n] below n_steps, -1 outside of steps */
  const int32_t *call;     /* [n] below n_calls, -1 for none */
  const int64_t *duration; /* [n] ns, -1 if unknown */
  int64_t n;
  int32_t n_groups, n_steps, n_calls;
} fp_counted_kernels;

/* Parts of kernels within windows of time. */
typedef struct {
  const int32_t *row, *window; /* row: the kernel, whose group is known */
  const int64_t *ns;
} fp_counted_pieces;

typedef struct {
  int32_t *group, *window;
  int64_t *ns;
} fp_counted_merged;

/* Adds up consecutive pieces of a group in the same window; *n_merged pieces remain, in order of
 * their first. Two of them may have the same group and window if windows do not ascend.
 *   pieces  [n]
 *   merged  [n]
 *   last    scratch, [n_groups]
 *   runs    [n_kernels / 8 + 1], cleared by the caller: a bit for each kernel that has a piece */
fp_status fp_counted_merge(const fp_counted_kernels *kernels, const fp_counted_pieces *pieces,
                           int64_t n, const fp_counted_merged *merged, int64_t *n_merged,
                           int64_t *last, uint8_t *runs);

/* [n_groups] each, cleared by the caller. */
typedef struct {
  int64_t *kernels, *ns; /* ns: their known durations, at most INT64_MAX */
  int64_t *calls; /* a call is in the group of its first kernel; a kernel without one counts too */
  int32_t *first; /* the first kernel; undefined without kernels */
} fp_counted_sums;

/* Sums the kernels of counted steps, and those outside of steps that run in a window.
 *   is_counted  [n_steps]
 *   runs        see fp_counted_merge
 *   seen        scratch, [n_calls / 8 + 1], cleared by the caller */
fp_status fp_counted_sum(const fp_counted_kernels *kernels, const uint8_t *is_counted,
                         const uint8_t *runs, uint8_t *seen, const fp_counted_sums *sums);
