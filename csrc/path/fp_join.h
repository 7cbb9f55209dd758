/* fp_join.h: find the launch of each kernel by (process, correlation id).
 *
 * The table is built from the kernels' ids; launch rows are then offered in order. Rows that
 * launched no kernel are never stored. Correlation ids are unique within a process only. */
#pragma once

#include "base/fp_status.h"

typedef struct fp_join fp_join;

/* Builds a table of n pairs, which may repeat. Memory is proportional to n plus the largest process
 * number. NULL when out of memory. */
fp_join *fp_join_new(const int32_t *process, const int64_t *id, int64_t n);
void fp_join_free(fp_join *join);

bool fp_join_has(const fp_join *join, int32_t process, int64_t id);

/* Offers rows 0 .. n - 1 with these ids; the first row of each id is stored. */
void fp_join_offer(fp_join *join, const int32_t *process, const int64_t *id, int64_t n);

/* row[i] = the row stored for (process[i], id[i]), or -1. */
void fp_join_rows(const fp_join *join, const int32_t *process, const int64_t *id, int64_t n,
                  int32_t *row);

/* Kernels and their launches. */
typedef struct {
  const int32_t *launch; /* [n] -1 for none */
  const int32_t *thread; /* [n_launches] 0 .. n_threads - 1, -1 for none */
  const int64_t *start;  /* [n_launches] */
  int64_t n;
  int32_t n_launches, n_threads;
} fp_next_kernels;

/* next[k] = the kernel after rows[k] on its thread, -1 for none. FP_MORE if the kernels of a thread
 * are not in order of launch. Launches without a thread count as one thread.
 *   rows     [n_rows] kernels with a launch, strictly ascending
 *   last     scratch, [n_threads + 1]
 *   waiting  scratch, [n_threads + 1]
 *   next     out, [n_rows] */
fp_status fp_next(const fp_next_kernels *kernels, const int64_t *rows, int64_t n_rows,
                  int64_t *last, int64_t *waiting, int64_t *next);
