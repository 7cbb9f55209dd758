#include "replay/fp_replay.h"

static bool is_in_order(const fp_replay_graph *graph, int64_t i) {
  for (int s = 0; s < FP_REPLAY_SLOTS; s++)
    if ((uint64_t)graph->source[s][i] >= (uint64_t)(2 * i)) return false;
  return true;
}

/* The lag after the end of a node that may have another duration than that at which it holds. */
static int64_t scaled_lag(const fp_replay_graph *graph, const int64_t *time, int32_t node,
                          int64_t lag) {
  const int64_t ns = fp_replay_minus(time[2 * (int64_t)node + 1], time[2 * (int64_t)node]);
  const int64_t full = graph->full[node];
  if (ns == full) return lag;
  if (full <= -lag)
    return fp_replay_minus(fp_replay_plus(full, lag), ns); /* at a time from its start */
  return (int64_t)((double)lag * ((double)ns / (double)full));
}

/* INT64_MIN without an edge. */
static int64_t reached(const fp_replay_graph *graph, const int64_t *time, int64_t i, int slot) {
  int64_t lag = graph->lag[slot][i];
  if (lag == INT32_MIN) return INT64_MIN;
  const int32_t source = graph->source[slot][i];
  if (lag < 0 && source % 2 && graph->full) lag = scaled_lag(graph, time, source / 2, lag);
  return fp_replay_plus(time[source], lag);
}

static int64_t ready_at(const fp_replay_graph *graph, const int64_t *time, int64_t i) {
  int64_t ready = reached(graph, time, i, 0);
  for (int s = 1; s < FP_REPLAY_SLOTS; s++) {
    const int64_t other = reached(graph, time, i, s);
    if (other > ready) ready = other;
  }
  return ready == INT64_MIN ? 0 : ready;
}

static int64_t scaled(int64_t duration, double factor) {
  if (factor == 1.0) return duration;
  const double found = (double)duration * factor + 0.5;
  return found >= 0 && found < 9e18 ? (int64_t)found : duration;
}

static fp_status compute(const fp_replay_graph *graph, const fp_replay_query *query, int64_t i,
                         int64_t *time) {
  if (!is_in_order(graph, i)) return FP_E_ORDER;
  if (query->part && query->part[i] < 0) return FP_OK;
  if (query->part && query->part[i] >= query->n_parts) return FP_E_INDEX;
  int64_t duration = graph->duration[i];
  if (query->group && query->group[i] >= 0) {
    if (query->group[i] >= query->n_groups) return FP_E_INDEX;
    duration = scaled(duration, query->factor[query->group[i]]);
  }
  const int64_t least = query->part ? query->begin[query->part[i]] : INT64_MIN;
  const int64_t ready = ready_at(graph, time, i);
  time[2 * i] = fp_replay_plus(ready > least ? ready : least, graph->before[i]);
  time[2 * i + 1] = fp_replay_plus(time[2 * i], duration);
  return FP_OK;
}

fp_status fp_replay_run(const fp_replay_graph *graph, const fp_replay_query *query, int64_t *time,
                        int64_t *end) {
  if (graph->n > INT32_MAX / 2) return FP_E_TOO_MANY;
  for (int32_t i = 0; i < query->n_steps; i++) end[i] = INT64_MIN;
  if (graph->n) time[0] = time[1] = 0;
  for (int64_t i = 1; i < graph->n; i++) {
    const fp_status status = compute(graph, query, i, time);
    if (status != FP_OK) return status;
    const int32_t step = query->step[i];
    if (step >= query->n_steps) return FP_E_INDEX;
    if (step >= 0 && time[2 * i + 1] > end[step]) end[step] = time[2 * i + 1];
  }
  return FP_OK;
}

/* The part of [start, *until] after `from`; moves *until back to it. A node may start before the
 * end of the one that it waits for, so that *until may lie before `start`. */
static int64_t taken(int64_t *until, int64_t start, int64_t from) {
  const int64_t since = start > from ? start : from;
  if (since >= *until) return 0;
  const int64_t ns = fp_replay_minus(*until, since);
  *until = since;
  return ns;
}

fp_status fp_replay_path(const fp_replay_graph *graph, const int64_t *time, int32_t node,
                         int64_t from, fp_replay_part *part, int64_t room, int64_t *n) {
  *n = 0;
  if (node < 0 || node >= graph->n) return FP_E_INDEX;
  bool is_end = true;
  int64_t until = time[2 * (int64_t)node + 1];
  while (node && until > from) {
    const int64_t i = node;
    if (!is_in_order(graph, i)) return FP_E_ORDER;
    int64_t at = time[2 * i];
    fp_replay_part found = {.node = node, .slot = -1};
    if (is_end) found.own = taken(&until, at, from);
    if (at > from) {
      at = fp_replay_minus(at, graph->before[i]);
      found.before = taken(&until, at, from);
      for (int s = 0; s < FP_REPLAY_SLOTS && found.slot < 0; s++)
        if (reached(graph, time, i, s) == at) found.slot = s;
      if (found.slot < 0 && at > from && at) return FP_E_ORDER; /* not the times of this graph */
    }
    const bool goes_on = found.slot >= 0 && until > from;
    if (goes_on) found.lag = taken(&until, time[graph->source[found.slot][i]], from);
    if (*n < room) part[*n] = found;
    ++*n;
    if (!goes_on) break;
    const int32_t source = graph->source[found.slot][i];
    node = source / 2;
    is_end = source % 2;
  }
  return FP_OK;
}

fp_status fp_replay_slack(const fp_replay_graph *graph, const int64_t *time, int64_t *slack) {
  for (int64_t i = graph->n - 1; i > 0; i--) {
    if (!is_in_order(graph, i)) return FP_E_ORDER;
    if (slack[i] == INT64_MAX) continue;
    const int64_t ready = fp_replay_minus(time[2 * i], graph->before[i]);
    for (int s = 0; s < FP_REPLAY_SLOTS; s++) {
      const int32_t source = graph->source[s][i] / 2;
      if (graph->lag[s][i] == INT32_MIN) continue;
      const int64_t spare =
          fp_replay_plus(slack[i], fp_replay_minus(ready, reached(graph, time, i, s)));
      if (source && spare < slack[source]) slack[source] = spare;
    }
  }
  return FP_OK;
}
