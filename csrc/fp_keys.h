/* fp_keys.h: a pool of 64-bit numbers (number -> dense int32 id, in order of first appearance). */
#ifndef FP_KEYS_H
#define FP_KEYS_H

#include <stdint.h>

#include "fp_status.h"

typedef struct fp_keys fp_keys;

/* NULL when out of memory. */
fp_keys *fp_keys_new(void);
void fp_keys_free(fp_keys *keys);

fp_status fp_keys_intern(fp_keys *keys, int64_t key, int32_t *id);

/* id[i] = id of the pair (left[i], right[i]), which counts as one number. */
fp_status fp_keys_intern_pairs(fp_keys *keys, const int32_t *left, const int32_t *right, int64_t n,
                               int32_t *id);

/* id of the number, or -1. */
int32_t fp_keys_find(const fp_keys *keys, int64_t key);

/* Number of keys; key i is values[i], valid until the next intern. */
int32_t fp_keys_count(const fp_keys *keys);
const int64_t *fp_keys_values(const fp_keys *keys);

#endif
