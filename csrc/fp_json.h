/* fp_json.h: a cursor that walks JSON text without making objects of it. */
#ifndef FP_JSON_H
#define FP_JSON_H

#include <stdint.h>

#include "fp_status.h"

/* What is still to read. Where something is malformed, `at` is the byte that cannot be there. */
typedef struct {
  const char *at, *end;
} fp_json;

/* Deepest nesting of brackets that is walked. */
enum { FP_JSON_DEPTH = 512 };

typedef enum { FP_JSON_STRING, FP_JSON_SCALAR, FP_JSON_LIST, FP_JSON_OBJECT } fp_json_kind;

/* A value as it stands in the text. */
typedef struct {
  const char *bytes; /* of a string: inside its quotes */
  int64_t length;
  uint8_t kind;    /* fp_json_kind */
  uint8_t escaped; /* a string with backslashes in it */
} fp_json_value;

static inline void fp_json_blanks(fp_json *json) {
  while (json->at < json->end && (unsigned char)*json->at <= ' ') json->at++;
}

/* 1 and past it if the next character is `c`, else 0. */
static inline int fp_json_character(fp_json *json, char c) {
  if (json->at == json->end || *json->at != c) return 0;
  json->at++;
  return 1;
}

/* Past blanks to the next character, which is not passed. FP_MORE: there is none. */
static inline fp_status fp_json_next(fp_json *json, char *c) {
  fp_json_blanks(json);
  if (json->at == json->end) return FP_MORE;
  *c = *json->at;
  return FP_OK;
}

/* The cursor stands on a quote: the string from there. FP_MORE: the text ends inside. */
fp_status fp_json_string(fp_json *json, fp_json_value *value);

/* Any value, from its first byte. Strings and the nesting of brackets are checked; numbers, names
 * such as true and NaN, and what stands between brackets are left to who reads them. FP_MORE: the
 * text ends inside, or right behind a number, which could go on. */
fp_status fp_json_read(fp_json *json, fp_json_value *value);

/* The UTF-8 that a string stands for, and its length, which is never more than that of the string.
 * Half a surrogate pair becomes U+FFFD; an escape that JSON does not know stays as it is. */
int64_t fp_json_unescape(const fp_json_value *string, char *out);

#endif
