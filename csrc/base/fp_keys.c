/* fp_keys.c: see fp_keys.h. The last key is cached, because runs are common. */
#include "base/fp_keys.h"

#include "base/fp_hash.h"
#include "base/fp_room.h"

struct fp_keys {
  fp_hash table;
  int64_t *values;
  size_t capacity;
  int32_t count;
  int64_t last_key;
  int32_t last_id;
};

static bool is_key(const void *values, int32_t id, const void *key) {
  return ((const int64_t *)values)[id] == *(const int64_t *)key;
}

static uint32_t hash_of(const fp_keys *keys, int64_t key) {
  return fp_hash_of(&keys->table, (uint64_t)key, 0);
}

fp_keys *fp_keys_new(void) {
  fp_keys *keys = calloc(1, sizeof *keys);
  if (!keys) return NULL;
  keys->table.secret = fp_hash_secret(keys);
  keys->last_id = -1;
  if (fp_hash_reserve(&keys->table, 1) == FP_OK) return keys;
  fp_keys_free(keys);
  return NULL;
}

void fp_keys_free(fp_keys *keys) {
  if (!keys) return;
  free(keys->table.slots);
  free(keys->values);
  free(keys);
}

static fp_status give(fp_keys *keys, int64_t key, int32_t known, int32_t *id) {
  keys->last_key = key;
  *id = keys->last_id = known;
  return FP_OK;
}

/* Not inlined: a look-up then saves no registers. */
__attribute__((noinline)) static fp_status add(fp_keys *keys, int64_t key, uint32_t hash, size_t at,
                                               int32_t *id) {
  const size_t count = (size_t)keys->count + 1;
  if (count > INT32_MAX) return FP_E_TOO_MANY;
  fp_status status = fp_reserve(&keys->values, &keys->capacity, count, sizeof(int64_t));
  if (status != FP_OK) return status;
  keys->values[keys->count] = key;
  give(keys, key, keys->count++, id);
  return fp_hash_add(&keys->table, at, hash, *id);
}

fp_status fp_keys_intern(fp_keys *keys, int64_t key, int32_t *id) {
  if (keys->last_id >= 0 && keys->last_key == key) {
    *id = keys->last_id;
    return FP_OK;
  }
  const uint32_t hash = hash_of(keys, key);
  size_t at;
  const int32_t known = fp_hash_find(&keys->table, hash, is_key, keys->values, &key, &at);
  return known < 0 ? add(keys, key, hash, at, id) : give(keys, key, known, id);
}

fp_status fp_keys_intern_pairs(fp_keys *keys, const int32_t *left, const int32_t *right, int64_t n,
                               int32_t *id) {
  for (int64_t i = 0; i < n; i++) {
    int64_t key = (int64_t)((uint64_t)(uint32_t)left[i] << 32 | (uint32_t)right[i]);
    fp_status status = fp_keys_intern(keys, key, &id[i]);
    if (status != FP_OK) return status;
  }
  return FP_OK;
}

int32_t fp_keys_find(const fp_keys *keys, int64_t key) {
  size_t at;
  return fp_hash_find(&keys->table, hash_of(keys, key), is_key, keys->values, &key, &at);
}

int32_t fp_keys_count(const fp_keys *keys) { return keys->count; }

const int64_t *fp_keys_values(const fp_keys *keys) { return keys->values; }
