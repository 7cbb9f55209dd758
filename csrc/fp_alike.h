/* fp_alike.h: number the distinct rows of several columns. */
#ifndef FP_ALIKE_H
#define FP_ALIKE_H

#include <stddef.h>
#include <stdint.h>

#include "fp_status.h"

typedef struct {
  const char *values; /* [n] of `size` bytes each */
  size_t size;
} fp_alike_column;

/* Numbers the distinct rows in order of first appearance.
 *   columns     [n_columns]
 *   id          out, [n]: the distinct row that each row equals
 *   first       out, [n]: the first *n_distinct are the first row with each id */
fp_status fp_alike(const fp_alike_column *columns, int n_columns, int64_t n, int32_t *id,
                   int32_t *first, int32_t *n_distinct);

#endif
