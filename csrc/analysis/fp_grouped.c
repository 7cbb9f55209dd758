#include "analysis/fp_grouped.h"

fp_status fp_grouped(const fp_grouped_events *events, int64_t *next,
                     const fp_grouped_threads *threads) {
  const int32_t n_threads = events->n_threads;
  int64_t *bounds = threads->bounds;
  for (int32_t t = 0; t < n_threads; t++) next[t] = 0;
  for (int64_t i = 0; i < events->n; i++) {
    const int32_t thread = events->thread[i];
    if (thread < -1 || thread >= n_threads) return FP_E_INDEX;
    if (thread >= 0) next[thread]++;
  }
  bounds[0] = 0;
  for (int32_t t = 0; t < n_threads; t++) {
    bounds[t + 1] = bounds[t] + next[t];
    next[t] = bounds[t];
  }
  for (int64_t i = 0; i < events->n; i++) {
    const int32_t thread = events->thread[i];
    if (thread < 0) continue;
    const int64_t place = next[thread]++;
    threads->order[place] = i;
    threads->start[place] = events->start[i];
    if (!threads->until) continue;
    int64_t until = events->end[i];
    if (place > bounds[thread] && threads->until[place - 1] > until)
      until = threads->until[place - 1];
    threads->until[place] = until;
  }
  return FP_OK;
}

/* Whether event i is included, by its label; below 0 if that is out of bounds. */
static int is_included(const fp_grouped_choice *choice, int64_t i) {
  if (!choice->label) return 1;
  const int32_t label = choice->label[i];
  if (label < -1 || label >= choice->n_labels) return -1;
  return label >= 0 && choice->wanted[label];
}

/* The group of event i; -1 if it is left out, -2 if an index is out of bounds. */
static int32_t group_of(const fp_grouped_events *events, const fp_grouped_choice *choice,
                        int64_t i) {
  const int32_t thread = events->thread[i];
  if (thread < -1 || thread >= events->n_threads) return -2;
  const int included = is_included(choice, i);
  if (included < 1) return included < 0 ? -2 : -1;
  if (thread < 0) return -1;
  const int32_t group = choice->group[thread];
  return group < 0 || group >= choice->n_groups ? -2 : group;
}

/* Whether the event does not lie within earlier ones of its group. */
static bool is_outer(const fp_grouped_scratch *scratch, int32_t group, int64_t end) {
  if (scratch->has_any[group] && end <= scratch->until[group]) return false;
  scratch->has_any[group] = 1;
  scratch->until[group] = end;
  return true;
}

fp_status fp_grouped_count(const fp_grouped_events *events, const fp_grouped_choice *choice,
                           const fp_grouped_scratch *scratch, int64_t *bounds) {
  for (int32_t g = 0; g <= choice->n_groups; g++) bounds[g] = 0;
  for (int64_t i = 0; i < events->n; i++) {
    const int32_t group = group_of(events, choice, i);
    if (group < -1) return FP_E_INDEX;
    if (group >= 0 && is_outer(scratch, group, events->end[i])) bounds[group + 1]++;
  }
  for (int32_t g = 0; g < choice->n_groups; g++) bounds[g + 1] += bounds[g];
  return FP_OK;
}

fp_status fp_grouped_unite(const fp_grouped_events *events, const fp_grouped_choice *choice,
                           const fp_grouped_scratch *scratch, const int64_t *bounds, int64_t *start,
                           int64_t *end) {
  for (int32_t g = 0; g < choice->n_groups; g++) scratch->next[g] = bounds[g];
  for (int64_t i = 0; i < events->n; i++) {
    const int32_t group = group_of(events, choice, i);
    if (group < -1) return FP_E_INDEX;
    if (group < 0 || !is_outer(scratch, group, events->end[i])) continue;
    const int64_t place = scratch->next[group]++;
    if (place >= bounds[group + 1]) return FP_E_INDEX;
    start[place] = events->start[i];
    end[place] = events->end[i];
  }
  return FP_OK;
}

fp_status fp_grouped_overlapping(const fp_grouped_events *events, const fp_grouped_choice *choice,
                                 const fp_grouped_windows *windows, int64_t *rows,
                                 int64_t *n_rows) {
  int64_t window = 0, n = 0;
  for (int64_t i = 0; i < events->n; i++) {
    const int64_t start = events->start[i];
    if (i && start < events->start[i - 1]) return FP_E_ORDER;
    while (window < windows->n && windows->end[window] <= start) window++;
    if (window == windows->n) break;
    if (windows->start[window] >= events->end[i]) continue;
    const int included = is_included(choice, i);
    if (included < 0) return FP_E_INDEX;
    if (included) rows[n++] = i;
  }
  *n_rows = n;
  return FP_OK;
}
