/* sweep.c: fp_sweep on arrays of exactly their size, against plain loops over every moment; input
 * out of order is found. Exact gaps: tests/property/test_sweep.py. */
#include "analysis/fp_sweep.h"
#include "check.h"

enum { MOST = 30, LAST = 40 };

static int compare(const void *left, const void *right) {
  int64_t a = *(const int64_t *)left, b = *(const int64_t *)right;
  return (a > b) - (a < b);
}

static int mask_at(const fp_sweep_work *work, int64_t time) {
  int mask = 0;
  for (int64_t i = 0; i < work->n; i++)
    if (work->start[i] <= time && time < work->end[i]) mask |= work->kind[i];
  return mask;
}

static void times_are_those_of_loops(const fp_sweep_work *work, int32_t n_times) {
  int64_t *time = ARRAY(int64_t, n_times), *found = ARRAY(int64_t, n_times * FP_SWEEP_MASKS);
  int64_t expected[FP_SWEEP_MASKS] = {0};
  for (int32_t i = 0; i < n_times; i++) time[i] = random_below(LAST);
  qsort(time, (size_t)n_times, sizeof *time, compare);
  CHECK(fp_sweep_until(work, time, n_times, found) == FP_OK);
  for (int32_t t = 0; t < n_times; t++) {
    for (int64_t now = time[t ? t - 1 : 0]; now < time[t]; now++) expected[mask_at(work, now)]++;
    CHECK(!memcmp(expected, found + t * FP_SWEEP_MASKS, sizeof expected));
  }
  if (n_times > 1 && time[0] < time[1]) {
    time[0] = LAST;
    CHECK(fp_sweep_until(work, time, n_times, found) == FP_E_ORDER);
  }
  free(time);
  free(found);
}

static void gaps_are_those_of_loops(const fp_sweep_work *work) {
  int64_t n = -1, idle = 0, last = 0;
  fp_sweep_gap *gaps = ARRAY(fp_sweep_gap, work->n);
  CHECK(fp_sweep_gaps(work, gaps, &n) == FP_OK);
  for (int64_t i = 0; i < n; i++) {
    for (int64_t now = gaps[i].start; now < gaps[i].end; now++) CHECK(!mask_at(work, now));
    CHECK(gaps[i].end == work->start[gaps[i].after] && gaps[i].before < gaps[i].after);
    idle += gaps[i].end - gaps[i].start;
  }
  for (int64_t i = 0; i < work->n; i++) {
    if (work->end[i] > last) last = work->end[i];
    if (work->start[i] > last) last = work->start[i];
  }
  for (int64_t now = work->n ? work->start[0] : 0; now < last; now++) idle -= !mask_at(work, now);
  CHECK(!idle);
  free(gaps);
}

static void each_moment_belongs_to_one(const fp_sweep_work *work) {
  int64_t *own = ARRAY(int64_t, work->n);
  CHECK(fp_sweep_own(work, own) == FP_OK);
  for (int64_t now = 0; now < 2 * LAST; now++) {
    int64_t owner = -1;
    for (int64_t i = 0; i < work->n; i++) {
      const int runs = work->start[i] <= now && now < work->end[i];
      if (runs && (owner < 0 || work->kind[i] < work->kind[owner])) owner = i;
    }
    if (owner >= 0) own[owner]--;
  }
  for (int64_t i = 0; i < work->n; i++) CHECK(!own[i]);
  free(own);
}

/* The time without work from `first` to the start of the last work, in a window. */
static int64_t idle_in(const fp_sweep_work *work, int64_t first, int64_t start, int64_t end) {
  int64_t idle = 0, last = work->n ? work->start[work->n - 1] : 0;
  for (int64_t now = start > first ? start : first; now < end && now < last; now++)
    idle += !mask_at(work, now);
  return idle;
}

