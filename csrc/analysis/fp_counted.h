/* fp_counted.h: sums over the kernels of counted steps, by group. */
#ifndef FP_COUNTED_H
#define FP_COUNTED_H

#include <stdint.h>

#include "base/fp_status.h"

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

#endif
