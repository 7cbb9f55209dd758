/* fp_order.h: sort intervals so that outer ones precede those they contain. */
#ifndef FP_ORDER_H
#define FP_ORDER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/fp_status.h"

/* Whether the intervals are sorted by (start ascending, end descending). */
bool fp_order_holds(const int64_t *start, const int64_t *end, int32_t n);

/* order[0 .. n) = the indices sorted by (start ascending, end descending, index ascending).
 * `scratch` is [n]. Nearly linear for nearly sorted input. */
void fp_order_sort(const int64_t *start, const int64_t *end, int32_t n, int32_t *order,
                   int32_t *scratch);

#endif
