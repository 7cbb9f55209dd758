/* replay.c: fp_replay_build and fp_replay on arrays of exactly their size. Without changes each
 * piece of work starts when it did; a path adds up; slack is what a delay may take; bad input is
 * found. Predictions: tests/unit/analysis/replay/test_report.py. */
#include "check.h"
#include "replay/fp_replay_build.h"

enum { MOST = 40, LAST = 200000, THREADS = 3, LANES = 4, NAMES = 3, STEPS = 2 };

typedef struct {
  fp_replay_trace of;
  fp_replay_nodes to;
  int64_t *times[4];
  int32_t *ids[9];
  uint8_t *kind;
} input;

static int compare(const void *left, const void *right) {
  int64_t a = *(const int64_t *)left, b = *(const int64_t *)right;
  return (a > b) - (a < b);
}

static int64_t *sorted_times(int32_t n, int64_t last) {
  int64_t *times = ARRAY(int64_t, n);
  for (int32_t i = 0; i < n; i++) times[i] = random_below((int32_t)last);
  qsort(times, (size_t)n, sizeof *times, compare);
  return times;
}

static int32_t *numbers(int32_t n, int32_t first, int32_t end) {
  int32_t *values = ARRAY(int32_t, n);
  for (int32_t i = 0; i < n; i++) values[i] = first + random_below(end - first);
  return values;
}

static input made(int32_t n_calls, int32_t n_work) {
  input in = {0};
  in.times[0] = sorted_times(n_calls, LAST);
  in.times[1] = ARRAY(int64_t, n_calls);
  in.times[2] = sorted_times(n_work, LAST);
  in.times[3] = ARRAY(int64_t, n_work);
  for (int32_t i = 0; i < n_calls; i++) in.times[1][i] = in.times[0][i] + random_below(60000) - 5;
  for (int32_t i = 0; i < n_work; i++) in.times[3][i] = random_below(30000) - 1;
  int32_t *const ids[] = {numbers(n_calls, 0, THREADS), numbers(n_calls, -1, LANES),
                          numbers(THREADS, 0, 2),       numbers(n_work, 0, LANES),
                          numbers(n_work, -1, n_calls), numbers(n_work, 0, NAMES),
                          numbers(LANES, 0, 2),         numbers(LANES, 0, 2)};
  memcpy(in.ids, ids, sizeof ids);
  in.kind = ARRAY(uint8_t, n_calls);
  for (int32_t i = 0; i < n_calls; i++) in.kind[i] = (uint8_t)random_below(FP_REPLAY_CALL_KINDS);
  in.of = (fp_replay_trace){.call_start = in.times[0],
                            .call_end = in.times[1],
                            .call_thread = ids[0],
                            .call_lane = ids[1],
                            .call_kind = in.kind,
                            .process_of_thread = ids[2],
                            .start = in.times[2],
                            .duration = in.times[3],
                            .lane = ids[3],
                            .call = ids[4],
                            .name = ids[5],
                            .process_of_lane = ids[6],
                            .gpu_of_lane = ids[7],
                            .n_calls = n_calls,
                            .n_threads = THREADS,
                            .n_work = n_work,
                            .n_lanes = LANES,
                            .n_processes = 2,
                            .n_names = NAMES,
                            .begin = random_below(LAST)};
  const int64_t most = 2 * (int64_t)n_calls + n_work + 1;
  for (int s = 0; s < FP_REPLAY_SLOTS; s++) {
    in.to.source[s] = ARRAY(int32_t, most);
    in.to.lag[s] = ARRAY(int32_t, most);
  }
  in.to.before = ARRAY(int64_t, most);
  in.to.duration = ARRAY(int64_t, most);
  in.to.kind = ARRAY(uint8_t, most);
  in.to.slot = ARRAY(uint8_t, most);
  in.to.row = ARRAY(int32_t, most);
  in.to.call_node = ARRAY(int32_t, n_calls);
  in.to.work_node = ARRAY(int32_t, n_work);
  return in;
}

