/* fp_calls.h: frames of kernels -> the call each kernel works for, and the part of it that it does.
 */
#ifndef FP_CALLS_H
#define FP_CALLS_H

#include <stdint.h>

#include "fp_status.h"

/* What is known of frames and labels; indices are -1 for "none". */
typedef struct {
  int32_t n_frames, n_labels;
  const int32_t *label;    /* [n_frames] */
  const int32_t *picked;   /* [n_frames] the frame of the call that the frame is a part of */
  const int32_t *backward; /* [n_frames] the backward call around it */
  const int32_t *instance; /* [n_frames] of a backward call: the frame that stands for it and for
                              all others that belong to the same forward call */
  const uint8_t *known; /* [n_labels] bits: what is known of the cost of such a call */
  const uint8_t *unknown_backward; /* [n_labels] what is not known of its backward pass's */
} fp_calls_frames;

/* Find the call of each of n kernels: that of the frame that says what the kernel is for, where
 * that is its forward call, unless the kernel's own call knows what this does not (a common bit of
 * known and unknown_backward); else its own.
 *   frame, meaning  [n] the kernel's frame, and the one that says what it is for
 *   label           [n] out: the label of the call, -1 for none
 *   is_backward     [n] out: 1 where the call is the forward one of the kernel's
 *   group           [n] out: which instance of the call, numbered as they appear, -1 for none
 *   number          scratch, [n_frames]
 *   n_groups        out: how many instances */
fp_status fp_calls_find(const fp_calls_frames *frames, const int32_t *frame, const int32_t *meaning,
                        int64_t n, int32_t *label, uint8_t *is_backward, int32_t *group,
                        int32_t *number, int32_t *n_groups);

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

/* The part that each of n kernels does of its call: 0 to 2, FP_WHOLE or FP_BESIDE.
 *
 * Two kernels of one backward call may claim the same gradient, and none the other: where their
 * names do not tell for sure, one of them does the other. A guess: the gradient of the left operand
 * comes first. Both cost the same, so that the sum is right whichever was which.
 *   row, info, group  [n]; group -1 for none
 *   part              [n], out
 *   state             scratch, [n_groups + 1] */
fp_status fp_parts_find(const fp_parts_tables *tables, const int32_t *row, const int32_t *info,
                        const int32_t *group, int64_t n, int32_t n_groups, int8_t *part,
                        uint8_t *state);

#endif
