#include "replay/fp_replay_build.h"

#include <stdlib.h>
#include <string.h>

#include "replay/fp_replay_builder.h"

int32_t fp_replay_add(fp_replay_builder *b, int kind, int32_t row) {
  const int32_t i = b->built->n_nodes++;
  const fp_replay_nodes *to = b->to;
  for (int s = 0; s < FP_REPLAY_SLOTS; s++) to->source[s][i] = 0, to->lag[s][i] = INT32_MIN;
  to->before[i] = to->duration[i] = 0;
  to->kind[i] = (uint8_t)kind;
  to->slot[i] = 0;
  to->row[i] = row;
  return i;
}

void fp_replay_connect(fp_replay_builder *b, int32_t node, int slot, int32_t source, bool at_end) {
  b->to->source[slot][node] = 2 * source + at_end;
  b->to->lag[slot][node] = 0;
}

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

/* Links calls of a thread and work of a lane; `last` of both is -1 before and after. */
static void link(fp_replay_builder *b) {
  const fp_replay_trace *of = b->of;
  for (int32_t t = 0; t < of->n_threads; t++) b->threads[t] = (fp_replay_thread){-1, -1, -1, 0};
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

static void add_nodes(fp_replay_builder *b) {
  const fp_replay_trace *of = b->of;
  int32_t i = 0, k = 0;
  fp_replay_add(b, FP_REPLAY_ORIGIN, -1);
  for (;;) {
    const int64_t call = i < of->n_calls ? of->call_start[i] : INT64_MAX;
    const int64_t work = k < of->n_work ? of->start[k] : INT64_MAX;
    const int32_t next = fp_replay_next_return(b);
    const int64_t end = next < 0 ? INT64_MAX : fp_replay_call_end(of, next);
    if (end != INT64_MAX && end <= call && end <= work)
      fp_replay_return(b, next);
    else if (i < of->n_calls && call <= work)
      fp_replay_begin_call(b, i++);
    else if (k < of->n_work)
      fp_replay_begin_work(b, k++);
    else if (next >= 0)
      fp_replay_return(b, next);
    else
      break;
  }
}

/* Each call is in at most one heap of its process, and in `waiting` and `running`. */
static void place_heaps(fp_replay_builder *b, int32_t *calls) {
  const fp_replay_trace *of = b->of;
  b->waiting.calls = calls;
  b->running.calls = calls + of->n_calls;
  calls += 2 * (size_t)of->n_calls;
  for (int32_t i = 0; i < of->n_calls; i++) b->ended[of->process_of_thread[of->call_thread[i]]].n++;
  for (int32_t p = 0; p < of->n_processes; p++) {
    const int32_t n = b->ended[p].n;
    b->ended[p] = (fp_replay_heap){.calls = calls};
    calls += n;
  }
}

static fp_status built_with(fp_replay_builder *b) {
  const fp_replay_trace *of = b->of;
  link(b);
  b->built->origin = of->begin;
  if (of->n_calls && of->call_start[0] < b->built->origin) b->built->origin = of->call_start[0];
  if (of->n_work && of->start[0] < b->built->origin) b->built->origin = of->start[0];
  add_nodes(b);
  return fp_replay_settle(b);
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
  const size_t n_ints = 8 * n_calls + 2 * n_work + n_lanes + n_processes;
  fp_replay_builder b = {.of = trace, .to = nodes, .built = built};
  b.threads = calloc((size_t)trace->n_threads + 1, sizeof *b.threads);
  b.queued = calloc(n_processes + 1, sizeof *b.queued);
  b.moved = calloc(n_calls + 1, sizeof *b.moved);
  b.free_of = calloc((size_t)trace->n_names + 1, sizeof *b.free_of);
  b.ended = calloc(n_processes + 1, sizeof *b.ended);
  b.next_call = calloc(n_ints + 1, sizeof *b.next_call);
  fp_status status = FP_E_MEMORY;
  if (b.threads && b.queued && b.moved && b.free_of && b.ended && b.next_call) {
    b.first_work = b.next_call + n_calls;
    b.n_launched = b.first_work + n_calls;
    b.n_started = b.n_launched + n_calls;
    b.waited = b.n_started + n_calls;
    b.earlier = b.waited + n_calls;
    b.later = b.earlier + n_work;
    b.last = b.later + n_work;
    b.last_work = b.last + n_lanes;
    place_heaps(&b, b.last_work + n_processes);
    status = built_with(&b);
  }
  free(b.threads);
  free(b.queued);
  free(b.moved);
  free(b.free_of);
  free(b.ended);
  free(b.next_call);
  return status;
}
