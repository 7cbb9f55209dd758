/* Drives fp_counted.c on random kernels and pieces, against sums by plain loops. */
#include "analysis/fp_groups.h"
#include "check.h"

enum { MOST = 24, GROUPS = 3, STEPS = 3, CALLS = 5, WINDOWS = 3 };

typedef struct {
  int32_t *group, *step, *call;
  int64_t *duration;
  fp_counted_kernels all;
} kernels;

static kernels random_kernels(int32_t n) {
  kernels made = {ARRAY(int32_t, n), ARRAY(int32_t, n), ARRAY(int32_t, n), ARRAY(int64_t, n), {0}};
  for (int32_t i = 0; i < n; i++) {
    made.group[i] = random_below(GROUPS + 1) - 1;
    made.step[i] = random_below(STEPS + 1) - 1;
    made.call[i] = random_below(CALLS + 1) - 1;
    made.duration[i] = random_below(10) - 1;
  }
  made.all = (fp_counted_kernels){made.group, made.step, made.call, made.duration,
                                  n,          GROUPS,    STEPS,     CALLS};
  return made;
}

/* The sums of pieces by group and window, and the kernels that have a piece. */
static void pieces_keep_their_sum(const kernels *of, uint8_t *runs) {
  int32_t n = random_below(MOST), n_known = 0;
  int32_t *row = ARRAY(int32_t, n), *window = ARRAY(int32_t, n);
  int64_t *ns = ARRAY(int64_t, n), last[GROUPS], sum[GROUPS][WINDOWS] = {{0}}, n_merged = -1;
  fp_counted_merged merged = {ARRAY(int32_t, n), ARRAY(int32_t, n), ARRAY(int64_t, n)};
  for (int32_t i = 0; i < n && of->all.n; i++) {
    int32_t kernel = random_below((int32_t)of->all.n);
    if (of->group[kernel] < 0) continue;
    row[n_known] = kernel;
    window[n_known] = random_below(WINDOWS);
    ns[n_known] = random_below(10);
    sum[of->group[kernel]][window[n_known]] += ns[n_known];
    n_known++;
  }
  const fp_counted_pieces pieces = {row, window, ns};
  CHECK(fp_counted_merge(&of->all, &pieces, n_known, &merged, &n_merged, last, runs) == FP_OK);
  CHECK(n_merged <= n_known);
  for (int64_t i = 0; i < n_merged; i++) sum[merged.group[i]][merged.window[i]] -= merged.ns[i];
  for (int32_t g = 0; g < GROUPS; g++)
    for (int32_t w = 0; w < WINDOWS; w++) CHECK(!sum[g][w]);
  for (int32_t i = 0; i < n_known; i++) CHECK(runs[row[i] / 8] >> row[i] % 8 & 1);
  if (n_known) {
    row[0] = (int32_t)of->all.n;
    CHECK(fp_counted_merge(&of->all, &pieces, 1, &merged, &n_merged, last, runs) == FP_E_INDEX);
  }
  free(row);
  free(window);
  free(ns);
  free(merged.group);
  free(merged.window);
  free(merged.ns);
}

static void sums_are_those_of_a_loop(const kernels *of, const uint8_t *runs) {
  uint8_t is_counted[STEPS], *seen = ARRAY(uint8_t, CALLS / 8 + 1);
  int64_t n[GROUPS] = {0}, ns[GROUPS] = {0}, calls[GROUPS] = {0};
  int32_t first[GROUPS];
  memset(seen, 0, CALLS / 8 + 1);
  for (int32_t s = 0; s < STEPS; s++) is_counted[s] = (uint8_t)random_below(2);
  const fp_counted_sums sums = {n, ns, calls, first};
  CHECK(fp_counted_sum(&of->all, is_counted, runs, seen, &sums) == FP_OK);
  for (int32_t g = 0; g < GROUPS; g++) {
    int32_t found = -1;
    for (int32_t i = 0; i < of->all.n; i++) {
      const int runs_here = of->step[i] < 0 ? runs[i / 8] >> i % 8 & 1 : is_counted[of->step[i]];
      if (of->group[i] != g || !runs_here) continue;
      if (found < 0) found = i;
      n[g]--;
      if (of->duration[i] > 0) ns[g] -= of->duration[i];
      if (of->call[i] < 0) calls[g]--;
    }
    CHECK(!n[g] && !ns[g] && calls[g] >= 0 && calls[g] <= CALLS);
    if (found >= 0) CHECK(first[g] == found);
  }
  free(seen);
}

static void bad_indices_are_found(const kernels *of, const uint8_t *runs) {
  uint8_t is_counted[STEPS] = {1, 1, 1}, seen[CALLS / 8 + 1] = {0};
  int64_t n[GROUPS] = {0}, ns[GROUPS] = {0}, calls[GROUPS] = {0};
  int32_t first[GROUPS], last = (int32_t)of->all.n - 1;
  const fp_counted_sums sums = {n, ns, calls, first};
  if (last < 0) return;
  of->step[last] = STEPS;
  CHECK(fp_counted_sum(&of->all, is_counted, runs, seen, &sums) == FP_E_INDEX);
  of->step[last] = -1;
  of->call[last] = CALLS;
  CHECK(fp_counted_sum(&of->all, is_counted, runs, seen, &sums) == FP_E_INDEX);
}

int main(void) {
  for (int round = rounds(5000); round > 0; round--) {
    kernels of = random_kernels(random_below(MOST));
    uint8_t *runs = ARRAY(uint8_t, of.all.n / 8 + 1);
    memset(runs, 0, (size_t)of.all.n / 8 + 1);
    pieces_keep_their_sum(&of, runs);
    sums_are_those_of_a_loop(&of, runs);
    bad_indices_are_found(&of, runs);
    free(runs);
    free(of.group);
    free(of.step);
    free(of.call);
    free(of.duration);
  }
  return 0;
}
