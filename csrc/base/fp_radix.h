/* fp_radix.h: sort numbers in linear time. */
#ifndef FP_RADIX_H
#define FP_RADIX_H

#include <stdint.h>

enum { FP_RADIX_COUNTS = 1 << 11 };

/* Sorts items [n] ascending by their bits from bit `low` on; equal ones keep their order.
 * scratch: [n]; count: [FP_RADIX_COUNTS] */
void fp_radix_sort(uint64_t *items, uint64_t *scratch, int64_t n, int low, int64_t *count);

#endif
