/* fp_held.h: which launches hold up the pieces of a rank's chain. */
#pragma once

#include "base/fp_status.h"

/* The unknown time. */
#define FP_HELD_NO_TIME INT64_MIN

/* Work in order of start, which may overlap: each moment is that of the first to start. Work
 * without a moment of its own counts for nothing. */
typedef struct {
  const int64_t *start, *end; /* [n] ns */
  const int32_t *row;         /* [n] 0 .. n_kernels - 1 */
  int64_t n, begin;           /* ns: all earlier moments count for nothing */
} fp_held_work;

/* Calls of collectives that arrive, in order of piece; after the work of their piece. */
typedef struct {
  const int64_t *piece, *start; /* [n] 0 .. n_pieces - 1; ns */
  const int32_t *row;           /* [n] 0 .. n_kernels - 1 */
  int64_t n;
} fp_held_arrivals;

/* How kernels are launched. */
typedef struct {
  const int64_t *time;   /* [n_kernels] ns, FP_HELD_NO_TIME if unknown */
  const int32_t *call;   /* [n_kernels] -1 .. n_calls - 1: the API call */
  const int32_t *thread; /* [n_calls] */
  const int64_t *end;    /* [n_calls] ns */
  int64_t n_kernels, n_calls;
} fp_held_launches;

typedef struct {
  const int64_t *time;     /* [n] ns, ascending: the end of each piece */
  const int64_t *work;     /* [n] see fp_held_sums */
  const double *stretched; /* [n] what the work of a piece is multiplied by */
  int64_t n;
} fp_held_pieces;

typedef struct {
  int64_t *launch;  /* [n_pieces] ns, the latest launch of work that begins in the piece, or of a
                       call  that arrives at its end; FP_HELD_NO_TIME without any */
  int32_t *thread;  /* [n_pieces] that makes it, -1 if unknown */
  int64_t *allowed; /* [n_pieces] ns: the piece could end so early, did it only follow its launches;
                       FP_HELD_NO_TIME without any */
  int64_t *rest;    /* [n_pieces] ns, stretched work from the one that allows it to the end */
  int64_t *slow_launch, *slow_end; /* [work + arrivals] ns, the first n_slow: launches whose call
                                      takes `slow_ns` or longer */
  int64_t n_slow;
} fp_held;

/* Sums the work of pieces, ns. FP_E_ORDER if work or pieces descend; FP_E_INDEX if work ends after
 * the last piece.
 *   time  [n_pieces] ns, ascending
 *   sums  out, [n_pieces] */
fp_status fp_held_sums(const fp_held_work *work, const int64_t *time, int64_t n_pieces,
                       int64_t *sums);

/* Finds the launches that hold up pieces. Work could begin `latency_ns` after its launch, and no
 * later than it does. FP_E_ORDER if work or arrivals descend; FP_E_INDEX if an index is out of
 * bounds. */
fp_status fp_held_find(const fp_held_work *work, const fp_held_arrivals *arrivals,
                       const fp_held_launches *launches, const fp_held_pieces *pieces,
                       int64_t latency_ns, int64_t slow_ns, fp_held *held);

/* How much work, and how many arrivals, are launched before each time and begin at it or later.
 *   time     [n] ns, ascending
 *   waiting  out, [n + 1] the last one is scratch */
fp_status fp_held_waiting(const fp_held_work *work, const fp_held_arrivals *arrivals,
                          const fp_held_launches *launches, const int64_t *time, int64_t n,
                          int64_t *waiting);
