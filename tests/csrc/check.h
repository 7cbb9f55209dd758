/* check.h: what the drivers beside it share: CHECK, random numbers, arrays of exactly their size.
 */
#ifndef CHECK_H
#define CHECK_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* If the condition is false, exits with its source line. */
#define CHECK(condition)                                                      \
  do {                                                                        \
    if (!(condition)) {                                                       \
      fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
      exit(1);                                                                \
    }                                                                         \
  } while (0)

#define LENGTH(array) ((int32_t)(sizeof(array) / sizeof(array)[0]))

static uint64_t random_state = 20240607;

/* splitmix64: the same numbers on every machine. */
static inline uint64_t random_bits(void) {
  uint64_t x = random_state += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

static inline int32_t random_below(int32_t n) { return (int32_t)(random_bits() % (uint64_t)n); }

/* How many random inputs to try: all n where the variable is set (the full profile of the tests), a
   twentieth of them elsewhere. */
static inline int32_t rounds(int32_t n) { return getenv("FASTPROF_ALL_ROUNDS") ? n : n / 20; }

/* Allocates exactly n items, freed by the caller; the next byte is out of bounds. */
static inline void *array_of(int64_t n, size_t size) {
  void *items = malloc(n > 0 ? (size_t)n * size : 1);
  CHECK(items);
  return items;
}

#define ARRAY(type, n) ((type *)array_of(n, sizeof(type)))

/* Copies bytes into an allocation of exactly that size. */
static inline char *exactly(const char *bytes, size_t length) {
  char *copy = array_of((int64_t)length, 1);
  if (length) memcpy(copy, bytes, length);
  return copy;
}

#endif
