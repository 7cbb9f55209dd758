/* fp_text.h: texts, tables of texts, and formatting of numbers. */
#pragma once

#include <string.h>

#include "base/fp_status.h"

typedef struct {
  const char *bytes;
  int64_t length;
} fp_text;

/* The unread part of a text. After an error, `at` is where reading stopped. */
typedef struct {
  const char *at, *end;
} fp_cursor;

/* Skips the next character and returns true if it is `c`. */
static inline bool fp_cursor_pass(fp_cursor *cursor, char c) {
  if (cursor->at == cursor->end || *cursor->at != c) return false;
  cursor->at++;
  return true;
}

/* The unused part of a buffer. */
typedef struct {
  char *at, *end;
} fp_room;

/* Texts documented as padded have this many readable bytes past their end. They are copied in steps
 * of this size, which is faster than memcpy for typical short texts. */
enum { FP_TEXT_BEYOND = 32 };

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

/* Eight bytes as a number. */
static inline uint64_t fp_load_word(const char *at) {
  uint64_t word;
  memcpy(&word, at, 8);
  return word;
}

/* 1 in each byte: times a character, eight of it. */
#define FP_ONES 0x0101010101010101u

/* The highest bit of each byte that is zero. */
static inline uint64_t fp_zeros_in(uint64_t word) {
  const uint64_t low = FP_ONES * 0x7f;
  return ~(((word & low) + low) | word | low);
}

/* Maximum length of a number: a sign and 19 digits. */
enum { FP_NUMBER_LENGTH = 20 };

/* Formats `value` backward from `end`; returns the first character. */
static inline char *fp_number_before(char *end, int64_t value) {
  static const char pairs[] =
      "00010203040506070809101112131415161718192021222324"
      "25262728293031323334353637383940414243444546474849"
      "50515253545556575859606162636465666768697071727374"
      "75767778798081828384858687888990919293949596979899";
  uint64_t rest = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
  for (; rest >= 100; rest /= 100) memcpy(end -= 2, pairs + rest % 100 * 2, 2);
  if (rest >= 10)
    memcpy(end -= 2, pairs + rest * 2, 2);
  else
    *--end = (char)('0' + rest);
  if (value < 0) *--end = '-';
  return end;
}
