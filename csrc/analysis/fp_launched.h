/* fp_launched.h: sums over API calls that launch kernels, and over the kernels, by group. */
#ifndef FP_LAUNCHED_H
#define FP_LAUNCHED_H

#include <stdint.h>

#include "base/fp_status.h"

/* Groups with special meaning. The first kernel of a call decides to which group the call belongs;
 * FP_LAUNCHED_OTHER are rows that are no kernels and decide nothing. */
enum { FP_LAUNCHED_NO_GROUP = -1, FP_LAUNCHED_OTHER = -2 };

typedef struct {
  const int32_t *group; /* [n] below n_groups */
  const int32_t *call;  /* [n] the call that launched each, -1 if none */
  const int64_t *start; /* [n] ns */
  int64_t n;
} fp_launched_kernels;

/* Times in ns. Calls whose end is INT64_MAX were not closed, and count as not recorded. */
typedef struct {
  const int64_t *start, *end; /* [n] */
  int64_t n;
} fp_launched_calls;

typedef struct {
  int64_t *launches; /* [n_groups] calls */
  int64_t *host;     /* [n_groups] their host time, ns; at most INT64_MAX */
  int64_t *on_time;  /* [n_groups] kernels that start at or after the start of their call */
  int64_t *starved; /* [n_groups] of these, those that start less than `starved_ns` after its end */
} fp_launched_sums;

/* Adds to the sums, which the caller clears.
 *   seen  scratch, [calls->n / 8 + 1], cleared */
fp_status fp_launched(const fp_launched_kernels *kernels, const fp_launched_calls *calls,
                      int32_t n_groups, int64_t starved_ns, uint8_t *seen,
                      const fp_launched_sums *sums);

#endif
