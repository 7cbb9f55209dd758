/* fp_grouped.h: events of threads, thread by thread. */
#pragma once

#include "base/fp_status.h"

/* Events in any order. */
typedef struct {
  const int32_t *thread;      /* [n] below n_threads, -1 for none: left out */
  const int64_t *start, *end; /* [n] ns; `end` may be NULL for fp_grouped */
  int64_t n;
  int32_t n_threads;
} fp_grouped_events;

/* The events of each thread in their order, [n]; those of no thread take no place. */
typedef struct {
  int64_t *bounds; /* [n_threads + 1] where the events of each thread begin */
  int64_t *order;  /* the row of each */
  int64_t *start;
  int64_t
      *until; /* the last end of the event and those before it on its thread; NULL: not wanted */
} fp_grouped_threads;

/* next: scratch, [n_threads] */
fp_status fp_grouped(const fp_grouped_events *events, int64_t *next,
                     const fp_grouped_threads *threads);

/* Threads as groups, and the events to include. */
typedef struct {
  const int32_t *group;  /* [n_threads] below n_groups */
  const int32_t *label;  /* [n] below n_labels, -1: left out; NULL: all events are included */
  const uint8_t *wanted; /* [n_labels] whether to include the events of a label */
  int32_t n_groups, n_labels;
} fp_grouped_choice;

/* [n_groups] each */
typedef struct {
  int64_t *until, *next;
  uint8_t *has_any; /* cleared by the caller, before each of the two calls */
} fp_grouped_scratch;

/* Counts the events of each group of threads without those that lie within earlier ones.
 * bounds: out, [n_groups + 1] */
fp_status fp_grouped_count(const fp_grouped_events *events, const fp_grouped_choice *choice,
                           const fp_grouped_scratch *scratch, int64_t *bounds);

/* The events that fp_grouped_count has counted: their starts and ends, [bounds[n_groups]]. Of
 * events in order of start, the ends of a group ascend, too. */
fp_status fp_grouped_unite(const fp_grouped_events *events, const fp_grouped_choice *choice,
                           const fp_grouped_scratch *scratch, const int64_t *bounds, int64_t *start,
                           int64_t *end);

/* Windows of time in order, which do not overlap. */
typedef struct {
  const int64_t *start, *end; /* [n] ns */
  int64_t n;
} fp_grouped_windows;

/* Finds the events that overlap some window; FP_E_ORDER unless events are in order of start.
 *   choice  its label and wanted choose the events
 *   rows    out, [n + 1], the first *n_rows are found, ascending */
fp_status fp_grouped_overlapping(const fp_grouped_events *events, const fp_grouped_choice *choice,
                                 const fp_grouped_windows *windows, int64_t *rows, int64_t *n_rows);