static void free_all(input *in) {
  for (int s = 0; s < FP_REPLAY_SLOTS; s++) {
    free(in->to.source[s]);
    free(in->to.lag[s]);
  }
  void *const others[] = {in->to.before, in->to.duration,  in->to.kind,      in->to.slot,
                          in->to.row,    in->to.call_node, in->to.work_node, in->kind};
  for (int i = 0; i < LENGTH(others); i++) free(others[i]);
  for (int i = 0; i < LENGTH(in->times); i++) free(in->times[i]);
  for (int i = 0; i < LENGTH(in->ids); i++) free(in->ids[i]);
}

static fp_replay_graph graph_of(const input *in, int64_t n) {
  const fp_replay_nodes *to = &in->to;
  return (fp_replay_graph){n,
                           {to->source[0], to->source[1], to->source[2]},
                           {to->lag[0], to->lag[1], to->lag[2]},
                           to->before,
                           to->duration,
                           NULL};
}

/* The latest end of all work if a node starts later. */
static int64_t end_with(input *in, int64_t n, int32_t node, int64_t delay) {
  const fp_replay_graph graph = graph_of(in, n);
  int32_t *step = ARRAY(int32_t, n);
  int64_t *time = ARRAY(int64_t, 2 * n), end;
  for (int64_t i = 0; i < n; i++) step[i] = in->to.kind[i] == FP_REPLAY_WORK ? 0 : -1;
  const fp_replay_query query = {.step = step, .n_steps = 1};
  in->to.before[node] += delay;
  CHECK(fp_replay_run(&graph, &query, time, &end) == FP_OK);
  in->to.before[node] -= delay;
  free(step);
  free(time);
  return end;
}

static void slack_is_what_a_delay_may_take(input *in, const fp_replay_graph *graph,
                                           const int64_t *time, int64_t end) {
  int64_t *slack = ARRAY(int64_t, graph->n);
  for (int64_t i = 0; i < graph->n; i++)
    slack[i] = in->to.kind[i] == FP_REPLAY_WORK ? end - time[2 * i + 1] : INT64_MAX;
  CHECK(fp_replay_slack(graph, time, slack) == FP_OK);
  if (graph->n > 1) {
    const int32_t node = 1 + random_below((int32_t)graph->n - 1);
    CHECK(slack[node] >= 0);
    if (slack[node] != INT64_MAX) CHECK(end_with(in, graph->n, node, slack[node] + 7) == end + 7);
  }
  free(slack);
}

static void a_path_adds_up(const fp_replay_graph *graph, const int64_t *time, int32_t node) {
  int64_t n = -1, again = -1, sum = 0;
  const int64_t end = time[2 * (int64_t)node + 1];
  const int64_t from = end > 0 ? random_below((int32_t)end) : end - 1;
  CHECK(fp_replay_path(graph, time, node, from, NULL, 0, &n) == FP_OK);
  fp_replay_part *part = ARRAY(fp_replay_part, n);
  CHECK(fp_replay_path(graph, time, node, from, part, n, &again) == FP_OK && n == again);
  for (int64_t i = 0; i < n; i++) sum += part[i].own + part[i].before + part[i].lag;
  CHECK(sum == (n ? end - from : 0));
  free(part);
  CHECK(fp_replay_path(graph, time, (int32_t)graph->n, from, NULL, 0, &n) == FP_E_INDEX);
}

/* Nodes before a time keep theirs, no other starts before it, and overlaps shrink with their
 * source: nothing is later than without changes. */
static void what_begins_before_stays(const input *in, const fp_replay_graph *as_built,
                                     fp_replay_query query, const int64_t *time) {
  const int64_t n = as_built->n, begin = random_below(LAST);
  int32_t *part = ARRAY(int32_t, n);
  int64_t *found = ARRAY(int64_t, 2 * n), *before = ARRAY(int64_t, n), end[STEPS];
  fp_replay_graph graph = *as_built;
  for (int64_t i = 0; i < n; i++) {
    part[i] = time[2 * i] < begin ? -1 : 0;
    before[i] = in->to.before[i];
    if (!part[i] && before[i] > time[2 * i] - begin) before[i] = time[2 * i] - begin;
  }
  memcpy(found, time, 2 * (size_t)n * sizeof *found);
  graph.before = before;
  graph.full = in->to.duration;
  query.part = part, query.begin = &begin, query.n_parts = 1;
  CHECK(fp_replay_run(&graph, &query, found, end) == FP_OK);
  for (int64_t i = 1; i < n; i++) {
    CHECK(found[2 * i] <= time[2 * i] && found[2 * i + 1] <= time[2 * i + 1]);
    if (part[i] < 0) CHECK(found[2 * i] == time[2 * i] && found[2 * i + 1] == time[2 * i + 1]);
    if (!part[i] && before[i] >= 0) CHECK(found[2 * i] >= begin);
  }
  query.n_parts = 0;
  for (int64_t i = 0; i < n; i++) part[i] = 0;
  CHECK(fp_replay_run(&graph, &query, found, end) == (n > 1 ? FP_E_INDEX : FP_OK));
  free(part);
  free(found);
  free(before);
}

