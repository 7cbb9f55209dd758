#include "base/fp_take.h"

#include <string.h>

#define TAKE(name, type)                                                                       \
  static fp_status name(const void *values, int64_t n_values, const int32_t *index, int64_t n, \
                        const void *none, void *out) {                                         \
    const type *from = values, otherwise = *(const type *)none;                                \
    type *to = out;                                                                            \
    for (int64_t i = 0; i < n; i++) {                                                          \
      if (index[i] < -1 || index[i] >= n_values) return FP_E_INDEX;                            \
      to[i] = index[i] < 0 ? otherwise : from[index[i]];                                       \
    }                                                                                          \
    return FP_OK;                                                                              \
  }

TAKE(take_1, uint8_t)
TAKE(take_2, uint16_t)
TAKE(take_4, uint32_t)
TAKE(take_8, uint64_t)

fp_status fp_take(const void *values, size_t size, int64_t n_values, const int32_t *index,
                  int64_t n, const void *none, void *out) {
  if (size == 1) return take_1(values, n_values, index, n, none, out);
  if (size == 2) return take_2(values, n_values, index, n, none, out);
  if (size == 4) return take_4(values, n_values, index, n, none, out);
  return take_8(values, n_values, index, n, none, out);
}

fp_status fp_take_where(const uint8_t *flags, int64_t n_values, const int32_t *index, int64_t n,
                        int64_t *rows, int64_t *n_rows) {
  *n_rows = 0;
  for (int64_t i = 0; i < n; i++) {
    if (index[i] < -1 || index[i] >= n_values) return FP_E_INDEX;
    rows[*n_rows] = i; /* overwritten unless found: without a branch, several times as fast */
    *n_rows += index[i] >= 0 && flags[index[i]];
  }
  return FP_OK;
}

/* Index i; below -1 if it is out of bounds. */
static int32_t index_at(const fp_take_index *index, int64_t i, int32_t n_values) {
  int32_t at = index->row[i];
  if (index->inner && at >= 0) at = at < index->n_inner ? index->inner[at] : -2;
  if (index->outer && at >= 0) at = at < index->n_outer ? index->outer[at] : -2;
  return at < n_values ? at : -2;
}

fp_status fp_take_distinct(const fp_take_index *index, int32_t n_values, int32_t *number,
                           int32_t *used, int32_t *n_used, int32_t *place) {
  memset(number, 0, ((size_t)n_values + 1) * sizeof *number);
  for (int64_t i = 0; i < index->n; i++) {
    const int32_t at = index_at(index, i, n_values);
    if (at < -1) return FP_E_INDEX;
    number[at + 1] = 1;
    place[i] = at + 1;
  }
  *n_used = 0;
  for (int32_t value = -1; value < n_values; value++) {
    if (!number[value + 1]) continue;
    number[value + 1] = *n_used;
    used[(*n_used)++] = value;
  }
  for (int64_t i = 0; i < index->n; i++) place[i] = number[place[i]];
  return FP_OK;
}

fp_status fp_take_ranks(const int32_t *index, int64_t n, int32_t n_values, uint64_t *used,
                        int32_t *before, int32_t *rank) {
  const int32_t n_words = n_values / 64 + 1;
  memset(used, 0, (size_t)n_words * sizeof *used);
  for (int64_t i = 0; i < n; i++) {
    if (index[i] < -1 || index[i] >= n_values) return FP_E_INDEX;
    if (index[i] >= 0) used[index[i] / 64] |= (uint64_t)1 << index[i] % 64;
  }
  before[0] = 0;
  for (int32_t word = 1; word < n_words; word++)
    before[word] = before[word - 1] + __builtin_popcountll(used[word - 1]);
  for (int64_t i = 0; i < n; i++) {
    rank[i] = -1;
    if (index[i] < 0) continue;
    const uint64_t below = used[index[i] / 64] & (((uint64_t)1 << index[i] % 64) - 1);
    rank[i] = before[index[i] / 64] + __builtin_popcountll(below);
  }
  return FP_OK;
}

void fp_take_without(char *items, size_t size, int64_t n, const int64_t *gaps, int64_t n_gaps) {
  for (int64_t i = 0; i < n_gaps; i++) {
    int64_t first = gaps[i] + 1, end = i + 1 < n_gaps ? gaps[i + 1] : n;
    memmove(items + (size_t)(first - 1 - i) * size, items + (size_t)first * size,
            (size_t)(end - first) * size);
  }
}

fp_status fp_take_place(const int64_t *values, int64_t n_values, const fp_take_slices *slices,
                        bool after, int64_t *place) {
  for (int64_t i = 0; i < slices->n; i++) {
    int64_t low = slices->low[i], high = slices->high[i];
    const int64_t wanted = slices->wanted[i];
    if (low < 0 || high > n_values || low > high) return FP_E_INDEX;
    while (low < high) {
      const int64_t middle = low + (high - low) / 2;
      if (after ? values[middle] <= wanted : values[middle] < wanted)
        low = middle + 1;
      else
        high = middle;
    }
    place[i] = low;
  }
  return FP_OK;
}

/* Radix sort, the least significant digit first. */
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
