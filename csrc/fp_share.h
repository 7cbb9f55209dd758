/* fp_share.h: a cost that belongs to a group of kernels -> each kernel's share of it. */
#ifndef FP_SHARE_H
#define FP_SHARE_H

#include <stdint.h>

#include "fp_status.h"

/* Kernels, and what the part of a call that they do costs; -1 is "not known". */
typedef struct {
  const int32_t *group;  /* [n] which instance of the call, 0 .. n_groups - 1, or -1 */
  const int8_t *part;    /* [n] */
  const int32_t *cell;   /* [n] into `total` */
  const int64_t *weight; /* [n] */
  const int64_t *total;  /* [n_cells] */
  int64_t n;
  int32_t n_groups, n_cells;
} fp_share_rows;

/* sum[g] = the sum of weight over the rows of group g that do this part; negative weights and zero
 * ones count as 1, so that a group of zero-length kernels can be shared too. */
fp_status fp_share_sum(const fp_share_rows *rows, int8_t part, int64_t *sum);

/* share[i] = total * weight / sum for the rows that do this part, rounded so that the shares of a
 * group whose rows all have one total add up to that; -1 where the total is. Others keep what they
 * have. passed: scratch, [n_groups]. */
fp_status fp_share(const fp_share_rows *rows, int8_t part, const int64_t *sum, int64_t *passed,
                   int64_t *share);

/* *expected = the sum of the totals of all groups of rows that do this part, *found = that of the
 * shares of these rows, modulo 2^64; negative ones are none. Groups whose rows have different
 * totals are left out. of_group: scratch, [n_groups]. */
fp_status fp_share_add_up(const fp_share_rows *rows, int8_t part, const int64_t *share,
                          int64_t *of_group, uint64_t *expected, uint64_t *found);

/* ordinal[i] = how many rows of the same group came before row i; -1 where group is -1. */
fp_status fp_share_ordinal(const int32_t *group, int64_t n, int32_t n_groups, int32_t *seen,
                           int32_t *ordinal);

#endif
