/* fp_keys.h: a pool of 64-bit numbers with dense int32 ids in order of first appearance. */
#pragma once

#include "base/fp_status.h"

typedef struct fp_keys fp_keys;

/* NULL when out of memory. */
fp_keys *fp_keys_new(void);
void fp_keys_free(fp_keys *keys);

fp_status fp_keys_intern(fp_keys *keys, int64_t key, int32_t *id);

/* id[i] = id of the pair (left[i], right[i]) as one 64-bit number. */
fp_status fp_keys_intern_pairs(fp_keys *keys, const int32_t *left, const int32_t *right, int64_t n,
                               int32_t *id);

/* The id of the number, or -1. */
int32_t fp_keys_find(const fp_keys *keys, int64_t key);

/* The number of keys, and the keys by id, valid until the next intern. */
int32_t fp_keys_count(const fp_keys *keys);
const int64_t *fp_keys_values(const fp_keys *keys);
