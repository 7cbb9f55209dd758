#include "fp_replay_build.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum {
  ROUNDING = 1000,      /* ns by which recorded times of one GPU may overlap */
  CLOCKS = 5000,        /* ns by which a call may return before the work that it waits for ends */
  HANDOVER = 50000,     /* ns, the shortest gap of a thread that waits for another one */
  LATENCY = 30000,      /* ns, the longest from a launch to its work on an idle GPU */
  SUBMISSION = 5000,    /* ns from where a long call launches to its work */
  GAP = 20000,          /* ns, the longest between work that follows at once */
  EVENT = 50000,        /* ns, the longest after the work that an event waits for */
  SHORT_CALL = 10000,   /* ns, the longest call that does not wait */
  BLOCKED_CALL = 20000, /* ns, the shortest launch that waits for room in the queue */
  FULL_QUEUE = 500,     /* launches */
  FAR_BACK = 64,        /* work of a lane that is examined */
};

/* By slot: the longest wait of work after what its edge waits for. */
static const int32_t usual_limit[FP_REPLAY_SLOTS] = {LATENCY, GAP, EVENT};

typedef struct {
  int32_t node;        /* of the last call, -1: none */
  int32_t waits;       /* the call that has not returned, -1: none */
  int32_t stream_wait; /* call, -1: none since the last launch */
  int64_t end;         /* of the last call */
} thread;

typedef struct {
  const fp_replay_trace *of;
  const fp_replay_nodes *to;
  fp_replay_built *built;
  thread *threads;
  int64_t *queued;     /* [n_processes] launches whose work has not started */
  int32_t *last;       /* [n_lanes] the last work that has started, -1: none */
  int32_t *earlier;    /* [n_work] the work before it in its lane */
  int32_t *later;      /* [n_work] */
  int32_t *next_call;  /* [n_calls] of its thread */
  int32_t *first_work; /* [n_calls] that it launches, -1: none */
  int32_t *n_launched; /* [n_calls] */
  int32_t *waited;     /* [n_calls] the stream wait before it, -1: none */
  int64_t *moved;      /* [n_calls] ns of the call before it launches */
  uint8_t *free_of;    /* [n_names] such work once started before what a stream wait suggests */
  int32_t *last_work;  /* [n_processes] the last to start, -1: none */
  int64_t next_return; /* the earliest end of a call that waits */
} builder;

static int64_t minus(int64_t a, int64_t b) { return (int64_t)((uint64_t)a - (uint64_t)b); }

static int64_t end_of_work(const fp_replay_trace *of, int32_t k) {
  return of->duration[k] > 0 ? (int64_t)((uint64_t)of->start[k] + (uint64_t)of->duration[k])
                             : of->start[k];
}

static int32_t add(builder *b, int kind, int32_t row) {
  const int32_t i = b->built->n_nodes++;
  const fp_replay_nodes *to = b->to;
  for (int s = 0; s < FP_REPLAY_SLOTS; s++) to->source[s][i] = 0, to->lag[s][i] = INT32_MIN;
  to->before[i] = to->duration[i] = 0;
  to->kind[i] = (uint8_t)kind;
  to->slot[i] = 0;
  to->row[i] = row;
  return i;
}

static void connect(builder *b, int32_t node, int slot, int32_t source, bool at_end) {
  b->to->source[slot][node] = 2 * source + at_end;
  b->to->lag[slot][node] = 0;
}

/* Host calls. */

/* The other thread of a process whose last call ended last in (after, until], and that is idle
 * then. */
static int32_t hands_over(const builder *b, int32_t own, int64_t after, int64_t until) {
  const fp_replay_trace *of = b->of;
  int32_t found = -1;
  for (int32_t t = 0; t < of->n_threads; t++) {
    const thread *each = &b->threads[t];
    if (t == own || each->node < 0 || of->process_of_thread[t] != of->process_of_thread[own])
      continue;
    if (each->end <= after || each->end > until || each->waits >= 0) continue;
    const int32_t call = b->to->row[each->node], next = b->next_call[call];
    if (next >= 0 && minus(of->call_start[next], each->end) < HANDOVER) continue;
    if (found < 0 || each->end > b->threads[found].end) found = t;
  }
  return found;
}

