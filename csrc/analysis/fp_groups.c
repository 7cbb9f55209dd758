#include "analysis/fp_groups.h"

#include <math.h>

static bool are_sound(const fp_groups_rows *rows) {
  bool is_wrong = false; /* without branches, several times as fast */
  for (int64_t i = 0; i < rows->n; i++) is_wrong |= rows->group[i] >= rows->n_groups;
  return !is_wrong;
}

/* Adds to a sum, which stays at INT64_MAX if it exceeds 64 bits. */
static void add(int64_t *sum, int64_t value) {
  if (__builtin_add_overflow(*sum, value, sum)) *sum = INT64_MAX;
}

/* Welford's method: one pass, and no cancellation of large squares. */
static void add_number(const fp_groups_stats *stats, int32_t g, int64_t value) {
  int64_t count = stats->count[g]++;
  double before = count ? (double)stats->sum[g] / (double)count : 0;
  add(&stats->sum[g], value);
  if (!count || value < stats->min[g]) stats->min[g] = value;
  if (!count || value > stats->max[g]) stats->max[g] = value;
  double apart = (double)value - before;
  if (count) stats->squares[g] += apart * apart * ((double)count / (double)(count + 1));
}

fp_status fp_groups_reduce(const fp_groups_rows *rows, const fp_groups_stats *stats) {
  if (!are_sound(rows)) return FP_E_INDEX;
  for (int32_t g = 0; g < rows->n_groups; g++) {
    stats->count[g] = stats->sum[g] = 0;
    stats->min[g] = stats->max[g] = rows->none;
    stats->squares[g] = 0;
  }
  for (int64_t i = 0; i < rows->n; i++)
    if (rows->group[i] >= 0 && rows->value[i] != rows->none)
      add_number(stats, rows->group[i], rows->value[i]);
  return FP_OK;
}

fp_status fp_groups_sum_where(const fp_groups_rows *rows, const uint8_t *mask, int64_t *sum) {
  if (!are_sound(rows)) return FP_E_INDEX;
  for (int32_t g = 0; g < rows->n_groups; g++) sum[g] = 0;
  for (int64_t i = 0; i < rows->n; i++) {
    int32_t g = rows->group[i];
    int64_t value = rows->value[i];
    if (g < 0 || (mask && !mask[i]) || value == rows->none || value <= 0) continue;
    add(&sum[g], value);
  }
  return FP_OK;
}

