/* fp_next.c: see fp_next.h. */
#include "path/fp_next.h"

fp_status fp_next(const fp_next_kernels *k, const int64_t *rows, int64_t n_rows, int64_t *last,
                  int64_t *waiting, int64_t *next) {
  int64_t found = 0;
  for (int32_t thread = 0; thread <= k->n_threads; thread++) {
    last[thread] = INT64_MIN;
    waiting[thread] = -1;
  }
  for (int64_t i = 0; i < k->n; i++) {
    const int32_t launch = k->launch[i];
    if (launch < 0) continue;
    if (launch >= k->n_launches || k->thread[launch] < -1 || k->thread[launch] >= k->n_threads)
      return FP_E_INDEX;
    const int32_t thread = k->thread[launch] + 1;
    if (k->start[launch] < last[thread]) return FP_MORE;
    last[thread] = k->start[launch];
    if (waiting[thread] >= 0) next[waiting[thread]] = i;
    waiting[thread] = -1;
    if (found == n_rows || rows[found] != i) continue;
    next[found] = -1;
    waiting[thread] = found++;
  }
  return found == n_rows ? FP_OK : FP_E_INDEX;
}
