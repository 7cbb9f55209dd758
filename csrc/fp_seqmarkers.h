/* fp_seqmarkers.h: the torch ranges around a kernel -> `['mm, seq = 7, op_id = 9', ...]`. */
#ifndef FP_SEQMARKERS_H
#define FP_SEQMARKERS_H

#include "fp_status.h"
#include "fp_text.h"

/* What the lists are made from; borrowed, must outlive the fp_seqmarkers. -1 is "none". */
typedef struct {
  const int32_t *frame_of_row;   /* [n_rows] innermost frame of the kernel */
  const int32_t *frame_parent;   /* [n_frames] less than the frame, -1 at a root */
  const int32_t *range_of_frame; /* [n_frames] */
  const int32_t *label_of_range; /* [n_ranges] */
  const int64_t *seq_of_range;   /* [n_ranges] */
  const int64_t *op_id_of_range; /* [n_ranges] */
  const uint8_t *is_torch;       /* [heads.count] 1: a label that belongs in the list */
  int64_t n_rows, n_frames, n_ranges;
  fp_texts heads, tails; /* per label, escaped for between quotes: name, and what follows op_id */
  char quote;
} fp_seqmarkers_tables;

typedef struct fp_seqmarkers fp_seqmarkers;

/* NULL when out of memory. */
fp_seqmarkers *fp_seqmarkers_new(const fp_seqmarkers_tables *tables);
fp_seqmarkers *fp_seqmarkers_again(const fp_seqmarkers *markers); /* of the same tables */
void fp_seqmarkers_free(fp_seqmarkers *markers);

/* The list of a row, valid until the next call: the torch ranges from the kernel to the root, each
 * text once, sorted by (seq, head, op_id, tail), no number first; of PyTorch 1's ranges with one
 * number and names of which one holds the other, the first. The cost is the depth of the
 * row's frame (and a sort of its torch ranges), or nothing when the previous call had the same
 * frame. FP_E_INDEX when an index points outside its table. */
fp_status fp_seqmarkers_list(fp_seqmarkers *markers, int64_t row, fp_text *list);

#endif
