/* fp_hash.h: the hash table of the core: it finds ids by their keys.
 *
 * The owner keeps the keys, by id, and says when two are equal. Open addressing with linear
 * probing; at most half of the slots are used. A slot has the hash of its key too, so that few keys
 * are compared and a table grows without them. */
#pragma once

#include <stdlib.h>
#include <time.h>

#include "base/fp_status.h"

/* Odd constants with irregular bits; the first is from the golden ratio. */
#define FP_MIX_0 0x9e3779b97f4a7c15u
#define FP_MIX_1 0xe7037ed1a0b428dbu

/* A hash of two numbers: both halves of the 128-bit product, so high bits affect low bits. */
static inline uint64_t fp_mix(uint64_t a, uint64_t b) {
  __uint128_t product = (__uint128_t)a * b;
  return (uint64_t)product ^ (uint64_t)(product >> 64);
}

typedef struct {
  uint32_t hash;
  uint32_t number; /* the id plus 1; 0: empty */
} fp_hash_slot;

typedef struct {
  fp_hash_slot *slots; /* [n_slots], the owner's; all 0 at the start */
  size_t n_slots;      /* a power of two */
  uint64_t secret;     /* fp_hash_secret */
} fp_hash;

enum { FP_HASH_SLOTS = 256 }; /* the fewest */

/* A number that no file can know, from an address and the time. Owners hash with it, so that names
 * and numbers made to collide do so in no run. Results must not depend on it. */
static inline uint64_t fp_hash_secret(const void *address) {
  const uint64_t now = (uint64_t)time(NULL) ^ (uint64_t)clock() << 32;
  return fp_mix((uint64_t)(uintptr_t)address ^ FP_MIX_1, fp_mix(now ^ FP_MIX_0, FP_MIX_1) | 1) | 1;
}

/* The hash of two numbers in a table. */
static inline uint32_t fp_hash_of(const fp_hash *table, uint64_t a, uint64_t b) {
  return (uint32_t)fp_mix(a ^ FP_MIX_1, b ^ table->secret);
}

/* Whether the owner's key of an id is the wanted one. */
typedef bool (*fp_hash_equals)(const void *owner, int32_t id, const void *key);

/* The id of a key, or -1; *at is then the slot for it. Inlined, with `equals`. */
__attribute__((always_inline)) static inline int32_t fp_hash_find(const fp_hash *table,
                                                                  uint32_t hash,
                                                                  fp_hash_equals equals,
                                                                  const void *owner,
                                                                  const void *key, size_t *at) {
  const size_t mask = table->n_slots - 1;
  for (*at = hash & mask; table->slots[*at].number; *at = (*at + 1) & mask) {
    const int32_t id = (int32_t)(table->slots[*at].number - 1);
    if (table->slots[*at].hash == hash && equals(owner, id, key)) return id;
  }
  return -1;
}

/* Stores an id in the slot that fp_hash_find gave. */
static inline void fp_hash_put(fp_hash *table, size_t at, uint32_t hash, int32_t id) {
  table->slots[at] = (fp_hash_slot){hash, (uint32_t)id + 1};
}

/* Copies a table to one with more slots. */
static inline void fp_hash_move(const fp_hash *from, const fp_hash *to) {
  const size_t mask = to->n_slots - 1;
  for (size_t i = 0; i < from->n_slots; i++) {
    if (!from->slots[i].number) continue;
    size_t at = from->slots[i].hash & mask;
    while (to->slots[at].number) at = (at + 1) & mask;
    to->slots[at] = from->slots[i];
  }
}

/* Gives a table room for n ids; its slots, which the owner frees, may be NULL, [0]. */
static inline fp_status fp_hash_reserve(fp_hash *table, size_t n) {
  if (2 * n <= table->n_slots) return FP_OK;
  fp_hash grown = {NULL, FP_HASH_SLOTS, table->secret};
  while (grown.n_slots < 2 * n) grown.n_slots *= 2;
  grown.slots = calloc(grown.n_slots, sizeof *grown.slots);
  if (!grown.slots) return FP_E_MEMORY;
  fp_hash_move(table, &grown);
  free(table->slots);
  *table = grown;
  return FP_OK;
}

/* Stores the next id, `id`, in the slot that fp_hash_find gave, after which there is room for one
 * more. */
static inline fp_status fp_hash_add(fp_hash *table, size_t at, uint32_t hash, int32_t id) {
  fp_hash_put(table, at, hash, id);
  return fp_hash_reserve(table, (size_t)id + 2);
}
