/* fp_cells.h: cells, sets of kernels that agree in all but their numbers. */
#ifndef FP_CELLS_H
#define FP_CELLS_H

#include <stdint.h>

#include "base/fp_status.h"

/* refined[i] = the number of the pair (cell[i], id[i]), in order of first appearance;
 * first[number]: the first i of each number. cell: 0 .. n_cells - 1; id: -1 .. n_ids - 1; table:
 * zeros, [n_cells * (n_ids + 1)]; first: [the number of pairs], at most n and the size of the
 * table. */
fp_status fp_cells_refine(const int32_t *cell, const int32_t *id, int64_t n, int32_t n_cells,
                          int32_t n_ids, int32_t *table, int32_t *refined, int32_t *first,
                          int32_t *n_refined);

/* Kernels, [n], and properties of their cells, [n_cells]. */
typedef struct {
  const int32_t *cell;     /* 0 .. n_cells - 1 */
  const int64_t *duration; /* ns */
  const int64_t *flops, *bytes;
  int64_t n;
  int32_t n_cells;
  const uint8_t *is_small;           /* whether the kernels of the cell do not fill the GPU */
  const double *per_flop, *per_byte; /* ns of ideal time */
} fp_cells_kernels;

/* time[cell] = the GPU time, ns, of kernels shorter than `longest` that do not fill the GPU or
 * whose ideal time is shorter than `least`. Negative numbers are unknown and count as 0. A sum that
 * exceeds 64 bits is INT64_MAX. */
fp_status fp_cells_short(const fp_cells_kernels *kernels, int64_t longest, double least,
                         int64_t *time);

#endif
