/* cells.c: fp_cells and fp_busy on arrays of exactly their size; an index out of range is found.
 * Exact results: tests/property/test_kernel_cells.py. */
#include <stdbool.h>

#include "analysis/fp_groups.h"
#include "analysis/fp_sweep.h"
#include "check.h"

enum { MOST = 40 };

static void pairs_are_numbered(int32_t n, int32_t n_cells, int32_t n_ids) {
  int32_t size = n_cells * (n_ids + 1), found = -1;
  int32_t *cell = ARRAY(int32_t, n), *id = ARRAY(int32_t, n), *refined = ARRAY(int32_t, n);
  int32_t *first = ARRAY(int32_t, n < size ? n : size), *table = ARRAY(int32_t, size);
  for (int32_t i = 0; i < size; i++) table[i] = 0;
  for (int32_t i = 0; i < n; i++) {
    cell[i] = random_below(n_cells);
    id[i] = random_below(n_ids + 1) - 1;
  }
  CHECK(fp_cells_refine(cell, id, n, n_cells, n_ids, table, refined, first, &found) == FP_OK);
  for (int32_t i = 0; i < n; i++) {
    CHECK(refined[i] >= 0 && refined[i] < found && first[refined[i]] <= i);
    int32_t same = first[refined[i]];
    CHECK(cell[same] == cell[i] && id[same] == id[i] && refined[same] == refined[i]);
    for (int32_t j = 0; j < i; j++)
      CHECK(refined[j] != refined[i] || (cell[j] == cell[i] && id[j] == id[i]));
  }
  if (n) {
    id[n - 1] = n_ids;
    CHECK(fp_cells_refine(cell, id, n, n_cells, n_ids, table, refined, first, &found) ==
          FP_E_INDEX);
  }
  void *const arrays[] = {cell, id, refined, first, table};
  for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) free(arrays[i]);
}

static void time_lines_fit(int32_t n, int32_t n_groups) {
  int64_t *start = ARRAY(int64_t, n), *duration = ARRAY(int64_t, n), *lines[3];
  int32_t *id = ARRAY(int32_t, n), *group = ARRAY(int32_t, 3);
  uint8_t *mask = ARRAY(uint8_t, n);
  for (int i = 0; i < 3; i++) lines[i] = ARRAY(int64_t, n_groups);
  for (int i = 0; i < 3; i++) group[i] = random_below(n_groups + 1) - 1;
  for (int32_t i = 0; i < n; i++) {
    start[i] = (i ? start[i - 1] : 0) + random_below(5);
    duration[i] = random_below(9) ? random_below(9) - 1 : INT64_MAX;
    id[i] = random_below(3);
    mask[i] = (uint8_t)random_below(2);
  }
  fp_busy_work work = {start, duration, id, group, random_below(2) ? mask : NULL, n, 3, n_groups};
  const fp_busy_lines out = {lines[0], lines[1], lines[2]};
  CHECK(fp_busy(&work, &out) == FP_OK);
  for (int32_t g = 0; g < n_groups; g++)
    CHECK(out.begin[g] > out.end[g] ? !out.busy[g] : out.busy[g] <= out.end[g] - out.begin[g]);
  int64_t *end = ARRAY(int64_t, 3), count, longest;
  CHECK(fp_busy_overlaps(&work, end, &count, &longest) == FP_OK);
  CHECK(count >= 0 && count <= n && (longest > 0) == (count > 0));
  if (n) {
    id[n - 1] = 3;
    CHECK(fp_busy(&work, &out) == FP_E_INDEX);
    CHECK(fp_busy_overlaps(&work, end, &count, &longest) == FP_E_INDEX);
    start[n - 1] = -1;
    CHECK(n == 1 || fp_busy(&work, &out) == FP_E_ORDER);
  }
  void *const arrays[] = {start, duration, id, group, mask, end, lines[0], lines[1], lines[2]};
  for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) free(arrays[i]);
}

static void short_kernels_add_up(int32_t n, int32_t n_cells) {
  int32_t *cell = ARRAY(int32_t, n);
  int64_t *number[3], *time = ARRAY(int64_t, n_cells), expected = 0, found = 0;
  uint8_t *is_small = ARRAY(uint8_t, n_cells);
  double *rate[2];
  for (int i = 0; i < 3; i++) number[i] = ARRAY(int64_t, n);
  for (int i = 0; i < 2; i++) rate[i] = ARRAY(double, n_cells);
  for (int32_t c = 0; c < n_cells; c++) {
    is_small[c] = 1;
    rate[0][c] = rate[1][c] = 1;
  }
  for (int32_t i = 0; i < n; i++) {
    cell[i] = random_below(n_cells);
    for (int k = 0; k < 3; k++) number[k][i] = random_below(20) - 1;
    if (number[0][i] > 0 && number[0][i] < 10) expected += number[0][i];
  }
  const fp_cells_kernels kernels = {cell,    number[0], number[1], number[2], n,
                                    n_cells, is_small,  rate[0],   rate[1]};
  CHECK(fp_cells_short(&kernels, 10, 0, time) == FP_OK);
  for (int32_t c = 0; c < n_cells; c++) found += time[c];
  CHECK(found == expected);
  if (n) {
    cell[n - 1] = n_cells;
    CHECK(fp_cells_short(&kernels, 10, 0, time) == FP_E_INDEX);
  }
  void *const arrays[] = {cell, time, is_small, rate[0], rate[1], number[0], number[1], number[2]};
  for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) free(arrays[i]);
}

int main(void) {
  for (int i = rounds(2000); i > 0; i--) {
    pairs_are_numbered(random_below(MOST), 1 + random_below(4), random_below(5));
    time_lines_fit(random_below(MOST), random_below(4));
    short_kernels_add_up(random_below(MOST), 1 + random_below(4));
  }
  return 0;
}
