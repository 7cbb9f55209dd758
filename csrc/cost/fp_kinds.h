/* fp_kinds.h: a pool of the calls that kernels work for. A kind is a call and the calls that
 * determine its cost; most traces have a few thousand. */
#ifndef FP_KINDS_H
#define FP_KINDS_H

#include <stdint.h>

#include "base/fp_status.h"

/* Labels are -1 for none. */
typedef struct {
  int32_t label;       /* label of the reported call */
  int32_t work;        /* label of the call that determines the cost: that call or one inside */
  int32_t helper;      /* label of an operator done in addition to the products of `work` */
  uint8_t is_backward; /* 1 if the reported call is the forward call of a backward kernel */
  uint8_t is_gradient; /* 1 if the kernel does the backward pass of `work` */
} fp_kind;

typedef struct fp_kinds fp_kinds;

/* NULL when out of memory. */
fp_kinds *fp_kinds_new(void);
void fp_kinds_free(fp_kinds *kinds);

/* Ids are dense, in order of first appearance. */
fp_status fp_kinds_intern(fp_kinds *kinds, const fp_kind *kind, int32_t *id);

int32_t fp_kinds_count(const fp_kinds *kinds);
fp_kind fp_kinds_at(const fp_kinds *kinds, int32_t id);

#endif
