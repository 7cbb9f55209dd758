/* fp_decimal.h: a decimal number as text -> an integer, without floating point in between. */
#ifndef FP_DECIMAL_H
#define FP_DECIMAL_H

#include <stdint.h>

#include "fp_status.h"

/* *value is the number times 10 to the power of `shift` (0 to 9), rounded, halves away from 0.
 * Digits, a point, an exponent and blanks around may be there. FP_E_SYNTAX: it is no finite number.
 * FP_E_RANGE: it does not fit, or is INT64_MIN, which callers have as "none". */
fp_status fp_decimal_read(const char *bytes, int64_t length, int shift, int64_t *value);

#endif
