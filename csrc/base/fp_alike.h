/* fp_alike.h: number the distinct rows of several columns. */
#ifndef FP_ALIKE_H
#define FP_ALIKE_H

#include <stddef.h>
#include <stdint.h>

#include "base/fp_status.h"

typedef struct {
  const char *values; /* [n] of `size` bytes each */
  size_t size;
} fp_alike_column;

/* A hash table of rows. All slots are 0 at the start. */
typedef struct {
  uint64_t *slots;
  size_t n_slots;  /* a power of two */
  uint64_t secret; /* fp_alike_secret; the same in a table with more slots */
} fp_alike_table;

enum { FP_ALIKE_SLOTS = 1024 }; /* the fewest */

/* Numbers the distinct rows in order of first appearance. FP_MORE: the table needs more slots; call
 * fp_alike_move, then continue with the same arguments.
 *   columns      [n_columns]
 *   next         in, out: the first row without an id, 0 at the start
 *   id           out, [n]: the distinct row that each row equals
 *   first        out, [n]: the first *n_distinct are the first row with each id
 *   n_distinct   in, out: 0 at the start */
fp_status fp_alike(const fp_alike_table *table, const fp_alike_column *columns, int n_columns,
                   int64_t n, int64_t *next, int32_t *id, int32_t *first, int32_t *n_distinct);

/* What rows are hashed with: a number that no file can know. */
uint64_t fp_alike_secret(const void *slots);

/* Copies a table to one with more slots. */
void fp_alike_move(const fp_alike_table *from, const fp_alike_table *to);

#endif
