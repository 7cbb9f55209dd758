/* fp_alike.h: number the distinct rows of several columns. */
#pragma once

#include "base/fp_hash.h"
#include "base/fp_status.h"

typedef struct {
  const char *values; /* [n] of `size` bytes each */
  size_t size;
} fp_alike_column;

enum { FP_ALIKE_SLOTS = 1024 }; /* the fewest */

/* Numbers the distinct rows in order of first appearance. FP_MORE: the table needs more slots; call
 * fp_hash_move, then continue with the same arguments.
 *   table        of the distinct rows; FP_ALIKE_SLOTS at least, all 0 at the start
 *   columns      [n_columns]
 *   next         in, out: the first row without an id, 0 at the start
 *   id           out, [n]: the distinct row that each row equals
 *   first        out, [n]: the first *n_distinct are the first row with each id
 *   n_distinct   in, out: 0 at the start */
fp_status fp_alike(fp_hash *table, const fp_alike_column *columns, int n_columns, int64_t n,
                   int64_t *next, int32_t *id, int32_t *first, int32_t *n_distinct);
