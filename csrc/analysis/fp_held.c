#include "analysis/fp_held.h"

#include <string.h>

static int64_t later(int64_t a, int64_t b) { return a > b ? a : b; }
static int64_t earlier(int64_t a, int64_t b) { return a < b ? a : b; }

/* The moments of its own of the work: from low to before high; none if high <= low. */
typedef struct {
  int64_t low, high, until;
} moments;

static fp_status own_moments(const fp_held_work *work, int64_t i, moments *own) {
  if (i && work->start[i] < work->start[i - 1]) return FP_E_ORDER;
  own->low = later(own->until, work->start[i]);
  own->high = work->end[i];
  own->until = later(own->until, own->high);
  return FP_OK;
}

fp_status fp_held_sums(const fp_held_work *work, const int64_t *time, int64_t n_pieces,
                       int64_t *sums) {
  moments own = {.until = work->begin};
  int64_t p = 0;
  for (int64_t i = 0; i < n_pieces; i++) {
    if (i && time[i] < time[i - 1]) return FP_E_ORDER;
    sums[i] = 0;
  }
  for (int64_t i = 0; i < work->n; i++) {
    fp_status status = own_moments(work, i, &own);
    if (status != FP_OK) return status;
    for (int64_t at = own.low; at < own.high;) {
      while (p < n_pieces && time[p] <= at) p++;
      if (p == n_pieces) return FP_E_INDEX;
      const int64_t until = earlier(own.high, time[p]);
      sums[p] += until - at;
      at = until;
    }
  }
  return FP_OK;
}

/* The next integer to a number that is not negative, of two the even one; at most 2^62. */
static int64_t rounded(double value) {
  if (value >= (double)(INT64_C(1) << 62)) return INT64_C(1) << 62;
  const int64_t whole = (int64_t)value;
  const double rest = value - (double)whole;
  return whole + (rest > 0.5 || (rest == 0.5 && whole % 2));
}

/* A launch of work that begins in a piece, or of a call. */
typedef struct {
  int64_t piece, start, rest;
  int32_t row;
} launched;

/* The row of the API call, -1 for none. FP_E_INDEX. */
static fp_status call_of(const fp_held_launches *launches, int32_t row, int32_t *call) {
  if ((uint64_t)row >= (uint64_t)launches->n_kernels) return FP_E_INDEX;
  *call = launches->call[row];
  return *call < -1 || *call >= launches->n_calls ? FP_E_INDEX : FP_OK;
}

static fp_status add(const fp_held_launches *launches, const fp_held_pieces *pieces,
                     const launched *one, int64_t latency_ns, int64_t slow_ns, fp_held *held) {
  int32_t call;
  fp_status status = call_of(launches, one->row, &call);
  if (status != FP_OK) return status;
  const int64_t p = one->piece, launch = launches->time[one->row];
  if (launch == FP_HELD_NO_TIME) return FP_OK;
  if (launch >= held->launch[p]) {
    held->launch[p] = launch;
    held->thread[p] = call < 0 ? -1 : launches->thread[call];
  }
  const int64_t rest = rounded((double)one->rest * pieces->stretched[p]);
  const int64_t allowed = earlier(launch + latency_ns, one->start) + rest;
  if (allowed >= held->allowed[p]) {
    held->allowed[p] = allowed;
    held->rest[p] = rest;
  }
  if (call >= 0 && launches->end[call] > launch &&
      (uint64_t)launches->end[call] - (uint64_t)launch >= (uint64_t)slow_ns) {
    held->slow_launch[held->n_slow] = launch;
    held->slow_end[held->n_slow++] = launches->end[call];
  }
  return FP_OK;
}

/* Adds the arrivals of pieces before `piece`, from *next on. */
static fp_status add_arrivals(const fp_held_arrivals *arrivals, int64_t piece, int64_t *next,
                              const fp_held_launches *launches, const fp_held_pieces *pieces,
                              int64_t latency_ns, int64_t slow_ns, fp_held *held) {
  for (; *next < arrivals->n && arrivals->piece[*next] < piece; ++*next) {
    const int64_t i = *next;
    if (i && arrivals->piece[i] < arrivals->piece[i - 1]) return FP_E_ORDER;
    if (arrivals->piece[i] < 0) return FP_E_INDEX;
    const launched one = {arrivals->piece[i], arrivals->start[i], 0, arrivals->row[i]};
    fp_status status = add(launches, pieces, &one, latency_ns, slow_ns, held);
    if (status != FP_OK) return status;
  }
  return FP_OK;
}

fp_status fp_held_find(const fp_held_work *work, const fp_held_arrivals *arrivals,
                       const fp_held_launches *launches, const fp_held_pieces *pieces,
                       int64_t latency_ns, int64_t slow_ns, fp_held *held) {
  moments own = {.until = work->begin};
  int64_t p = 0, next = 0, done = 0, upto = pieces->n ? pieces->work[0] : 0;
  fp_status status;
  held->n_slow = 0;
  for (int64_t i = 0; i < pieces->n; i++) {
    held->launch[i] = held->allowed[i] = FP_HELD_NO_TIME;
    held->thread[i] = -1;
    held->rest[i] = 0;
  }
  for (int64_t i = 0; i < work->n; i++) {
    if ((status = own_moments(work, i, &own)) != FP_OK) return status;
    if (own.high <= own.low) continue;
    while (p < pieces->n && pieces->time[p] <= own.low)
      if (++p < pieces->n) upto += pieces->work[p];
    if (p >= pieces->n) return FP_E_INDEX;
    status = add_arrivals(arrivals, p, &next, launches, pieces, latency_ns, slow_ns, held);
    if (status != FP_OK) return status;
    const launched one = {p, work->start[i], upto - done, work->row[i]};
    if ((status = add(launches, pieces, &one, latency_ns, slow_ns, held)) != FP_OK) return status;
    done += own.high - own.low;
  }
  status = add_arrivals(arrivals, pieces->n, &next, launches, pieces, latency_ns, slow_ns, held);
  return status == FP_OK && next < arrivals->n ? FP_E_INDEX : status;
}

/* Adds `by` to the first time after `value`; *at is near it, as values nearly ascend. */
static void count(const int64_t *time, int64_t n, int64_t value, int64_t by, int64_t *at,
                  int64_t *waiting) {
  while (*at < n && time[*at] <= value) ++*at;
  while (*at && time[*at - 1] > value) --*at;
  waiting[*at] += by;
}

fp_status fp_held_waiting(const fp_held_work *work, const fp_held_arrivals *arrivals,
                          const fp_held_launches *launches, const int64_t *time, int64_t n,
                          int64_t *waiting) {
  moments own = {.until = work->begin};
  int64_t of_launch = 0, of_start = 0;
  memset(waiting, 0, (size_t)(n + 1) * sizeof *waiting);
  for (int64_t i = 0; i < work->n + arrivals->n; i++) {
    const bool is_work = i < work->n;
    const int32_t row = is_work ? work->row[i] : arrivals->row[i - work->n];
    if (is_work) {
      fp_status status = own_moments(work, i, &own);
      if (status != FP_OK) return status;
      if (own.high <= own.low) continue;
    }
    if ((uint64_t)row >= (uint64_t)launches->n_kernels) return FP_E_INDEX;
    if (launches->time[row] == FP_HELD_NO_TIME) continue;
    count(time, n, launches->time[row], 1, &of_launch, waiting);
    count(time, n, is_work ? work->start[i] : arrivals->start[i - work->n], -1, &of_start, waiting);
  }
  for (int64_t i = 1; i < n; i++) waiting[i] += waiting[i - 1];
  return FP_OK;
}