fp_status fp_groups_distinct(const fp_groups_rows *rows, const int32_t *id, int32_t n_ids,
                             int32_t *home, int64_t *count) {
  if (!are_sound(rows)) return FP_E_INDEX;
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
  if (!are_sound(rows)) return FP_E_INDEX;
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

fp_status fp_cells_refine(const int32_t *cell, const int32_t *id, int64_t n, int32_t n_cells,
                          int32_t n_ids, int32_t *table, int32_t *refined, int32_t *first,
                          int32_t *n_refined) {
  int32_t found = 0;
  for (int64_t i = 0; i < n; i++) {
    if ((uint32_t)cell[i] >= (uint32_t)n_cells || id[i] < -1 || id[i] >= n_ids) return FP_E_INDEX;
    int32_t *number = &table[(int64_t)cell[i] * ((int64_t)n_ids + 1) + id[i] + 1]; /* from 1 */
    if (!*number) {
      first[found] = (int32_t)i;
      *number = ++found;
    }
    refined[i] = *number - 1;
  }
  *n_refined = found;
  return FP_OK;
}

static int64_t known(int64_t number) { return number > 0 ? number : 0; }

fp_status fp_cells_short(const fp_cells_kernels *kernels, int64_t longest, double least,
                         int64_t *time) {
  for (int32_t c = 0; c < kernels->n_cells; c++) time[c] = 0;
  for (int64_t i = 0; i < kernels->n; i++) {
    int32_t c = kernels->cell[i];
    if ((uint32_t)c >= (uint32_t)kernels->n_cells) return FP_E_INDEX;
    int64_t duration = known(kernels->duration[i]);
    if (duration >= longest) continue;
    double ideal = (double)known(kernels->flops[i]) * kernels->per_flop[c] +
                   (double)known(kernels->bytes[i]) * kernels->per_byte[c];
    if (!kernels->is_small[c] && ideal >= least) continue;
    add(&time[c], duration);
  }
  return FP_OK;
}

static bool is_set(const uint8_t *bits, int64_t i) { return bits[i >> 3] >> (i & 7) & 1; }

/* Returns whether it was set before. */
static bool set(uint8_t *bits, int64_t i) {
  const bool was_set = is_set(bits, i);
  bits[i >> 3] |= (uint8_t)(1u << (i & 7));
  return was_set;
}

/* Adds a call to its group unless it was seen before. */
static void add_call(const fp_launched_calls *calls, int32_t call, int32_t group, uint8_t *seen,
                     const fp_launched_sums *sums) {
  if (set(seen, call) || group < 0) return;
  sums->launches[group]++;
  int64_t host;
  if (__builtin_sub_overflow(calls->end[call], calls->start[call], &host) || host <= 0) return;
  add(&sums->host[group], host);
}

fp_status fp_launched(const fp_launched_kernels *kernels, const fp_launched_calls *calls,
                      int32_t n_groups, int64_t starved_ns, uint8_t *seen,
                      const fp_launched_sums *sums) {
  for (int64_t i = 0; i < kernels->n; i++) {
    int32_t group = kernels->group[i], call = kernels->call[i];
    if (group < FP_LAUNCHED_OTHER || group >= n_groups || call < -1 || call >= calls->n)
      return FP_E_INDEX;
    if (call < 0 || group == FP_LAUNCHED_OTHER || calls->end[call] == INT64_MAX) continue;
    add_call(calls, call, group, seen, sums);
    int64_t start = kernels->start[i], end = calls->end[call];
    if (group < 0 || start < calls->start[call]) continue;
    sums->on_time[group]++;
    sums->starved[group] += start < end || (uint64_t)start - (uint64_t)end < (uint64_t)starved_ns;
  }
  return FP_OK;
}

fp_status fp_counted_merge(const fp_counted_kernels *kernels, const fp_counted_pieces *pieces,
                           int64_t n, const fp_counted_merged *merged, int64_t *n_merged,
                           int64_t *last, uint8_t *runs) {
  *n_merged = 0;
  for (int32_t g = 0; g < kernels->n_groups; g++) last[g] = -1;
  for (int64_t i = 0; i < n; i++) {
    const int32_t row = pieces->row[i];
    if (row < 0 || row >= kernels->n) return FP_E_INDEX;
    const int32_t g = kernels->group[row];
    if (g < 0 || g >= kernels->n_groups) return FP_E_INDEX;
    set(runs, row);
    if (last[g] < 0 || merged->window[last[g]] != pieces->window[i]) {
      last[g] = (*n_merged)++;
      merged->group[last[g]] = g;
      merged->window[last[g]] = pieces->window[i];
      merged->ns[last[g]] = 0;
    }
    add(&merged->ns[last[g]], pieces->ns[i]);
  }
  return FP_OK;
}

static bool is_outside(const fp_counted_kernels *kernels, int64_t i) {
  return kernels->group[i] >= kernels->n_groups || kernels->step[i] < -1 ||
         kernels->step[i] >= kernels->n_steps || kernels->call[i] < -1 ||
         kernels->call[i] >= kernels->n_calls;
}

fp_status fp_counted_sum(const fp_counted_kernels *kernels, const uint8_t *is_counted,
                         const uint8_t *runs, uint8_t *seen, const fp_counted_sums *sums) {
  for (int64_t i = 0; i < kernels->n; i++) {
    if (is_outside(kernels, i)) return FP_E_INDEX;
    const int32_t g = kernels->group[i], step = kernels->step[i], call = kernels->call[i];
    if (g < 0 || !(step < 0 ? is_set(runs, i) : is_counted[step])) continue;
    if (!sums->kernels[g]++) sums->first[g] = (int32_t)i;
    if (kernels->duration[i] != -1) add(&sums->ns[g], kernels->duration[i]);
    if (call < 0 || !set(seen, call)) sums->calls[g]++;
  }
  return FP_OK;
}
