/* fp_share.c: see fp_share.h. */
#include "fp_share.h"

#include <stdbool.h>

static int64_t counted(int64_t weight) { return weight > 0 ? weight : 1; }

/* Whether a row belongs to a group and has this part. */
static bool does(const fp_share_rows *rows, int64_t i, int8_t part) {
  return rows->group[i] >= 0 && rows->part[i] == part;
}

static bool is_outside(const fp_share_rows *rows, int64_t i) {
  return rows->group[i] >= rows->n_groups || (uint32_t)rows->cell[i] >= (uint32_t)rows->n_cells;
}

fp_status fp_share_sum(const fp_share_rows *rows, int8_t part, int64_t *sum) {
  for (int32_t g = 0; g < rows->n_groups; g++) sum[g] = 0;
  for (int64_t i = 0; i < rows->n; i++) {
    if (!does(rows, i, part)) continue;
    if (is_outside(rows, i)) return FP_E_INDEX;
    int64_t *of = &sum[rows->group[i]];
    if (__builtin_add_overflow(*of, counted(rows->weight[i]), of)) return FP_E_RANGE;
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

fp_status fp_share(const fp_share_rows *rows, int8_t part, const int64_t *sum, int64_t *passed,
                   int64_t *share) {
  for (int32_t g = 0; g < rows->n_groups; g++) passed[g] = 0;
  for (int64_t i = 0; i < rows->n; i++) {
    if (!does(rows, i, part)) continue;
    if (is_outside(rows, i)) return FP_E_INDEX;
    int32_t g = rows->group[i];
    int64_t total = rows->total[rows->cell[i]];
    share[i] = -1;
    if (total == -1) continue;
    int64_t before = passed[g] ? portion(total, passed[g], sum[g]) : 0;
    passed[g] += counted(rows->weight[i]);
    share[i] = portion(total, passed[g], sum[g]) - before;
  }
  return FP_OK;
}

fp_status fp_share_add_up(const fp_share_rows *rows, int8_t part, const int64_t *share,
                          int64_t *of_group, uint64_t *expected, uint64_t *found) {
  const int64_t unseen = INT64_MIN, mixed = INT64_MIN + 1;
  for (int32_t g = 0; g < rows->n_groups; g++) of_group[g] = unseen;
  for (int64_t i = 0; i < rows->n; i++) {
    if (!does(rows, i, part)) continue;
    if (is_outside(rows, i)) return FP_E_INDEX;
    int64_t *of = &of_group[rows->group[i]], total = rows->total[rows->cell[i]];
    *of = *of == unseen || *of == total ? total : mixed;
  }
  *expected = *found = 0;
  for (int32_t g = 0; g < rows->n_groups; g++)
    *expected += of_group[g] > 0 ? (uint64_t)of_group[g] : 0;
  for (int64_t i = 0; i < rows->n; i++)
    if (does(rows, i, part) && share[i] > 0 && of_group[rows->group[i]] != mixed)
      *found += (uint64_t)share[i];
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
