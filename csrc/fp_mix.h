/* fp_mix.h: two 64-bit numbers -> one in which every bit depends on all of theirs, for hashing. */
#ifndef FP_MIX_H
#define FP_MIX_H

#include <stdint.h>

/* Odd constants without pattern: the golden ratio, and one of its kind. */
#define FP_MIX_0 0x9e3779b97f4a7c15u
#define FP_MIX_1 0xe7037ed1a0b428dbu

/* Both halves of the 128-bit product: the upper one brings the high bits down. */
static inline uint64_t fp_mix(uint64_t a, uint64_t b) {
  __uint128_t product = (__uint128_t)a * b;
  return (uint64_t)product ^ (uint64_t)(product >> 64);
}

#endif
