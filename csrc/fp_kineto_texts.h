/* fp_kineto_texts.h: the texts of trace events -> ids in pools of distinct ones. */
#ifndef FP_KINETO_TEXTS_H
#define FP_KINETO_TEXTS_H

#include <stddef.h>

#include "fp_kineto_event.h"
#include "fp_names.h"

typedef enum {
  FP_KINETO_NAMES,      /* names of GPU work, calls and metadata, and the values of metadata */
  FP_KINETO_LABELS,     /* see fp_kineto_label */
  FP_KINETO_STACKS,     /* call stacks and module hierarchies */
  FP_KINETO_PLACES,     /* pids and tids that are no numbers */
  FP_KINETO_CATEGORIES, /* categories of all events */
  FP_KINETO_ROOT,       /* "key": value pairs beside the events, as they stand there */
  FP_KINETO_POOLS,
} fp_kineto_pool;

/* Distinct texts, and room to put one together. */
typedef struct {
  fp_names *pools[FP_KINETO_POOLS];
  char *room;
  size_t capacity;
} fp_kineto_texts;

/* FP_E_MEMORY leaves something that fp_kineto_texts_free frees. */
fp_status fp_kineto_texts_make(fp_kineto_texts *texts);
void fp_kineto_texts_free(fp_kineto_texts *texts);

/* Id of the UTF-8 text of a value in a pool: what a string stands for, else the value as it is. */
fp_status fp_kineto_intern(fp_kineto_texts *texts, int pool, const fp_json_value *value,
                           int32_t *id);

/* Id of the label of a range: its name, then six pieces of JSON, a byte 0x1f before each, empty
 * where the event has no such thing: the values of Input Dims, Input type, Input Strides and
 * Concrete Inputs, the "key":value pairs that say a collective, those that say a Triton kernel.
 * The name itself may hold 0x1f: split from the right. */
fp_status fp_kineto_label(fp_kineto_texts *texts, const fp_kineto_event *event, int32_t *id);

#endif
