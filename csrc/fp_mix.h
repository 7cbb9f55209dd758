/* fp_mix.h: a hash of two 64-bit numbers. */
#ifndef FP_MIX_H
#define FP_MIX_H

#include <stdint.h>

/* Odd constants with irregular bits; the first is from the golden ratio. */
#define FP_MIX_0 0x9e3779b97f4a7c15u
#define FP_MIX_1 0xe7037ed1a0b428dbu

/* Combines both halves of the 128-bit product, so high bits of the inputs affect low bits. */
static inline uint64_t fp_mix(uint64_t a, uint64_t b) {
  __uint128_t product = (__uint128_t)a * b;
  return (uint64_t)product ^ (uint64_t)(product >> 64);
}

#endif
