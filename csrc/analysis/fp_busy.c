/* fp_busy.c: see fp_busy.h. */
#include "analysis/fp_busy.h"

#include <stddef.h>

static int64_t sum(int64_t left, int64_t right) {
  int64_t out;
  return __builtin_add_overflow(left, right, &out) ? INT64_MAX : out;
}

static int64_t length(int64_t begin, int64_t end) {
  int64_t out;
  return __builtin_sub_overflow(end, begin, &out) ? INT64_MAX : out;
}

static void add(const fp_busy_lines *lines, int32_t g, int64_t start, int64_t end) {
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
    add(lines, g, start, duration > 0 ? sum(start, duration) : start);
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
