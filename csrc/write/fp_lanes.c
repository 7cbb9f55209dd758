/* fp_lanes.c: see fp_lanes.h. */
#include "write/fp_lanes.h"

#include <stdlib.h>
#include <string.h>

typedef struct {
  const fp_lanes_slices *slices;
  int32_t *open;   /* [n_tracks, FP_LANES_SEARCHED]: the innermost open slice of each lane, -1 */
  int32_t *around; /* [n]: the open slice around each slice, -1 */
} lanes;

static int64_t end_of(const lanes *l, int32_t slice) {
  int64_t start = l->slices->start[slice], end = l->slices->end[slice];
  return end < start ? start : end;
}

/* Whether a slice fits in a lane, whose slices that have ended are closed. */
static int fits(const lanes *l, int32_t *open, int32_t slice) {
  while (*open >= 0 && end_of(l, *open) <= l->slices->start[slice]) *open = l->around[*open];
  if (*open < 0) return 1;
  return l->slices->may_nest && end_of(l, slice) <= end_of(l, *open);
}

static int32_t lane_of(lanes *l, int32_t slice, int32_t n_lanes) {
  int32_t *open = l->open + (int64_t)l->slices->track[slice] * FP_LANES_SEARCHED;
  for (int32_t i = 0; i < n_lanes && i < FP_LANES_SEARCHED; i++) {
    if (!fits(l, &open[i], slice)) continue;
    l->around[slice] = open[i];
    open[i] = slice;
    return i;
  }
  l->around[slice] = -1;
  if (n_lanes < FP_LANES_SEARCHED) open[n_lanes] = slice;
  return n_lanes;
}

fp_status fp_lanes(const fp_lanes_slices *slices, int32_t *lane, int32_t *n_lanes) {
  if (slices->n > INT32_MAX) return FP_E_TOO_MANY;
  size_t n_open = (size_t)slices->n_tracks * FP_LANES_SEARCHED;
  lanes l = {slices, malloc((n_open + 1) * sizeof *l.open),
             malloc(((size_t)slices->n + 1) * sizeof *l.around)};
  fp_status status = l.open && l.around ? FP_OK : FP_E_MEMORY;
  if (status == FP_OK) memset(l.open, -1, n_open * sizeof *l.open);
  for (int64_t i = 0; i < slices->n_tracks; i++) n_lanes[i] = 0;
  for (int64_t i = 0; i < slices->n && status == FP_OK; i++) {
    int32_t track = slices->track[i];
    if (track < 0 || track >= slices->n_tracks) {
      status = FP_E_INDEX;
    } else if (i && slices->start[i] < slices->start[i - 1]) {
      status = FP_E_ORDER;
    } else {
      lane[i] = lane_of(&l, (int32_t)i, n_lanes[track]);
      if (lane[i] == n_lanes[track]) n_lanes[track]++;
    }
  }
  free(l.around);
  free(l.open);
  return status;
}
