/* fp_parts.h: find the part of its call that each kernel does. */
#pragma once

#include "base/fp_status.h"

enum {
  FP_PARTS = 3,     /* maximum number of parts of a call, 0 to 2 */
  FP_WHOLE = 3,     /* no kernel of the call is recognised: all share the entire cost */
  FP_BESIDE = 4,    /* other kernels are recognised: this one has no cost */
  FP_ALL_PARTS = 5, /* number of the above */
  FP_VARIANTS = 4,  /* maximum number of variants of a part */
};

/* Which part a kind of kernel (info) does of a call in a direction (row). Rows of one form differ
 * in sizes only. */
typedef struct {
  int32_t n_rows, n_forms, n_infos;
  const int32_t *form;         /* [n_rows] */
  const int8_t *part_of;       /* [n_forms, n_infos] the part that the kernel does, or -1 */
  const uint8_t *sure;         /* [n_forms, n_infos] whether its name is unambiguous */
  const uint8_t *variant;      /* [n_forms, n_infos] below FP_VARIANTS */
  const uint8_t *main;         /* [n_forms, FP_PARTS] whether the part is one of the products */
  const uint8_t *costed;       /* [n_forms] whether the call's cost is known */
  const uint8_t *whole_always; /* [n_forms] whether unrecognised kernels do the entire call */
  const uint8_t *other;        /* [n_infos] whether the kernel is unrecognised */
} fp_parts_tables;

/* One entry of the tables. */
typedef struct {
  int8_t part; /* that the name matches, or -1 */
  uint8_t variant;
  uint8_t added; /* bits that the kernel adds to the state of its group */
  uint8_t flags;
  uint8_t n_main; /* number of products of the call */
} fp_claim;

/* n kernels: their kind of call, name and instance of the call. */
typedef struct {
  const int32_t *kind; /* [n] */
  const int32_t *row;  /* [n_kinds] */
  const int32_t *name; /* [n] -1 for none */
  const int32_t *info; /* [n_names + 1] the last without a name */
  const int32_t *group;
  const uint8_t *taken; /* [n_groups] number of main parts done by operators inside; FP_SOME_TAKEN:
                           the others do what is left */
  int32_t n_kinds, n_names, n_groups;
  int64_t n;
} fp_parts_kernels;

/* Finds the cell of each of n kernels: (row * FP_ALL_PARTS + part) * FP_VARIANTS + variant. The
 * part that it does of its call is 0 to 2, FP_WHOLE or FP_BESIDE.
 *
 * Two kernels of one backward call may match the same gradient and none the other. If the names are
 * ambiguous, one is assigned the other gradient, on the guess that the gradient of the left operand
 * comes first. Both cost the same, so the sum does not depend on the guess.
 *   cell    [n], out
 *   claims  scratch, [n_forms, n_infos]
 *   state   scratch, [n_groups + 1] */
fp_status fp_parts_find(const fp_parts_tables *tables, const fp_parts_kernels *kernels,
                        int32_t *cell, fp_claim *claims, uint8_t *state);
