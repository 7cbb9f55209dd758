/* fp_kineto_rows.h: append events to tables as rows, and count them by phase and category. */
#pragma once

#include "base/fp_keys.h"
#include "kineto/fp_kineto_texts.h"

typedef enum {
  FP_KINETO_GPU,             /* kernels, copies and fills */
  FP_KINETO_LAUNCHES,        /* API calls */
  FP_KINETO_RANGES,          /* operators, annotations and Python functions */
  FP_KINETO_GPU_ANNOTATIONS, /* annotations on the GPU's timeline */
  FP_KINETO_FLOWS,           /* ends of arrows from forward to backward */
  FP_KINETO_MEMORY,          /* allocations and frees */
  FP_KINETO_METADATA,        /* names of processes and threads */
  FP_KINETO_SYNCS,           /* synchronisations that CUPTI recorded */
  FP_KINETO_TABLES,
} fp_kineto_table;

typedef enum { FP_KINETO_INT64, FP_KINETO_INT32, FP_KINETO_TRIPLE } fp_kineto_type;

/* Maximum number of columns of a table. */
enum { FP_KINETO_COLUMNS = 20 };

/* A missing value in columns where -1 is valid: times (ns), pid, tid, id, and bytes of memory
 * events. Missing values of other columns are -1. */
#define FP_KINETO_NONE INT64_MIN

/* Base of pids and tids that are strings: this minus the id in the pool of places. */
#define FP_KINETO_TEXT_PLACE (INT64_MIN / 2)

/* A table; the caller owns its columns and may reallocate them between calls. */
typedef struct {
  int64_t rows, capacity;           /* in rows */
  void *columns[FP_KINETO_COLUMNS]; /* int64 or int32 [capacity], or int32 [capacity, 3] */
} fp_kineto_rows;

/* The name and type of a column; NULL past the last. */
const char *fp_kineto_column(int table, int column, fp_kineto_type *type);

/* The table and, for GPU work, the kind of the events of a category. */
typedef struct {
  int8_t table; /* fp_kineto_table; -1: events are counted only */
  int8_t kind;  /* 0 kernel, 1 copy, 2 fill; else -1 */
} fp_kineto_class;

fp_kineto_class fp_kineto_classify(const char *category, size_t length);

typedef struct {
  fp_kineto_texts texts;
  fp_keys *count_keys; /* phase << 32 | category + 1 */
  int64_t *counts;
  size_t counts_capacity;
  int32_t n_counts;
  fp_kineto_class *classes; /* by category id */
  size_t classes_capacity;
  int32_t n_classes;
} fp_kineto_events;

/* Call fp_kineto_events_free even after FP_E_MEMORY. */
fp_status fp_kineto_events_make(fp_kineto_events *events);
void fp_kineto_events_free(fp_kineto_events *events);

/* Counts the event and appends it to its table, which must have room. */
fp_status fp_kineto_events_add(fp_kineto_events *events, const fp_kineto_event *event,
                               fp_kineto_rows *tables);
