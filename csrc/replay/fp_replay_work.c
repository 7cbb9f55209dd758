/* GPU work: what each piece waits for. */
#include "replay/fp_replay_builder.h"

/* ns */
enum {
  ROUNDING = 1000,   /* recorded times of one GPU may overlap by so much */
  SUBMISSION = 5000, /* from where a long call launches to its work */
};

/* The edges of work: ns from each source to its start; INT64_MAX: no edge. */
typedef struct {
  int64_t ns[FP_REPLAY_SLOTS];
  int32_t node;
} edges;

static void wait_for(fp_replay_builder *b, edges *of, int slot, int32_t source, bool at_end,
                     int64_t ns) {
  fp_replay_connect(b, of->node, slot, source, at_end);
  of->ns[slot] = ns;
  b->to->lag[slot][of->node] = ns > INT32_MAX    ? INT32_MAX
                               : ns < -INT32_MAX ? -INT32_MAX
                                                 : (int32_t)ns;
}

static void wait_for_launch(fp_replay_builder *b, edges *to, int32_t k) {
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
  b->n_started[outer]++;
  wait_for(b, to, 0, source, at_end,
           fp_replay_minus(fp_replay_minus(of->start[k], time), at_end ? 0 : b->moved[outer]));
}

/* A long call that prepares its launch, as one that loads the code of a kernel: the time before the
 * launch is the host's own. */
static void move_launch(fp_replay_builder *b, edges *to, int32_t k) {
  const int32_t source = b->to->source[0][to->node] / 2;
  const int32_t call = b->to->row[source];
  const int64_t spare = fp_replay_minus(to->ns[0], SUBMISSION);
  const bool is_within =
      b->to->source[0][to->node] % 2 == 0 && b->of->start[k] <= b->of->call_end[call];
  const bool has_returned =
      !b->to->duration[source] && b->threads[b->of->call_thread[call]].waits != call;
  if (!is_within || has_returned || b->n_started[call] > 1) return;
  b->moved[call] = fp_replay_plus(b->moved[call], spare);
  b->to->before[source] = fp_replay_plus(b->to->before[source], spare);
  if (b->to->duration[source] > 0)
    b->to->duration[source] = fp_replay_minus(b->to->duration[source], spare);
  wait_for(b, to, 0, source, false, SUBMISSION);
}

/* The last work of a lane that ended before other work started. */
static int32_t ended_before(const fp_replay_builder *b, int32_t lane, int64_t start) {
  int32_t k = b->last[lane];
  for (int n = 0; k >= 0 && n < FP_REPLAY_FAR_BACK; n++, k = b->earlier[k])
    if (fp_replay_minus(fp_replay_end(b->of, k), start) <= ROUNDING) return k;
  return -1;
}

static void wait_for_work_at_end(fp_replay_builder *b, edges *to, int slot, int32_t k,
                                 int64_t start) {
  wait_for(b, to, slot, b->to->work_node[k], true, fp_replay_minus(start, fp_replay_end(b->of, k)));
}

/* The last work of a lane that is launched before a time, -1: none has started. */
static int32_t launched_last(const fp_replay_builder *b, int32_t lane, int64_t time) {
  int32_t k = fp_replay_started_last(b, lane, time);
  for (int n = 0; k >= 0 && n < FP_REPLAY_QUEUE; n++) {
    const int32_t next = b->later[k];
    if (next < 0 || !fp_replay_launched_before(b->of, next, time)) break;
    k = next;
  }
  return k;
}

static bool shares_gpu(const fp_replay_trace *of, int32_t lane, int32_t other) {
  return other != lane && of->process_of_lane[other] == of->process_of_lane[lane] &&
         of->gpu_of_lane[other] == of->gpu_of_lane[lane];
}

/* The work in other lanes of the GPU that a recorded stream wait orders before work: the last that
 * is launched before the wait; none if it ends too late for that. */
