/* fp_text.h: a piece of text, a table of texts, and a number as text. */
#ifndef FP_TEXT_H
#define FP_TEXT_H

#include <stdint.h>

typedef struct {
  const char *bytes;
  int64_t length;
} fp_text;

/* Text i is bytes[offsets[i] .. offsets[i + 1]); offsets [count + 1] never decrease. */
typedef struct {
  const char *bytes;
  const int64_t *offsets;
  int64_t count;
} fp_texts;

static inline fp_text fp_texts_at(const fp_texts *texts, int64_t i) {
  int64_t start = texts->offsets[i];
  return (fp_text){texts->bytes + start, texts->offsets[i + 1] - start};
}

/* The longest number: a sign and 19 digits. */
enum { FP_NUMBER_LENGTH = 20 };

/* Writes the digits of `value` so that they end before `end`, and returns where they start. */
static inline char *fp_number_before(char *end, int64_t value) {
  uint64_t rest = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
  do {
    *--end = (char)('0' + rest % 10);
    rest /= 10;
  } while (rest);
  if (value < 0) *--end = '-';
  return end;
}

#endif
