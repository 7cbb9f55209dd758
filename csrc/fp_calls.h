/* fp_calls.h: frames of kernels -> the call each kernel works for, and the part of it that it does.
 */
#ifndef FP_CALLS_H
#define FP_CALLS_H

#include <stdint.h>

#include "fp_status.h"

/* What a label says of a call, as bits. */
enum {
  FP_CALL_KNOWN = 1,            /* its cost is known */
  FP_CALL_UNKNOWN_BACKWARD = 2, /* that of its backward pass is not */
  FP_CALL_FAMILY = 4,           /* it is a product of matrices, a convolution, or attention */
  FP_CALL_GRADIENT = 8,         /* it is an operator for the backward pass */
  FP_CALL_MOVES = 16,           /* it is known to compute nothing: a copy, a cast, a fill */
  FP_CALL_BIAS = 32,            /* beside products, it does what other operators do: adds a bias */
  FP_CALL_BIAS_BACKWARD = 64,   /* its backward pass does */
  FP_CALL_MATRICES = 128,       /* it is a product of matrices, whose sizes tell all of its cost */
  FP_CALL_FORMULA = 256,        /* its operator has a formula, which may lack arguments */
};

/* What is known of frames and labels; indices are -1 for "none". */
typedef struct {
  int32_t n_frames, n_labels;
  const int32_t *parent;   /* [n_frames] tree of frames, parents first */
  const int32_t *label;    /* [n_frames] */
  const int32_t *first;    /* [n_frames] the first frame of the same range */
  const int32_t *picked;   /* [n_frames] the frame of the call that the frame is a part of */
  const int32_t *inner;    /* [n_frames] the innermost frame around it whose cost is known */
  const int32_t *backward; /* [n_frames] the backward call around it */
  const int32_t *instance; /* [n_frames] of a backward call: the frame that stands for it and for
                              all others that belong to the same forward call */
  const uint16_t *says;    /* [n_labels] of FP_CALL_* */
  const int32_t *name;     /* [n_labels] number of the operator */
  const int32_t *dtypes;   /* [n_labels] number of the types that the call works in, -1 for none */
} fp_calls_frames;

/* What each of n kernels works for. */
typedef struct {
  int32_t *label;       /* [n] of the call that the report names, -1 for none */
  uint8_t *is_backward; /* [n] 1 where that is the forward call of a backward kernel */
  int32_t *work;        /* [n] of the call whose cost tells: that call, or one inside of it */
  uint8_t *is_gradient; /* [n] 1 where the kernel does the backward pass of `work` */
  int32_t *helper;      /* [n] of the operator that it does beside the products of `work`, or -1 */
  int32_t *group;       /* [n] which instance of what tells its cost, numbered as they appear, -1
                           for none */
} fp_calls_of;

/* Find the call of each of n kernels, and what tells its cost.
 *
 * The call is the forward call where the frame that says what the kernel is for is another than its
 * own, else its own. Its cost tells, but for the first of these that applies:
 *   1. the innermost operator of the family and of known cost, in the backward pass of a call of
 *      the family, if it is a product of matrices or that pass has no known cost: what the nodes of
 *      a backward pass do differs
 *   2. the kernel's own operator, of known cost, in the backward pass of a call that is not of the
 *      family where it is, or whose backward cost is not known; or with a formula, where the call
 *      has none. It is the call, too, unless it is an operator for the backward pass
 *   3. the call that autocast makes within the call: the same operator, or one of the family within
 *      one of the family, with other types
 *   4. an operator beside the products of a call of the family, or beside a call by 3: it helps
 * them
 *
 *   frame, meaning    [n] the kernel's frame, and the one that says what it is for
 *   taken             out: of each instance, how many operators inside of it have a cost of their
 *                     own by 1, or FP_ALL_TAKEN by 3; as many as groups, at most n and n_frames
 *   scratch           [4, n_frames]
 *   n_groups          out: how many instances */
enum { FP_ALL_TAKEN = 255 };

fp_status fp_calls_find(const fp_calls_frames *frames, const int32_t *frame, const int32_t *meaning,
                        int64_t n, const fp_calls_of *of, uint8_t *taken, int32_t *scratch,
                        int32_t *n_groups);

enum {
  FP_PARTS = 3,  /* a call has at most so many parts, 0 to 2 */
  FP_WHOLE = 3,  /* none of the call's kernels was recognised: all of them share the whole */
  FP_BESIDE = 4, /* others were recognised: this one adds nothing */
};

/* What calls ("rows": a call and a direction) say of kinds of kernels ("infos"). */
typedef struct {
  int32_t n_rows, n_infos;
  const int8_t *part_of;       /* [n_rows, n_infos] the part that such a kernel does, or -1 */
  const uint8_t *sure;         /* [n_rows, n_infos] whether its name says so */
  const uint8_t *main;         /* [n_rows, FP_PARTS] whether the part is one of the products */
  const uint8_t *costed;       /* [n_rows] whether the call's cost is known */
  const uint8_t *whole_always; /* [n_rows] whether its kernels do all of it, unrecognised */
  const uint8_t *other;        /* [n_infos] a kernel of which nothing is known */
} fp_parts_tables;

/* Instances of calls, and which of them each kernel belongs to; -1 for none. */
typedef struct {
  const int32_t *group; /* [n] */
  const uint8_t *taken; /* [n_groups] how many of its main parts others do */
  int32_t n_groups;
} fp_parts_groups;

/* The part that each of n kernels does of its call: 0 to 2, FP_WHOLE or FP_BESIDE.
 *
 * Two kernels of one backward call may claim the same gradient, and none the other: where their
 * names do not tell for sure, one of them does the other. A guess: the gradient of the left operand
 * comes first. Both cost the same, so that the sum is right whichever was which.
 *   row, info  [n]
 *   part       [n], out
 *   state      scratch, [n_groups + 1] */
fp_status fp_parts_find(const fp_parts_tables *tables, const int32_t *row, const int32_t *info,
                        const fp_parts_groups *groups, int64_t n, int8_t *part, uint8_t *state);

#endif
