/* fp_link.h: backward range -> the forward range it belongs to, by autograd's sequence numbers.
 *
 * The number on a forward op is the one that the next autograd node will get, so every op that
 * encloses the node's creation carries it too: the forward range of a backward range with number N
 * is the latest-starting carrier of N in the same scope that started before it. A scope is a
 * process, or one recomputation inside it, whose numbers are its own. */
#ifndef FP_LINK_H
#define FP_LINK_H

#include <stdint.h>

#include "fp_status.h"

enum { FP_LINK_NONE = 0, FP_LINK_FORWARD = 1, FP_LINK_BACKWARD = 2 };

/* What a range's label says, as bits. */
enum { FP_LABEL_TORCH = 1, FP_LABEL_BACKWARD = 2, FP_LABEL_NODE = 4, FP_LABEL_RECOMPUTE = 8 };

typedef struct {
  const int32_t *label, *thread, *frame; /* [n], frame: the range's own */
  const int64_t *seq;                    /* [n] */
  int32_t n;
  const uint8_t *bits;        /* [labels] of FP_LABEL_* */
  const int32_t *parent;      /* [frames] */
  const uint8_t *in_backward; /* [frames] 1 if the frame is inside, or is, a backward range */
} fp_link_ranges;

/* The role of each range.
 * Backward: a numbered backward range; inside another one only a node of the autograd graph, since
 * an operator inside a node has no number that links. Forward: any other numbered range outside a
 * backward pass, but for one that runs a forward pass again. PyTorch 1 gives 0 to what runs on a
 * backward thread, so 0 counts as a number only on threads with forward ranges that have a larger
 * one. counting  scratch, [n_threads] */
void fp_link_roles(const fp_link_ranges *ranges, uint8_t *counting, int32_t n_threads,
                   uint8_t *role);

/* Ranges in order of start.
 *   role     [n] FP_LINK_FORWARD: carries a number forward; FP_LINK_BACKWARD: asks for one
 *   seq      [n] the number, >= 0 where the role is not FP_LINK_NONE
 *   scope    [n] any number
 *   forward  [n] index of the forward range, or -1 */
fp_status fp_link(const uint8_t *role, const int64_t *seq, const int32_t *scope, int32_t n,
                  int32_t *forward);

/* The backward call that each frame is a part of: the outermost frame of the run of linking frames
 * with the same number around it.
 *   parent  [n] tree of frames, parents first
 *   range   [n] the frame's range, an index of role and seq
 *   call    [n] a frame, or -1
 *   links   [n] 1 for a frame whose role is FP_LINK_BACKWARD */
fp_status fp_link_calls(const int32_t *parent, const int32_t *range, int32_t n, const uint8_t *role,
                        const int64_t *seq, int32_t *call, uint8_t *links);

/* Frames, the backward calls that they are parts of, and what these link to. */
typedef struct {
  const int32_t *call;        /* [n] as fp_link_calls tells */
  const int32_t *range;       /* [n] */
  const uint8_t *in_backward; /* [n] 1 if the frame is inside, or is, a backward range */
  int32_t n;
  const int32_t *forward; /* [n_ranges] as fp_link tells */
} fp_link_calls_of;

/* The frame that says what each frame is for: inside a backward call that of its forward range,
 * else, and where that is not known, the frame itself.
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

/* What the torch ranges around a kernel say of its numbers.
 *   frame     [n] innermost frame of each kernel, -1 for none
 *   inside    [n] 1 if the kernel runs in a backward pass
 * seq_of[i] is the number that links: of the innermost backward frame with a number for a kernel in
 * a backward pass, else of the innermost frame with one; -1 for none. 0 stands for "none" in
 * PyTorch 1 wherever another number is there, and is then left out.
 * The other numbers of the chain go to other[offset[i] .. offset[i + 1]), sorted, each once.
 * Called with other == NULL it only fills seq_of and offset, [n + 1], so that the caller knows how
 * much room other needs. scratch: [depth of the deepest chain]. */
fp_status fp_link_numbers(const fp_link_frames *frames, const int32_t *frame, const uint8_t *inside,
                          int64_t n, int64_t *scratch, int32_t depth, int64_t *seq_of,
                          int64_t *offset, int64_t *other);

/* PyProf's "sub": how many rows of the same process in a row had this number and this operator
 * before. last_*: scratch, [n_processes]. */
fp_status fp_link_sub(const int32_t *process, const int64_t *seq, const int32_t *operator_id,
                      int64_t n, int64_t *last_seq, int32_t *last_operator, int32_t *last_sub,
                      int32_t n_processes, int32_t *sub);

#endif
