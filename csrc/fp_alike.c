/* fp_alike.c: see fp_alike.h. Open addressing. Rows are hashed in blocks, column by column, and
 * their slots are prefetched: with a million distinct rows, each slot is a cache miss. */
#include "fp_alike.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "fp_mix.h"

enum { BLOCK = 128, FEWEST_SLOTS = 1024, GROWTH = 4 };

typedef struct {
  uint32_t hash;
  int32_t id; /* plus 1; 0: empty */
} slot;

typedef struct {
  slot *slots;
  size_t mask;
} table;

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

static fp_status grow(table *to) {
  size_t n_slots = (to->mask + 1) * GROWTH;
  slot *slots = calloc(n_slots, sizeof *slots);
  if (!slots) return FP_E_MEMORY;
  for (size_t i = 0; i <= to->mask; i++) {
    if (!to->slots[i].id) continue;
    size_t at = to->slots[i].hash & (n_slots - 1);
    while (slots[at].id) at = (at + 1) & (n_slots - 1);
    slots[at] = to->slots[i];
  }
  free(to->slots);
  *to = (table){slots, n_slots - 1};
  return FP_OK;
}

static fp_status number(table *rows, const fp_alike_column *columns, int n_columns, int64_t n,
                        int32_t *id, int32_t *first, int32_t *n_distinct) {
  uint64_t hash[BLOCK];
  for (int64_t begin = 0; begin < n; begin += BLOCK) {
    int count = n - begin < BLOCK ? (int)(n - begin) : BLOCK;
    for (int i = 0; i < count; i++) hash[i] = FP_MIX_0;
    for (int k = 0; k < n_columns; k++) hash_column(&columns[k], begin, count, hash);
    for (int i = 0; i < count; i++) __builtin_prefetch(&rows->slots[(uint32_t)hash[i] & rows->mask]);
    for (int i = 0; i < count; i++) {
      uint32_t own = (uint32_t)hash[i];
      size_t at = own & rows->mask;
      for (; rows->slots[at].id; at = (at + 1) & rows->mask)
        if (rows->slots[at].hash == own &&
            are_equal(columns, n_columns, begin + i, first[rows->slots[at].id - 1]))
          break;
      if (!rows->slots[at].id) {
        first[(*n_distinct)++] = (int32_t)(begin + i);
        rows->slots[at] = (slot){own, *n_distinct};
      }
      id[begin + i] = rows->slots[at].id - 1;
    }
    if (((size_t)*n_distinct + BLOCK) * 2 > rows->mask && grow(rows) != FP_OK) return FP_E_MEMORY;
  }
  return FP_OK;
}

fp_status fp_alike(const fp_alike_column *columns, int n_columns, int64_t n, int32_t *id,
                   int32_t *first, int32_t *n_distinct) {
  *n_distinct = 0;
  if (n > INT32_MAX) return FP_E_TOO_MANY;
  table rows = {calloc(FEWEST_SLOTS, sizeof(slot)), FEWEST_SLOTS - 1};
  fp_status status = FP_E_MEMORY;
  if (rows.slots) status = number(&rows, columns, n_columns, n, id, first, n_distinct);
  free(rows.slots);
  return status;
}
