/* Host calls: what each waits for, and what the host does before it. */
#include "replay/fp_replay_builder.h"

/* ns; the length of a queue: launches */
enum {
  CLOCKS = 5000,        /* a call may return so long before the work that it waits for ends */
  SHORT_CALL = 10000,   /* the longest call that does not wait */
  BLOCKED_CALL = 20000, /* the shortest launch that waits for room in the queue */
  FULL_QUEUE = 500,     /* launches */
};

/* Calls by their end: which waits the least longer, and which one hands over to another thread.
 *
 * Heaps of calls. A call stays after its thread has gone on, until it is the first. */

/* Whether call i comes before call j: the end that is sooner, or with `latest` later; then the
 * lower thread. */
static bool precedes(const fp_replay_trace *of, int32_t i, int32_t j, bool latest) {
  const int64_t end = fp_replay_call_end(of, i), other = fp_replay_call_end(of, j);
  if (end != other) return latest ? end > other : end < other;
  return of->call_thread[i] < of->call_thread[j];
}

static void push(const fp_replay_trace *of, fp_replay_heap *heap, int32_t call, bool latest) {
  int32_t at = heap->n++;
  for (int32_t up; at > 0; at = up) {
    up = (at - 1) / 2;
    if (!precedes(of, call, heap->calls[up], latest)) break;
    heap->calls[at] = heap->calls[up];
  }
  heap->calls[at] = call;
}

static int32_t pop(const fp_replay_trace *of, fp_replay_heap *heap, bool latest) {
  const int32_t first = heap->calls[0], last = heap->calls[--heap->n];
  int64_t at = 0;
  for (int64_t down = 1; down < heap->n; down = 2 * at + 1) {
    if (down + 1 < heap->n && precedes(of, heap->calls[down + 1], heap->calls[down], latest))
      down++;
    if (!precedes(of, heap->calls[down], last, latest)) break;
    heap->calls[at] = heap->calls[down];
    at = down;
  }
  heap->calls[at] = last;
  return first;
}

int32_t fp_replay_next_return(fp_replay_builder *b) {
  while (b->waiting.n) {
    const int32_t call = b->waiting.calls[0];
    if (b->threads[b->of->call_thread[call]].waits == call) return call;
    pop(b->of, &b->waiting, false);
  }
  return -1;
}

/* A thread begins a call; the next one of its thread may leave a gap. */
static void may_hand_over(fp_replay_builder *b, int32_t call) {
  const int32_t next = b->next_call[call];
  const int64_t end = fp_replay_call_end(b->of, call);
  if (b->of->n_threads < 2) return;
  if (next >= 0 && fp_replay_minus(b->of->call_start[next], end) < FP_REPLAY_HANDOVER) return;
  push(b->of, &b->running, call, false);
}

/* The other thread of a process whose last call ended last in (after, until], and that is idle
 * then; -1: none. `until` ascends from call to call. */
static int32_t hands_over(fp_replay_builder *b, int32_t own, int64_t after, int64_t until) {
  const fp_replay_trace *of = b->of;
  fp_replay_heap *ended = &b->ended[of->process_of_thread[own]];
  while (b->running.n && fp_replay_call_end(of, b->running.calls[0]) <= until) {
    const int32_t call = pop(of, &b->running, false);
    push(of, &b->ended[of->process_of_thread[of->call_thread[call]]], call, true);
  }
  for (; ended->n; pop(of, ended, true)) {
    const int32_t call = ended->calls[0], t = of->call_thread[call];
    const fp_replay_thread *other = &b->threads[t];
    if (t == own || b->to->row[other->node] != call || other->waits >= 0) continue;
    return other->end > after ? t : -1;
  }
  return -1;
}

