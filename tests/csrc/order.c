/* order.c: fp_alike and fp_radix on arrays of exactly their size, against plain loops. */
#include <stdbool.h>

#include "base/fp_alike.h"
#include "base/fp_take.h"
#include "check.h"

enum { MOST = 2500, N_COLUMNS = 4 };

static const size_t SIZES[N_COLUMNS] = {8, 4, 3, 12};

static bool are_equal(const fp_alike_column *columns, int64_t a, int64_t b) {
  for (int k = 0; k < N_COLUMNS; k++) {
    size_t size = columns[k].size;
    if (memcmp(columns[k].values + (size_t)a * size, columns[k].values + (size_t)b * size, size))
      return false;
  }
  return true;
}

static fp_alike_column random_column(int64_t n, size_t size, int32_t n_values) {
  char *values = ARRAY(char, n *(int64_t)size);
  for (int64_t i = 0; i < n; i++) {
    uint64_t value = (uint64_t)random_below(n_values) * 0x0101010101010101u;
    for (size_t byte = 0; byte < size; byte++)
      values[(size_t)i * size + byte] = (char)(value >> byte % 8 * 8);
  }
  return (fp_alike_column){values, size};
}

static fp_hash table_of(size_t n_slots) {
  fp_hash_slot *slots = ARRAY(fp_hash_slot, (int64_t)n_slots);
  memset(slots, 0, n_slots * sizeof *slots);
  return (fp_hash){slots, n_slots, fp_hash_secret(slots)};
}

static void equal_rows_get_one_id(int64_t n, int32_t n_values) {
  fp_alike_column columns[N_COLUMNS];
  for (int k = 0; k < N_COLUMNS; k++) columns[k] = random_column(n, SIZES[k], n_values);
  int32_t *id = ARRAY(int32_t, n), *first = ARRAY(int32_t, n), n_distinct = 0;
  fp_hash table = table_of(FP_ALIKE_SLOTS);
  int64_t next = 0;
  while (fp_alike(&table, columns, N_COLUMNS, n, &next, id, first, &n_distinct) == FP_MORE) {
    fp_hash larger = table_of(table.n_slots * 2);
    fp_hash_move(&table, &larger);
    free(table.slots);
    table = larger;
  }
  CHECK(next == n);
  for (int32_t i = 0; i < n_distinct; i++) {
    CHECK(id[first[i]] == i && (i == 0 || first[i] > first[i - 1]));
    for (int32_t j = 0; j < i; j++) CHECK(!are_equal(columns, first[i], first[j]));
  }
  for (int64_t i = 0; i < n; i++) {
    CHECK(id[i] >= 0 && id[i] < n_distinct && first[id[i]] <= i);
    CHECK(are_equal(columns, i, first[id[i]]));
  }
  for (int k = 0; k < N_COLUMNS; k++) free((void *)columns[k].values);
  free(id);
  free(first);
  free(table.slots);
}

static void items_are_sorted_from_a_bit_on(int64_t n, int low, int n_bits) {
  uint64_t *items = ARRAY(uint64_t, n), *scratch = ARRAY(uint64_t, n);
  int64_t *count = ARRAY(int64_t, FP_RADIX_COUNTS);
  uint64_t row = 0, sum = 0, high = n_bits ? random_bits() >> (64 - n_bits) : 0;
  for (int64_t i = 0; i < n; i++, row++) {
    uint64_t value = high ? random_bits() % (high + 1) : 0;
    items[i] = value << low | row;
    sum += items[i];
  }
  fp_radix_sort(items, scratch, n, low, count);
  for (int64_t i = 0; i < n; i++) {
    CHECK(i == 0 || items[i] > items[i - 1]); /* rows ascend among equal values */
    sum -= items[i];
  }
  CHECK(sum == 0);
  free(items);
  free(scratch);
  free(count);
}

int main(void) {
  equal_rows_get_one_id(0, 1);
  for (int i = rounds(50); i > 0; i--) equal_rows_get_one_id(random_below(MOST), 1 + i % 8);
  for (int i = rounds(500); i > 0; i--)
    items_are_sorted_from_a_bit_on(random_below(MOST), 12, random_below(53));
  return 0;
}
