#include "analysis/fp_groups.h"

#include <math.h>
#include <stdbool.h>
#include <stddef.h>

static fp_status check(const fp_groups_rows *rows) {
  bool is_wrong = false; /* without branches, several times as fast */
  for (int64_t i = 0; i < rows->n; i++) is_wrong |= rows->group[i] >= rows->n_groups;
  return is_wrong ? FP_E_INDEX : FP_OK;
}

/* Welford's method: one pass, and no cancellation of large squares. */
static void add(const fp_groups_stats *stats, int32_t g, int64_t value) {
  int64_t count = stats->count[g]++;
  double before = count ? (double)stats->sum[g] / (double)count : 0;
  if (__builtin_add_overflow(stats->sum[g], value, &stats->sum[g])) stats->sum[g] = INT64_MAX;
  if (!count || value < stats->min[g]) stats->min[g] = value;
  if (!count || value > stats->max[g]) stats->max[g] = value;
  double apart = (double)value - before;
  if (count) stats->squares[g] += apart * apart * ((double)count / (double)(count + 1));
}

fp_status fp_groups_reduce(const fp_groups_rows *rows, const fp_groups_stats *stats) {
  fp_status status = check(rows);
  if (status != FP_OK) return status;
  for (int32_t g = 0; g < rows->n_groups; g++) {
    stats->count[g] = stats->sum[g] = 0;
    stats->min[g] = stats->max[g] = rows->none;
    stats->squares[g] = 0;
  }
  for (int64_t i = 0; i < rows->n; i++)
    if (rows->group[i] >= 0 && rows->value[i] != rows->none)
      add(stats, rows->group[i], rows->value[i]);
  return FP_OK;
}

fp_status fp_groups_sum_where(const fp_groups_rows *rows, const uint8_t *mask, int64_t *sum) {
  fp_status status = check(rows);
  if (status != FP_OK) return status;
  for (int32_t g = 0; g < rows->n_groups; g++) sum[g] = 0;
  for (int64_t i = 0; i < rows->n; i++) {
    int32_t g = rows->group[i];
    int64_t value = rows->value[i];
    if (g < 0 || (mask && !mask[i]) || value == rows->none || value <= 0) continue;
    if (__builtin_add_overflow(sum[g], value, &sum[g])) sum[g] = INT64_MAX;
  }
  return FP_OK;
}

fp_status fp_groups_distinct(const fp_groups_rows *rows, const int32_t *id, int32_t n_ids,
                             int32_t *home, int64_t *count) {
  fp_status status = check(rows);
  if (status != FP_OK) return status;
  for (int32_t i = 0; i < n_ids; i++) home[i] = -1;
  for (int32_t g = 0; g < rows->n_groups; g++) count[g] = 0;
  for (int64_t i = 0; i < rows->n; i++) {
    int32_t g = rows->group[i];
    if (g < 0 || id[i] < 0) continue;
    if (id[i] >= n_ids) return FP_E_INDEX;
    int32_t *at = &home[id[i]];
    *at = *at == -1 || *at == g ? g : FP_GROUPS_SEVERAL;
  }
  for (int32_t i = 0; i < n_ids; i++)
    if (home[i] >= 0) count[home[i]]++;
  return FP_OK;
}

/* Quickselect: the number of rank k (from 0) of [n]; smaller ones end up before it. */
static int64_t of_rank(int64_t *value, int64_t n, int64_t k) {
  int64_t low = 0, high = n - 1;
  while (low < high) {
    int64_t pivot = value[low + (high - low) / 2], i = low, j = high;
    while (i <= j) {
      while (value[i] < pivot) i++;
      while (value[j] > pivot) j--;
      if (i <= j) {
        int64_t other = value[i];
        value[i++] = value[j];
        value[j--] = other;
      }
    }
    if (k <= j)
      high = j;
    else if (k >= i)
      low = i;
    else
      break;
  }
  return value[k];
}

static double middle(int64_t *value, int64_t n) {
  if (!n) return NAN;
  int64_t upper = of_rank(value, n, n / 2);
  if (n % 2) return (double)upper;
  int64_t lower = value[0];
  for (int64_t i = 1; i < n / 2; i++)
    if (value[i] > lower) lower = value[i];
  return (double)lower + ((double)upper - (double)lower) / 2;
}

fp_status fp_groups_median(const fp_groups_rows *rows, const int64_t *count, int64_t *scratch,
                           int64_t *ends, double *median) {
  fp_status status = check(rows);
  if (status != FP_OK) return status;
  int64_t total = 0;
  for (int32_t g = 0; g < rows->n_groups; g++) {
    ends[g] = total;
    total += count[g];
  }
  if (total > rows->n) return FP_E_INDEX;
  for (int64_t i = 0; i < rows->n; i++) {
    int32_t g = rows->group[i];
    if (g < 0 || rows->value[i] == rows->none) continue;
    if (ends[g] >= total) return FP_E_INDEX;
    scratch[ends[g]++] = rows->value[i];
  }
  int64_t start = 0;
  for (int32_t g = 0; g < rows->n_groups; g++) {
    if (ends[g] != start + count[g]) return FP_E_INDEX;
    median[g] = middle(scratch + start, count[g]);
    start = ends[g];
  }
  return FP_OK;
}
