#include "analysis/fp_chain.h"

#include <stdlib.h>

/* Labels that are sorted by insertion; more are the bits of so many words at most, or sorted. */
enum { FEW = 8, WORDS_A_LABEL = 4 };

typedef struct {
  const fp_chain_scratch *labels;
  int32_t n_labels, n_used;
} sums;

static fp_status add(sums *piece, int32_t label, int64_t ns, int32_t count) {
  const fp_chain_scratch *all = piece->labels;
  if ((uint32_t)label >= (uint32_t)piece->n_labels) return FP_E_INDEX;
  const uint64_t bit = UINT64_C(1) << (label & 63);
  if (!(all->is_used[label >> 6] & bit)) {
    all->is_used[label >> 6] |= bit;
    all->used[piece->n_used++] = label;
    all->ns[label] = all->count[label] = 0;
  }
  if (ns > 0 && __builtin_add_overflow(all->ns[label], ns, &all->ns[label]))
    all->ns[label] = INT64_MAX;
  all->count[label] += count;
  return FP_OK;
}

static int compare(const void *a, const void *b) {
  const int32_t left = *(const int32_t *)a, right = *(const int32_t *)b;
  return (left > right) - (left < right);
}

/* Sorts the labels of a piece, and forgets that they are used. */
static void sort(sums *piece) {
  int32_t *labels = piece->labels->used, n = piece->n_used, words = (piece->n_labels >> 6) + 1;
  uint64_t *is_used = piece->labels->is_used;
  if (n > FEW && words <= WORDS_A_LABEL * n) {
    n = 0;
    for (int32_t word = 0; word < words; word++)
      for (; is_used[word]; is_used[word] &= is_used[word] - 1)
        labels[n++] = 64 * word + __builtin_ctzll(is_used[word]);
    return;
  }
  for (int32_t i = 0; i < n; i++) is_used[labels[i] >> 6] = 0;
  if (n > FEW) {
    qsort(labels, (size_t)n, sizeof *labels, compare);
    return;
  }
  for (int32_t i = 1; i < n; i++) {
    int32_t label = labels[i], j = i;
    for (; j > 0 && labels[j - 1] > label; j--) labels[j] = labels[j - 1];
    labels[j] = label;
  }
}

/* Writes the sums of a piece from entry `n` on; returns the number of all entries. */
static int64_t finish(sums *piece, const fp_chain_entries *entries, int64_t n) {
  const fp_chain_scratch *all = piece->labels;
  sort(piece);
  for (int32_t i = 0; i < piece->n_used; i++, n++) {
    const int32_t label = all->used[i];
    entries->label[n] = label;
    entries->ns[n] = all->ns[label];
    entries->count[n] = all->count[label];
  }
  piece->n_used = 0;
  return n;
}

static int64_t between(int64_t start, int64_t end) {
  return (int64_t)((uint64_t)end - (uint64_t)start);
}

static int64_t later(int64_t a, int64_t b) { return a > b ? a : b; }

/* The work that is not yet divided: from `until` on, that of the work `next`. */
typedef struct {
  int64_t next, until;
  bool has_begun;
} position;

/* Adds the work up to the end of a piece. */
static fp_status add_work(const fp_chain_work *work, position *at, int64_t end, sums *piece) {
  for (; at->next < work->n && work->start[at->next] < end; at->next++) {
    const int64_t i = at->next, low = later(at->until, work->start[i]);
    if (i && work->start[i] < work->start[i - 1]) return FP_E_ORDER;
    if (work->end[i] <= low) continue;
    if (low >= end && !at->has_begun) return FP_OK;
    const int64_t high = work->end[i] < end ? work->end[i] : end;
    fp_status status = add(piece, work->label[i], between(low, high), !at->has_begun);
    if (status != FP_OK) return status;
    at->has_begun = high < work->end[i];
    at->until = high;
    if (at->has_begun) return FP_OK;
  }
  return FP_OK;
}

fp_status fp_chain(const fp_chain_work *work, const fp_chain_idle *idle, int64_t begin,
                   const int64_t *time, int32_t n_pieces, int32_t n_labels,
                   const fp_chain_scratch *scratch, const fp_chain_entries *entries) {
  sums piece = {scratch, n_labels, 0};
  position at = {0, begin, false};
  int64_t n = 0, next = 0;
  for (int32_t p = 0; p < n_pieces; p++) {
    entries->offsets[p] = n;
    if (p && time[p] < time[p - 1]) return FP_E_ORDER;
    fp_status status = add_work(work, &at, time[p], &piece);
    for (; status == FP_OK && next < idle->n && idle->piece[next] <= p; next++)
      status =
          idle->piece[next] < p ? FP_E_ORDER : add(&piece, idle->label[next], idle->ns[next], 0);
    if (status != FP_OK) return status;
    n = finish(&piece, entries, n);
  }
  entries->offsets[n_pieces] = n;
  for (; at.next < work->n; at.next++)
    if (work->end[at.next] > later(at.until, work->start[at.next])) return FP_E_INDEX;
  return next < idle->n ? FP_E_INDEX : FP_OK;
}
