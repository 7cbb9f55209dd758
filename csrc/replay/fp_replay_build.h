/* fp_replay_build.h: the graph of a trace for fp_replay.h.
 *
 * Nodes are in order of time: the start of a host call, the return of a call that may wait for the
 * GPU, the start of GPU work. What a node waits for:
 *   call    slot 0: the end of the call before it on its thread
 *           slot 1: the end of a call of another thread of its process that hands over to it
 *   return  slot 0: the start of its call
 *           slot 1: the end of the GPU work that it waits for, or the start of its own copy
 *   work    slot 0: its launch: the end of the call, or its start if the work starts before the end
 *           slot 1: the end of the work before it in its lane
 *           slot 2: the end of work in another lane of its GPU */
#pragma once

#include "replay/fp_replay.h"

enum { FP_REPLAY_ORIGIN, FP_REPLAY_CALL, FP_REPLAY_RETURN, FP_REPLAY_WORK };

/* What a call does. */
enum {
  FP_REPLAY_LAUNCHES,     /* may wait for room in the queue of launches */
  FP_REPLAY_WAITS,        /* for all GPU work of its process, or of its lane */
  FP_REPLAY_WAITS_EVENT,  /* for some of it */
  FP_REPLAY_COPIES,       /* may wait for its own copy */
  FP_REPLAY_ALLOCATES,    /* may wait for all GPU work */
  FP_REPLAY_WAITS_STREAM, /* makes a lane wait for another; has no node */
  FP_REPLAY_WAITS_LAST,   /* for the work of its process that ends as it does */
  FP_REPLAY_CALL_KINDS,
};

typedef struct {
  const int64_t *call_start, *call_end; /* [n_calls] starts ascend */
  const int32_t *call_thread;
  const int32_t *call_lane; /* the lane that the call waits for, -1: any */
  const uint8_t *call_kind;
  const int32_t *process_of_thread; /* [n_threads] */
  const int64_t *start, *duration;  /* [n_work] starts ascend */
  const int32_t *lane;
  const int32_t *call;                          /* [n_work] its launch, -1: not recorded */
  const int32_t *name;                          /* [n_work] 0 .. n_names - 1 */
  const int32_t *process_of_lane, *gpu_of_lane; /* [n_lanes] */
  int32_t n_calls, n_threads, n_work, n_lanes, n_processes, n_names;
  int64_t begin; /* when the host begins; at most the first time counts */
} fp_replay_trace;

/* [2 * n_calls + n_work + 1] each, but call_node: [n_calls] and work_node: [n_work]. */
typedef struct {
  int32_t *source[FP_REPLAY_SLOTS], *lag[FP_REPLAY_SLOTS];
  int64_t *before, *duration;
  uint8_t *kind;
  uint8_t *slot;      /* the edge by which the node starts */
  int32_t *row;       /* of the call or the work */
  int32_t *call_node; /* -1: within another call, or without a node */
  int32_t *work_node;
} fp_replay_nodes;

typedef struct {
  int64_t origin;      /* ns, the time of the trace at time 0 of the graph */
  int64_t unexplained; /* ns that GPU work waits for no recorded reason; part of `before` */
  int32_t n_nodes;
  int32_t n_cut;      /* edges against the order of time: the clocks of host and GPU differ */
  int32_t n_unplaced; /* work without a launch and without work before it in its lane */
} fp_replay_built;

fp_status fp_replay_build(const fp_replay_trace *trace, const fp_replay_nodes *nodes,
                          fp_replay_built *built);
