/* fp_take.h: look up values by index, number distinct indices, find and remove items. */
#pragma once

#include "base/fp_status.h"

/* out[i] = values[index[i]], or *none if index[i] is -1. FP_E_INDEX if an index is out of bounds.
 *   values  [n_values] of `size` bytes each: 1, 2, 4 or 8
 *   index   [n], -1 .. n_values - 1
 *   none    one value
 *   out     [n] */
fp_status fp_take(const void *values, size_t size, int64_t n_values, const int32_t *index,
                  int64_t n, const void *none, void *out);

/* Finds the rows i with flags[index[i]] set.
 *   flags  [n_values] 0 or 1
 *   index  [n], -1 .. n_values - 1; rows without an index (-1) are not found
 *   rows   out, [n + 1], the first *n_rows are found, ascending */
fp_status fp_take_where(const uint8_t *flags, int64_t n_values, const int32_t *index, int64_t n,
                        int64_t *rows, int64_t *n_rows);

/* Indices by way of another table: index i is outer[inner[row[i]]], -1 if any of these is -1. */
typedef struct {
  const int32_t *row;   /* [n], -1 .. n_inner - 1 */
  const int32_t *inner; /* [n_inner], -1 .. n_outer - 1; NULL: the rows themselves */
  const int32_t *outer; /* [n_outer]; NULL: the inner values themselves */
  int64_t n, n_inner, n_outer;
} fp_take_index;

/* Numbers the distinct indices in ascending order: used[place[i]] is index i.
 *   index    -1 .. n_values - 1
 *   number   scratch, [n_values + 1]
 *   used     out, [n_values + 1], the first *n_used are the distinct indices
 *   place    out, [n] */
fp_status fp_take_distinct(const fp_take_index *index, int32_t n_values, int32_t *number,
                           int32_t *used, int32_t *n_used, int32_t *place);

/* rank[i] = the number of distinct indices below index[i]; -1 where index[i] is -1.
 *   index   [n], -1 .. n_values - 1
 *   used    scratch, [n_values / 64 + 1]
 *   before  scratch, [n_values / 64 + 1]
 *   rank    out, [n] */
fp_status fp_take_ranks(const int32_t *index, int64_t n, int32_t n_values, uint64_t *used,
                        int32_t *before, int32_t *rank);

/* Removes items in place, moving the later ones up.
 *   items  [n] of `size` bytes each
 *   gaps   [n_gaps] indices of the items to remove, strictly ascending, below n */
void fp_take_without(char *items, size_t size, int64_t n, const int64_t *gaps, int64_t n_gaps);

/* Numbers to place, each in a slice of its own. */
typedef struct {
  const int64_t *low, *high; /* [n] values[low .. high), ascending */
  const int64_t *wanted;     /* [n] */
  int64_t n;
} fp_take_slices;

/* place[i] = the first index of slice i whose value is at least the number, or, `after`, above it;
 * high[i] if there is none. FP_E_INDEX if a slice is out of bounds.
 *   values  [n_values]
 *   place   out, [n] */
fp_status fp_take_place(const int64_t *values, int64_t n_values, const fp_take_slices *slices,
                        bool after, int64_t *place);

enum { FP_RADIX_COUNTS = 1 << 11 };

/* Sorts items [n] ascending by their bits from bit `low` on; equal ones keep their order.
 * scratch: [n]; count: [FP_RADIX_COUNTS] */
void fp_radix_sort(uint64_t *items, uint64_t *scratch, int64_t n, int low, int64_t *count);
