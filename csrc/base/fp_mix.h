/* fp_mix.h: a hash of two 64-bit numbers. */
#ifndef FP_MIX_H
#define FP_MIX_H

#include <stdint.h>
#include <time.h>

/* Odd constants with irregular bits; the first is from the golden ratio. */
#define FP_MIX_0 0x9e3779b97f4a7c15u
#define FP_MIX_1 0xe7037ed1a0b428dbu

/* Combines both halves of the 128-bit product, so high bits of the inputs affect low bits. */
static inline uint64_t fp_mix(uint64_t a, uint64_t b) {
  __uint128_t product = (__uint128_t)a * b;
  return (uint64_t)product ^ (uint64_t)(product >> 64);
}

/* A number that no file can know, from the address of a table and the time. Tables hash with it,
 * so that names and numbers made to collide do so in no run. Results must not depend on it. */
static inline uint64_t fp_mix_secret(const void *table) {
  const uint64_t now = (uint64_t)time(NULL) ^ (uint64_t)clock() << 32;
  return fp_mix((uint64_t)(uintptr_t)table ^ FP_MIX_1, fp_mix(now ^ FP_MIX_0, FP_MIX_1) | 1);
}

#endif
