/* fp_kineto_events.h: append events to tables, and count them by phase and category. */
#ifndef FP_KINETO_EVENTS_H
#define FP_KINETO_EVENTS_H

#include "base/fp_keys.h"
#include "kineto/fp_kineto_rows.h"

typedef struct {
  fp_kineto_texts texts;
  fp_keys *count_keys; /* phase << 32 | category + 1 */
  int64_t *counts;
  int32_t counts_capacity;
  fp_kineto_class *classes; /* by category id */
  int32_t n_classes, classes_capacity;
} fp_kineto_events;

/* Call fp_kineto_events_free even after FP_E_MEMORY. */
fp_status fp_kineto_events_make(fp_kineto_events *events);
void fp_kineto_events_free(fp_kineto_events *events);

/* Counts the event and appends it to its table, which must have room. */
fp_status fp_kineto_events_add(fp_kineto_events *events, const fp_kineto_event *event,
                               fp_kineto_rows *tables);

/* See fp_kineto_count. */
int64_t fp_kineto_events_count(const fp_kineto_events *events, int32_t i, int32_t *phase,
                               int32_t *category);

#endif