static void host_time(fp_replay_builder *b, int32_t node, int32_t t, int64_t start) {
  fp_replay_thread *own = &b->threads[t];
  int64_t ready = own->node < 0 ? INT64_MIN : own->end;
  if (own->node >= 0) fp_replay_connect(b, node, 0, own->node, true);
  if (own->node < 0 || fp_replay_minus(start, ready) >= FP_REPLAY_HANDOVER) {
    const int32_t other = hands_over(b, t, ready, start);
    if (other >= 0) {
      fp_replay_connect(b, node, 1, b->threads[other].node, true);
      b->to->slot[node] = 1;
      ready = b->threads[other].end;
    }
  }
  if (ready == INT64_MIN) { /* the first call: at its recorded time */
    fp_replay_connect(b, node, 0, 0, true);
    ready = b->built->origin;
  }
  b->to->before[node] = fp_replay_minus(start, ready);
}

static bool may_wait(const fp_replay_builder *b, int32_t i) {
  const fp_replay_trace *of = b->of;
  const int64_t length = fp_replay_minus(of->call_end[i], of->call_start[i]);
  const int32_t work = b->first_work[i];
  const int kind = of->call_kind[i];
  if (kind == FP_REPLAY_WAITS || kind == FP_REPLAY_WAITS_EVENT) return true;
  if (kind == FP_REPLAY_ALLOCATES || kind == FP_REPLAY_WAITS_LAST) return true;
  const bool is_long_copy = kind == FP_REPLAY_COPIES && work >= 0 && length > SHORT_CALL;
  if (is_long_copy && of->start[work] < of->call_end[i]) return true;
  const int32_t process = of->process_of_thread[of->call_thread[i]];
  return length >= BLOCKED_CALL && b->queued[process] >= FULL_QUEUE;
}

/* The last work of a lane that a call waits for, -1 if the call does not wait for the lane. */
static int32_t waited_in_lane(const fp_replay_builder *b, int32_t call, int32_t lane) {
  const fp_replay_trace *of = b->of;
  const int64_t time = of->call_start[call], until = of->call_end[call];
  int32_t k = fp_replay_started_last(b, lane, time), n = 0;
  if (of->call_kind[call] == FP_REPLAY_WAITS_EVENT) {
    while (k >= 0 && fp_replay_minus(fp_replay_end(of, k), until) > CLOCKS &&
           n++ < FP_REPLAY_FAR_BACK)
      k = b->earlier[k];
  } else if (k >= 0) {
    const int32_t next = b->later[k];
    if (next >= 0 && of->call[next] >= 0 && fp_replay_launched_before(of, next, time)) return -1;
  }
  if (k < 0 || fp_replay_minus(fp_replay_end(of, k), until) > CLOCKS) return -1;
  return of->call_kind[call] == FP_REPLAY_ALLOCATES && fp_replay_end(of, k) <= time ? -1 : k;
}

static int32_t waited_work(const fp_replay_builder *b, int32_t call) {
  const fp_replay_trace *of = b->of;
  const int32_t process = of->process_of_thread[of->call_thread[call]];
  int32_t found = -1;
  for (int32_t lane = 0; lane < of->n_lanes; lane++) {
    if (of->process_of_lane[lane] != process) continue;
    if (of->call_lane[call] >= 0 && of->call_lane[call] != lane) continue;
    const int32_t k = waited_in_lane(b, call, lane);
    if (k >= 0 && (found < 0 || fp_replay_end(of, k) > fp_replay_end(of, found))) found = k;
  }
  return found;
}

/* The last work of a process to end before a call does, -1 if that is long before. */
static int32_t ended_last(const fp_replay_builder *b, int32_t call) {
  const fp_replay_trace *of = b->of;
  const int32_t process = of->process_of_thread[of->call_thread[call]];
  int32_t found = -1;
  for (int32_t lane = 0; lane < of->n_lanes; lane++) {
    if (of->process_of_lane[lane] != process) continue;
    int32_t k = b->last[lane];
    for (int n = 0; k >= 0 && n < FP_REPLAY_FAR_BACK; n++, k = b->earlier[k])
      if (fp_replay_minus(fp_replay_end(of, k), of->call_end[call]) <= CLOCKS) break;
    if (k >= 0 && fp_replay_minus(fp_replay_end(of, k), of->call_end[call]) > CLOCKS) continue;
    if (k >= 0 && (found < 0 || fp_replay_end(of, k) > fp_replay_end(of, found))) found = k;
  }
  if (found < 0 || fp_replay_end(of, found) <= of->call_start[call]) return -1;
  return fp_replay_minus(of->call_end[call], fp_replay_end(of, found)) > FP_REPLAY_GAP ? -1 : found;
}

