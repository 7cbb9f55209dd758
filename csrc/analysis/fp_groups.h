/* fp_groups.h: statistics of numbers by group. */
#ifndef FP_GROUPS_H
#define FP_GROUPS_H

#include <stdint.h>

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

#endif
