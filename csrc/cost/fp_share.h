/* fp_share.h: divide the cost of a group of kernels among them. */
#pragma once

#include "base/fp_status.h"

/* Numbers the pairs of group and part from 0 in order of appearance.
 *   group    [n] instance of the call, 0 .. n_groups - 1, or -1
 *   cell     [n] index into `part`
 *   part     [n_cells] part of the call, at least 0; -1 in `number` if it is n_parts or more
 *   scratch  [n_groups, n_parts]
 *   number   out, [n], -1 without a group
 *   n_pairs  out */
fp_status fp_share_pairs(const int32_t *group, const int32_t *cell, int64_t n, int32_t n_groups,
                         const int8_t *part, int32_t n_cells, int32_t n_parts, int32_t *scratch,
                         int32_t *number, int32_t *n_pairs);

/* Kernels, and the costs to divide. */
typedef struct {
  const int32_t *group;  /* [n] kernels that divide a cost, 0 .. n_groups - 1, or -1 */
  const int32_t *cell;   /* [n] index into `total` */
  const int64_t *weight; /* [n] */
  const int64_t *total;  /* [n_cells] costs, -1 for unknown */
  int64_t n;
  int32_t n_groups, n_cells;
} fp_share_rows;

/* sum[g] = the sum of the weights of the rows of group g. Weights of 0 and less count as 1, so
 * groups of zero-length kernels have shares, too. */
fp_status fp_share_sum(const fp_share_rows *rows, int64_t *sum);

/* share[i] = total * weight / sum, -1 if the total is unknown; shares of rows without a group are
 * unchanged. Rounded to add up to the total in each group whose rows have equal totals. passed:
 * scratch, [n_groups]. */
fp_status fp_share(const fp_share_rows *rows, const int64_t *sum, int64_t *passed, int64_t *share);

/* Computes two sums modulo 2^64: *expected of the totals of all groups, and *found of the shares of
 * their rows. Negative numbers count as 0. Groups whose rows have different totals are skipped.
 * of_group: scratch, [n_groups]. */
fp_status fp_share_add_up(const fp_share_rows *rows, const int64_t *share, int64_t *of_group,
                          uint64_t *expected, uint64_t *found);

/* Kernels, the bytes that they move and their durations. */
typedef struct {
  const int32_t *group;    /* [n] instance of the call, 0 .. n_groups - 1; -1: a call of its own */
  const int64_t *bytes;    /* [n] -1 for unknown */
  const int64_t *duration; /* [n] ns, -1 for unknown */
  const int32_t *memory;   /* [n] index into `bandwidth` */
  const double *bandwidth; /* [n_memories] bytes per second, NaN for unknown */
  int64_t n;
  int32_t n_groups, n_memories;
} fp_share_moves;

/* too_fast[i] = 1 if the call of row i moves more than `most` times the bandwidth in its time, and
 * the bytes of the row and the bandwidth are known. Calls without measurable time have no rate.
 * scratch: [2, n_groups]. */
fp_status fp_share_too_fast(const fp_share_moves *moves, double most, double *scratch,
                            uint8_t *too_fast);

/* ordinal[i] = the number of earlier rows of the same group; -1 if group is -1. */
fp_status fp_share_ordinal(const int32_t *group, int64_t n, int32_t n_groups, int32_t *seen,
                           int32_t *ordinal);
