/* fp_replay_builder.h: the state of fp_replay_build while it adds nodes in order of time. */
#pragma once

#include "replay/fp_replay_build.h"

/* ns */
enum {
  FP_REPLAY_HANDOVER = 50000, /* the shortest gap of a thread that waits for another one */
  FP_REPLAY_LATENCY = 30000,  /* the longest from a launch to its work on an idle GPU */
  FP_REPLAY_GAP = 20000,      /* the longest between work that follows at once */
  FP_REPLAY_EVENT = 50000,    /* the longest after the work that an event waits for */
  FP_REPLAY_FAR_BACK = 64,    /* work of a lane that is examined */
  FP_REPLAY_QUEUE = 4096,     /* work that may be queued in a lane: more is not searched */
};

typedef struct {
  int32_t node;        /* of the last call, -1: none */
  int32_t waits;       /* the call that has not returned, -1: none */
  int32_t stream_wait; /* call, -1: none since the last launch */
  int64_t end;         /* of the last call */
} fp_replay_thread;

typedef struct {
  int32_t *calls;
  int32_t n;
} fp_replay_heap;

typedef struct {
  const fp_replay_trace *of;
  const fp_replay_nodes *to;
  fp_replay_built *built;
  fp_replay_thread *threads;
  int64_t *queued;        /* [n_processes] launches whose work has not started */
  int32_t *last;          /* [n_lanes] the last work that has started, -1: none */
  int32_t *earlier;       /* [n_work] the work before it in its lane */
  int32_t *later;         /* [n_work] */
  int32_t *next_call;     /* [n_calls] of its thread */
  int32_t *first_work;    /* [n_calls] that it launches, -1: none */
  int32_t *n_launched;    /* [n_calls] */
  int32_t *n_started;     /* [n_calls] work that it launches and that has started */
  int32_t *waited;        /* [n_calls] the stream wait before it, -1: none */
  int64_t *moved;         /* [n_calls] ns of the call before it launches */
  uint8_t *free_of;       /* [n_names] such work once started before what a stream wait suggests */
  int32_t *last_work;     /* [n_processes] the last to start, -1: none */
  fp_replay_heap waiting; /* calls that may wait; the first ends first */
  fp_replay_heap running; /* calls that may hand over; the first ends first */
  fp_replay_heap *ended;  /* [n_processes] those that have ended; the first ended last */
} fp_replay_builder;

static inline int64_t fp_replay_end(const fp_replay_trace *of, int32_t k) {
  return of->duration[k] > 0 ? fp_replay_plus(of->start[k], of->duration[k]) : of->start[k];
}

static inline int64_t fp_replay_call_end(const fp_replay_trace *of, int32_t i) {
  return of->call_end[i] > of->call_start[i] ? of->call_end[i] : of->call_start[i];
}

static inline bool fp_replay_launched_before(const fp_replay_trace *of, int32_t k, int64_t time) {
  return of->call[k] < 0 || of->call_start[of->call[k]] < time;
}

/* By slot: the longest wait of work after what its edge waits for that is usual. */
static inline int64_t fp_replay_limit(int slot) {
  return slot == 0 ? FP_REPLAY_LATENCY : slot == 1 ? FP_REPLAY_GAP : FP_REPLAY_EVENT;
}

/* The last work of a lane that has started and was launched before a time, -1: none. */
static inline int32_t fp_replay_started_last(const fp_replay_builder *b, int32_t lane,
                                             int64_t time) {
  int32_t k = b->last[lane];
  for (int n = 0; k >= 0 && !fp_replay_launched_before(b->of, k, time); n++)
    k = n < FP_REPLAY_QUEUE ? b->earlier[k] : -1;
  return k;
}

/* A new node without edges. */
int32_t fp_replay_add(fp_replay_builder *b, int kind, int32_t row);

/* Makes a node wait for the start or the end of another one. */
void fp_replay_connect(fp_replay_builder *b, int32_t node, int slot, int32_t source, bool at_end);

/* Adds the node of a call, unless it is within another one. */
void fp_replay_begin_call(fp_replay_builder *b, int32_t call);

/* Adds the return of a call that waits. */
void fp_replay_return(fp_replay_builder *b, int32_t call);

/* The call that waits and ends first, on the lowest thread; -1: none waits. */
int32_t fp_replay_next_return(fp_replay_builder *b);

/* Adds the node of GPU work. */
void fp_replay_begin_work(fp_replay_builder *b, int32_t k);

/* Chooses the edge by which each piece of work starts, and the lags of the others. */
fp_status fp_replay_settle(fp_replay_builder *b);
