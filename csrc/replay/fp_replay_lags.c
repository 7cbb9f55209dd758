/* Lags of edges that do not decide when work starts are unknown: the median of those that do. */
#include <stdlib.h>
#include <string.h>

#include "replay/fp_replay_builder.h"

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
  if (lag <= fp_replay_limit(slot) || lag <= usual) return 0;
  const int32_t rest = (int32_t)lag - usual;
  for (int s = 0; s < FP_REPLAY_SLOTS; s++) {
    if (to->lag[s][i] == INT32_MIN) continue;
    to->lag[s][i] = to->lag[s][i] < INT32_MIN + 1 + rest ? INT32_MIN + 1 : to->lag[s][i] - rest;
  }
  to->before[i] = fp_replay_plus(to->before[i], rest);
  return to->before[i];
}

/* The host prepares memory before it copies: that is no wait for something unknown. */
static bool is_copy(const fp_replay_builder *b, int32_t i) {
  const int32_t call = b->of->call[b->to->row[i]];
  return call >= 0 && b->of->call_kind[call] == FP_REPLAY_COPIES;
}

static void settle(fp_replay_builder *b, const int32_t *typical) {
  const fp_replay_nodes *to = b->to;
  for (int32_t i = 1; i < b->built->n_nodes; i++) {
    if (to->kind[i] != FP_REPLAY_WORK || !to->source[to->slot[i]][i]) continue;
    const int32_t usual = typical[class_of(to, i, to->slot[i])];
    const int64_t wait = unexplained(to, i, usual);
    if (!is_copy(b, i)) b->built->unexplained = fp_replay_plus(b->built->unexplained, wait);
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
static void drop_refuted(fp_replay_builder *b) {
  const fp_replay_nodes *to = b->to;
  for (int32_t i = 1; i < b->built->n_nodes; i++) {
    if (to->kind[i] != FP_REPLAY_WORK || to->slot[i] == 2) continue;
    if (!b->free_of[b->of->name[to->row[i]]]) continue;
    to->source[2][i] = 0;
    to->lag[2][i] = INT32_MIN;
  }
}

fp_status fp_replay_settle(fp_replay_builder *b) {
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
