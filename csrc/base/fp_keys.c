/* fp_keys.c: see fp_keys.h. Open addressing; the last key is cached, because runs are common. */
#include "base/fp_keys.h"

#include <stdlib.h>

#include "base/fp_mix.h"

struct fp_keys {
  int32_t *slots; /* id or -1 */
  uint64_t mask;
  uint64_t secret; /* see fp_mix_secret */
  int64_t *values;
  int32_t count, capacity;
  int64_t last_key;
  int32_t last_id;
};

static uint64_t hash_of(const fp_keys *keys, int64_t key) {
  return fp_mix((uint64_t)key ^ FP_MIX_1, keys->secret | 1);
}

fp_keys *fp_keys_new(void) {
  fp_keys *keys = calloc(1, sizeof *keys);
  if (!keys) return NULL;
  keys->mask = 255;
  keys->secret = fp_mix_secret(keys);
  keys->capacity = 128;
  keys->last_id = -1;
  keys->slots = malloc((keys->mask + 1) * sizeof(int32_t));
  keys->values = malloc((size_t)keys->capacity * sizeof(int64_t));
  if (!keys->slots || !keys->values) {
    fp_keys_free(keys);
    return NULL;
  }
  for (uint64_t i = 0; i <= keys->mask; i++) keys->slots[i] = -1;
  return keys;
}

void fp_keys_free(fp_keys *keys) {
  if (!keys) return;
  free(keys->slots);
  free(keys->values);
  free(keys);
}

/* The slot of the key, or the empty slot to insert it in. */
static uint64_t place_of(const fp_keys *keys, int64_t key) {
  uint64_t at = hash_of(keys, key) & keys->mask;
  while (keys->slots[at] >= 0 && keys->values[keys->slots[at]] != key) at = (at + 1) & keys->mask;
  return at;
}

static fp_status grow(fp_keys *keys) {
  if (keys->capacity > INT32_MAX / 2) return FP_E_TOO_MANY;
  int64_t *values = realloc(keys->values, (size_t)keys->capacity * 2 * sizeof(int64_t));
  if (!values) return FP_E_MEMORY;
  keys->values = values;
  uint64_t n_slots = (keys->mask + 1) * 2;
  int32_t *slots = malloc(n_slots * sizeof(int32_t));
  if (!slots) return FP_E_MEMORY;
  free(keys->slots);
  keys->slots = slots;
  keys->mask = n_slots - 1;
  keys->capacity *= 2;
  for (uint64_t i = 0; i < n_slots; i++) slots[i] = -1;
  for (int32_t id = 0; id < keys->count; id++) slots[place_of(keys, values[id])] = id;
  return FP_OK;
}

fp_status fp_keys_intern(fp_keys *keys, int64_t key, int32_t *id) {
  if (keys->last_id >= 0 && keys->last_key == key) {
    *id = keys->last_id;
    return FP_OK;
  }
  uint64_t at = place_of(keys, key);
  if (keys->slots[at] < 0) {
    if (keys->count == keys->capacity) {
      fp_status status = grow(keys);
      if (status != FP_OK) return status;
      at = place_of(keys, key);
    }
    keys->values[keys->count] = key;
    keys->slots[at] = keys->count++;
  }
  *id = keys->slots[at];
  keys->last_key = key;
  keys->last_id = *id;
  return FP_OK;
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

int32_t fp_keys_find(const fp_keys *keys, int64_t key) { return keys->slots[place_of(keys, key)]; }

int32_t fp_keys_count(const fp_keys *keys) { return keys->count; }

const int64_t *fp_keys_values(const fp_keys *keys) { return keys->values; }
