/* fp_json.h: read JSON text with a cursor, without creating objects. */
#pragma once

#include "text/fp_text.h"

/* Maximum nesting of brackets. */
enum { FP_JSON_DEPTH = 512 };

typedef enum { FP_JSON_STRING, FP_JSON_SCALAR, FP_JSON_LIST, FP_JSON_OBJECT } fp_json_kind;

/* The raw text of a value. */
typedef struct {
  const char *bytes; /* for a string, without its quotes */
  int64_t length;
  uint8_t kind;    /* fp_json_kind */
  uint8_t escaped; /* 1 for a string that contains backslashes */
} fp_json_value;

static inline void fp_json_blanks(fp_cursor *json) {
  while (json->at < json->end && (unsigned char)*json->at <= ' ') json->at++;
}

/* Skips blanks and peeks at the next character. FP_MORE: end of text. */
static inline fp_status fp_json_next(fp_cursor *json, char *c) {
  fp_json_blanks(json);
  if (json->at == json->end) return FP_MORE;
  *c = *json->at;
  return FP_OK;
}

/* Whether the raw text of a value is `text`. */
static inline bool fp_json_is(const fp_json_value *value, const char *text) {
  const size_t length = strlen(text);
  return (size_t)value->length == length && memcmp(value->bytes, text, length) == 0;
}

/* Reads the string whose opening quote is at the cursor. FP_MORE: the text ends inside. */
fp_status fp_json_string(fp_cursor *json, fp_json_value *value);

/* Skips blanks and the colon after a key, up to the value. */
fp_status fp_json_colon(fp_cursor *json);

/* Reads any value, which must start at the cursor. Checks strings and the nesting of brackets, but
 * not numbers, names such as true and NaN, or the contents of brackets. FP_MORE: the text ends
 * inside the value, or right after a number, which might continue. */
fp_status fp_json_read(fp_cursor *json, fp_json_value *value);

/* Decodes a string to UTF-8 and returns the length, which never exceeds that of the raw string.
 * Unpaired surrogates become U+FFFD; unknown escapes are copied. */
int64_t fp_json_unescape(const fp_json_value *string, char *out);

/* *value is the number times 10^shift (shift 0 to 9), rounded half away from zero. The text may
 * have a decimal point, an exponent and surrounding blanks. FP_E_SYNTAX: not a finite number.
 * FP_E_RANGE: the result exceeds int64, or is INT64_MIN, which callers use as "none". */
fp_status fp_decimal_read(const char *bytes, int64_t length, int shift, int64_t *value);
