/* fp_next.h: find the kernel launched next on the same thread. */
#ifndef FP_NEXT_H
#define FP_NEXT_H

#include <stdint.h>

#include "base/fp_status.h"

/* Kernels and their launches. */
typedef struct {
  const int32_t *launch; /* [n] -1 for none */
  const int32_t *thread; /* [n_launches] 0 .. n_threads - 1, -1 for none */
  const int64_t *start;  /* [n_launches] */
  int64_t n;
  int32_t n_launches, n_threads;
} fp_next_kernels;

/* next[k] = the kernel after rows[k] on its thread, -1 for none. FP_MORE if the kernels of a thread
 * are not in order of launch. Launches without a thread count as one thread.
 *   rows     [n_rows] kernels with a launch, strictly ascending
 *   last     scratch, [n_threads + 1]
 *   waiting  scratch, [n_threads + 1]
 *   next     out, [n_rows] */
fp_status fp_next(const fp_next_kernels *kernels, const int64_t *rows, int64_t n_rows,
                  int64_t *last, int64_t *waiting, int64_t *next);

#endif
