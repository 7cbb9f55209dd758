/* fp_literal.h: a cursor over one line of Python literals that creates no objects. */
#pragma once

#include <string.h>

#include "base/fp_status.h"
#include "text/fp_text.h"

/* The unread text. After an error, `at` is where parsing stopped. */
typedef struct {
  const char *at, *end;
} fp_literal;

/* Maximum nesting of brackets in fp_literal_value. */
enum { FP_LITERAL_DEPTH = 100 };

static inline int fp_literal_is_blank(char c) {
  return c == ' ' || c == '\t' || c == '\r' || c == '\f';
}

static inline void fp_literal_blanks(fp_literal *line) {
  while (line->at < line->end && fp_literal_is_blank(*line->at)) line->at++;
}

/* Skips the next character and returns 1 if it is `c`; otherwise returns 0. */
static inline int fp_literal_character(fp_literal *line, char c) {
  if (line->at == line->end || *line->at != c) return 0;
  line->at++;
  return 1;
}

/* Skips these bytes and returns 1 if they are next; otherwise returns 0. */
static inline int fp_literal_bytes(fp_literal *line, const char *bytes, int64_t length) {
  if (line->end - line->at < length || memcmp(line->at, bytes, (size_t)length) != 0) return 0;
  line->at += length;
  return 1;
}

/* Skips None or JSON's null and returns 1 if it is next; otherwise returns 0. */
static inline int fp_literal_none(fp_literal *line) {
  return fp_literal_bytes(line, "None", 4) || fp_literal_bytes(line, "null", 4);
}

/* The following functions return FP_E_SYNTAX if the expected literal is not next.
 *
 * Parses a string in either quote, with optional prefix u or b; `inside` is the raw text between
 * the quotes. */
fp_status fp_literal_string(fp_literal *line, fp_text *inside);

/* Parses a decimal integer; FP_E_RANGE if it exceeds 64 bits. */
fp_status fp_literal_int(fp_literal *line, int64_t *value);

/* Skips any value, up to the comma, colon or closing bracket that ends it; `text` is its raw text.
 * Checks only strings and the nesting of brackets. */
fp_status fp_literal_value(fp_literal *line, fp_text *text);