static void host_time(builder *b, int32_t node, int32_t t, int64_t start) {
  thread *own = &b->threads[t];
  int64_t ready = own->node < 0 ? INT64_MIN : own->end;
  if (own->node >= 0) connect(b, node, 0, own->node, true);
  if (own->node < 0 || minus(start, ready) >= HANDOVER) {
    const int32_t other = hands_over(b, t, ready, start);
    if (other >= 0) {
      connect(b, node, 1, b->threads[other].node, true);
      b->to->slot[node] = 1;
      ready = b->threads[other].end;
    }
  }
  if (ready == INT64_MIN) { /* the first call: at its recorded time */
    connect(b, node, 0, 0, true);
    ready = b->built->origin;
  }
  b->to->before[node] = minus(start, ready);
}

static bool may_wait(const builder *b, int32_t i) {
  const fp_replay_trace *of = b->of;
  const int64_t length = minus(of->call_end[i], of->call_start[i]);
  const int32_t work = b->first_work[i];
  switch (of->call_kind[i]) {
    case FP_REPLAY_WAITS:
    case FP_REPLAY_WAITS_EVENT:
    case FP_REPLAY_ALLOCATES:
      return true;
    case FP_REPLAY_COPIES:
      if (work >= 0 && length > SHORT_CALL && of->start[work] < of->call_end[i]) return true;
      break;
    default:
      break;
  }
  const int32_t process = of->process_of_thread[of->call_thread[i]];
  return length >= BLOCKED_CALL && b->queued[process] >= FULL_QUEUE;
}

static void find_next_return(builder *b) {
  b->next_return = INT64_MAX;
  for (int32_t t = 0; t < b->of->n_threads; t++) {
    const thread *each = &b->threads[t];
    if (each->waits >= 0 && each->end < b->next_return) b->next_return = each->end;
  }
}

static void begin_call(builder *b, int32_t i) {
  const fp_replay_trace *of = b->of;
  const int32_t t = of->call_thread[i];
  thread *own = &b->threads[t];
  b->to->call_node[i] = -1;
  if (of->call_kind[i] == FP_REPLAY_WAITS_STREAM) {
    own->stream_wait = i;
    return;
  }
  if (own->node >= 0 && of->call_end[i] <= own->end) { /* within another call */
    b->to->call_node[i] = own->node;
    return;
  }
  const int32_t node = add(b, FP_REPLAY_CALL, i);
  b->to->call_node[i] = node;
  host_time(b, node, t, of->call_start[i]);
  b->waited[i] = -1;
  if (b->n_launched[i]) {
    b->waited[i] = own->stream_wait;
    own->stream_wait = -1;
  }
  own->node = node;
  own->end = of->call_end[i] > of->call_start[i] ? of->call_end[i] : of->call_start[i];
  if (may_wait(b, i)) {
    own->waits = i;
    if (own->end < b->next_return) b->next_return = own->end;
  } else {
    b->to->duration[node] = minus(own->end, of->call_start[i]);
  }
  b->queued[of->process_of_thread[t]] += b->n_launched[i];
}

static bool launched_before(const fp_replay_trace *of, int32_t k, int64_t time) {
  return of->call[k] < 0 || of->call_start[of->call[k]] < time;
}

/* The last work of a lane that a call waits for, -1 if the call does not wait for the lane. */
static int32_t waited_in_lane(const builder *b, int32_t call, int32_t lane) {
  const fp_replay_trace *of = b->of;
  const int64_t time = of->call_start[call], until = of->call_end[call];
  int32_t k = b->last[lane], n = 0;
  while (k >= 0 && !launched_before(of, k, time)) k = b->earlier[k];
  if (of->call_kind[call] == FP_REPLAY_WAITS_EVENT) {
    while (k >= 0 && minus(end_of_work(of, k), until) > CLOCKS && n++ < FAR_BACK) k = b->earlier[k];
  } else if (k >= 0) {
    const int32_t next = b->later[k];
    if (next >= 0 && of->call[next] >= 0 && launched_before(of, next, time)) return -1;
  }
  if (k < 0 || minus(end_of_work(of, k), until) > CLOCKS) return -1;
  return of->call_kind[call] == FP_REPLAY_ALLOCATES && end_of_work(of, k) <= time ? -1 : k;
}

