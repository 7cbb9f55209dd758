/* fp_nest.c: see fp_nest.h. */
#include "fp_nest.h"

/* The innermost open range of a thread at time t. */
static int32_t open_at(const fp_intervals *ranges, const int32_t *parent, int32_t range,
                       int64_t t) {
  while (range >= 0 && ranges->end[range] < t) range = parent[range];
  return range;
}

static fp_status open_range(const fp_intervals *ranges, int32_t i, int32_t *top, uint8_t *crossing,
                            int32_t *parent) {
  int32_t thread = ranges->thread[i];
  int64_t start = ranges->start[i], end = ranges->end[i];
  if (i > 0 && start < ranges->start[i - 1]) return FP_E_ORDER;
  int32_t outer = open_at(ranges, parent, top[thread], start);
  while (outer >= 0 && ranges->end[outer] < end) {
    /* It ends inside this range: they cross, unless they only touch. */
    if (ranges->end[outer] > start) crossing[thread] = 1;
    outer = parent[outer];
  }
  parent[i] = outer;
  top[thread] = i;
  return FP_OK;
}

fp_status fp_nest(fp_intervals ranges, fp_intervals points, int32_t n_threads, int32_t *top,
                  uint8_t *crossing, int32_t *parent, int32_t *innermost) {
  for (int32_t i = 0; i < n_threads; i++) {
    top[i] = -1;
    crossing[i] = 0;
  }
  int32_t range = 0;
  for (int32_t point = 0; point <= points.n; point++) {
    int64_t now = point < points.n ? points.start[point] : INT64_MAX;
    for (; range < ranges.n && ranges.start[range] <= now; range++) {
      if ((uint32_t)ranges.thread[range] >= (uint32_t)n_threads) return FP_E_INDEX;
      fp_status status = open_range(&ranges, range, top, crossing, parent);
      if (status != FP_OK) return status;
    }
    if (point == points.n) break;
    int32_t thread = points.thread[point];
    if ((uint32_t)thread >= (uint32_t)n_threads) return FP_E_INDEX;
    if (point > 0 && now < points.start[point - 1]) return FP_E_ORDER;
    top[thread] = open_at(&ranges, parent, top[thread], now);
    innermost[point] = open_at(&ranges, parent, top[thread], points.end[point]);
  }
  for (int32_t i = 0; i < n_threads; i++)
    if (crossing[i]) return FP_CROSSING;
  return FP_OK;
}
