#include "text/fp_json.h"

static inline bool has_quote_or_backslash(uint64_t word) {
  return fp_zeros_in(word ^ FP_ONES * '"') | fp_zeros_in(word ^ FP_ONES * '\\');
}

/* The next quote or backslash, or the end. */
static inline const char *find_quote_or_backslash(const char *at, const char *end) {
  while (end - at >= 8 && !has_quote_or_backslash(fp_load_word(at))) at += 8;
  while (at < end && *at != '"' && *at != '\\') at++;
  return at;
}

fp_status fp_json_string(fp_cursor *json, fp_json_value *value) {
  const char *at = ++json->at;
  value->bytes = at;
  value->kind = FP_JSON_STRING;
  value->escaped = 0;
  for (;;) {
    at = find_quote_or_backslash(at, json->end);
    if (json->end - at < 1 || (*at == '\\' && json->end - at < 2)) {
      json->at = json->end;
      return FP_MORE;
    }
    if (*at == '"') break;
    value->escaped = 1;
    at += 2;
  }
  value->length = at - value->bytes;
  json->at = at + 1;
  return FP_OK;
}

fp_status fp_json_colon(fp_cursor *json) {
  char c;
  if (fp_json_next(json, &c) != FP_OK) return FP_MORE;
  if (!fp_cursor_pass(json, ':')) return FP_E_SYNTAX;
  return fp_json_next(json, &c);
}

static fp_status walk_brackets(fp_cursor *json) {
  char closing[FP_JSON_DEPTH];
  int depth = 0;
  fp_json_value ignored;
  do {
    if (json->at == json->end) return FP_MORE;
    char c = *json->at;
    switch (c) {
      case '"':
        if (fp_json_string(json, &ignored) != FP_OK) return FP_MORE;
        continue;
      case '[':
      case '{':
        if (depth == FP_JSON_DEPTH) return FP_E_SYNTAX;
        closing[depth++] = (char)(c + 2); /* ']' is '[' + 2, '}' is '{' + 2 */
        break;
      case ']':
      case '}':
        if (closing[--depth] != c) return FP_E_SYNTAX;
        break;
      default:
        break;
    }
    json->at++;
  } while (depth > 0);
  return FP_OK;
}

static inline int is_scalar(char c) {
  return (c >= '0' && c <= '9') || c == '.' || c == '-' || c == '+' ||
         ((c | 0x20) >= 'a' && (c | 0x20) <= 'z');
}

static fp_status walk_scalar(fp_cursor *json) {
  const char *start = json->at;
  while (json->at < json->end && is_scalar(*json->at)) json->at++;
  if (json->at == json->end) return FP_MORE;
  return json->at == start ? FP_E_SYNTAX : FP_OK;
}

fp_status fp_json_read(fp_cursor *json, fp_json_value *value) {
  if (json->at == json->end) return FP_MORE;
  char first = *json->at;
  if (first == '"') return fp_json_string(json, value);
  value->bytes = json->at;
  value->escaped = 0;
  value->kind = first == '{' ? FP_JSON_OBJECT : first == '[' ? FP_JSON_LIST : FP_JSON_SCALAR;
  fp_status status = value->kind == FP_JSON_SCALAR ? walk_scalar(json) : walk_brackets(json);
  value->length = json->at - value->bytes;
  return status;
}

/* The value of four hexadecimal digits, or -1. */
static int32_t hexadecimal(const char *at, const char *end) {
  int32_t value = 0;
  if (end - at < 4) return -1;
  for (int i = 0; i < 4; i++) {
    char c = at[i], letter = (char)(c | 0x20);
    if (c >= '0' && c <= '9')
      value = value * 16 + (c - '0');
    else if (letter >= 'a' && letter <= 'f')
      value = value * 16 + (letter - 'a' + 10);
    else
      return -1;
  }
  return value;
}

static char *write_utf8(uint32_t character, char *out) {
  static const uint8_t first[] = {0, 0xc0, 0xe0, 0xf0}; /* by the number of bytes that follow */
  int n = (character >= 0x80) + (character >= 0x800) + (character >= 0x10000);
  *out++ = (char)(first[n] | character >> 6 * n);
  while (n-- > 0) *out++ = (char)(0x80 | (character >> 6 * n & 0x3f));
  return out;
}

/* Decodes \uXXXX, or a surrogate pair of two, starting at the backslash; returns the end, or `at`
 * if it is not such an escape. */
static const char *read_unicode(const char *at, const char *end, char **out) {
  int32_t high = hexadecimal(at + 2, end);
  if (high < 0) return at;
  at += 6;
  if (high < 0xd800 || high > 0xdfff) {
    *out = write_utf8((uint32_t)high, *out);
    return at;
  }
  int is_pair = high < 0xdc00 && end - at >= 6 && at[0] == '\\' && at[1] == 'u';
  int32_t low = is_pair ? hexadecimal(at + 2, end) : -1;
  if (low < 0xdc00 || low > 0xdfff) {
    *out = write_utf8(0xfffd, *out);
    return at;
  }
  *out = write_utf8(0x10000 + ((uint32_t)(high - 0xd800) << 10) + (uint32_t)(low - 0xdc00), *out);
  return at + 6;
}

int64_t fp_json_unescape(const fp_json_value *string, char *out) {
  static const char letters[] = "\"\\/bfnrt", meanings[] = "\"\\/\b\f\n\r\t";
  const char *at = string->bytes, *end = at + string->length;
  char *start = out;
  while (at < end) {
    if (*at != '\\' || end - at < 2) {
      *out++ = *at++;
      continue;
    }
    const char *behind = at[1] == 'u' ? read_unicode(at, end, &out) : at;
    if (behind != at) {
      at = behind;
      continue;
    }
    const char *letter = memchr(letters, at[1], sizeof letters - 1);
    if (letter) {
      *out++ = meanings[letter - letters];
    } else {
      *out++ = at[0];
      *out++ = at[1];
    }
    at += 2;
  }
  return out - start;
}

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
