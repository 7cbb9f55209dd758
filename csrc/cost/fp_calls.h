/* fp_calls.h: find the call that each kernel works for. */
#pragma once

#include "base/fp_status.h"
#include "text/fp_names.h"

/* Properties of a label's call, as bits. */
enum {
  FP_CALL_KNOWN = 1,            /* its cost is known */
  FP_CALL_UNKNOWN_BACKWARD = 2, /* the cost of its backward pass is unknown */
  FP_CALL_FAMILY = 4,           /* a matrix product, a convolution or attention */
  FP_CALL_GRADIENT = 8,         /* an operator of the backward pass */
  FP_CALL_MOVES = 16,           /* computes nothing: a copy, a cast, a fill */
  FP_CALL_BIAS = 32,            /* does further work in addition to its products: adds a bias */
  FP_CALL_BIAS_BACKWARD = 64,   /* its backward pass does */
  FP_CALL_MATRICES = 128,       /* a matrix product, whose sizes determine its cost */
  FP_CALL_FORMULA = 256,        /* its operator has a formula, whose arguments may be missing */
};

/* Properties of a label for fp_calls_outside, as bits. */
enum {
  FP_FRAME_ENGINE = 1, /* the engine's range of an autograd node */
  FP_FRAME_NODE = 2,   /* the node itself */
  FP_FRAME_FITS = 4,   /* an operator that adapts a gradient to its input */
};

/* Finds the frames of work that the engine does for a node but outside of it: inside an engine's
 * range that has a node among its children, but neither inside the node nor in an operator of the
 * engine's range that adapts a gradient.
 *   parent, label  [n] tree of frames, parents first
 *   bits           [n_labels] FP_FRAME_* bits
 *   outside        out, [n], 0 or 1 */
fp_status fp_calls_outside(const int32_t *parent, const int32_t *label, int32_t n,
                           const uint8_t *bits, int32_t n_labels, uint8_t *outside);

/* Finds one frame for all backward calls of a forward call: the nodes of one forward call (the
 * product and the bias of a linear layer) run its backward pass together. If the autograd graph is
 * traversed again, the second backward call of the same forward frame is a separate instance.
 *   backward  [n] the enclosing backward call, -1 for none
 *   meaning   [n] of backward calls, the forward frame
 *   picked    [n] the frame of the call that the frame is part of, -1 for none
 *   scratch   [2, n]
 *   instance  out, [n], the frame itself for all others */
fp_status fp_calls_instances(const int32_t *backward, const int32_t *meaning, const int32_t *picked,
                             int32_t n, int32_t *scratch, int32_t *instance);

/* Frames and labels; index -1 means "none". */
typedef struct {
  int32_t n_frames, n_labels;
  const int32_t *parent;   /* [n_frames] tree of frames, parents first */
  const int32_t *label;    /* [n_frames] */
  const int32_t *range;    /* [n_frames] its range, 0 .. n_frames - 1 */
  const int32_t *picked;   /* [n_frames] the frame of the call that the frame is part of: itself or
                              an ancestor */
  const int32_t *inner;    /* [n_frames] the innermost enclosing frame whose cost is known */
  const int32_t *backward; /* [n_frames] the enclosing backward call */
  const int32_t *instance; /* [n_frames] for backward calls: one frame that represents all backward
                              calls of the same forward call */
  const uint8_t *outside;  /* [n_frames] 1 for work of the engine outside of the node: its own frame
                              gives its purpose; NULL if there is none */
  const uint16_t *says;    /* [n_labels] FP_CALL_* bits */
  const int32_t *name;     /* [n_labels] number of the operator, -1 without arguments */
  const int32_t *overload; /* [n_labels] number of the operator and which arguments have sizes */
  const int32_t *sizes;    /* [n_labels] number of the combination of sizes */
  const int32_t *dtypes;   /* [n_labels] number of the combination of types, -1 for none */
  const int32_t *flops;    /* [n_labels] number of the FLOPs of its products, -1 if unknown */
} fp_calls_frames;

/* The call of a kernel and the calls that determine its cost. Labels are -1 for none. There is no
 * padding: equal kinds have equal bytes. */
typedef struct {
  int32_t label;        /* label of the reported call */
  int32_t work;         /* label of the call that determines the cost: that call or one inside */
  int32_t helper;       /* label of an operator done in addition to the products of `work` */
  uint16_t is_backward; /* 1 if the reported call is the forward call of a backward kernel */
  uint16_t is_gradient; /* 1 if the kernel does the backward pass of `work` */
} fp_kind;

/* The result for each of n kernels. */
typedef struct {
  int32_t *kind;     /* [n] its call: an id in `kinds` */
  int32_t *group;    /* [n] instance of the call that determines the cost, numbered in order of
                        appearance, -1 for none */
  int32_t *instance; /* [n] instance of the reported call: twice the range that represents it, plus
                        1 in the backward pass; -1 for none */
  fp_names *kinds;   /* the bytes of each distinct fp_kind; a few thousand; added to */
} fp_calls_of;

/* Finds the call of each of n kernels, and the call that determines its cost.
 *
 * The call is the forward call if the kernel's meaning is another frame than its own; otherwise it
 * is the kernel's own call. The first of these that applies determines the cost, otherwise the call
 * itself:
 *   1. In the backward pass of a call of the family: the innermost operator of the family with
 *      known cost, if it is a matrix product or the cost of the pass is unknown. (Nodes of one
 *      backward pass do different work.)
 *   2. In other backward passes: the kernel's own operator with known cost, if it is of the family
 *      and the call is not, or if the call's backward cost is unknown; or the own operator with a
 *      formula if the call has none. It also becomes the call, unless it is an operator of the
 *      backward pass.
 *   3. The innermost call inside the call that restates it:
 *      - with other types, as autocast does: the same operator, or one of the family in one of the
 *        family;
 *      - with other sizes, as DTensor does (its operators record global sizes, then run themselves
 *        on the local part) and vmap: the operator that encloses it, again;
 *      - a matrix product with other FLOPs: one of several in the call, or all of it.
 *   4. An operator in addition to the products of a call of the family or of a call by rule 3: a
 *      helper.
 *
 *   frame, meaning    [n] the kernel's frame, and the frame that gives its purpose
 *   taken             out, [n_groups]: number of operators inside the instance with their own cost
 *                     by rule 1; by rule 3 FP_ALL_TAKEN if the whole call is restated, else
 *                     FP_SOME_TAKEN; size it for min(n, n_frames)
 *   scratch           [FP_CALLS_SCRATCH(n_frames)]
 *   n_groups          out: number of instances
 *
 * FP_E_TOO_MANY beyond FP_CALLS_MOST_FRAMES frames. */
enum { FP_SOME_TAKEN = 254, FP_ALL_TAKEN = 255, FP_CALLS_MOST_FRAMES = INT32_MAX / 2 };
#define FP_CALLS_SCRATCH(n_frames) ((size_t)(n_frames) * 3 + (size_t)(n_frames) / 4 + 1)

fp_status fp_calls_find(const fp_calls_frames *frames, const int32_t *frame, const int32_t *meaning,
                        int64_t n, const fp_calls_of *of, uint8_t *taken, int32_t *scratch,
                        int32_t *n_groups);
