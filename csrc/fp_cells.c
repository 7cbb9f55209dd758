/* fp_cells.c: see fp_cells.h. */
#include "fp_cells.h"

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
