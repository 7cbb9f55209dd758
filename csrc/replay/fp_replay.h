/* fp_replay.h: when host calls and GPU work of a run start and end, by what they wait for.
 *
 * A graph has nodes in an order in which each node follows those that it waits for. Node 0 is the
 * origin: it starts and ends at time 0. Each other node has FP_REPLAY_SLOTS edges:
 *   start = max over edges (time of the source + lag) + before
 *   end   = start + duration
 * Lag INT32_MIN: no edge. A node without edges is ready at time 0. A negative lag from the end of a
 * source is a share of the source: it shrinks with the duration. */
#pragma once

#include "base/fp_status.h"

enum { FP_REPLAY_SLOTS = 3 };

/* Times of damaged files may be anything: sums wrap. */
static inline int64_t fp_replay_plus(int64_t a, int64_t b) {
  return (int64_t)((uint64_t)a + (uint64_t)b);
}

static inline int64_t fp_replay_minus(int64_t a, int64_t b) {
  return (int64_t)((uint64_t)a - (uint64_t)b);
}

typedef struct {
  int64_t n;
  const int32_t *source[FP_REPLAY_SLOTS]; /* [n] 2 * node: its start; 2 * node + 1: its end */
  const int32_t *lag[FP_REPLAY_SLOTS];    /* [n] ns */
  const int64_t *before;                  /* [n] ns */
  const int64_t *duration;                /* [n] ns */
  const int64_t *full;                    /* [n] ns, the durations at which lags hold; NULL: any */
} fp_replay_graph;

/* Groups of nodes whose durations are scaled, nodes that keep their times, and nodes whose ends are
 * wanted. */
typedef struct {
  const int32_t *group; /* [n] NULL: no scaling */
  const double *factor; /* [n_groups] */
  int32_t n_groups;
  const int32_t *part;  /* [n] -1: keeps its times; NULL: none does */
  const int64_t *begin; /* [n_parts] ns, when the other nodes are ready at the earliest */
  int32_t n_parts;
  const int32_t *step; /* [n] -1: none */
  int32_t n_steps;
} fp_replay_query;

/* Computes the times of all nodes and the latest end in each step, INT64_MIN if it has no node.
 * time: [2 * n], start and end of each, in: of nodes that keep their times; end: [n_steps] */
fp_status fp_replay_run(const fp_replay_graph *graph, const fp_replay_query *query, int64_t *time,
                        int64_t *end);

/* A node on a critical path: times that lie within the path and that no later node of it covers;
 * together they are as long as the path. */
typedef struct {
  int64_t own;    /* ns, its duration; 0 if the path leaves it at its start */
  int64_t before; /* ns */
  int64_t lag;    /* ns, from the source */
  int32_t node;
  int32_t slot; /* of the edge that it starts by, -1 for the first node of the path */
} fp_replay_part;

/* Follows the edges by which a node starts, back to a time. *n counts those beyond `room` too.
 * time: as of fp_replay_run without scaling; part: [room], the last first */
fp_status fp_replay_path(const fp_replay_graph *graph, const int64_t *time, int32_t node,
                         int64_t from, fp_replay_part *part, int64_t room, int64_t *n);

/* Computes how much later each node may start.
 * slack: [n] in: how much later it may end alone, INT64_MAX: any; out: with what waits for it */
fp_status fp_replay_slack(const fp_replay_graph *graph, const int64_t *time, int64_t *slack);
