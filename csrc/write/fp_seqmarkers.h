/* fp_seqmarkers.h: format the torch ranges around a kernel as `['mm, seq = 7, op_id = 9', ...]`. */
#pragma once

#include "base/fp_status.h"
#include "text/fp_text.h"

/* The input tables; borrowed, they must outlive the fp_seqmarkers. -1 means "none". */
typedef struct {
  const int32_t *frame_of_row;   /* [n_rows] innermost frame of the kernel */
  const int32_t *frame_parent;   /* [n_frames] less than the frame's index, -1 at roots */
  const int32_t *range_of_frame; /* [n_frames] */
  const int32_t *label_of_range; /* [n_ranges] */
  const int64_t *seq_of_range;   /* [n_ranges] */
  const int64_t *op_id_of_range; /* [n_ranges] */
  const uint8_t *is_torch;       /* [heads.count] 1 for labels to list */
  int64_t n_rows, n_frames, n_ranges;
  fp_texts heads, tails; /* per label, escaped, padded: the name, and the text after op_id */
  char quote;
} fp_seqmarkers_tables;

typedef struct fp_seqmarkers fp_seqmarkers;

/* NULL when out of memory. */
fp_seqmarkers *fp_seqmarkers_new(const fp_seqmarkers_tables *tables);
fp_seqmarkers *fp_seqmarkers_again(const fp_seqmarkers *markers); /* another, of the same tables */
void fp_seqmarkers_free(fp_seqmarkers *markers);

/* Formats the list of a row, valid until the next call: the torch ranges from the kernel to the
 * root, each text once, sorted by (seq, head, op_id, tail), ranges without a number first. Of
 * PyTorch 1's ranges with equal numbers, where one name contains the other, only the first is
 * listed. Time is linear in the depth of the row's frame, plus a sort of its torch ranges; constant
 * if the previous call had the same frame. FP_E_INDEX: an index is out of bounds. */
fp_status fp_seqmarkers_list(fp_seqmarkers *markers, int64_t row, fp_text *list);
