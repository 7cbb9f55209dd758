#include "cost/fp_share.h"

#include <string.h>

fp_status fp_share_pairs(const int32_t *group, const int32_t *cell, int64_t n, int32_t n_groups,
                         const int8_t *part, int32_t n_cells, int32_t n_parts, int32_t *scratch,
                         int32_t *number, int32_t *n_pairs) {
  memset(scratch, -1, (size_t)n_groups * (size_t)n_parts * sizeof *scratch);
  *n_pairs = 0;
  for (int64_t i = 0; i < n; i++) {
    number[i] = -1;
    if (group[i] >= n_groups || (uint32_t)cell[i] >= (uint32_t)n_cells || part[cell[i]] < 0)
      return FP_E_INDEX;
    if (group[i] < 0 || part[cell[i]] >= n_parts) continue;
    int32_t *pair = &scratch[(int64_t)group[i] * n_parts + part[cell[i]]];
    if (*pair < 0) *pair = (*n_pairs)++;
    number[i] = *pair;
  }
  return FP_OK;
}

static int64_t counted(int64_t weight) { return weight > 0 ? weight : 1; }

static bool is_outside(const fp_share_rows *rows, int64_t i) {
  return rows->group[i] >= rows->n_groups || (uint32_t)rows->cell[i] >= (uint32_t)rows->n_cells;
}

fp_status fp_share_sum(const fp_share_rows *rows, int64_t *sum) {
  for (int32_t g = 0; g < rows->n_groups; g++) sum[g] = 0;
  for (int64_t i = 0; i < rows->n; i++) {
    if (rows->group[i] < 0) continue;
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

fp_status fp_share(const fp_share_rows *rows, const int64_t *sum, int64_t *passed, int64_t *share) {
  for (int32_t g = 0; g < rows->n_groups; g++) passed[g] = 0;
  for (int64_t i = 0; i < rows->n; i++) {
    int32_t g = rows->group[i];
    if (g < 0) continue;
    if (is_outside(rows, i)) return FP_E_INDEX;
    int64_t total = rows->total[rows->cell[i]];
    share[i] = -1;
    if (total == -1) continue;
    int64_t before = passed[g] ? portion(total, passed[g], sum[g]) : 0;
    passed[g] += counted(rows->weight[i]);
    share[i] = portion(total, passed[g], sum[g]) - before;
  }
  return FP_OK;
}

fp_status fp_share_add_up(const fp_share_rows *rows, const int64_t *share, int64_t *of_group,
                          uint64_t *expected, uint64_t *found) {
  const int64_t unseen = INT64_MIN, mixed = INT64_MIN + 1;
  for (int32_t g = 0; g < rows->n_groups; g++) of_group[g] = unseen;
  for (int64_t i = 0; i < rows->n; i++) {
    if (rows->group[i] < 0) continue;
    if (is_outside(rows, i)) return FP_E_INDEX;
    int64_t *of = &of_group[rows->group[i]], total = rows->total[rows->cell[i]];
    *of = *of == unseen || *of == total ? total : mixed;
  }
  *expected = *found = 0;
  for (int32_t g = 0; g < rows->n_groups; g++)
    *expected += of_group[g] > 0 ? (uint64_t)of_group[g] : 0;
  for (int64_t i = 0; i < rows->n; i++)
    if (rows->group[i] >= 0 && share[i] > 0 && of_group[rows->group[i]] != mixed)
      *found += (uint64_t)share[i];
  return FP_OK;
}

static double bytes_of(int64_t bytes) { return bytes < 0 ? 0 : (double)bytes; }

static double seconds_of(int64_t duration) { return duration < 0 ? 0 : (double)duration * 1e-9; }

fp_status fp_share_too_fast(const fp_share_moves *m, double most, double *scratch,
                            uint8_t *too_fast) {
  double *moved = scratch, *time = scratch + m->n_groups;
  for (int32_t g = 0; g < m->n_groups; g++) moved[g] = time[g] = 0;
  for (int64_t i = 0; i < m->n; i++) {
    int32_t g = m->group[i];
    if (g >= m->n_groups || (uint32_t)m->memory[i] >= (uint32_t)m->n_memories) return FP_E_INDEX;
    if (g < 0) continue;
    moved[g] += bytes_of(m->bytes[i]);
    time[g] += seconds_of(m->duration[i]);
  }
  for (int64_t i = 0; i < m->n; i++) {
    int32_t g = m->group[i];
    double bytes = g < 0 ? bytes_of(m->bytes[i]) : moved[g];
    double seconds = g < 0 ? seconds_of(m->duration[i]) : time[g];
    /* A comparison with NaN is false. */
    bool exceeds = bytes > most * m->bandwidth[m->memory[i]] * seconds;
    too_fast[i] = m->bytes[i] >= 0 && seconds > 0 && exceeds;
  }
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
