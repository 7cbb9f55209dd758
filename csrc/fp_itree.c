/* fp_itree.c: see fp_itree.h. Recursion is as deep as the tree: at most 32. */
#include "fp_itree.h"

typedef struct {
  const int64_t *start, *end, *max_end;
  int64_t a, b;
  int32_t *found;
  int32_t limit, n_found;
} query;

static int32_t middle_of(int32_t first, int32_t last) { return first + (last - first) / 2; }

static int64_t build(const int64_t *end, int32_t first, int32_t last, int64_t *max_end) {
  if (first >= last) return INT64_MIN;
  int32_t middle = middle_of(first, last);
  int64_t left = build(end, first, middle, max_end);
  int64_t right = build(end, middle + 1, last, max_end);
  int64_t most = left > right ? left : right;
  max_end[middle] = most > end[middle] ? most : end[middle];
  return max_end[middle];
}

void fp_itree_build(const int64_t *end, int32_t n, int64_t *max_end) { build(end, 0, n, max_end); }

static void search(query *q, int32_t first, int32_t last) {
  while (first < last) {
    int32_t middle = middle_of(first, last);
    if (q->max_end[middle] < q->b) return;
    search(q, first, middle);
    if (q->start[middle] > q->a) return;
    if (q->end[middle] >= q->b) {
      if (q->n_found < q->limit) q->found[q->n_found] = middle;
      q->n_found++;
    }
    first = middle + 1;
  }
}

int32_t fp_itree_enclosing(const int64_t *start, const int64_t *end, const int64_t *max_end,
                           int32_t n, int64_t a, int64_t b, int32_t *found, int32_t limit) {
  query q = {start, end, max_end, a, b, found, limit, 0};
  search(&q, 0, n);
  return q.n_found;
}

static fp_status frame_of(const int32_t *found, int32_t n_found, const int32_t *name_of_range,
                          fp_keys *frames, int32_t *frame) {
  *frame = -1;
  for (int32_t i = 0; i < n_found; i++) {
    int64_t key = (int64_t)(*frame + 1) << 32 | (uint32_t)name_of_range[found[i]];
    fp_status status = fp_keys_intern(frames, key, frame);
    if (status != FP_OK) return status;
  }
  return FP_OK;
}

fp_status fp_itree_frames(fp_intervals ranges, const int64_t *max_end,
                          const int32_t *name_of_range, fp_intervals points, fp_keys *frames,
                          int32_t *found, int32_t *frame_of_range, int32_t *frame_of_point) {
  fp_status status = FP_OK;
  for (int32_t i = 0; i < ranges.n && status == FP_OK; i++) {
    /* Of equal ranges the earlier is the outer: whatever comes after i does not enclose it. */
    int32_t n = fp_itree_enclosing(ranges.start, ranges.end, max_end, ranges.n, ranges.start[i],
                                   ranges.end[i], found, ranges.n);
    while (n > 0 && found[n - 1] > i) n--;
    status = frame_of(found, n, name_of_range, frames, &frame_of_range[i]);
  }
  for (int32_t i = 0; i < points.n && status == FP_OK; i++) {
    int32_t n = fp_itree_enclosing(ranges.start, ranges.end, max_end, ranges.n, points.start[i],
                                   points.end[i], found, ranges.n);
    status = frame_of(found, n, name_of_range, frames, &frame_of_point[i]);
  }
  return status;
}
