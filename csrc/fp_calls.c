/* fp_calls.c: see fp_calls.h. */
#include "fp_calls.h"

#include <stdbool.h>
#include <string.h>

static bool is_outside(int32_t index, int32_t n) { return index < -1 || index >= n; }

/* The label of a frame, which may be -1; *bad where one is out of range. */
static int32_t label_of(const fp_calls_frames *t, int32_t frame, bool *bad) {
  if (frame < 0) return -1;
  *bad |= (uint32_t)t->label[frame] >= (uint32_t)t->n_labels;
  return *bad ? -1 : t->label[frame];
}

fp_status fp_calls_find(const fp_calls_frames *t, const int32_t *frame, const int32_t *meaning,
                        int64_t n, int32_t *label, uint8_t *is_backward, int32_t *group,
                        int32_t *number, int32_t *n_groups) {
  bool bad = false;
  int32_t known = 0;
  memset(number, -1, (size_t)t->n_frames * sizeof *number);
  for (int64_t i = 0; i < n; i++) {
    if (is_outside(frame[i], t->n_frames) || is_outside(meaning[i], t->n_frames)) return FP_E_INDEX;
    int32_t own = frame[i] < 0 ? -1 : t->picked[frame[i]];
    int32_t stands_for = own;
    int32_t forward = meaning[i] < 0 || meaning[i] == frame[i] ? -1 : t->picked[meaning[i]];
    if (is_outside(own, t->n_frames) || is_outside(forward, t->n_frames)) return FP_E_INDEX;
    int32_t own_label = label_of(t, own, &bad), forward_label = label_of(t, forward, &bad);
    if (bad) return FP_E_INDEX;
    is_backward[i] = forward >= 0 &&
                     !(own_label >= 0 && t->known[own_label] & t->unknown_backward[forward_label]);
    if (is_backward[i]) {
      int32_t backward = frame[i] < 0 ? -1 : t->backward[frame[i]];
      if (is_outside(backward, t->n_frames)) return FP_E_INDEX;
      int32_t instance = backward < 0 ? -1 : t->instance[backward];
      if (is_outside(instance, t->n_frames)) return FP_E_INDEX;
      stands_for = instance >= 0 ? instance : forward;
    }
    label[i] = is_backward[i] ? forward_label : own_label;
    group[i] = -1;
    if (stands_for < 0) continue;
    if (number[stands_for] < 0) number[stands_for] = known++;
    group[i] = number[stands_for];
  }
  *n_groups = known;
  return FP_OK;
}

/* What the kernels of one call are together. */
enum {
  RECOGNISED = 1, /* one does a main part */
  UNKNOWN = 2,    /* of one nothing is known */
  CLAIMED = 4,    /* the first gradient, and with the next bit the second, is claimed */
  SETTLED = 16,   /* one does its gradient for sure */
  UNSURE = 32,    /* one is not sure which it does */
  SEVERAL = 64,   /* two are not */
  MET = 128,      /* one that is not was before */
};

static bool is_gradient(const fp_parts_tables *t, int32_t row, int part) {
  return t->main[row * FP_PARTS + 1] && (part == 0 || part == 1);
}

/* What one kernel adds to the state of its group. */
static int added(const fp_parts_tables *t, int32_t row, int32_t info, int before) {
  int64_t cell = (int64_t)row * t->n_infos + info;
  int part = t->part_of[cell], state = 0;
  if (part >= 0 && t->main[row * FP_PARTS + part]) state |= RECOGNISED;
  if (t->costed[row] && t->other[info]) state |= UNKNOWN;
  if (!is_gradient(t, row, part)) return state;
  state |= CLAIMED << part;
  if (t->sure[cell]) return state | SETTLED;
  return state | (before & UNSURE ? SEVERAL : UNSURE);
}

/* The part of a kernel whose group is known; *group_state learns that it was met. */
static int8_t resolved(const fp_parts_tables *t, int32_t row, int32_t info, bool has_group,
                       uint8_t *group_state) {
  int64_t cell = (int64_t)row * t->n_infos + info;
  int part = t->part_of[cell], state = *group_state;
  if (part < 0) {
    bool whole = t->costed[row] && !(state & RECOGNISED);
    return whole && (t->whole_always[row] || state & UNKNOWN) ? FP_WHOLE : FP_BESIDE;
  }
  bool one_claimed = !(state & CLAIMED) != !(state & CLAIMED << 1);
  if (!is_gradient(t, row, part) || t->sure[cell] || !one_claimed) return (int8_t)part;
  if (has_group) *group_state |= MET;
  bool is_second = has_group && state & MET;
  bool several = has_group && state & SEVERAL;
  bool moved = state & SETTLED ? true : several && is_second == (part == 0);
  return (int8_t)(moved ? 1 - part : part);
}

fp_status fp_parts_find(const fp_parts_tables *t, const int32_t *row, const int32_t *info,
                        const int32_t *group, int64_t n, int32_t n_groups, int8_t *part,
                        uint8_t *state) {
  memset(state, 0, (size_t)n_groups + 1);
  for (int64_t i = 0; i < n; i++) {
    if ((uint32_t)row[i] >= (uint32_t)t->n_rows || (uint32_t)info[i] >= (uint32_t)t->n_infos)
      return FP_E_INDEX;
    int found = t->part_of[(int64_t)row[i] * t->n_infos + info[i]];
    if (is_outside(group[i], n_groups) || found < -1 || found >= FP_PARTS) return FP_E_INDEX;
    uint8_t *all = &state[group[i] < 0 ? n_groups : group[i]];
    *all |= (uint8_t)added(t, row[i], info[i], *all);
  }
  for (int64_t i = 0; i < n; i++) {
    uint8_t *all = &state[group[i] < 0 ? n_groups : group[i]];
    part[i] = resolved(t, row[i], info[i], group[i] >= 0, all);
  }
  return FP_OK;
}
