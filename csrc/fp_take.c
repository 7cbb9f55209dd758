/* fp_take.c: see fp_take.h. */
#include "fp_take.h"

#include <string.h>

fp_status fp_take_i32(const int32_t *values, int64_t n_values, const int32_t *index, int64_t n,
                      int32_t none, int32_t *out) {
  for (int64_t i = 0; i < n; i++) {
    if (index[i] < -1 || index[i] >= n_values) return FP_E_INDEX;
    out[i] = index[i] < 0 ? none : values[index[i]];
  }
  return FP_OK;
}

fp_status fp_take_i64(const int64_t *values, int64_t n_values, const int32_t *index, int64_t n,
                      int64_t none, int64_t *out) {
  for (int64_t i = 0; i < n; i++) {
    if (index[i] < -1 || index[i] >= n_values) return FP_E_INDEX;
    out[i] = index[i] < 0 ? none : values[index[i]];
  }
  return FP_OK;
}

fp_status fp_take_distinct(const int32_t *index, int64_t n, int32_t n_values, int32_t *number,
                           int32_t *used, int32_t *n_used, int32_t *place) {
  memset(number, 0, ((size_t)n_values + 1) * sizeof *number);
  for (int64_t i = 0; i < n; i++) {
    if (index[i] < -1 || index[i] >= n_values) return FP_E_INDEX;
    number[index[i] + 1] = 1;
  }
  *n_used = 0;
  for (int32_t value = -1; value < n_values; value++) {
    if (!number[value + 1]) continue;
    number[value + 1] = *n_used;
    used[(*n_used)++] = value;
  }
  for (int64_t i = 0; i < n; i++) place[i] = number[index[i] + 1];
  return FP_OK;
}

void fp_take_without(char *items, size_t size, int64_t n, const int64_t *gaps, int64_t n_gaps) {
  for (int64_t i = 0; i < n_gaps; i++) {
    int64_t first = gaps[i] + 1, end = i + 1 < n_gaps ? gaps[i + 1] : n;
    memmove(items + (size_t)(first - 1 - i) * size, items + (size_t)first * size,
            (size_t)(end - first) * size);
  }
}
