/* fp_chain.h: what a rank does between the events of its chain, summed by label. */
#pragma once

#include "base/fp_status.h"

/* Work in order of start, which may overlap: each moment is that of the first to start. */
typedef struct {
  const int64_t *start, *end; /* [n] ns; an end before its start counts as the start */
  const int32_t *label;       /* [n] */
  int64_t n;
} fp_chain_work;

/* Idle time of pieces, in order of piece. */
typedef struct {
  const int32_t *piece, *label; /* [n] */
  const int64_t *ns;            /* [n] */
  int64_t n;
} fp_chain_idle;

/* The time of each label of a piece, in order of piece, then label. */
typedef struct {
  int64_t *offsets; /* [n_pieces + 1] the first entry of each piece, and their number */
  int32_t *label;   /* [room] where room = work + pieces + idle */
  int64_t *ns;      /* [room] at most INT64_MAX */
  int32_t *count;   /* [room] work that begins in the piece and has time of its own */
} fp_chain_entries;

typedef struct {
  int64_t *ns;           /* [n_labels] */
  int32_t *count, *used; /* [n_labels] */
  uint64_t *is_used;     /* [n_labels / 64 + 1] a bit per label, cleared by the caller */
} fp_chain_scratch;

/* Divides the work, from `begin` on, and the idle time among pieces. FP_E_ORDER if work, idle time
 * or pieces descend; FP_E_INDEX if a label or a piece is out of bounds, or work ends after the last
 * piece.
 *   time  [n_pieces] ns, ascending: the end of each piece */
fp_status fp_chain(const fp_chain_work *work, const fp_chain_idle *idle, int64_t begin,
                   const int64_t *time, int32_t n_pieces, int32_t n_labels,
                   const fp_chain_scratch *scratch, const fp_chain_entries *entries);
