/* fp_counted.c: see fp_counted.h. */
#include "analysis/fp_counted.h"

#include <stdbool.h>

static bool is_set(const uint8_t *bits, int64_t i) { return bits[i >> 3] >> (i & 7) & 1; }

static void set(uint8_t *bits, int64_t i) { bits[i >> 3] |= (uint8_t)(1u << (i & 7)); }

static void add(int64_t *sum, int64_t ns) {
  if (__builtin_add_overflow(*sum, ns, sum)) *sum = INT64_MAX;
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
    if (call >= 0 && is_set(seen, call)) continue;
    if (call >= 0) set(seen, call);
    sums->calls[g]++;
  }
  return FP_OK;
}
