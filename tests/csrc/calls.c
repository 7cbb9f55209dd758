/* calls.c: fp_calls, fp_parts and fp_next on arrays of exactly their size; what each kernel gets is
 * one of what it can get, and an index out of range is found. What exactly it gets:
 * tests/property/test_calls.py. */
#include <stdbool.h>

#include "check.h"
#include "cost/fp_calls.h"
#include "cost/fp_parts.h"
#include "path/fp_join.h"

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

static fp_kind kind_at(const fp_names *kinds, int32_t id) {
  const int64_t *offsets;
  const char *bytes = fp_names_bytes(kinds, &offsets);
  fp_kind kind;
  CHECK(offsets[id + 1] - offsets[id] == sizeof kind);
  memcpy(&kind, bytes + offsets[id], sizeof kind);
  return kind;
}

static void calls_are_those_of_frames(int32_t n, int32_t n_frames) {
  enum { LABEL = 1, N_COLUMNS = 7 };
  int32_t *columns[N_COLUMNS];
  for (int i = 0; i < N_COLUMNS; i++) columns[i] = numbers(n_frames, -1, n_frames);
  for (int32_t i = 0; i < n_frames; i++) {
    columns[0][i] = random_below(i + 1) - 1;
    columns[LABEL][i] = random_below(N_LABELS);
    columns[3][i] = random_below(i + 2) - 1; /* part of a call: of itself or an ancestor */
    columns[2][i] = random_below(n_frames);
  }
  int32_t *name = numbers(N_LABELS, -1, 3), *overload = numbers(N_LABELS, 0, 2);
  int32_t *sizes = numbers(N_LABELS, 0, 3), *dtypes = numbers(N_LABELS, -1, 3);
  int32_t *flops = numbers(N_LABELS, -1, 3);
  uint16_t *says = ARRAY(uint16_t, N_LABELS);
  for (int32_t i = 0; i < N_LABELS; i++) says[i] = (uint16_t)random_below(512);
  int32_t *frame = numbers(n, -1, n_frames), *meaning = numbers(n, -1, n_frames);
  int32_t *kind = ARRAY(int32_t, n), *group = ARRAY(int32_t, n), *instance = ARRAY(int32_t, n);
  int32_t *scratch = ARRAY(int32_t, FP_CALLS_SCRATCH(n_frames)), n_groups;
  uint8_t *taken = ARRAY(uint8_t, n < n_frames ? n : n_frames), *outside = flags(n_frames);
  const fp_calls_of of = {kind, group, instance, fp_names_new()};
  CHECK(of.kinds != NULL);
  const bool has_outside = random_below(2);
  const fp_calls_frames frames = {
      n_frames,   N_LABELS,   columns[0], columns[1], columns[2],
      columns[3], columns[4], columns[5], columns[6], has_outside ? outside : NULL,
      says,       name,       overload,   sizes,      dtypes,
      flops};
  CHECK(fp_calls_find(&frames, frame, meaning, n, &of, taken, scratch, &n_groups) == FP_OK);
  int32_t met = 0;
  for (int32_t i = 0; i < n; i++) {
    const bool is_outside = has_outside && frame[i] >= 0 && outside[frame[i]];
    const int32_t purpose = is_outside ? frame[i] : meaning[i];
    int32_t own = frame[i] < 0 ? -1 : columns[3][frame[i]];
    int32_t forward = purpose < 0 ? -1 : columns[3][purpose];
    CHECK(kind[i] >= 0 && kind[i] < fp_names_count(of.kinds));
    const fp_kind k = kind_at(of.kinds, kind[i]);
    int32_t call = k.is_backward ? forward : own;
    CHECK(k.label == (call < 0 ? -1 : columns[LABEL][call]));
    CHECK(!k.is_backward || purpose != frame[i]);
    CHECK(is_one_of(k.work, columns[LABEL], n_frames));
    CHECK(is_one_of(k.helper, columns[LABEL], n_frames));
    CHECK(group[i] <= met && group[i] < n_groups);
    CHECK(instance[i] >= -1 && instance[i] < 2 * n_frames && (instance[i] < 0) <= (k.label < 0));
    CHECK(instance[i] < 0 || instance[i] % 2 == k.is_backward);
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
  fp_names_free(of.kinds);
  void *const arrays[] = {name,    overload, sizes, dtypes,   flops,   says,  frame,
                          meaning, kind,     group, instance, scratch, taken, outside};
  for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) free(arrays[i]);
}

/* More kinds than the pool has room for at first. */
static void kinds_are_numbered_in_order(void) {
  enum { N = 3000 };
  fp_names *kinds = fp_names_new();
  int32_t id = -1;
  CHECK(kinds != NULL);
  for (int32_t i = 0; i < 2 * N; i++) {
    const int32_t n = i % N;
    const fp_kind kind = {n / 8, n % 3 - 1, n % 5 - 1, n / 2 % 2, n % 2};
    CHECK(fp_names_intern(kinds, (const char *)&kind, sizeof kind, &id) == FP_OK);
    CHECK(id <= n && kind_at(kinds, id).label == kind.label);
    CHECK(kind_at(kinds, id).work == kind.work);
    CHECK(kind_at(kinds, id).helper == kind.helper);
    CHECK(kind_at(kinds, id).is_backward == kind.is_backward);
    CHECK(kind_at(kinds, id).is_gradient == kind.is_gradient);
  }
  CHECK(fp_names_count(kinds) > 1024);
  fp_names_free(kinds);
}

