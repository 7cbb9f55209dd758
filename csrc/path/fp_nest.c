#include "path/fp_nest.h"

#include <string.h>

static fp_status add_frame(fp_frames *frames, const int64_t *end, int32_t parent, int32_t range,
                           int32_t *frame) {
  if (frames->n == frames->capacity) return FP_MORE;
  int32_t first = range;
  if (parent >= 0 && end[frames->first[parent]] < end[range]) first = frames->first[parent];
  *frame = frames->n++;
  frames->parent[*frame] = parent;
  frames->range[*frame] = range;
  frames->first[*frame] = first;
  return FP_OK;
}

/* Replaces *frame by the frame of those ranges of its chain that are still open at t. If the ended
 * ranges are all on top, as for nested ranges, that frame exists; otherwise the open ranges above
 * an ended one get new frames. */
static fp_status still_open(fp_frames *frames, const int64_t *end, int64_t t, int32_t *frame) {
  int32_t top = *frame;
  while (top >= 0 && end[frames->range[top]] <= t) top = frames->parent[top];
  *frame = top;
  if (top < 0 || end[frames->first[top]] > t) return FP_OK;
  int32_t below = top, n_open = 0;
  for (; below >= 0 && end[frames->first[below]] <= t; below = frames->parent[below])
    n_open += end[frames->range[below]] > t;
  if (n_open > frames->capacity - frames->n) return FP_MORE;
  /* Parents precede children, so the slots are filled from the top down. */
  int32_t first = frames->n, place = first + n_open;
  for (int32_t old = top; old != below; old = frames->parent[old])
    if (end[frames->range[old]] > t) frames->range[--place] = frames->range[old];
  for (int32_t i = 0; i < n_open; i++) {
    fp_status status = add_frame(frames, end, below, frames->range[first + i], &below);
    if (status != FP_OK) return status;
  }
  *frame = below;
  return FP_OK;
}

fp_status fp_nest(fp_intervals ranges, fp_points points, int32_t n_threads, int32_t *top,
                  fp_frames *frames, fp_nest_place *place, int32_t *frame_of_range,
                  int32_t *frame_of_point) {
  int32_t range = place->range;
  for (int32_t point = place->point; point <= points.n; point++) {
    place->point = point;
    int64_t now = point < points.n ? points.start[point] : INT64_MAX;
    for (; range < ranges.n && ranges.start[range] <= now; range++) {
      place->range = range;
      int32_t thread = ranges.thread[range];
      if ((uint32_t)thread >= (uint32_t)n_threads) return FP_E_INDEX;
      if (range > 0 && ranges.start[range] < ranges.start[range - 1]) return FP_E_ORDER;
      fp_status status = still_open(frames, ranges.end, ranges.start[range], &top[thread]);
      if (status == FP_OK) status = add_frame(frames, ranges.end, top[thread], range, &top[thread]);
      if (status != FP_OK) return status;
      frame_of_range[range] = top[thread];
    }
    place->range = range;
    if (point == points.n) break;
    int32_t thread = points.thread[point];
    frame_of_point[point] = -1;
    if (thread >= n_threads) return FP_E_INDEX;
    if (point > 0 && now < points.start[point - 1]) return FP_E_ORDER;
    if (thread < 0) continue;
    fp_status status = still_open(frames, ranges.end, now, &top[thread]);
    if (status != FP_OK) return status;
    frame_of_point[point] = top[thread];
  }
  return FP_OK;
}

/* A stable bottom-up merge sort that copies sorted runs. */
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

/* The interval tree. The recursion depth is that of the tree, at most 32. */
typedef struct {
  fp_itree tree;
  int64_t t;
  int32_t *found;
  int32_t n_found;
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
    if (q->tree.max_end[middle] <= q->t) return;
    search(q, first, middle);
    if (q->tree.start[middle] > q->t) return;
    if (q->tree.end[middle] > q->t) q->found[q->n_found++] = middle;
    first = middle + 1;
  }
}

int32_t fp_itree_open_at(fp_itree tree, int64_t t, int32_t *found) {
  query q = {tree, t, found, 0};
  search(&q, 0, tree.n);
  return q.n_found;
}

/* The first instant after t at which other ranges are open than those found at t. */
static int64_t next_change(fp_itree tree, int64_t t, const int32_t *found, int32_t n_found) {
  int64_t change = INT64_MAX;
  int32_t first = 0, last = tree.n; /* first: the first range that starts after t */
  while (first < last) {
    int32_t middle = middle_of(first, last);
    if (tree.start[middle] > t)
      last = middle;
    else
      first = middle + 1;
  }
  if (first < tree.n) change = tree.start[first];
  for (int32_t k = 0; k < n_found; k++)
    if (tree.end[found[k]] < change) change = tree.end[found[k]];
  return change;
}

fp_status fp_itree_nodes(fp_itree tree, const int32_t *label, const int64_t *t, int32_t n,
                         fp_tree *nodes, int32_t *found, int32_t *node) {
  int64_t from = 0, until = 0; /* the node before holds for instants in [from, until) */
  for (int32_t i = 0; i < n; i++) {
    if (t[i] >= from && t[i] < until) {
      node[i] = node[i - 1];
      continue;
    }
    int32_t n_found = fp_itree_open_at(tree, t[i], found);
    from = t[i];
    until = next_change(tree, t[i], found, n_found);
    node[i] = -1;
    for (int32_t k = 0; k < n_found; k++) {
      fp_status status = fp_tree_below(nodes, node[i], label[found[k]], &node[i]);
      if (status != FP_OK) return status;
    }
  }
  return FP_OK;
}
