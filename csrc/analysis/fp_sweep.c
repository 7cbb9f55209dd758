#include "analysis/fp_sweep.h"

#include <string.h>

/* The state at the time `now`. */
typedef struct {
  int64_t now;
  int64_t until[FP_SWEEP_KINDS]; /* the latest end of each kind so far */
  uint64_t sum[FP_SWEEP_MASKS];
} sweep;

static fp_status check(const fp_sweep_work *work) {
  bool is_wrong = false, is_late = false; /* without branches, several times as fast */
  for (int64_t i = 0; i < work->n; i++) is_wrong |= work->kind[i] >= FP_SWEEP_MASKS;
  for (int64_t i = 1; i < work->n; i++) is_late |= work->start[i] < work->start[i - 1];
  return is_wrong ? FP_E_INDEX : is_late ? FP_E_ORDER : FP_OK;
}

/* Kinds end one after another between two starts. */
static void advance(sweep *at, int64_t to) {
  while (at->now < to) {
    int64_t next = to;
    int mask = 0;
    for (int k = 0; k < FP_SWEEP_KINDS; k++) {
      if (at->until[k] <= at->now) continue;
      mask |= 1 << k;
      if (at->until[k] < next) next = at->until[k];
    }
    at->sum[mask] += (uint64_t)next - (uint64_t)at->now;
    at->now = next;
  }
}

fp_status fp_sweep_until(const fp_sweep_work *work, const int64_t *time, int64_t n_times,
                         int64_t *by_mask) {
  fp_status status = check(work);
  if (status != FP_OK || !n_times) return status;
  sweep at = {.now = time[0], .until = {INT64_MIN, INT64_MIN, INT64_MIN}};
  int64_t i = 0;
  for (int64_t t = 0; t < n_times; t++) {
    if (t && time[t] < time[t - 1]) return FP_E_ORDER;
    for (; i < work->n && work->start[i] < time[t]; i++) {
      advance(&at, work->start[i]);
      for (int k = 0; k < FP_SWEEP_KINDS; k++)
        if (work->kind[i] >> k & 1 && work->end[i] > at.until[k]) at.until[k] = work->end[i];
    }
    advance(&at, time[t]);
    memcpy(by_mask + t * FP_SWEEP_MASKS, at.sum, sizeof at.sum);
  }
  return FP_OK;
}

static int64_t end_of(const fp_sweep_work *work, int64_t i) {
  return work->end[i] > work->start[i] ? work->end[i] : work->start[i];
}

fp_status fp_sweep_gaps(const fp_sweep_work *work, fp_sweep_gap *gaps, int64_t *n_gaps) {
  *n_gaps = 0;
  if (work->n > INT32_MAX) return FP_E_TOO_MANY;
  fp_status status = check(work);
  int64_t last = 0;
  for (int64_t i = 1; status == FP_OK && i < work->n; i++) {
    int64_t until = end_of(work, last);
    if (work->start[i] > until)
      gaps[(*n_gaps)++] = (fp_sweep_gap){until, work->start[i], (int32_t)last, (int32_t)i};
    if (end_of(work, i) >= until) last = i;
  }
  return status;
}

static int lowest_kind(uint8_t kind) {
  int k = 0;
  while (k < FP_SWEEP_KINDS - 1 && !(kind >> k & 1)) k++;
  return k;
}

/* The union of the work of kinds below a limit, up to a time that only grows. */
typedef struct {
  const fp_sweep_work *work;
  int limit;
  int64_t next, until;
  uint64_t sum;
} cover;

static uint64_t covered(cover *of, int64_t time) {
  const fp_sweep_work *work = of->work;
  for (; of->next < work->n && work->start[of->next] < time; of->next++) {
    if (lowest_kind(work->kind[of->next]) >= of->limit) continue;
    int64_t begin = work->start[of->next], end = work->end[of->next];
    if (begin < of->until) begin = of->until;
    if (end <= begin) continue;
    of->sum += (uint64_t)end - (uint64_t)begin;
    of->until = end;
  }
  return of->until > time ? of->sum - ((uint64_t)of->until - (uint64_t)time) : of->sum;
}

static fp_status check_with_windows(const fp_sweep_work *work, const int64_t *start,
                                    const int64_t *end, int64_t n) {
  if (work->n > INT32_MAX) return FP_E_TOO_MANY;
  fp_status status = check(work);
  if (status == FP_OK && n > INT32_MAX) return FP_E_TOO_MANY;
  for (int64_t w = 1; status == FP_OK && w < n; w++)
    if (start[w] < start[w - 1] || end[w] < end[w - 1]) return FP_E_ORDER;
  return status;
}

fp_status fp_sweep_idle(const fp_sweep_work *work, int64_t first, const int64_t *window_start,
                        const int64_t *window_end, int64_t n_windows, int64_t short_ns,
                        int64_t *short_sum, fp_sweep_idle_part *parts, int64_t room,
                        int64_t *n_parts) {
  *n_parts = 0;
  fp_status status = check_with_windows(work, window_start, window_end, n_windows);
  if (status != FP_OK) return status;
  int64_t last = 0, next = 0;
  for (int64_t i = 0; i < work->n; i++) {
    int64_t from = i ? end_of(work, last) : first, to = work->start[i];
    while (from < to && next < n_windows && window_end[next] <= from) next++;
    for (int64_t w = next; from < to && w < n_windows && window_start[w] < to; w++) {
      int64_t start = from > window_start[w] ? from : window_start[w];
      int64_t end = to < window_end[w] ? to : window_end[w];
      uint64_t length = (uint64_t)end - (uint64_t)start;
      if (end < start) continue;
      if (length < (uint64_t)short_ns) {
        short_sum[w] += (int64_t)length;
        continue;
      }
      if (*n_parts < room)
        parts[*n_parts] = (fp_sweep_idle_part){start, end, (int32_t)last, (int32_t)i, (int32_t)w};
      ++*n_parts;
    }
    if (end_of(work, i) >= end_of(work, last)) last = i;
  }
  return FP_OK;
}

