/* fp_literal.h: a cursor that walks one line of Python literals without making objects of them. */
#ifndef FP_LITERAL_H
#define FP_LITERAL_H

#include <string.h>

#include "fp_status.h"
#include "fp_text.h"

/* What is still to read. After an error `at` is where reading stopped. */
typedef struct {
  const char *at, *end;
} fp_literal;

/* Deepest nesting of brackets that fp_literal_value walks. */
enum { FP_LITERAL_DEPTH = 100 };

static inline int fp_literal_is_blank(char c) {
  return c == ' ' || c == '\t' || c == '\r' || c == '\f';
}

static inline void fp_literal_blanks(fp_literal *line) {
  while (line->at < line->end && fp_literal_is_blank(*line->at)) line->at++;
}

/* 1 and past it if the next character is `c`, else 0. */
static inline int fp_literal_character(fp_literal *line, char c) {
  if (line->at == line->end || *line->at != c) return 0;
  line->at++;
  return 1;
}

/* 1 and past them if these bytes are next, else 0. */
static inline int fp_literal_bytes(fp_literal *line, const char *bytes, int64_t length) {
  if (line->end - line->at < length || memcmp(line->at, bytes, (size_t)length) != 0) return 0;
  line->at += length;
  return 1;
}

/* 1 and past it if None (or JSON's null) is next, else 0. */
static inline int fp_literal_none(fp_literal *line) {
  return fp_literal_bytes(line, "None", 4) || fp_literal_bytes(line, "null", 4);
}

/* A string in either quote, its prefix u or b allowed: the bytes between the quotes, escapes as
 * they stand. All that follow return FP_E_SYNTAX where no such thing is next. */
fp_status fp_literal_string(fp_literal *line, fp_text *inside);

/* A decimal number; FP_E_RANGE when it has more than 64 bits. */
fp_status fp_literal_int(fp_literal *line, int64_t *value);

/* Any value, up to the comma, colon or closing bracket that ends it. Strings and the nesting of
 * brackets are checked, the rest is left to who reads the text. */
fp_status fp_literal_value(fp_literal *line, fp_text *text);

#endif
