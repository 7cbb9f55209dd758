/* fp_order.h: the order of intervals in which an outer one comes before what it contains. */
#ifndef FP_ORDER_H
#define FP_ORDER_H

#include <stdbool.h>
#include <stdint.h>

#include "fp_status.h"

/* Whether (start ascending, end descending) already holds. */
bool fp_order_holds(const int64_t *start, const int64_t *end, int32_t n);

/* order[0 .. n): the indices sorted by (start ascending, end descending, index ascending).
 * `scratch` has room for n. Time near n for nearly sorted input. */
void fp_order_sort(const int64_t *start, const int64_t *end, int32_t n, int32_t *order,
                   int32_t *scratch);

#endif
