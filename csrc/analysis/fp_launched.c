#include "analysis/fp_launched.h"

/* Adds a call to its group unless it was seen before. */
static void add_call(const fp_launched_calls *calls, int32_t call, int32_t group, uint8_t *seen,
                     const fp_launched_sums *sums) {
  uint8_t bit = (uint8_t)(1u << (call & 7));
  if (seen[call >> 3] & bit) return;
  seen[call >> 3] |= bit;
  if (group < 0) return;
  sums->launches[group]++;
  int64_t host;
  if (__builtin_sub_overflow(calls->end[call], calls->start[call], &host) || host <= 0) return;
  if (__builtin_add_overflow(sums->host[group], host, &sums->host[group]))
    sums->host[group] = INT64_MAX;
}

fp_status fp_launched(const fp_launched_kernels *kernels, const fp_launched_calls *calls,
                      int32_t n_groups, int64_t starved_ns, uint8_t *seen,
                      const fp_launched_sums *sums) {
  for (int64_t i = 0; i < kernels->n; i++) {
    int32_t group = kernels->group[i], call = kernels->call[i];
    if (group < FP_LAUNCHED_OTHER || group >= n_groups || call < -1 || call >= calls->n)
      return FP_E_INDEX;
    if (call < 0 || group == FP_LAUNCHED_OTHER || calls->end[call] == INT64_MAX) continue;
    add_call(calls, call, group, seen, sums);
    int64_t start = kernels->start[i], end = calls->end[call];
    if (group < 0 || start < calls->start[call]) continue;
    sums->on_time[group]++;
    sums->starved[group] += start < end || (uint64_t)start - (uint64_t)end < (uint64_t)starved_ns;
  }
  return FP_OK;
}