static int32_t waited_work(const builder *b, int32_t call) {
  const fp_replay_trace *of = b->of;
  const int32_t process = of->process_of_thread[of->call_thread[call]];
  int32_t found = -1;
  for (int32_t lane = 0; lane < of->n_lanes; lane++) {
    if (of->process_of_lane[lane] != process) continue;
    if (of->call_lane[call] >= 0 && of->call_lane[call] != lane) continue;
    const int32_t k = waited_in_lane(b, call, lane);
    if (k >= 0 && (found < 0 || end_of_work(of, k) > end_of_work(of, found))) found = k;
  }
  return found;
}

/* Connects the return of a call to the GPU work that it waits for; returns when it may go on. */
static int64_t wait_for_work(builder *b, int32_t node, int32_t call) {
  const fp_replay_trace *of = b->of;
  const int64_t start = of->call_start[call], end = of->call_end[call];
  const int kind = of->call_kind[call];
  int32_t k = -1;
  bool at_end = true;
  if (kind == FP_REPLAY_LAUNCHES || kind == FP_REPLAY_COPIES) {
    k = b->first_work[call];
    if (kind == FP_REPLAY_LAUNCHES || k < 0 || b->to->work_node[k] < 0) {
      k = b->last_work[of->process_of_thread[of->call_thread[call]]];
      at_end = false; /* the start of work makes room in the queue */
      if (k >= 0 && minus(end, of->start[k]) > HANDOVER) k = -1;
    } else {
      /* The host copies from pageable memory piece by piece, and returns before the last. */
      at_end = minus(end_of_work(of, k), end) <= minus(end, of->start[k]);
    }
  } else {
    k = waited_work(b, call);
  }
  if (k < 0) return start;
  connect(b, node, 1, b->to->work_node[k], at_end);
  int64_t until = at_end ? end_of_work(of, k) : of->start[k];
  const int64_t early = minus(until, end);
  if (early > 0) { /* it returns before the work ends */
    b->to->lag[1][node] = early > INT32_MAX ? -INT32_MAX : -(int32_t)early;
    until = end;
  }
  if (until > start) b->to->slot[node] = 1;
  return until > start ? until : start;
}

static void return_from(builder *b, int32_t t) {
  thread *own = &b->threads[t];
  const int32_t call = own->waits;
  const int32_t node = add(b, FP_REPLAY_RETURN, call);
  connect(b, node, 0, own->node, true);
  b->to->before[node] = minus(own->end, wait_for_work(b, node, call));
  own->node = node;
  own->waits = -1;
}

static void return_at(builder *b, int64_t time) {
  for (int32_t t = 0; t < b->of->n_threads; t++)
    if (b->threads[t].waits >= 0 && b->threads[t].end == time) return_from(b, t);
  find_next_return(b);
}

/* GPU work. */

/* The edges of work: ns from each source to its start; INT64_MAX: no edge. */
typedef struct {
  int64_t ns[FP_REPLAY_SLOTS];
  int32_t node;
} edges;

static void wait_for(builder *b, edges *of, int slot, int32_t source, bool at_end, int64_t ns) {
  connect(b, of->node, slot, source, at_end);
  of->ns[slot] = ns;
  b->to->lag[slot][of->node] = ns > INT32_MAX ? INT32_MAX : ns < -INT32_MAX ? -INT32_MAX : (int32_t)ns;
}

static void wait_for_launch(builder *b, edges *to, int32_t k) {
  const fp_replay_trace *of = b->of;
  const int32_t call = of->call[k];
  if (call < 0) return;
  const int32_t source = b->to->call_node[call];
  if (source < 0) {
    b->built->n_cut++;
    return;
  }
  /* A call that waits has duration 0 at its start. */
  const int32_t outer = b->to->row[source];
  const bool at_end = b->to->duration[source] > 0 && of->start[k] >= of->call_end[outer];
  const int64_t time = at_end ? of->call_end[outer] : of->call_start[outer];
  wait_for(b, to, 0, source, at_end, minus(minus(of->start[k], time), at_end ? 0 : b->moved[outer]));
}

/* A long call that prepares its launch, as one that loads the code of a kernel: the time before the
 * launch is the host's own. */
