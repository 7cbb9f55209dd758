/* fp_alike.c: see fp_alike.h. Open addressing. Rows are hashed in blocks, column by column, and
 * their slots are prefetched: with a million distinct rows, each slot is a cache miss. */
#include "base/fp_alike.h"

#include <stdbool.h>
#include <string.h>

#include "base/fp_mix.h"

enum { BLOCK = 128 };

/* A slot is the row's hash in the high half, and its id plus 1 in the low half; 0: empty. */
static uint32_t hash_in(uint64_t slot) { return (uint32_t)(slot >> 32); }

static int32_t id_in(uint64_t slot) { return (int32_t)(uint32_t)slot - 1; }

static uint64_t load(const char *from, size_t size) {
  uint64_t x = 0;
  memcpy(&x, from, size);
  return x;
}

static void hash_column(const fp_alike_column *column, int64_t begin, int n, uint64_t *hash) {
  size_t size = column->size;
  const char *at = column->values + (size_t)begin * size;
  for (int i = 0; i < n; i++, at += size) {
    size_t done = 0;
    for (; done + 8 <= size; done += 8) hash[i] = fp_mix(hash[i] ^ load(at + done, 8), FP_MIX_1);
    if (done + 4 <= size) {
      hash[i] = fp_mix(hash[i] ^ load(at + done, 4), FP_MIX_1);
      done += 4;
    }
    if (done < size) hash[i] = fp_mix(hash[i] ^ load(at + done, size - done), FP_MIX_1);
  }
}

static bool are_equal(const fp_alike_column *columns, int n_columns, int64_t a, int64_t b) {
  for (int k = 0; k < n_columns; k++) {
    size_t size = columns[k].size;
    const char *left = columns[k].values + (size_t)a * size;
    const char *right = columns[k].values + (size_t)b * size;
    bool equal = size == 8   ? load(left, 8) == load(right, 8)
                 : size == 4 ? load(left, 4) == load(right, 4)
                             : memcmp(left, right, size) == 0;
    if (!equal) return false;
  }
  return true;
}

uint64_t fp_alike_secret(const void *slots) { return fp_mix_secret(slots); }

void fp_alike_move(const fp_alike_table *from, const fp_alike_table *to) {
  size_t mask = to->n_slots - 1;
  for (size_t i = 0; i < from->n_slots; i++) {
    if (!from->slots[i]) continue;
    size_t at = hash_in(from->slots[i]) & mask;
    while (to->slots[at]) at = (at + 1) & mask;
    to->slots[at] = from->slots[i];
  }
}

fp_status fp_alike(const fp_alike_table *table, const fp_alike_column *columns, int n_columns,
                   int64_t n, int64_t *next, int32_t *id, int32_t *first, int32_t *n_distinct) {
  if (n > INT32_MAX) return FP_E_TOO_MANY;
  size_t mask = table->n_slots - 1;
  uint64_t hash[BLOCK], *slots = table->slots;
  for (int64_t row = *next; row < n; *next = row) {
    if (((size_t)*n_distinct + BLOCK) * 2 > table->n_slots) return FP_MORE;
    int count = n - row < BLOCK ? (int)(n - row) : BLOCK;
    for (int i = 0; i < count; i++) hash[i] = table->secret;
    for (int k = 0; k < n_columns; k++) hash_column(&columns[k], row, count, hash);
    for (int i = 0; i < count; i++) __builtin_prefetch(&slots[(uint32_t)hash[i] & mask]);
    for (int i = 0; i < count; i++, row++) {
      uint32_t own = (uint32_t)hash[i];
      size_t at = own & mask;
      for (; slots[at]; at = (at + 1) & mask)
        if (hash_in(slots[at]) == own &&
            are_equal(columns, n_columns, row, first[id_in(slots[at])]))
          break;
      if (!slots[at]) {
        first[(*n_distinct)++] = (int32_t)row;
        slots[at] = (uint64_t)own << 32 | (uint32_t)*n_distinct;
      }
      id[row] = id_in(slots[at]);
    }
  }
  return FP_OK;
}