static void parts_are_within_windows(const fp_sweep_work *work, int32_t n_windows) {
  int64_t n = -1, again = -1, short_ns = random_below(4), first = random_below(LAST);
  int64_t *bounds = ARRAY(int64_t, 2 * n_windows), *sum = ARRAY(int64_t, n_windows);
  int64_t *begin = ARRAY(int64_t, n_windows), *end = ARRAY(int64_t, n_windows);
  for (int32_t i = 0; i < 2 * n_windows; i++) bounds[i] = random_below(LAST);
  qsort(bounds, (size_t)n_windows * 2, sizeof *bounds, compare);
  for (int32_t w = 0; w < n_windows; w++) {
    begin[w] = bounds[2 * w];
    end[w] = bounds[2 * w + 1];
    sum[w] = 0;
  }
  fp_sweep_parts parts = {0};
  CHECK(fp_sweep_own_parts(work, begin, end, n_windows, &parts, 0, &n) == FP_OK);
  parts = (fp_sweep_parts){ARRAY(int32_t, n), ARRAY(int32_t, n), ARRAY(int64_t, n)};
  CHECK(fp_sweep_own_parts(work, begin, end, n_windows, &parts, n, &again) == FP_OK && again == n);
  for (int64_t i = 0; i < n; i++) {
    int32_t w = parts.window[i], of = parts.interval[i];
    CHECK(begin[w] <= work->end[of] || begin[w] <= work->start[of]);
    CHECK(0 <= parts.ns[i] && parts.ns[i] <= end[w] - begin[w]);
    sum[w] += parts.ns[i];
  }
  for (int32_t w = 0; w < n_windows; w++) {
    for (int64_t now = begin[w]; now < end[w]; now++) sum[w] -= mask_at(work, now) != 0;
    CHECK(!sum[w]);
  }
  CHECK(fp_sweep_idle(work, first, begin, end, n_windows, short_ns, sum, NULL, 0, &n) == FP_OK);
  fp_sweep_idle_part *idle = ARRAY(fp_sweep_idle_part, n);
  for (int32_t w = 0; w < n_windows; w++) sum[w] = 0;
  CHECK(fp_sweep_idle(work, first, begin, end, n_windows, short_ns, sum, idle, n, &again) == FP_OK);
  CHECK(again == n);
  for (int64_t i = 0; i < n; i++) {
    CHECK(idle[i].end - idle[i].start >= short_ns);
    sum[idle[i].window] += idle[i].end - idle[i].start;
  }
  /* Before the first work, all time from `first` on is idle; after it, time from its start. */
  int64_t from = work->n && work->start[0] < first ? work->start[0] : first;
  for (int32_t w = 0; w < n_windows; w++) CHECK(sum[w] == idle_in(work, from, begin[w], end[w]));
  free(idle);
  free(parts.interval);
  free(parts.window);
  free(parts.ns);
  free(begin);
  free(end);
  free(sum);
  free(bounds);
}

static void bad_input_is_found(const fp_sweep_work *work, int64_t *start, uint8_t *kind) {
  int64_t time = 0, by_mask[FP_SWEEP_MASKS], n;
  if (!work->n) return;
  kind[work->n - 1] = FP_SWEEP_MASKS;
  CHECK(fp_sweep_until(work, &time, 1, by_mask) == FP_E_INDEX);
  CHECK(fp_sweep_gaps(work, NULL, &n) == FP_E_INDEX);
  kind[work->n - 1] = 1;
  if (work->n < 2) return;
  start[0] = LAST;
  CHECK(fp_sweep_until(work, &time, 1, by_mask) == FP_E_ORDER);
  CHECK(fp_sweep_gaps(work, NULL, &n) == FP_E_ORDER);
  const int64_t bounds[] = {0, LAST}, reversed[] = {LAST, 0};
  const fp_sweep_parts none = {0};
  CHECK(fp_sweep_own_parts(work, bounds, bounds, 2, &none, 0, &n) == FP_E_ORDER);
  CHECK(fp_sweep_own_parts(work, reversed, bounds, 2, &none, 0, &n) == FP_E_ORDER);
  CHECK(fp_sweep_idle(work, 0, bounds, bounds, 2, 1, NULL, NULL, 0, &n) == FP_E_ORDER);
}

int main(void) {
  for (int round = rounds(5000); round > 0; round--) {
    int32_t n = random_below(MOST);
    int64_t *start = ARRAY(int64_t, n), *end = ARRAY(int64_t, n);
    uint8_t *kind = ARRAY(uint8_t, n);
    for (int32_t i = 0; i < n; i++) start[i] = random_below(LAST - 1);
    qsort(start, (size_t)n, sizeof *start, compare);
    for (int32_t i = 0; i < n; i++) {
      end[i] = start[i] + random_below(8) - 1;
      kind[i] = (uint8_t)(1 << random_below(FP_SWEEP_KINDS));
    }
    const fp_sweep_work work = {start, end, kind, n};
    times_are_those_of_loops(&work, random_below(10));
    gaps_are_those_of_loops(&work);
    each_moment_belongs_to_one(&work);
    parts_are_within_windows(&work, random_below(5));
    bad_input_is_found(&work, start, kind);
    free(start);
    free(end);
    free(kind);
  }
  return 0;
}
