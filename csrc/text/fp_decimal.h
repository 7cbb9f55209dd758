/* fp_decimal.h: parse a decimal number exactly, without floating point. */
#ifndef FP_DECIMAL_H
#define FP_DECIMAL_H

#include <stdint.h>

#include "base/fp_status.h"

/* *value is the number times 10^shift (shift 0 to 9), rounded half away from zero. The text may
 * have a decimal point, an exponent and surrounding blanks. FP_E_SYNTAX: not a finite number.
 * FP_E_RANGE: the result exceeds int64, or is INT64_MIN, which callers use as "none". */
fp_status fp_decimal_read(const char *bytes, int64_t length, int shift, int64_t *value);

#endif
