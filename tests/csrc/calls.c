/* calls.c: fp_calls on arrays of exactly their size; what each kernel gets is one of what it can
 * get, and an index out of range is found. What exactly it gets: tests/property/test_calls.py. */
#include <stdbool.h>

#include "check.h"
#include "fp_calls.h"

enum { N_LABELS = 4, MOST = 40 };

static int32_t *numbers(int32_t n, int32_t first, int32_t end) {
  int32_t *values = ARRAY(int32_t, n);
  for (int32_t i = 0; i < n; i++) values[i] = first + random_below(end - first);
  return values;
}

static uint8_t *flags(int32_t n) {
  uint8_t *values = ARRAY(uint8_t, n);
  for (int32_t i = 0; i < n; i++) values[i] = (uint8_t)random_below(2);
  return values;
}

static bool is_one_of(int32_t value, const int32_t *values, int32_t n) {
  for (int32_t i = 0; i < n; i++)
    if (values[i] == value) return true;
  return value == -1;
}

static void calls_are_those_of_frames(int32_t n, int32_t n_frames) {
  enum { LABEL = 1, N_COLUMNS = 7 };
  int32_t *columns[N_COLUMNS];
  for (int i = 0; i < N_COLUMNS; i++) columns[i] = numbers(n_frames, -1, n_frames);
  for (int32_t i = 0; i < n_frames; i++) {
    columns[0][i] = random_below(i + 1) - 1;
    columns[LABEL][i] = random_below(N_LABELS);
    columns[2][i] = random_below(n_frames);
  }
  int32_t *name = numbers(N_LABELS, 0, 3), *dtypes = numbers(N_LABELS, -1, 3);
  uint16_t *says = ARRAY(uint16_t, N_LABELS);
  for (int32_t i = 0; i < N_LABELS; i++) says[i] = (uint16_t)random_below(512);
  int32_t *frame = numbers(n, -1, n_frames), *meaning = numbers(n, -1, n_frames);
  int32_t *label = ARRAY(int32_t, n), *work = ARRAY(int32_t, n), *helper = ARRAY(int32_t, n);
  int32_t *group = ARRAY(int32_t, n), *instance = ARRAY(int32_t, n);
  int32_t *scratch = ARRAY(int32_t, 4 * n_frames), n_groups;
  uint8_t *is_backward = ARRAY(uint8_t, n), *is_gradient = ARRAY(uint8_t, n);
  uint8_t *taken = ARRAY(uint8_t, n < n_frames ? n : n_frames);
  const fp_calls_of of = {label, is_backward, work, is_gradient, helper, group, instance};
  const fp_calls_frames frames = {n_frames,   N_LABELS,   columns[0], columns[1],
                                  columns[2], columns[3], columns[4], columns[5],
                                  columns[6], says,       name,       dtypes};
  CHECK(fp_calls_find(&frames, frame, meaning, n, &of, taken, scratch, &n_groups) == FP_OK);
  int32_t met = 0;
  for (int32_t i = 0; i < n; i++) {
    int32_t own = frame[i] < 0 ? -1 : columns[3][frame[i]];
    int32_t forward = meaning[i] < 0 ? -1 : columns[3][meaning[i]];
    int32_t call = is_backward[i] ? forward : own;
    CHECK(label[i] == (call < 0 ? -1 : columns[LABEL][call]));
    CHECK(!is_backward[i] || meaning[i] != frame[i]);
    CHECK(is_one_of(work[i], columns[LABEL], n_frames));
    CHECK(is_one_of(helper[i], columns[LABEL], n_frames));
    CHECK(group[i] <= met && group[i] < n_groups);
    CHECK(instance[i] >= -1 && instance[i] < n_frames && (instance[i] < 0) <= (label[i] < 0));
    met += group[i] == met;
  }
  CHECK(met == n_groups);
  for (int column = 0; n_frames && column < N_COLUMNS; column++) { /* one that is out of range */
    int32_t at = random_below(n_frames), before = columns[column][at];
    columns[column][at] = column == LABEL ? N_LABELS : n_frames;
    CHECK(fp_calls_find(&frames, frame, meaning, n, &of, taken, scratch, &n_groups) == FP_E_INDEX);
    columns[column][at] = before;
  }
  if (n) {
    frame[n - 1] = n_frames;
    CHECK(fp_calls_find(&frames, frame, meaning, n, &of, taken, scratch, &n_groups) == FP_E_INDEX);
  }
  for (int i = 0; i < N_COLUMNS; i++) free(columns[i]);
  void *const arrays[] = {name,  dtypes, says,     frame,   meaning,     label,       work,
                          group, helper, instance, scratch, is_backward, is_gradient, taken};
  for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) free(arrays[i]);
}

