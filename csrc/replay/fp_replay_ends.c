/* Calls by their end: which waits the least longer, and which one hands over to another thread.
 *
 * Heaps of calls. A call stays after its thread has gone on, until it is the first. */
#include "replay/fp_replay_builder.h"

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

void fp_replay_will_return(fp_replay_builder *b, int32_t call) {
  push(b->of, &b->waiting, call, false);
}

int32_t fp_replay_next_return(fp_replay_builder *b) {
  while (b->waiting.n) {
    const int32_t call = b->waiting.calls[0];
    if (b->threads[b->of->call_thread[call]].waits == call) return call;
    pop(b->of, &b->waiting, false);
  }
  return -1;
}

void fp_replay_may_hand_over(fp_replay_builder *b, int32_t call) {
  const int32_t next = b->next_call[call];
  const int64_t end = fp_replay_call_end(b->of, call);
  if (b->of->n_threads < 2) return;
  if (next >= 0 && fp_replay_minus(b->of->call_start[next], end) < FP_REPLAY_HANDOVER) return;
  push(b->of, &b->running, call, false);
}

int32_t fp_replay_hands_over(fp_replay_builder *b, int32_t own, int64_t after, int64_t until) {
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
