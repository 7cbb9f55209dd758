/* fp_share.h: divide the cost of a group of kernels among them. */
#ifndef FP_SHARE_H
#define FP_SHARE_H

#include <stdint.h>

#include "fp_status.h"

/* Kernels, and the costs of the parts of calls that they do. */
typedef struct {
  const int32_t *group;  /* [n] instance of the call, 0 .. n_groups - 1, or -1 */
  const int8_t *part;    /* [n] part of the call */
  const int32_t *cell;   /* [n] index into `total` */
  const int64_t *weight; /* [n] */
  const int64_t *total;  /* [n_cells] costs, -1 for unknown */
  int64_t n;
  int32_t n_groups, n_cells;
} fp_share_rows;

/* sum[g] = the sum of the weights of the rows of group g with this part. Weights of 0 and less
 * count as 1, so groups of zero-length kernels have shares, too. */
fp_status fp_share_sum(const fp_share_rows *rows, int8_t part, int64_t *sum);

/* share[i] = total * weight / sum for the rows with this part, -1 if the total is unknown; shares
 * of other rows are unchanged. Rounded to add up to the total in each group whose rows have equal
 * totals. passed: scratch, [n_groups]. */
fp_status fp_share(const fp_share_rows *rows, int8_t part, const int64_t *sum, int64_t *passed,
                   int64_t *share);

/* Computes two sums modulo 2^64: *expected of the totals of all groups of rows with this part, and
 * *found of the shares of these rows. Negative numbers count as 0. Groups whose rows have different
 * totals are skipped. of_group: scratch, [n_groups]. */
fp_status fp_share_add_up(const fp_share_rows *rows, int8_t part, const int64_t *share,
                          int64_t *of_group, uint64_t *expected, uint64_t *found);

/* ordinal[i] = the number of earlier rows of the same group; -1 if group is -1. */
fp_status fp_share_ordinal(const int32_t *group, int64_t n, int32_t n_groups, int32_t *seen,
                           int32_t *ordinal);

#endif
