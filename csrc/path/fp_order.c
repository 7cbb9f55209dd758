/* fp_order.c: see fp_order.h. A stable bottom-up merge sort that copies sorted runs. */
#include "path/fp_order.h"

#include <string.h>

static bool in_order(const int64_t *start, const int64_t *end, int32_t a, int32_t b) {
  return start[a] < start[b] || (start[a] == start[b] && end[a] >= end[b]);
}

bool fp_order_holds(const int64_t *start, const int64_t *end, int32_t n) {
  for (int32_t i = 1; i < n; i++)
    if (!in_order(start, end, i - 1, i)) return false;
  return true;
}

static void merge(const int64_t *start, const int64_t *end, const int32_t *left, int64_t n_left,
                  const int32_t *right, int64_t n_right, int32_t *out) {
  while (n_left && n_right) {
    if (in_order(start, end, *left, *right)) {
      *out++ = *left++;
      n_left--;
    } else {
      *out++ = *right++;
      n_right--;
    }
  }
  memcpy(out, left, (size_t)n_left * sizeof *out);
  memcpy(out + n_left, right, (size_t)n_right * sizeof *out);
}

void fp_order_sort(const int64_t *start, const int64_t *end, int32_t n, int32_t *order,
                   int32_t *scratch) {
  int32_t *from = order, *to = scratch;
  for (int32_t i = 0; i < n; i++) order[i] = i;
  for (int64_t width = 1; width < n; width *= 2) {
    for (int64_t at = 0; at < n; at += 2 * width) {
      int64_t middle = at + width < n ? at + width : n;
      int64_t stop = at + 2 * width < n ? at + 2 * width : n;
      if (middle == stop || in_order(start, end, from[middle - 1], from[middle]))
        memcpy(to + at, from + at, (size_t)(stop - at) * sizeof *to);
      else
        merge(start, end, from + at, middle - at, from + middle, stop - middle, to + at);
    }
    int32_t *swap = from;
    from = to;
    to = swap;
  }
  if (from != order) memcpy(order, from, (size_t)n * sizeof *order);
}
