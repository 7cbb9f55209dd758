/* fp_cells.c: see fp_cells.h. */
#include "analysis/fp_cells.h"

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
    if (__builtin_add_overflow(time[c], duration, &time[c])) time[c] = INT64_MAX;
  }
  return FP_OK;
}
