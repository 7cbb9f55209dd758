/* fp_alike.c: see fp_alike.h. Rows are hashed in blocks, column by column, and
 * their slots are prefetched: with a million distinct rows, each slot is a cache miss. */
#include "base/fp_alike.h"

#include <string.h>

enum { BLOCK = 128 };

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

/* What is_row compares: the first rows of all ids, and one row. */
typedef struct {
  const fp_alike_column *columns;
  int n_columns;
  const int32_t *first;
} rows;

static bool is_row(const void *owner, int32_t id, const void *row) {
  const rows *of = owner;
  return are_equal(of->columns, of->n_columns, *(const int64_t *)row, of->first[id]);
}

fp_status fp_alike(fp_hash *table, const fp_alike_column *columns, int n_columns, int64_t n,
                   int64_t *next, int32_t *id, int32_t *first, int32_t *n_distinct) {
  if (n > INT32_MAX) return FP_E_TOO_MANY;
  const rows known = {columns, n_columns, first};
  const size_t mask = table->n_slots - 1;
  uint64_t hash[BLOCK];
  for (int64_t row = *next; row < n; *next = row) {
    if (((size_t)*n_distinct + BLOCK) * 2 > table->n_slots) return FP_MORE;
    int count = n - row < BLOCK ? (int)(n - row) : BLOCK;
    for (int i = 0; i < count; i++) hash[i] = table->secret;
    for (int k = 0; k < n_columns; k++) hash_column(&columns[k], row, count, hash);
    for (int i = 0; i < count; i++) __builtin_prefetch(&table->slots[(uint32_t)hash[i] & mask]);
    for (int i = 0; i < count; i++, row++) {
      size_t at;
      id[row] = fp_hash_find(table, (uint32_t)hash[i], is_row, &known, &row, &at);
      if (id[row] >= 0) continue;
      first[*n_distinct] = (int32_t)row;
      id[row] = (*n_distinct)++;
      fp_hash_put(table, at, (uint32_t)hash[i], id[row]);
    }
  }
  return FP_OK;
}