static void frames_of_backward_calls_are_frames(int32_t n) {
  int32_t *parent = numbers(n, -1, n), *label = numbers(n, 0, N_LABELS);
  int32_t *backward = numbers(n, -1, n), *meaning = numbers(n, -1, n), *picked = numbers(n, -1, n);
  int32_t *instance = ARRAY(int32_t, n), *scratch = ARRAY(int32_t, 2 * n);
  uint8_t *bits = ARRAY(uint8_t, N_LABELS), *outside = ARRAY(uint8_t, n);
  for (int32_t i = 0; i < n; i++) parent[i] = random_below(i + 1) - 1;
  for (int32_t i = 0; i < N_LABELS; i++) bits[i] = (uint8_t)random_below(8);
  CHECK(fp_calls_outside(parent, label, n, bits, N_LABELS, outside) == FP_OK);
  CHECK(fp_calls_instances(backward, meaning, picked, n, scratch, instance) == FP_OK);
  for (int32_t i = 0; i < n; i++) {
    CHECK(outside[i] <= !(bits[label[i]] & (FP_FRAME_ENGINE | FP_FRAME_NODE)));
    CHECK(outside[i] <= (parent[i] >= 0));
    CHECK(instance[i] == i || (instance[i] < i && backward[i] == i && meaning[i] >= 0));
    CHECK(backward[instance[i]] == instance[i] || instance[i] == i);
  }
  if (n) {
    label[n - 1] = N_LABELS;
    CHECK(fp_calls_outside(parent, label, n, bits, N_LABELS, outside) == FP_E_INDEX);
    backward[n - 1] = n - 1;
    meaning[n - 1] = n;
    CHECK(fp_calls_instances(backward, meaning, picked, n, scratch, instance) == FP_E_INDEX);
  }
  void *const arrays[] = {parent,   label,   backward, meaning, picked,
                          instance, scratch, bits,     outside};
  for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) free(arrays[i]);
}

static void parts_are_those_of_tables(int32_t n, int32_t n_groups) {
  int32_t n_rows = 1 + random_below(4), n_infos = 1 + random_below(4), n_cells = n_rows * n_infos;
  int8_t *part_of = ARRAY(int8_t, n_cells), *part = ARRAY(int8_t, n);
  uint8_t *sure = flags(n_cells), *main_parts = flags(n_rows * FP_PARTS), *costed = flags(n_rows);
  uint8_t *whole = flags(n_rows), *other = flags(n_infos), *state = flags(n_groups + 1);
  int32_t *row = numbers(n, 0, n_rows), *info = numbers(n, 0, n_infos);
  int32_t *group = numbers(n, -1, n_groups);
  for (int32_t i = 0; i < n_cells; i++) part_of[i] = (int8_t)(random_below(FP_PARTS + 1) - 1);
  const fp_parts_tables tables = {n_rows, n_infos, part_of, sure, main_parts, costed, whole, other};
  uint8_t *taken = flags(n_groups);
  const fp_parts_groups groups = {group, taken, n_groups};
  CHECK(fp_parts_find(&tables, row, info, &groups, n, part, state) == FP_OK);
  for (int32_t i = 0; i < n; i++) {
    int8_t said = part_of[row[i] * n_infos + info[i]];
    if (group[i] >= 0 && taken[group[i]] && said < 0)
      CHECK(part[i] == FP_BESIDE);
    else if (group[i] >= 0 && taken[group[i]])
      CHECK(part[i] == FP_BESIDE || part[i] == said || (said < 2 && part[i] == 1 - said));
    else if (said < 0)
      CHECK(part[i] == FP_BESIDE || (part[i] == FP_WHOLE && costed[row[i]]));
    else
      CHECK(part[i] == said || (said < 2 && part[i] == 1 - said));
  }
  if (n) {
    part_of[row[n - 1] * n_infos + info[n - 1]] = FP_PARTS;
    CHECK(fp_parts_find(&tables, row, info, &groups, n, part, state) == FP_E_INDEX);
    part_of[row[n - 1] * n_infos + info[n - 1]] = 0;
    group[n - 1] = n_groups;
    CHECK(fp_parts_find(&tables, row, info, &groups, n, part, state) == FP_E_INDEX);
  }
  free(part_of);
  free(part);
  free(sure);
  free(main_parts);
  free(costed);
  free(whole);
  free(other);
  free(state);
  free(taken);
  free(row);
  free(info);
  free(group);
}

int main(void) {
  for (int i = 0; i < 3000; i++) {
    calls_are_those_of_frames(random_below(MOST), random_below(MOST));
    frames_of_backward_calls_are_frames(random_below(MOST));
    parts_are_those_of_tables(random_below(MOST), random_below(MOST));
  }
  return 0;
}
