/* groups.c: fp_groups on arrays of exactly their size, against plain loops; an index out of range
 * is found. Exact statistics: tests/property/test_groups.py. */
#include <math.h>
#include <stdbool.h>

#include "analysis/fp_groups.h"
#include "check.h"

enum { MOST = 40, NONE = -1 };

static int64_t sum_of(const fp_groups_rows *rows, int32_t group, const uint8_t *mask) {
  int64_t sum = 0;
  for (int64_t i = 0; i < rows->n; i++)
    if (rows->group[i] == group && rows->value[i] != NONE && (!mask || mask[i]))
      sum += mask && rows->value[i] < 0 ? 0 : rows->value[i];
  return sum;
}

static bool is_median(const fp_groups_rows *rows, int32_t group, int64_t count, double median) {
  int64_t below = 0, above = 0;
  for (int64_t i = 0; i < rows->n; i++) {
    if (rows->group[i] != group || rows->value[i] == NONE) continue;
    below += (double)rows->value[i] < median;
    above += (double)rows->value[i] > median;
  }
  return below <= count / 2 && above <= count / 2;
}

static int64_t distinct(const int32_t *group, const int32_t *id, int64_t n, int32_t own) {
  int64_t count = 0;
  for (int64_t i = 0; i < n; i++) {
    bool is_first = group[i] == own && id[i] >= 0;
    for (int64_t j = 0; j < n && is_first; j++)
      if (id[j] == id[i] && group[j] >= 0 && (group[j] != own || j < i)) is_first = false;
    count += is_first;
  }
  return count;
}

static void statistics_are_those_of_loops(int32_t n, int32_t n_groups) {
  int32_t *group = ARRAY(int32_t, n), *id = ARRAY(int32_t, n), *home = ARRAY(int32_t, MOST);
  int64_t *value = ARRAY(int64_t, n), *scratch = ARRAY(int64_t, n);
  uint8_t *mask = ARRAY(uint8_t, n);
  int64_t *of_groups[6];
  for (int i = 0; i < 6; i++) of_groups[i] = ARRAY(int64_t, n_groups);
  double *squares = ARRAY(double, n_groups), *median = ARRAY(double, n_groups);
  for (int32_t i = 0; i < n; i++) {
    group[i] = random_below(n_groups + 1) - 1;
    value[i] = random_below(30) - 5;
    id[i] = random_below(MOST) - 1;
  }
  const fp_groups_rows rows = {group, value, n, NONE, n_groups};
  const fp_groups_stats stats = {of_groups[0], of_groups[1], of_groups[2], of_groups[3], squares};
  CHECK(fp_groups_reduce(&rows, &stats) == FP_OK);
  CHECK(fp_groups_median(&rows, stats.count, scratch, of_groups[4], median) == FP_OK);
  for (int32_t i = 0; i < n; i++) mask[i] = 1;
  CHECK(fp_groups_sum_where(&rows, mask, of_groups[4]) == FP_OK);
  CHECK(fp_groups_sum_where(&rows, NULL, of_groups[5]) == FP_OK);
  for (int32_t g = 0; g < n_groups; g++) CHECK(of_groups[4][g] == of_groups[5][g]);
  for (int32_t i = 0; i < n; i++) mask[i] = (uint8_t)random_below(2);
  CHECK(fp_groups_sum_where(&rows, mask, of_groups[5]) == FP_OK);
  CHECK(fp_groups_distinct(&rows, id, MOST, home, of_groups[4]) == FP_OK);
  for (int32_t g = 0; g < n_groups; g++) {
    CHECK(stats.sum[g] == sum_of(&rows, g, NULL) && of_groups[5][g] == sum_of(&rows, g, mask));
    CHECK(stats.count[g] ? stats.min[g] <= stats.max[g] : stats.min[g] == NONE);
    CHECK(stats.count[g] ? is_median(&rows, g, stats.count[g], median[g]) : isnan(median[g]));
    CHECK(squares[g] >= 0 && of_groups[4][g] == distinct(group, id, n, g));
  }
  if (n && n_groups) { /* out of range */
    id[n - 1] = MOST;
    CHECK(group[n - 1] < 0 ||
          fp_groups_distinct(&rows, id, MOST, home, of_groups[4]) == FP_E_INDEX);
    stats.count[0] += n;
    CHECK(fp_groups_median(&rows, stats.count, scratch, of_groups[4], median) == FP_E_INDEX);
    group[n - 1] = n_groups;
    CHECK(fp_groups_reduce(&rows, &stats) == FP_E_INDEX);
    CHECK(fp_groups_sum_where(&rows, mask, of_groups[5]) == FP_E_INDEX);
  }
  void *const arrays[] = {group, id, home, value, scratch, mask, squares, median};
  for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) free(arrays[i]);
  for (int i = 0; i < 6; i++) free(of_groups[i]);
}

int main(void) {
  for (int i = rounds(3000); i > 0; i--)
    statistics_are_those_of_loops(random_below(MOST), random_below(6));
  return 0;
}