static void work_starts_when_it_did(input *in, const fp_replay_built *built) {
  const int64_t n = built->n_nodes;
  const fp_replay_graph graph = graph_of(in, n);
  int32_t *step = ARRAY(int32_t, n), *group = ARRAY(int32_t, n);
  int64_t *time = ARRAY(int64_t, 2 * n), *scaled = ARRAY(int64_t, 2 * n), end[STEPS];
  for (int64_t i = 0; i < n; i++) {
    step[i] = in->to.kind[i] == FP_REPLAY_WORK ? 0 : -1;
    group[i] = random_below(3) - 1;
  }
  fp_replay_query query = {.step = step, .n_steps = STEPS};
  CHECK(fp_replay_run(&graph, &query, time, end) == FP_OK);
  CHECK(end[1] == INT64_MIN);
  for (int32_t k = 0; k < in->of.n_work; k++)
    CHECK(time[2 * (int64_t)in->to.work_node[k]] + built->origin == in->of.start[k]);
  if (in->of.n_work) {
    a_path_adds_up(&graph, time, in->to.work_node[random_below(in->of.n_work)]);
    slack_is_what_a_delay_may_take(in, &graph, time, end[0]);
  }
  const double factor[] = {0.5, 1.0};
  query = (fp_replay_query){
      .group = group, .factor = factor, .n_groups = 2, .step = step, .n_steps = STEPS};
  CHECK(fp_replay_run(&graph, &query, scaled, end) == FP_OK);
  for (int64_t i = 1; i < 2 * n; i++) CHECK(scaled[i] <= time[i]);
  what_begins_before_stays(in, &graph, query, time);
  query.n_groups = 1;
  for (int64_t i = 0; i < n; i++) group[i] = 1;
  CHECK(fp_replay_run(&graph, &query, scaled, end) == (n > 1 ? FP_E_INDEX : FP_OK));
  if (n > 1) {
    in->to.source[1][n - 1] = 2 * (int32_t)(n - 1);
    query.group = NULL;
    CHECK(fp_replay_run(&graph, &query, scaled, end) == FP_E_ORDER);
    CHECK(fp_replay_slack(&graph, time, scaled) == FP_E_ORDER);
  }
  free(step);
  free(group);
  free(time);
  free(scaled);
}

static void bad_input_is_found(input *in) {
  fp_replay_built built;
  int32_t *const indices[] = {in->ids[0], in->ids[3], in->ids[5]};
  const int32_t limits[] = {THREADS, LANES, NAMES};
  if (!in->of.n_calls || in->of.n_work < 2) return;
  for (int i = 0; i < LENGTH(indices); i++) {
    const int32_t kept = indices[i][0];
    indices[i][0] = random_below(2) ? limits[i] : -1;
    CHECK(fp_replay_build(&in->of, &in->to, &built) == FP_E_INDEX);
    indices[i][0] = kept;
  }
  in->times[2][0] = LAST + 1;
  CHECK(fp_replay_build(&in->of, &in->to, &built) == FP_E_ORDER);
}

int main(void) {
  for (int round = rounds(5000); round > 0; round--) {
    input in = made(random_below(MOST), 0);
    if (in.of.n_calls && random_below(8)) {
      const int32_t n_calls = in.of.n_calls;
      free_all(&in);
      in = made(n_calls, random_below(MOST));
    }
    fp_replay_built built;
    CHECK(fp_replay_build(&in.of, &in.to, &built) == FP_OK);
    CHECK(built.n_nodes <= 2 * in.of.n_calls + in.of.n_work + 1 && built.n_cut <= in.of.n_work);
    work_starts_when_it_did(&in, &built);
    bad_input_is_found(&in);
    free_all(&in);
  }
  return 0;
}