static void move_launch(builder *b, edges *to, int32_t k) {
  const int32_t source = b->to->source[0][to->node] / 2;
  const int32_t call = b->to->row[source];
  const int64_t spare = minus(to->ns[0], SUBMISSION);
  const bool is_within = b->to->source[0][to->node] % 2 == 0 && b->of->start[k] <= b->of->call_end[call];
  if (!is_within || b->first_work[b->of->call[k]] != k) return;
  b->moved[call] += spare;
  b->to->before[source] = (int64_t)((uint64_t)b->to->before[source] + (uint64_t)spare);
  if (b->to->duration[source] > 0) b->to->duration[source] -= spare;
  wait_for(b, to, 0, source, false, SUBMISSION);
}

/* The last work of a lane that ended before other work started. */
static int32_t ended_before(const builder *b, int32_t lane, int64_t start) {
  int32_t k = b->last[lane];
  for (int n = 0; k >= 0 && n < FAR_BACK; n++, k = b->earlier[k])
    if (minus(end_of_work(b->of, k), start) <= ROUNDING) return k;
  return -1;
}

static void wait_for_work_at_end(builder *b, edges *to, int slot, int32_t k, int64_t start) {
  wait_for(b, to, slot, b->to->work_node[k], true, minus(start, end_of_work(b->of, k)));
}

/* The last work of a lane that is launched before a time, -1: none has started. */
static int32_t launched_last(const builder *b, int32_t lane, int64_t time) {
  int32_t k = b->last[lane];
  while (k >= 0 && !launched_before(b->of, k, time)) k = b->earlier[k];
  while (k >= 0 && b->later[k] >= 0 && launched_before(b->of, b->later[k], time)) k = b->later[k];
  return k;
}

static bool shares_gpu(const fp_replay_trace *of, int32_t lane, int32_t other) {
  return other != lane && of->process_of_lane[other] == of->process_of_lane[lane] &&
         of->gpu_of_lane[other] == of->gpu_of_lane[lane];
}

/* The work in other lanes of the GPU that a recorded stream wait orders before work: the last that
 * is launched before the wait; none if it ends too late for that. */
static int32_t ordered_before(const builder *b, int32_t k) {
  const fp_replay_trace *of = b->of;
  const int32_t wait = of->call[k] < 0 ? -1 : b->waited[of->call[k]];
  int32_t found = -1;
  if (wait < 0) return -1;
  for (int32_t other = 0; other < of->n_lanes; other++) {
    if (!shares_gpu(of, of->lane[k], other)) continue;
    const int32_t j = launched_last(b, other, of->call_start[wait]);
    if (j < 0 || of->call[j] < 0) continue;
    if (found < 0 || of->call_start[of->call[j]] > of->call_start[of->call[found]]) found = j;
  }
  if (found < 0) return -1;
  if (b->to->work_node[found] >= 0 && minus(end_of_work(of, found), of->start[k]) <= ROUNDING)
    return found;
  b->free_of[of->name[k]] = 1;
  return -1;
}

/* The work in another lane of the GPU that lets work start by its end, just before or, as it frees
 * multiprocessors, just after. ready: when the work could have started otherwise */
static int32_t makes_room(const builder *b, int32_t k, int64_t ready) {
  const fp_replay_trace *of = b->of;
  int32_t found = -1;
  for (int32_t other = 0; other < of->n_lanes; other++) {
    if (!shares_gpu(of, of->lane[k], other)) continue;
    int32_t j = b->last[other];
    const bool runs = j >= 0 && of->start[j] <= ready && end_of_work(of, j) > of->start[k];
    if (!runs) j = ended_before(b, other, of->start[k]);
    if (j < 0 || minus(of->start[k], end_of_work(of, j)) > GAP) continue;
    if (found < 0 || end_of_work(of, j) < end_of_work(of, found)) found = j;
  }
  return found;
}

static int decides(const edges *of) {
  int found = -1;
  for (int s = 0; s < FP_REPLAY_SLOTS; s++)
    if (of->ns[s] < (found < 0 ? INT64_MAX : of->ns[found])) found = s;
  return found;
}

static bool is_explained(const edges *of) {
  const int slot = decides(of);
  return slot >= 0 && of->ns[slot] <= usual_limit[slot];
}