static void the_next_kernel_is_on_the_same_thread(int32_t n) {
  int32_t n_launches = 1 + random_below(MOST), n_threads = 1 + random_below(3);
  int32_t *launch = numbers(n, -1, n_launches), *thread = numbers(n_launches, -1, n_threads);
  int64_t *start = ARRAY(int64_t, n_launches), *rows = ARRAY(int64_t, n), *next = ARRAY(int64_t, n);
  int64_t *last = ARRAY(int64_t, n_threads + 1), *waiting = ARRAY(int64_t, n_threads + 1);
  int64_t n_rows = 0;
  for (int32_t i = 0; i < n_launches; i++) start[i] = random_below(3) ? 0 : random_below(2);
  for (int32_t i = 0; i < n; i++)
    if (launch[i] >= 0 && random_below(2)) rows[n_rows++] = i;
  const fp_next_kernels kernels = {launch, thread, start, n, n_launches, n_threads};
  fp_status status = fp_next(&kernels, rows, n_rows, last, waiting, next);
  CHECK(status == FP_OK || status == FP_MORE);
  for (int64_t i = 0; status == FP_OK && i < n_rows; i++) {
    CHECK(next[i] == -1 || (next[i] > rows[i] && next[i] < n));
    CHECK(next[i] == -1 || thread[launch[next[i]]] == thread[launch[rows[i]]]);
  }
  if (n) {
    launch[0] = n_launches;
    CHECK(fp_next(&kernels, rows, n_rows, last, waiting, next) == FP_E_INDEX);
    launch[0] = 0;
    thread[0] = n_threads;
    CHECK(fp_next(&kernels, rows, n_rows, last, waiting, next) == FP_E_INDEX);
  }
  void *const arrays[] = {launch, thread, start, rows, next, last, waiting};
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
  int32_t n_rows = 1 + random_below(4), n_forms = 1 + random_below(4),
          n_infos = 1 + random_below(4);
  int32_t n_kinds = 1 + random_below(4), n_names = random_below(4), n_places = n_forms * n_infos;
  int8_t *part_of = ARRAY(int8_t, n_places);
  uint8_t *sure = flags(n_places), *variant = flags(n_places), *costed = flags(n_forms);
  uint8_t *main_parts = flags(n_forms * FP_PARTS), *whole = flags(n_forms), *other = flags(n_infos);
  uint8_t *state = flags(n_groups + 1), *taken = flags(n_groups);
  int32_t *form = numbers(n_rows, 0, n_forms), *row = numbers(n_kinds, 0, n_rows);
  int32_t *kind = numbers(n, 0, n_kinds), *name = numbers(n, -1, n_names);
  int32_t *info = numbers(n_names + 1, 0, n_infos), *group = numbers(n, -1, n_groups);
  int32_t *cell = ARRAY(int32_t, n);
  fp_claim *claims = ARRAY(fp_claim, n_places);
  for (int32_t i = 0; i < n_places; i++) part_of[i] = (int8_t)(random_below(FP_PARTS + 1) - 1);
  const fp_parts_tables tables = {n_rows,  n_forms,    n_infos, form,  part_of, sure,
                                  variant, main_parts, costed,  whole, other};
  const fp_parts_kernels kernels = {kind,  row,     name,    info,     group,
                                    taken, n_kinds, n_names, n_groups, n};
  CHECK(fp_parts_find(&tables, &kernels, cell, claims, state) == FP_OK);
  for (int32_t i = 0; i < n; i++) {
    int32_t own = row[kind[i]], at = info[name[i] < 0 ? n_names : name[i]];
    int32_t place = form[own] * n_infos + at, part = cell[i] / FP_VARIANTS % FP_ALL_PARTS;
    int8_t named = part_of[place];
    CHECK(cell[i] / FP_VARIANTS / FP_ALL_PARTS == own);
    CHECK(cell[i] % FP_VARIANTS == variant[place]);
    if (group[i] >= 0 && taken[group[i]] && named < 0)
      CHECK(part == FP_BESIDE);
    else if (group[i] >= 0 && taken[group[i]])
      CHECK(part == FP_BESIDE || part == named || (named < 2 && part == 1 - named));
    else if (named < 0)
      CHECK(part == FP_BESIDE || (part == FP_WHOLE && costed[form[own]]));
    else
      CHECK(part == named || (named < 2 && part == 1 - named));
  }
  int32_t *const columns[] = {form, row, info, kind, name, group};
  const int32_t ends[] = {n_forms, n_rows, n_infos, n_kinds, n_names, n_groups};
  for (int i = 0; n && i < 6; i++) { /* one that is out of range */
    const int32_t before = columns[i][0];
    columns[i][0] = ends[i];
    CHECK(fp_parts_find(&tables, &kernels, cell, claims, state) == FP_E_INDEX);
    columns[i][0] = before;
  }
  part_of[n_places - 1] = FP_PARTS;
  CHECK(fp_parts_find(&tables, &kernels, cell, claims, state) == FP_E_INDEX);
  void *const arrays[] = {part_of, sure, variant, costed, main_parts, whole, other, state, taken,
                          form,    row,  kind,    name,   info,       group, cell,  claims};
  for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) free(arrays[i]);
}

int main(void) {
  kinds_are_numbered_in_order();
  for (int i = 0; i < 3000; i++) {
    calls_are_those_of_frames(random_below(MOST), random_below(MOST));
    frames_of_backward_calls_are_frames(random_below(MOST));
    the_next_kernel_is_on_the_same_thread(random_below(MOST));
    parts_are_those_of_tables(random_below(MOST), random_below(MOST));
  }
  return 0;
}
