/* fp_share.h: a cost that belongs to a group of kernels -> each kernel's share of it. */
#ifndef FP_SHARE_H
#define FP_SHARE_H

#include <stdint.h>

#include "fp_status.h"

/* sum[g] = the sum of weight over the rows of group g, groups -1 left out; negative weights and
 * zero ones count as 1, so that a group of zero-length kernels can be shared too. */
fp_status fp_share_sum(const int32_t *group, const int64_t *weight, int64_t n, int32_t n_groups,
                       int64_t *sum);

/* share[i] = total[i] * weight[i] / sum[group[i]], rounded so that the shares of a group whose rows
 * all carry the same total add up to that total; `none` where total[i] is. Rows of group -1 keep
 * what they have. passed: scratch, [n_groups]. */
fp_status fp_share(const int32_t *group, const int64_t *weight, const int64_t *total, int64_t n,
                   const int64_t *sum, int32_t n_groups, int64_t none, int64_t *passed,
                   int64_t *share);

/* *expected = the sum of the totals of all groups, *found = that of their rows' shares, modulo
 * 2^64; negative ones are none. Groups -1, and those whose rows have different totals, are left
 * out. of_group: scratch, [n_groups]. */
fp_status fp_share_add_up(const int32_t *group, const int64_t *total, const int64_t *share,
                          int64_t n, int32_t n_groups, int64_t *of_group, uint64_t *expected,
                          uint64_t *found);

/* ordinal[i] = how many rows of the same group came before row i; -1 where group is -1. */
fp_status fp_share_ordinal(const int32_t *group, int64_t n, int32_t n_groups, int32_t *seen,
                           int32_t *ordinal);

#endif