static void begin_work(builder *b, int32_t k) {
  const fp_replay_trace *of = b->of;
  const fp_replay_nodes *to = b->to;
  const int32_t lane = of->lane[k], process = of->process_of_lane[lane];
  const int64_t start = of->start[k];
  const int32_t node = add(b, FP_REPLAY_WORK, k);
  edges own = {{INT64_MAX, INT64_MAX, INT64_MAX}, node};
  to->work_node[k] = node;
  to->duration[node] = of->duration[k] > 0 ? of->duration[k] : 0;
  wait_for_launch(b, &own, k);
  int32_t other = ended_before(b, lane, start);
  if (other >= 0) wait_for_work_at_end(b, &own, 1, other, start);
  other = ordered_before(b, k);
  if (other >= 0) wait_for_work_at_end(b, &own, 2, other, start);
  if (!is_explained(&own) && own.ns[0] != INT64_MAX) move_launch(b, &own, k);
  if (!is_explained(&own)) {
    const int by = decides(&own);
    other = makes_room(b, k, by < 0 ? start : minus(start, own.ns[by]));
    if (other >= 0) wait_for_work_at_end(b, &own, 2, other, start);
  }
  const int slot = decides(&own);
  if (slot >= 0) {
    to->slot[node] = (uint8_t)slot;
    to->before[node] = minus(own.ns[slot], to->lag[slot][node]);
  } else { /* at its recorded time */
    connect(b, node, 0, 0, true);
    to->before[node] = minus(start, b->built->origin);
    b->built->n_unplaced++;
  }
  if (of->call[k] >= 0) b->queued[process]--;
  b->last[lane] = k;
  b->last_work[process] = k;
}

/* Lags of edges that do not decide when work starts are unknown: the median of those that do. */

enum { BINS = 1 << 16, CLASSES = FP_REPLAY_SLOTS + 1 };

/* Launches by their end, by their start, then the other slots. */
static int class_of(const fp_replay_nodes *to, int32_t i, int slot) {
  return slot ? slot + 1 : !(to->source[0][i] % 2);
}

/* If no edge of a class decides anything. */
static const int32_t assumed[CLASSES] = {5000, 5000, 1000, 1000};

static int32_t median(const uint32_t *bin, int32_t if_none) {
  int64_t n = 0, met = 0;
  for (int32_t i = 0; i < BINS; i++) n += bin[i];
  if (!n) return if_none;
  for (int32_t i = 0; i < BINS; i++)
    if (2 * (met += bin[i]) > n) return i;
  return BINS - 1;
}

/* The part of the wait of work that nothing explains; takes it from the lags of its edges. */
static int64_t unexplained(const fp_replay_nodes *to, int32_t i, int32_t usual) {
  const int slot = to->slot[i];
  const int64_t lag = to->lag[slot][i];
  if (lag <= usual_limit[slot] || lag <= usual) return 0;
  const int32_t rest = (int32_t)lag - usual;
  for (int s = 0; s < FP_REPLAY_SLOTS; s++) {
    if (to->lag[s][i] == INT32_MIN) continue;
    to->lag[s][i] = to->lag[s][i] < INT32_MIN + 1 + rest ? INT32_MIN + 1 : to->lag[s][i] - rest;
  }
  to->before[i] = (int64_t)((uint64_t)to->before[i] + (uint64_t)rest);
  return to->before[i];
}

static void settle(builder *b, const int32_t *typical) {
  const fp_replay_nodes *to = b->to;
  for (int32_t i = 1; i < b->built->n_nodes; i++) {
    if (to->kind[i] != FP_REPLAY_WORK || !to->source[to->slot[i]][i]) continue;
    const int32_t usual = typical[class_of(to, i, to->slot[i])];
    const int64_t wait = unexplained(to, i, usual);
    b->built->unexplained = (int64_t)((uint64_t)b->built->unexplained + (uint64_t)wait);
    for (int s = 0; s < FP_REPLAY_SLOTS; s++) {
      const int32_t most = typical[class_of(to, i, s)];
      if (s != to->slot[i] && to->lag[s][i] > most) to->lag[s][i] = most;
    }
  }
}