/* The end of the work of each kind so far, and the union of the work of the kinds below it. */
typedef struct {
  int64_t until[FP_SWEEP_KINDS];
  cover lower[FP_SWEEP_KINDS];
} owners;

static owners no_owners(const fp_sweep_work *work) {
  owners of;
  for (int k = 0; k < FP_SWEEP_KINDS; k++) {
    of.until[k] = INT64_MIN;
    of.lower[k] = (cover){work, k, 0, INT64_MIN, 0};
  }
  return of;
}

/* The part of [begin, end) without work of lower kinds. Times of one kind only grow. */
static int64_t own_between(owners *of, int kind, int64_t begin, int64_t end) {
  if (end <= begin) return 0;
  if (kind == 0) return (int64_t)((uint64_t)end - (uint64_t)begin); /* the lowest */
  uint64_t before = covered(&of->lower[kind], begin);
  uint64_t taken = covered(&of->lower[kind], end) - before;
  return (int64_t)((uint64_t)end - (uint64_t)begin - taken);
}

fp_status fp_sweep_own(const fp_sweep_work *work, int64_t *own) {
  fp_status status = check(work);
  if (status != FP_OK) return status;
  owners of = no_owners(work);
  for (int64_t i = 0; i < work->n; i++) {
    int k = lowest_kind(work->kind[i]);
    int64_t begin = work->start[i] > of.until[k] ? work->start[i] : of.until[k];
    own[i] = own_between(&of, k, begin, work->end[i]);
    if (work->end[i] > of.until[k]) of.until[k] = work->end[i];
  }
  return FP_OK;
}

fp_status fp_sweep_own_parts(const fp_sweep_work *work, const int64_t *window_start,
                             const int64_t *window_end, int64_t n_windows,
                             const fp_sweep_parts *parts, int64_t room, int64_t *n_parts) {
  int64_t first = 0, n = 0;
  *n_parts = 0;
  fp_status status = check_with_windows(work, window_start, window_end, n_windows);
  if (status != FP_OK) return status;
  owners of = no_owners(work);
  for (int64_t i = 0; i < work->n; i++) {
    int k = lowest_kind(work->kind[i]);
    int64_t start = work->start[i], end = end_of(work, i);
    int64_t begin = start > of.until[k] ? start : of.until[k];
    while (first < n_windows && window_end[first] <= start) first++;
    for (int64_t w = first; w < n_windows; w++, n++) {
      if (window_start[w] > start && window_start[w] >= end) break;
      if (n >= room) continue;
      int64_t from = begin > window_start[w] ? begin : window_start[w];
      parts->interval[n] = (int32_t)i;
      parts->window[n] = (int32_t)w;
      parts->ns[n] = own_between(&of, k, from, end < window_end[w] ? end : window_end[w]);
    }
    if (end > of.until[k]) of.until[k] = end;
  }
  *n_parts = n;
  return FP_OK;
}

static int64_t sum(int64_t left, int64_t right) {
  int64_t out;
  return __builtin_add_overflow(left, right, &out) ? INT64_MAX : out;
}

static int64_t length(int64_t begin, int64_t end) {
  int64_t out;
  return __builtin_sub_overflow(end, begin, &out) ? INT64_MAX : out;
}

static void add_work(const fp_busy_lines *lines, int32_t g, int64_t start, int64_t end) {
  if (lines->begin[g] > lines->end[g]) lines->begin[g] = lines->end[g] = start;
  if (end <= lines->end[g]) return;
  int64_t from = start > lines->end[g] ? start : lines->end[g];
  lines->busy[g] = sum(lines->busy[g], length(from, end));
  lines->end[g] = end;
}

fp_status fp_busy(const fp_busy_work *work, const fp_busy_lines *lines) {
  for (int32_t g = 0; g < work->n_groups; g++) {
    lines->begin[g] = INT64_MAX;
    lines->end[g] = INT64_MIN;
    lines->busy[g] = 0;
  }
  for (int64_t i = 0; i < work->n; i++) {
    if (i && work->start[i] < work->start[i - 1]) return FP_E_ORDER;
    if ((uint32_t)work->id[i] >= (uint32_t)work->n_ids) return FP_E_INDEX;
    int32_t g = work->group[work->id[i]];
    if (g >= work->n_groups) return FP_E_INDEX;
    if (g < 0 || (work->mask && !work->mask[i])) continue;
    int64_t start = work->start[i], duration = work->duration[i];
    add_work(lines, g, start, duration > 0 ? sum(start, duration) : start);
  }
  return FP_OK;
}

fp_status fp_busy_overlaps(const fp_busy_work *work, int64_t *end, int64_t *count,
                           int64_t *longest) {
  for (int32_t id = 0; id < work->n_ids; id++) end[id] = INT64_MIN;
  *count = *longest = 0;
  for (int64_t i = 0; i < work->n; i++) {
    int32_t id = work->id[i];
    if ((uint32_t)id >= (uint32_t)work->n_ids) return FP_E_INDEX;
    int64_t start = work->start[i], duration = work->duration[i];
    if (end[id] > start) {
      int64_t overlap = length(start, end[id]);
      (*count)++;
      if (overlap > *longest) *longest = overlap;
    }
    end[id] = duration > 0 ? sum(start, duration) : start;
  }
  return FP_OK;
}