/* Connects the return of a call to the GPU work that it waits for; returns when it may go on. */
static int64_t wait_for_work(fp_replay_builder *b, int32_t node, int32_t call) {
  const fp_replay_trace *of = b->of;
  const int64_t start = fp_replay_plus(of->call_start[call], b->moved[call]);
  const int64_t end = of->call_end[call];
  const int kind = of->call_kind[call];
  int32_t k = -1;
  bool at_end = true;
  if (kind == FP_REPLAY_LAUNCHES || kind == FP_REPLAY_COPIES) {
    k = b->first_work[call];
    if (kind == FP_REPLAY_LAUNCHES || k < 0 || b->to->work_node[k] < 0) {
      k = b->last_work[of->process_of_thread[of->call_thread[call]]];
      at_end = false; /* the start of work makes room in the queue */
      if (k >= 0 && fp_replay_minus(end, of->start[k]) > FP_REPLAY_HANDOVER) k = -1;
    } else {
      /* The host copies from pageable memory piece by piece, and returns before the last. */
      at_end = fp_replay_minus(fp_replay_end(of, k), end) <= fp_replay_minus(end, of->start[k]);
    }
  } else {
    k = kind == FP_REPLAY_WAITS_LAST ? -1 : waited_work(b, call);
    /* By clocks that differ, what it waits for may begin after its end: a short copy, say. */
    if (k < 0 && kind != FP_REPLAY_ALLOCATES) k = ended_last(b, call);
  }
  if (k < 0) return start;
  fp_replay_connect(b, node, 1, b->to->work_node[k], at_end);
  int64_t until = at_end ? fp_replay_end(of, k) : of->start[k];
  const int64_t early = fp_replay_minus(until, end);
  if (early > 0) { /* it returns before the work ends */
    b->to->lag[1][node] = early > INT32_MAX ? -INT32_MAX : -(int32_t)early;
    until = end;
  }
  if (until > start) b->to->slot[node] = 1;
  return until > start ? until : start;
}

void fp_replay_return(fp_replay_builder *b, int32_t call) {
  fp_replay_thread *own = &b->threads[b->of->call_thread[call]];
  const int32_t node = fp_replay_add(b, FP_REPLAY_RETURN, call);
  fp_replay_connect(b, node, 0, own->node, true);
  b->to->before[node] = fp_replay_minus(own->end, wait_for_work(b, node, call));
  own->node = node;
  own->waits = -1;
}

void fp_replay_begin_call(fp_replay_builder *b, int32_t i) {
  const fp_replay_trace *of = b->of;
  const int32_t t = of->call_thread[i];
  fp_replay_thread *own = &b->threads[t];
  b->to->call_node[i] = -1;
  if (of->call_kind[i] == FP_REPLAY_WAITS_STREAM) {
    own->stream_wait = i;
    return;
  }
  if (own->node >= 0 && of->call_end[i] <= own->end) { /* within another call */
    b->to->call_node[i] = own->node;
    return;
  }
  /* Calls of one thread overlap: damaged times. */
  if (own->waits >= 0) fp_replay_return(b, own->waits);
  const int32_t node = fp_replay_add(b, FP_REPLAY_CALL, i);
  b->to->call_node[i] = node;
  host_time(b, node, t, of->call_start[i]);
  b->waited[i] = -1;
  if (b->n_launched[i]) {
    b->waited[i] = own->stream_wait;
    own->stream_wait = -1;
  }
  own->node = node;
  own->end = fp_replay_call_end(of, i);
  may_hand_over(b, i);
  if (may_wait(b, i)) {
    own->waits = i;
    push(of, &b->waiting, i, false);
  } else {
    b->to->duration[node] = fp_replay_minus(own->end, of->call_start[i]);
  }
  b->queued[of->process_of_thread[t]] += b->n_launched[i];
}
