/* fp_radix.c: see fp_radix.h. Least significant digit first. */
#include "base/fp_radix.h"

#include <string.h>

enum { DIGIT = 11 };

static uint64_t digit_of(uint64_t item, int shift) { return item >> shift & (FP_RADIX_COUNTS - 1); }

static void distribute(const uint64_t *items, int64_t n, int shift, int64_t *count, uint64_t *out) {
  memset(count, 0, FP_RADIX_COUNTS * sizeof *count);
  for (int64_t i = 0; i < n; i++) count[digit_of(items[i], shift)]++;
  int64_t place = 0;
  for (int digit = 0; digit < FP_RADIX_COUNTS; digit++) {
    int64_t own = count[digit];
    count[digit] = place;
    place += own;
  }
  for (int64_t i = 0; i < n; i++) out[count[digit_of(items[i], shift)]++] = items[i];
}

void fp_radix_sort(uint64_t *items, uint64_t *scratch, int64_t n, int low, int64_t *count) {
  uint64_t any = 0, *from = items, *to = scratch;
  for (int64_t i = 0; i < n; i++) any |= items[i];
  for (int shift = low; shift < 64 && any >> shift; shift += DIGIT) {
    distribute(from, n, shift, count, to);
    uint64_t *swap = from;
    from = to;
    to = swap;
  }
  if (n && from != items) memcpy(items, from, (size_t)n * sizeof *items);
}
