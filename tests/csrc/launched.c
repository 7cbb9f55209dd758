/* launched.c: fp_launched on arrays of exactly their size, against plain loops; an index out of
 * range is found. */
#include <stdbool.h>

#include "analysis/fp_groups.h"
#include "check.h"

enum { MOST = 30, LAST = 20, STARVED_NS = 5 };

static bool is_known(const fp_launched_kernels *kernels, const fp_launched_calls *calls,
                     int64_t i) {
  return kernels->group[i] != FP_LAUNCHED_OTHER && kernels->call[i] >= 0 &&
         calls->end[kernels->call[i]] != INT64_MAX;
}

static bool is_first(const fp_launched_kernels *kernels, const fp_launched_calls *calls,
                     int64_t i) {
  for (int64_t k = 0; k < i; k++)
    if (kernels->call[k] == kernels->call[i] && is_known(kernels, calls, k)) return false;
  return true;
}

static void sums_are_those_of_loops(const fp_launched_kernels *kernels,
                                    const fp_launched_calls *calls, int32_t n_groups) {
  uint8_t *seen = ARRAY(uint8_t, calls->n / 8 + 1);
  memset(seen, 0, (size_t)calls->n / 8 + 1);
  int64_t *found[4];
  for (int i = 0; i < 4; i++) {
    found[i] = ARRAY(int64_t, n_groups);
    for (int32_t g = 0; g < n_groups; g++) found[i][g] = 0;
  }
  const fp_launched_sums sums = {found[0], found[1], found[2], found[3]};
  CHECK(fp_launched(kernels, calls, n_groups, STARVED_NS, seen, &sums) == FP_OK);
  for (int64_t i = 0; i < kernels->n; i++) {
    int32_t g = kernels->group[i], call = kernels->call[i];
    if (g < 0 || !is_known(kernels, calls, i)) continue;
    int64_t host = calls->end[call] - calls->start[call];
    bool first = is_first(kernels, calls, i), on_time = kernels->start[i] >= calls->start[call];
    found[0][g] -= first;
    found[1][g] -= first && host > 0 ? host : 0;
    found[2][g] -= on_time;
    found[3][g] -= on_time && kernels->start[i] - calls->end[call] < STARVED_NS;
  }
  for (int i = 0; i < 4; i++) {
    for (int32_t g = 0; g < n_groups; g++) CHECK(!found[i][g]);
    free(found[i]);
  }
  free(seen);
}

static void bad_input_is_found(void) {
  const int64_t time = 0;
  int64_t sum = 0;
  uint8_t seen = 0;
  const fp_launched_calls calls = {&time, &time, 1};
  const fp_launched_sums sums = {&sum, &sum, &sum, &sum};
  const int32_t wrong[][2] = {{1, 0}, {FP_LAUNCHED_OTHER - 1, 0}, {0, 1}, {0, -2}};
  for (int i = 0; i < 4; i++) {
    const fp_launched_kernels kernels = {&wrong[i][0], &wrong[i][1], &time, 1};
    CHECK(fp_launched(&kernels, &calls, 1, STARVED_NS, &seen, &sums) == FP_E_INDEX);
  }
}

int main(void) {
  for (int round = rounds(5000); round > 0; round--) {
    int32_t n = random_below(MOST), n_calls = random_below(10), n_groups = 1 + random_below(4);
    int32_t *group = ARRAY(int32_t, n), *call = ARRAY(int32_t, n);
    int64_t *start = ARRAY(int64_t, n);
    int64_t *begin = ARRAY(int64_t, n_calls), *end = ARRAY(int64_t, n_calls);
    for (int32_t i = 0; i < n; i++) {
      group[i] = random_below(n_groups + 2) - 2;
      call[i] = random_below(n_calls + 1) - 1;
      start[i] = random_below(LAST);
    }
    for (int32_t i = 0; i < n_calls; i++) {
      begin[i] = random_below(LAST);
      end[i] = random_below(5) ? random_below(LAST) : INT64_MAX;
    }
    const fp_launched_kernels kernels = {group, call, start, n};
    const fp_launched_calls calls = {begin, end, n_calls};
    sums_are_those_of_loops(&kernels, &calls, n_groups);
    free(group);
    free(call);
    free(start);
    free(begin);
    free(end);
  }
  bad_input_is_found();
  return 0;
}
