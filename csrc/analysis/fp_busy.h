/* fp_busy.h: the time line of GPUs. */
#ifndef FP_BUSY_H
#define FP_BUSY_H

#include <stdint.h>

#include "base/fp_status.h"

/* Work in order of start. */
typedef struct {
  const int64_t *start;    /* [n] ns, ascending */
  const int64_t *duration; /* [n] ns; negative: unknown, counts as 0 */
  const int32_t *id;       /* [n] 0 .. n_ids - 1 */
  const int32_t *group;    /* [n_ids] below n_groups; negative: left out */
  const uint8_t *mask;     /* [n] 0 for work to leave out; NULL for none */
  int64_t n;
  int32_t n_ids, n_groups;
} fp_busy_work;

/* The time line of each group, [n_groups]: the start of its first and the end of its last work, and
 * the time during which at least one item runs. begin > end for groups without work. A number that
 * exceeds 64 bits is INT64_MAX. */
typedef struct {
  int64_t *begin, *end, *busy;
} fp_busy_lines;

fp_status fp_busy(const fp_busy_work *work, const fp_busy_lines *lines);

/* Counts the work that starts before the preceding work of its id ends, and the longest such
 * overlap, ns. Ignores group and mask. end : [n_ids], scratch. */
fp_status fp_busy_overlaps(const fp_busy_work *work, int64_t *end, int64_t *count,
                           int64_t *longest);

#endif
