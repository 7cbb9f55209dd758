/* fp_join.h: (process, correlation id) -> launch.
 *
 * A table is made of the kernels' ids first; launch rows are then offered one by one, so that a row
 * which launched no kernel is never stored. A correlation id is unique in a process only. */
#ifndef FP_JOIN_H
#define FP_JOIN_H

#include <stdbool.h>
#include <stdint.h>

#include "fp_status.h"

typedef struct fp_join fp_join;

/* A table of these n pairs (repeats are fine). Memory grows with the largest process number. NULL
 * when out of memory. */
fp_join *fp_join_new(const int32_t *process, const int64_t *id, int64_t n);
void fp_join_free(fp_join *join);

bool fp_join_has(const fp_join *join, int32_t process, int64_t id);

/* Rows i = 0 .. n - 1 carry these ids: the first row of an id is remembered for it. */
void fp_join_offer(fp_join *join, const int32_t *process, const int64_t *id, int64_t n);

/* row[i] = the row remembered for (process[i], id[i]), or -1. */
void fp_join_rows(const fp_join *join, const int32_t *process, const int64_t *id, int64_t n,
                  int32_t *row);

#endif
