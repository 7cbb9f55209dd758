/* fp_kineto_rows.h: the fields of one event -> a row in one of the tables. */
#ifndef FP_KINETO_ROWS_H
#define FP_KINETO_ROWS_H

#include "fp_kineto_texts.h"

typedef enum {
  FP_KINETO_GPU,             /* kernels, copies and fills */
  FP_KINETO_LAUNCHES,        /* API calls */
  FP_KINETO_RANGES,          /* operators, annotations and Python functions */
  FP_KINETO_GPU_ANNOTATIONS, /* annotations as the GPU saw them */
  FP_KINETO_FLOWS,           /* ends of arrows from forward to backward */
  FP_KINETO_MEMORY,          /* allocations and frees */
  FP_KINETO_METADATA,        /* names of processes and threads */
  FP_KINETO_TABLES,
} fp_kineto_table;

typedef enum { FP_KINETO_INT64, FP_KINETO_INT32, FP_KINETO_TRIPLE } fp_kineto_type;

/* Most columns that a table has. */
enum { FP_KINETO_COLUMNS = 19 };

/* What is missing is -1; in these columns, where -1 may be meant, it is INT64_MIN: times (ns),
 * pid, tid, id, and the bytes of memory. */
#define FP_KINETO_NONE INT64_MIN

/* A pid or tid that is no number: this minus the text's id in the pool of places. */
#define FP_KINETO_TEXT_PLACE (INT64_MIN / 2)

/* A table; the caller owns its columns and may move them between calls. */
typedef struct {
  int64_t rows, capacity;           /* rows so far, rows that fit */
  void *columns[FP_KINETO_COLUMNS]; /* of int64 or int32 [capacity], or int32 [capacity, 3] */
} fp_kineto_rows;

/* Name and type of a column; NULL behind the last one. */
const char *fp_kineto_column(int table, int column, fp_kineto_type *type);

/* What a category says of an event: a table, for GPU work what kind of it. */
typedef struct {
  int8_t table; /* fp_kineto_table; -1: events of the category are counted only */
  int8_t kind;  /* 0 kernel, 1 copy, 2 fill; else -1 */
} fp_kineto_class;

fp_kineto_class fp_kineto_classify(const char *category, size_t length);

/* Appends the event to a table that has room; `category` is its id among the categories. */
fp_status fp_kineto_append(fp_kineto_texts *texts, const fp_kineto_event *event, int table,
                           int kind, int32_t category, fp_kineto_rows *rows);

#endif
