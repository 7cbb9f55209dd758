/* nest.c: fp_order, fp_nest and fp_itree against searches of all ranges. */
#include "check.h"
#include "path/fp_nest.h"

enum { N_THREADS = 3 };

typedef struct {
  int32_t n;
  int64_t *start, *end;
  int32_t *thread;
} rows;

static rows random_rows(int32_t n, int32_t span) {
  rows out = {n, ARRAY(int64_t, n), ARRAY(int64_t, n), ARRAY(int32_t, n)};
  for (int32_t i = 0; i < n; i++) {
    out.start[i] = random_below(20) ? random_below(span) : INT64_MIN;
    out.end[i] = random_below(20) ? out.start[i] + random_below(span) : INT64_MAX;
    out.thread[i] = random_below(N_THREADS);
  }
  return out;
}

static void free_rows(rows some) {
  free(some.start);
  free(some.end);
  free(some.thread);
}

static int comes_before(const rows *some, int32_t a, int32_t b) {
  if (some->start[a] != some->start[b]) return some->start[a] < some->start[b];
  if (some->end[a] != some->end[b]) return some->end[a] > some->end[b];
  return a < b;
}

/* Sorts rows by fp_order_sort, and checks it. */
static rows in_order(rows some) {
  int32_t n = some.n, *order = ARRAY(int32_t, n), *scratch = ARRAY(int32_t, n);
  char *seen = ARRAY(char, n);
  rows out = random_rows(n, 1);
  memset(seen, 0, (size_t)n);
  fp_order_sort(some.start, some.end, n, order, scratch);
  for (int32_t i = 0; i < n; i++) {
    CHECK(order[i] >= 0 && order[i] < n && !seen[order[i]]);
    CHECK(i == 0 || comes_before(&some, order[i - 1], order[i]));
    seen[order[i]] = 1;
    out.start[i] = some.start[order[i]];
    out.end[i] = some.end[order[i]];
    out.thread[i] = some.thread[order[i]];
  }
  CHECK(fp_order_holds(out.start, out.end, n));
  free_rows(some);
  free(order);
  free(scratch);
  free(seen);
  return out;
}

static fp_intervals intervals(rows some) {
  return (fp_intervals){some.start, some.end, some.thread, some.n};
}

static fp_points points_of(rows some) { return (fp_points){some.start, some.thread, some.n}; }

typedef struct {
  fp_frames frames;
  int32_t *of_range, *of_point;
} swept;

static void *longer(void *array, int32_t n, int32_t more, size_t size) {
  char *out = array_of(more, (int64_t)size);
  if (n) memcpy(out, array, (size_t)n * size);
  free(array);
  return out;
}

/* Reallocates for exactly this number of frames, keeping the existing ones. */
static void make_room(fp_frames *frames, int32_t capacity) {
  frames->parent = longer(frames->parent, frames->n, capacity, sizeof(int32_t));
  frames->range = longer(frames->range, frames->n, capacity, sizeof(int32_t));
  frames->first = longer(frames->first, frames->n, capacity, sizeof(int32_t));
  frames->capacity = capacity;
}

static void free_swept(swept some) {
  free(some.frames.parent);
  free(some.frames.range);
  free(some.frames.first);
  free(some.of_range);
  free(some.of_point);
}

static void nothing_is_open(int32_t *top) {
  for (int32_t i = 0; i < N_THREADS; i++) top[i] = -1;
}

/* Sweeps with minimal capacity, growing slightly after each FP_MORE. */
static swept sweep(rows ranges, rows points) {
  swept out = {{0}, ARRAY(int32_t, ranges.n), ARRAY(int32_t, points.n)};
  int32_t top[N_THREADS], capacity = ranges.n;
  fp_nest_place place = {0, 0};
  fp_status status;
  nothing_is_open(top);
  do {
    make_room(&out.frames, capacity);
    capacity += 1 + random_below(3);
    status = fp_nest(intervals(ranges), points_of(points), N_THREADS, top, &out.frames, &place,
                     out.of_range, out.of_point);
  } while (status == FP_MORE);
  CHECK(status == FP_OK);
  CHECK(out.frames.n >= ranges.n && out.frames.n <= out.frames.capacity);
  return out;
}

/* Whether the chain of `frame` equals the ranges of [0 .. n) that are open at t. */
static void check_chain(const swept *some, int32_t frame, rows ranges, int32_t n, int64_t t,
                        int32_t thread) {
  for (int32_t i = n - 1; i >= 0; i--) {
    if (ranges.thread[i] != thread || ranges.start[i] > t || ranges.end[i] <= t) continue;
    CHECK(frame >= 0 && frame < some->frames.n && some->frames.range[frame] == i);
    CHECK(some->frames.parent[frame] < frame);
    frame = some->frames.parent[frame];
  }
  CHECK(frame == -1);
}

static void chains_are_what_was_open(int32_t n, int32_t span) {
  rows ranges = in_order(random_rows(n, span)), points = in_order(random_rows(n, span));
  swept some = sweep(ranges, points);
  for (int32_t i = 0; i < n; i++) {
    int32_t frame = some.of_range[i];
    CHECK(some.frames.range[frame] == i);
    check_chain(&some, some.frames.parent[frame], ranges, i, ranges.start[i], ranges.thread[i]);
    check_chain(&some, some.of_point[i], ranges, n, points.start[i], points.thread[i]);
  }
  free_swept(some);
  free_rows(ranges);
  free_rows(points);
}

