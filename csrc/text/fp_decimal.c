/* fp_decimal.c: see fp_decimal.h. */
#include "text/fp_decimal.h"

/* A number as digits * 10^power. */
typedef struct {
  uint64_t digits;
  int64_t power;
  int n;    /* number of digits without leading zeros */
  int next; /* the first digit beyond those stored */
} decimal;

/* An int64 has at most 19 digits, and rounding needs only one more. */
enum { MOST_DIGITS = 19, MOST_POWER = 100000 };

static inline int is_digit(const char *at, const char *end) {
  return at < end && *at >= '0' && *at <= '9';
}

static inline const char *read_digits(const char *at, const char *end, int64_t step,
                                      decimal *number) {
  for (; is_digit(at, end); at++) {
    if (number->n < MOST_DIGITS) {
      number->digits = number->digits * 10 + (uint64_t)(*at - '0');
      number->n += number->digits != 0;
      number->power -= step;
    } else {
      if (number->n == MOST_DIGITS) number->next = *at - '0';
      number->n = MOST_DIGITS + 1;
      number->power += 1 - step;
    }
  }
  return at;
}

/* Parses an optional exponent such as `e+5`; returns `at` if it is malformed. */
static const char *read_exponent(const char *at, const char *end, decimal *number) {
  int64_t exponent = 0;
  const char *start = at++;
  int is_negative = at < end && *at == '-';
  if (at < end && (*at == '-' || *at == '+')) at++;
  if (!is_digit(at, end)) return start;
  for (; is_digit(at, end); at++)
    if (exponent < MOST_POWER) exponent = exponent * 10 + (*at - '0');
  number->power += is_negative ? -exponent : exponent;
  return at;
}

/* digits * 10^power, rounded; FP_E_RANGE for 2^63 and above. */
static fp_status to_integer(const decimal *number, uint64_t *value) {
  uint64_t digits = number->digits;
  uint64_t last = (uint64_t)number->next; /* the first digit that rounding drops */
  int64_t power = number->power;
  if (digits == 0 || power < -MOST_DIGITS) {
    *value = 0;
    return FP_OK;
  }
  for (; power < 0; power++) {
    last = digits % 10;
    digits /= 10;
  }
  digits += last >= 5;
  for (; power > 0; power--) {
    if (digits > INT64_MAX / 10) return FP_E_RANGE;
    digits *= 10;
  }
  *value = digits;
  return digits > INT64_MAX ? FP_E_RANGE : FP_OK;
}

fp_status fp_decimal_read(const char *bytes, int64_t length, int shift, int64_t *value) {
  const char *at = bytes, *end = bytes + length;
  while (at < end && (unsigned char)*at <= ' ') at++;
  while (at < end && (unsigned char)end[-1] <= ' ') end--;
  int is_negative = at < end && *at == '-';
  at += is_negative;
  decimal number = {0, shift, 0, 0};
  const char *whole = at;
  at = read_digits(at, end, 0, &number);
  int64_t n = at - whole;
  if (at < end && *at == '.') {
    const char *fraction = ++at;
    at = read_digits(at, end, 1, &number);
    n += at - fraction;
  }
  if (n == 0) return FP_E_SYNTAX;
  if (at < end && (*at == 'e' || *at == 'E')) at = read_exponent(at, end, &number);
  if (at != end) return FP_E_SYNTAX;
  uint64_t magnitude = 0;
  fp_status status = to_integer(&number, &magnitude);
  if (status != FP_OK) return status;
  *value = is_negative ? -(int64_t)magnitude : (int64_t)magnitude;
  return FP_OK;
}
