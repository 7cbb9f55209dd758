/* calls.c: fp_calls on arrays of exactly their size; what each kernel gets is one of what it can
 * get, and an index out of range is found. What exactly it gets: tests/property/test_calls.py. */
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

static void calls_are_those_of_frames(int32_t n, int32_t n_frames) {
  int32_t *columns[] = {numbers(n_frames, 0, N_LABELS), numbers(n_frames, -1, n_frames),
                        numbers(n_frames, -1, n_frames), numbers(n_frames, -1, n_frames)};
  uint8_t *known = flags(N_LABELS), *unknown = flags(N_LABELS), *is_backward = flags(n);
  int32_t *frame = numbers(n, -1, n_frames), *meaning = numbers(n, -1, n_frames);
  int32_t *label = ARRAY(int32_t, n), *group = ARRAY(int32_t, n), n_groups;
  int32_t *number = ARRAY(int32_t, n_frames);
  const fp_calls_frames frames = {n_frames,   N_LABELS,   columns[0], columns[1],
                                  columns[2], columns[3], known,      unknown};
  CHECK(fp_calls_find(&frames, frame, meaning, n, label, is_backward, group, number, &n_groups) ==
        FP_OK);
  int32_t met = 0;
  for (int32_t i = 0; i < n; i++) {
    int32_t own = frame[i] < 0 ? -1 : columns[1][frame[i]];
    int32_t forward = meaning[i] < 0 ? -1 : columns[1][meaning[i]];
    int32_t call = is_backward[i] ? forward : own;
    CHECK(label[i] == (call < 0 ? -1 : columns[0][call]));
    CHECK(!is_backward[i] || meaning[i] != frame[i]);
    CHECK((group[i] < 0) == (call < 0) && group[i] <= met && group[i] < n_groups);
    met += group[i] == met;
  }
  CHECK(met == n_groups);
  for (int column = 0; n && column < 4; column++) { /* one that is out of range, if it is used */
    int32_t at = random_below(n_frames + 1) % (n_frames ? n_frames : 1);
    if (!n_frames) break;
    int32_t before = columns[column][at];
    columns[column][at] = column ? n_frames : N_LABELS;
    fp_status status =
        fp_calls_find(&frames, frame, meaning, n, label, is_backward, group, number, &n_groups);
    CHECK(status == FP_OK || status == FP_E_INDEX);
    columns[column][at] = before;
  }
  if (n) {
    frame[n - 1] = n_frames;
    CHECK(fp_calls_find(&frames, frame, meaning, n, label, is_backward, group, number, &n_groups) ==
          FP_E_INDEX);
  }
  for (int i = 0; i < 4; i++) free(columns[i]);
  free(known);
  free(unknown);
  free(is_backward);
  free(frame);
  free(meaning);
  free(label);
  free(group);
  free(number);
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
  CHECK(fp_parts_find(&tables, row, info, group, n, n_groups, part, state) == FP_OK);
  for (int32_t i = 0; i < n; i++) {
    int8_t said = part_of[row[i] * n_infos + info[i]];
    if (said < 0)
      CHECK(part[i] == FP_BESIDE || (part[i] == FP_WHOLE && costed[row[i]]));
    else
      CHECK(part[i] == said || (said < 2 && part[i] == 1 - said));
  }
  if (n) {
    part_of[row[n - 1] * n_infos + info[n - 1]] = FP_PARTS;
    CHECK(fp_parts_find(&tables, row, info, group, n, n_groups, part, state) == FP_E_INDEX);
    part_of[row[n - 1] * n_infos + info[n - 1]] = 0;
    group[n - 1] = n_groups;
    CHECK(fp_parts_find(&tables, row, info, group, n, n_groups, part, state) == FP_E_INDEX);
  }
  free(part_of);
  free(part);
  free(sure);
  free(main_parts);
  free(costed);
  free(whole);
  free(other);
  free(state);
  free(row);
  free(info);
  free(group);
}

int main(void) {
  for (int i = 0; i < 3000; i++) {
    calls_are_those_of_frames(random_below(MOST), random_below(MOST));
    parts_are_those_of_tables(random_below(MOST), random_below(MOST));
  }
  return 0;
}
