/* fp_link.h: link backward ranges to forward ranges by autograd's sequence numbers.
 *
 * The number on a forward operator is the one that the next autograd node will get, so all
 * operators that enclose the node's creation have it. The forward range of a backward range with
 * number N is the last range with N in the same scope that started before it. A scope is a process,
 * or one recomputation inside a process, which has its own numbers. */
#pragma once

#include "base/fp_status.h"

enum { FP_LINK_NONE = 0, FP_LINK_FORWARD = 1, FP_LINK_BACKWARD = 2 };

/* Properties of a range's label, as bits. */
enum { FP_LABEL_TORCH = 1, FP_LABEL_BACKWARD = 2, FP_LABEL_NODE = 4, FP_LABEL_RECOMPUTE = 8 };

typedef struct {
  const int32_t *label, *thread, *frame; /* [n], frame: the range's own */
  const int64_t *seq;                    /* [n] */
  int32_t n;
  const uint8_t *bits;        /* [labels] FP_LABEL_* bits */
  const int32_t *parent;      /* [frames] */
  const uint8_t *in_backward; /* [frames] 1 if the frame is a backward range or inside one */
} fp_link_ranges;

/* Finds the role of each range.
 *
 * Backward: a numbered backward range; inside another one, only a node of the autograd graph,
 * because the numbers of operators inside a node do not link. Forward: any other numbered range
 * outside a backward pass, except recomputations of a forward pass. PyTorch 1 gives number 0 to all
 * ranges on backward threads, so 0 counts only on threads where a forward range has a larger one.
 *   counting  scratch, [n_threads] */
void fp_link_roles(const fp_link_ranges *ranges, uint8_t *counting, int32_t n_threads,
                   uint8_t *role);

/* Links ranges, which are sorted by start.
 *   role     [n] FP_LINK_*
 *   seq      [n] the number, >= 0 unless the role is FP_LINK_NONE
 *   scope    [n] any number
 *   forward  out, [n], index of the forward range, or -1 */
fp_status fp_link(const uint8_t *role, const int64_t *seq, const int32_t *scope, int32_t n,
                  int32_t *forward);

/* Finds the backward call of each frame: the outermost frame of the run of enclosing linking frames
 * with the same number.
 *   parent  [n] tree of frames, parents first
 *   range   [n] range of the frame, an index into role and seq
 *   call    out, [n], a frame, or -1
 *   links   out, [n], 1 for a frame whose role is FP_LINK_BACKWARD */
fp_status fp_link_calls(const int32_t *parent, const int32_t *range, int32_t n, const uint8_t *role,
                        const int64_t *seq, int32_t *call, uint8_t *links);

/* Frames, their backward calls, and the forward ranges of these. */
typedef struct {
  const int32_t *call;        /* [n] result of fp_link_calls */
  const int32_t *range;       /* [n] */
  const uint8_t *in_backward; /* [n] 1 if the frame is a backward range or inside one */
  int32_t n;
  const int32_t *forward; /* [n_ranges] result of fp_link */
} fp_link_calls_of;

/* Finds the frame that gives the meaning of each frame: inside a linked backward call, the frame of
 * the forward range; otherwise the frame itself.
 *   frame_of_range  [n_ranges] */
fp_status fp_link_meanings(const fp_link_calls_of *calls, const int32_t *frame_of_range,
                           int32_t n_ranges, int32_t *meaning);

/* Frames, and the numbers of their ranges. */
typedef struct {
  const int32_t *parent;   /* [n_frames] tree of frames, parents first */
  const int32_t *range;    /* [n_frames] */
  const uint8_t *backward; /* [n_frames] 1 for a backward frame */
  const int64_t *seq;      /* [n_ranges] -1 for none */
  const int32_t *label;    /* [n_ranges] */
  const uint8_t *is_torch; /* [n_labels] 1 where a number counts */
  int32_t n_ranges, n_labels;
} fp_link_frames;

/* The other numbers of kernels: those of kernel i are number[end[i - 1] .. end[i]), ascending. */
typedef struct {
  int64_t *end;    /* [kernels] */
  int64_t *number; /* [capacity] */
  int64_t capacity;
  int64_t n; /* kernels done; 0 initially */
} fp_link_others;

/* Collects the sequence numbers of the torch ranges around each kernel.
 *   frame     [n] innermost frame of each kernel, -1 for none
 *   inside    [n] 1 if the kernel runs in a backward pass
 *   scratch   [depth], the length of the longest chain
 *   seq_of    out, [n], the number that links: of the innermost backward frame with a number for
 *             kernels in a backward pass, else of the innermost frame with a number; -1 for none
 *   others    out; after FP_MORE, increase the capacity, keep the numbers and call again
 * 0 means "none" in PyTorch 1 if the chain has another number, and is then ignored. */
fp_status fp_link_numbers(const fp_link_frames *frames, const int32_t *frame, const uint8_t *inside,
                          int64_t n, int64_t *scratch, int32_t depth, int64_t *seq_of,
                          fp_link_others *others);

/* PyProf's "sub": the position of a row in its run of consecutive rows of the same process with the
 * same number and operator.
 *   last_*  scratch, [n_processes] */
fp_status fp_link_sub(const int32_t *process, const int64_t *seq, const int32_t *operator_id,
                      int64_t n, int64_t *last_seq, int32_t *last_operator, int32_t *last_sub,
                      int32_t n_processes, int32_t *sub);