static void typical_lags(const fp_replay_nodes *to, int32_t n, uint32_t *bins, int32_t *typical) {
  memset(bins, 0, (size_t)CLASSES * BINS * sizeof *bins);
  for (int32_t i = 1; i < n; i++) {
    const int32_t lag = to->lag[to->slot[i]][i];
    if (to->kind[i] == FP_REPLAY_WORK && lag >= 0 && lag < BINS)
      bins[(size_t)class_of(to, i, to->slot[i]) * BINS + (size_t)lag]++;
  }
  for (int c = 0; c < CLASSES; c++) typical[c] = median(bins + (size_t)c * BINS, assumed[c]);
}

/* The edge by which work starts: the one whose lag exceeds the typical one least. */
static void choose_slots(const fp_replay_nodes *to, int32_t n, const int32_t *typical) {
  for (int32_t i = 1; i < n; i++) {
    if (to->kind[i] != FP_REPLAY_WORK || !to->source[to->slot[i]][i]) continue;
    int64_t least = INT64_MAX;
    for (int s = 0; s < FP_REPLAY_SLOTS; s++) {
      const int64_t excess = (int64_t)to->lag[s][i] - typical[class_of(to, i, s)];
      if (to->lag[s][i] == INT32_MIN || excess >= least) continue;
      least = excess;
      to->slot[i] = (uint8_t)s;
    }
  }
}

/* Drops edges of stream waits that decide nothing, of work that others show not to wait so. */
static void drop_refuted(builder *b) {
  const fp_replay_nodes *to = b->to;
  for (int32_t i = 1; i < b->built->n_nodes; i++) {
    if (to->kind[i] != FP_REPLAY_WORK || to->slot[i] == 2) continue;
    if (!b->free_of[b->of->name[to->row[i]]]) continue;
    to->source[2][i] = 0;
    to->lag[2][i] = INT32_MIN;
  }
}

static fp_status settle_lags(builder *b) {
  uint32_t *bins = malloc((size_t)CLASSES * BINS * sizeof *bins);
  int32_t typical[CLASSES];
  if (!bins) return FP_E_MEMORY;
  for (int round = 0; round < 2; round++) {
    typical_lags(b->to, b->built->n_nodes, bins, typical);
    choose_slots(b->to, b->built->n_nodes, typical);
  }
  typical_lags(b->to, b->built->n_nodes, bins, typical);
  free(bins);
  drop_refuted(b);
  settle(b, typical);
  return FP_OK;
}

/* All nodes, in order of time. */

static bool is_valid(const fp_replay_trace *of) {
  for (int32_t i = 0; i < of->n_calls; i++) {
    if ((uint32_t)of->call_thread[i] >= (uint32_t)of->n_threads) return false;
    if (of->call_lane[i] < -1 || of->call_lane[i] >= of->n_lanes) return false;
    if (of->call_kind[i] >= FP_REPLAY_CALL_KINDS) return false;
  }
  for (int32_t i = 0; i < of->n_threads; i++)
    if ((uint32_t)of->process_of_thread[i] >= (uint32_t)of->n_processes) return false;
  for (int32_t i = 0; i < of->n_lanes; i++)
    if ((uint32_t)of->process_of_lane[i] >= (uint32_t)of->n_processes) return false;
  for (int32_t k = 0; k < of->n_work; k++) {
    if ((uint32_t)of->lane[k] >= (uint32_t)of->n_lanes) return false;
    if (of->call[k] < -1 || of->call[k] >= of->n_calls) return false;
    if ((uint32_t)of->name[k] >= (uint32_t)of->n_names) return false;
  }
  return true;
}

static bool is_sorted(const int64_t *start, int32_t n) {
  for (int32_t i = 1; i < n; i++)
    if (start[i] < start[i - 1]) return false;
  return true;
}

