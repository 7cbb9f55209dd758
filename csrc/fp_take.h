/* fp_take.h: columns of indices -> columns of what they point at; -1 points at nothing. */
#ifndef FP_TAKE_H
#define FP_TAKE_H

#include <stddef.h>
#include <stdint.h>

#include "fp_status.h"

/* out[i] = values[index[i]], `none` where index[i] is -1. FP_E_INDEX if one is out of range. */
fp_status fp_take_i32(const int32_t *values, int64_t n_values, const int32_t *index, int64_t n,
                      int32_t none, int32_t *out);
fp_status fp_take_i64(const int64_t *values, int64_t n_values, const int32_t *index, int64_t n,
                      int64_t none, int64_t *out);

/* Number the indices that occur, in ascending order: place[i] is the number of index[i].
 *   index    values -1 .. n_values - 1
 *   number   scratch, [n_values + 1]
 *   used     [n_values + 1], the indices that occur
 *   n_used   how many */
fp_status fp_take_distinct(const int32_t *index, int64_t n, int32_t n_values, int32_t *number,
                           int32_t *used, int32_t *n_used, int32_t *place);

/* Close the gaps that these items leave, in place.
 *   items  [n] of `size` bytes each
 *   gaps   [n_gaps], ascending, each once, all below n */
void fp_take_without(char *items, size_t size, int64_t n, const int64_t *gaps, int64_t n_gaps);

#endif
