/* fp_share.c: see fp_share.h. */
#include "fp_share.h"

static int64_t counted(int64_t weight) { return weight > 0 ? weight : 1; }

fp_status fp_share_sum(const int32_t *group, const int64_t *weight, int64_t n, int32_t n_groups,
                       int64_t *sum) {
  for (int32_t g = 0; g < n_groups; g++) sum[g] = 0;
  for (int64_t i = 0; i < n; i++) {
    if (group[i] < 0) continue;
    if (group[i] >= n_groups) return FP_E_INDEX;
    if (__builtin_add_overflow(sum[group[i]], counted(weight[i]), &sum[group[i]]))
      return FP_E_RANGE;
  }
  return FP_OK;
}

/* total * part / whole, rounded down; part is at most the whole. */
static int64_t portion(int64_t total, int64_t part, int64_t whole) {
  int64_t product;
  if (part == whole) return total;
  if (!__builtin_mul_overflow(total, part, &product)) return product / whole;
  return (int64_t)((__int128)total * part / whole);
}

fp_status fp_share(const int32_t *group, const int64_t *weight, const int64_t *total, int64_t n,
                   const int64_t *sum, int32_t n_groups, int64_t none, int64_t *passed,
                   int64_t *share) {
  for (int32_t g = 0; g < n_groups; g++) passed[g] = 0;
  for (int64_t i = 0; i < n; i++) {
    int32_t g = group[i];
    if (g >= n_groups) return FP_E_INDEX;
    if (g < 0) continue;
    share[i] = none;
    if (total[i] == none) continue;
    int64_t before = passed[g] ? portion(total[i], passed[g], sum[g]) : 0;
    passed[g] += counted(weight[i]);
    share[i] = portion(total[i], passed[g], sum[g]) - before;
  }
  return FP_OK;
}

fp_status fp_share_add_up(const int32_t *group, const int64_t *total, const int64_t *share,
                          int64_t n, int32_t n_groups, int64_t *of_group, uint64_t *expected,
                          uint64_t *found) {
  const int64_t unseen = INT64_MIN, mixed = INT64_MIN + 1;
  for (int32_t g = 0; g < n_groups; g++) of_group[g] = unseen;
  for (int64_t i = 0; i < n; i++) {
    if (group[i] >= n_groups) return FP_E_INDEX;
    if (group[i] < 0) continue;
    int64_t *of = &of_group[group[i]];
    *of = *of == unseen || *of == total[i] ? total[i] : mixed;
  }
  *expected = *found = 0;
  for (int32_t g = 0; g < n_groups; g++) *expected += of_group[g] > 0 ? (uint64_t)of_group[g] : 0;
  for (int64_t i = 0; i < n; i++)
    if (group[i] >= 0 && share[i] > 0 && of_group[group[i]] != mixed) *found += (uint64_t)share[i];
  return FP_OK;
}

fp_status fp_share_ordinal(const int32_t *group, int64_t n, int32_t n_groups, int32_t *seen,
                           int32_t *ordinal) {
  for (int32_t g = 0; g < n_groups; g++) seen[g] = 0;
  for (int64_t i = 0; i < n; i++) {
    if (group[i] >= n_groups) return FP_E_INDEX;
    ordinal[i] = group[i] < 0 ? -1 : seen[group[i]]++;
  }
  return FP_OK;
}