/* Links calls of a thread and work of a lane; `last` of threads and lanes is -1 before and after. */
static void link(builder *b) {
  const fp_replay_trace *of = b->of;
  for (int32_t t = 0; t < of->n_threads; t++) b->threads[t] = (thread){-1, -1, -1, 0};
  memset(b->last, -1, sizeof *b->last * (size_t)of->n_lanes);
  memset(b->last_work, -1, sizeof *b->last_work * (size_t)of->n_processes);
  for (int32_t i = of->n_calls - 1; i >= 0; i--) {
    b->to->call_node[i] = -1;
    b->next_call[i] = b->threads[of->call_thread[i]].node;
    b->threads[of->call_thread[i]].node = i;
    b->first_work[i] = -1;
    b->waited[i] = -1;
  }
  for (int32_t t = 0; t < of->n_threads; t++) b->threads[t].node = -1;
  for (int32_t k = of->n_work - 1; k >= 0; k--) {
    b->later[k] = b->last[of->lane[k]];
    if (b->later[k] >= 0) b->earlier[b->later[k]] = k;
    b->last[of->lane[k]] = k;
    b->earlier[k] = -1;
    b->to->work_node[k] = -1;
    if (of->call[k] < 0) continue;
    b->first_work[of->call[k]] = k;
    b->n_launched[of->call[k]]++;
  }
  memset(b->last, -1, sizeof *b->last * (size_t)of->n_lanes);
}

static void add_nodes(builder *b) {
  const fp_replay_trace *of = b->of;
  int32_t i = 0, k = 0;
  b->next_return = INT64_MAX;
  add(b, FP_REPLAY_ORIGIN, -1);
  for (;;) {
    const int64_t call = i < of->n_calls ? of->call_start[i] : INT64_MAX;
    const int64_t work = k < of->n_work ? of->start[k] : INT64_MAX;
    if (b->next_return != INT64_MAX && b->next_return <= call && b->next_return <= work)
      return_at(b, b->next_return);
    else if (i < of->n_calls && call <= work)
      begin_call(b, i++);
    else if (k < of->n_work)
      begin_work(b, k++);
    else
      break;
  }
  for (int32_t t = 0; t < of->n_threads; t++)
    if (b->threads[t].waits >= 0) return_from(b, t); /* returns at the last possible time */
}

static fp_status built_with(builder *b) {
  const fp_replay_trace *of = b->of;
  link(b);
  b->built->origin = of->begin;
  if (of->n_calls && of->call_start[0] < b->built->origin) b->built->origin = of->call_start[0];
  if (of->n_work && of->start[0] < b->built->origin) b->built->origin = of->start[0];
  add_nodes(b);
  return settle_lags(b);
}

fp_status fp_replay_build(const fp_replay_trace *trace, const fp_replay_nodes *nodes,
                          fp_replay_built *built) {
  *built = (fp_replay_built){0};
  if (!is_valid(trace)) return FP_E_INDEX;
  if (!is_sorted(trace->call_start, trace->n_calls)) return FP_E_ORDER;
  if (!is_sorted(trace->start, trace->n_work)) return FP_E_ORDER;
  if (2 * (int64_t)trace->n_calls + trace->n_work >= INT32_MAX / 2) return FP_E_TOO_MANY;
  const size_t n_calls = (size_t)trace->n_calls, n_work = (size_t)trace->n_work;
  const size_t n_lanes = (size_t)trace->n_lanes, n_processes = (size_t)trace->n_processes;
  const size_t n_ints = 4 * n_calls + 2 * n_work + n_lanes + n_processes;
  thread *threads = calloc((size_t)trace->n_threads + 1, sizeof *threads);
  int64_t *queued = calloc(n_processes + 1, sizeof *queued);
  int64_t *moved = calloc(n_calls + 1, sizeof *moved);
  uint8_t *free_of = calloc((size_t)trace->n_names + 1, sizeof *free_of);
  int32_t *ints = calloc(n_ints + 1, sizeof *ints);
  fp_status status = FP_E_MEMORY;
  if (threads && queued && moved && free_of && ints) {
    builder b = {.of = trace, .to = nodes, .built = built, .threads = threads, .queued = queued,
                 .moved = moved,
                 .free_of = free_of};
    b.next_call = ints;
    b.first_work = b.next_call + n_calls;
    b.n_launched = b.first_work + n_calls;
    b.waited = b.n_launched + n_calls;
    b.earlier = b.waited + n_calls;
    b.later = b.earlier + n_work;
    b.last = b.later + n_work;
    b.last_work = b.last + n_lanes;
    status = built_with(&b);
  }
  free(threads);
  free(queued);
  free(moved);
  free(free_of);
  free(ints);
  return status;
}