static int32_t ordered_before(const fp_replay_builder *b, int32_t k) {
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
  if (b->to->work_node[found] >= 0 &&
      fp_replay_minus(fp_replay_end(of, found), of->start[k]) <= ROUNDING)
    return found;
  b->free_of[of->name[k]] = 1;
  return -1;
}

/* The work in another lane of the GPU that lets work start by its end, just before or, as it frees
 * multiprocessors, just after. ready: when the work could have started otherwise */
static int32_t makes_room(const fp_replay_builder *b, int32_t k, int64_t ready) {
  const fp_replay_trace *of = b->of;
  int32_t found = -1;
  for (int32_t other = 0; other < of->n_lanes; other++) {
    if (!shares_gpu(of, of->lane[k], other)) continue;
    int32_t j = b->last[other];
    const bool runs = j >= 0 && of->start[j] <= ready && fp_replay_end(of, j) > of->start[k];
    if (!runs) j = ended_before(b, other, of->start[k]);
    if (j < 0 || fp_replay_minus(of->start[k], fp_replay_end(of, j)) > FP_REPLAY_GAP) continue;
    if (found < 0 || fp_replay_end(of, j) < fp_replay_end(of, found)) found = j;
  }
  return found;
}

/* The last work on the GPU to end within a call that copies, before its copy starts: a copy from or
 * to pageable memory waits for it, then prepares. */
static int32_t drained_before(const fp_replay_builder *b, int32_t k) {
  const fp_replay_trace *of = b->of;
  const int32_t call = of->call[k], lane = of->lane[k];
  int32_t found = -1;
  if (call < 0 || of->call_kind[call] != FP_REPLAY_COPIES) return -1;
  for (int32_t other = 0; other < of->n_lanes; other++) {
    if (other != lane && !shares_gpu(of, lane, other)) continue;
    const int32_t j = ended_before(b, other, of->start[k]);
    if (j < 0 || fp_replay_end(of, j) <= of->call_start[call]) continue;
    if (found < 0 || fp_replay_end(of, j) > fp_replay_end(of, found)) found = j;
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
  return slot >= 0 && of->ns[slot] <= fp_replay_limit(slot);
}

void fp_replay_begin_work(fp_replay_builder *b, int32_t k) {
  const fp_replay_trace *of = b->of;
  const fp_replay_nodes *to = b->to;
  const int32_t lane = of->lane[k], process = of->process_of_lane[lane];
  const int64_t start = of->start[k];
  const int32_t node = fp_replay_add(b, FP_REPLAY_WORK, k);
  edges own = {{INT64_MAX, INT64_MAX, INT64_MAX}, node};
  to->work_node[k] = node;
  to->duration[node] = of->duration[k] > 0 ? of->duration[k] : 0;
  wait_for_launch(b, &own, k);
  int32_t other = ended_before(b, lane, start);
  if (other >= 0) wait_for_work_at_end(b, &own, 1, other, start);
  other = ordered_before(b, k);
  if (other >= 0) wait_for_work_at_end(b, &own, 2, other, start);
  if (!is_explained(&own) && own.ns[0] != INT64_MAX) {
    other = drained_before(b, k);
    if (other < 0)
      move_launch(b, &own, k);
    else
      wait_for_work_at_end(b, &own, of->lane[other] == lane ? 1 : 2, other, start);
  }
  if (!is_explained(&own)) {
    const int by = decides(&own);
    other = makes_room(b, k, by < 0 ? start : fp_replay_minus(start, own.ns[by]));
    if (other >= 0) wait_for_work_at_end(b, &own, 2, other, start);
  }
  const int slot = decides(&own);
  if (slot >= 0) {
    to->slot[node] = (uint8_t)slot;
    to->before[node] = fp_replay_minus(own.ns[slot], to->lag[slot][node]);
  } else { /* at its recorded time */
    fp_replay_connect(b, node, 0, 0, true);
    to->before[node] = fp_replay_minus(start, b->built->origin);
    b->built->n_unplaced++;
  }
  if (of->call[k] >= 0) b->queued[process]--;
  b->last[lane] = k;
  b->last_work[process] = k;
}