static rows stairs(int32_t n, int64_t step_of_end) {
  rows out = random_rows(n, 1);
  for (int32_t i = 0; i < n; i++) {
    out.start[i] = i;
    out.end[i] = 10LL * n + i * step_of_end;
    out.thread[i] = 0;
  }
  return out;
}

static void deep_chains_are_swept(void) {
  enum { DEPTH = 100000 };
  rows ranges = stairs(DEPTH, -1), points = stairs(1, 0);
  points.start[0] = points.end[0] = DEPTH;
  swept some = sweep(ranges, points);
  CHECK(some.frames.n == DEPTH && some.of_point[0] == DEPTH - 1);
  free_swept(some);
  free_rows(ranges);
  free_rows(points);
}

static fp_status outcome(fp_intervals ranges, fp_points points, int32_t capacity) {
  fp_frames frames = {0};
  fp_nest_place place = {0, 0};
  int32_t top[N_THREADS], of_range[2], of_point[2];
  nothing_is_open(top);
  make_room(&frames, capacity);
  fp_status status = fp_nest(ranges, points, N_THREADS, top, &frames, &place, of_range, of_point);
  swept used = {frames, NULL, NULL};
  free_swept(used);
  return status;
}

static void wrong_input_is_said_to_be_so(void) {
  rows ranges = stairs(2, -1), none = stairs(0, 0);
  fp_intervals backwards = intervals(ranges);
  fp_points no_points = points_of(none), points_backwards = points_of(ranges);
  int64_t start[] = {5, 4};
  backwards.start = points_backwards.start = start;
  CHECK(outcome(backwards, no_points, 2) == FP_E_ORDER);
  CHECK(outcome(intervals(none), points_backwards, 2) == FP_E_ORDER);
  ranges.thread[1] = N_THREADS;
  CHECK(outcome(intervals(ranges), no_points, 2) == FP_E_INDEX);
  CHECK(outcome(intervals(none), points_of(ranges), 2) == FP_E_INDEX);
  ranges.thread[1] = 0;
  CHECK(outcome(intervals(ranges), no_points, 1) == FP_MORE);
  free_rows(ranges);
  free_rows(none);
}

/* Checks the result of the tree at t, in an array without room for more. */
static void check_open(fp_itree tree, rows ranges, int64_t t) {
  int32_t *expected = ARRAY(int32_t, ranges.n), n = 0;
  for (int32_t i = 0; i < ranges.n; i++)
    if (ranges.start[i] <= t && t < ranges.end[i]) expected[n++] = i;
  int32_t *found = ARRAY(int32_t, n);
  CHECK(fp_itree_open_at(tree, t, found) == n);
  CHECK(memcmp(found, expected, (size_t)n * sizeof *found) == 0);
  free(found);
  free(expected);
}

static void check_node(const int32_t *above, const int32_t *label_of_node, int32_t node,
                       fp_itree tree, const int32_t *label, int64_t t) {
  for (int32_t i = tree.n - 1; i >= 0; i--) {
    if (tree.start[i] > t || tree.end[i] <= t) continue;
    CHECK(node >= 0 && label_of_node[node] == label[i] && above[node] < node);
    node = above[node];
  }
  CHECK(node == -1);
}

static void the_tree_finds_what_is_open(int32_t n, int32_t span) {
  rows ranges = in_order(random_rows(n, span));
  int64_t *max_end = ARRAY(int64_t, n), *t = ARRAY(int64_t, n);
  int32_t *label = ARRAY(int32_t, n), *found = ARRAY(int32_t, n), *node = ARRAY(int32_t, n);
  fp_tree *nodes = fp_tree_new();
  fp_itree_build(ranges.end, n, max_end);
  fp_itree tree = {ranges.start, ranges.end, max_end, n};
  for (int32_t i = 0; i < n; i++) {
    label[i] = random_below(3) ? random_below(3) : INT32_MAX;
    t[i] = random_below(9) ? random_below(2 * span) : INT64_MAX;
    check_open(tree, ranges, t[i]);
  }
  CHECK(fp_itree_nodes(tree, label, t, n, nodes, found, node) == FP_OK);
  int32_t n_nodes = fp_tree_count(nodes);
  int32_t *above = ARRAY(int32_t, n_nodes), *label_of_node = ARRAY(int32_t, n_nodes);
  fp_tree_read(nodes, above, label_of_node);
  for (int32_t i = 0; i < n; i++) {
    CHECK(node[i] < n_nodes);
    check_node(above, label_of_node, node[i], tree, label, t[i]);
  }
  fp_tree_free(nodes);
  free(above);
  free(label_of_node);
  free(max_end);
  free(t);
  free(label);
  free(found);
  free(node);
  free_rows(ranges);
}

int main(void) {
  for (int i = 0; i < 500; i++) {
    int32_t n = random_below(30), span = 1 + random_below(60);
    chains_are_what_was_open(n, span);
    the_tree_finds_what_is_open(n, span);
  }
  chains_are_what_was_open(400, 4000);
  the_tree_finds_what_is_open(1000, 4000);
  deep_chains_are_swept();
  wrong_input_is_said_to_be_so();
  return 0;
}
