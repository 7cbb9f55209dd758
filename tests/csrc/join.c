/* join.c: fp_join against a search of all launches. */
#include "check.h"
#include "path/fp_join.h"

typedef struct {
  int32_t n;
  int32_t *process;
  int64_t *id;
} pairs;

/* Ids from `first` on, with occasional outliers and missing ones. */
static pairs random_pairs(int32_t n, int64_t first, int32_t span) {
  pairs out = {n, ARRAY(int32_t, n), ARRAY(int64_t, n)};
  static const int64_t special[] = {INT64_MIN, INT64_MAX, -1, 1LL << 32, 1LL << 31};
  int32_t is_dense = random_below(2);
  for (int32_t i = 0; i < n; i++) {
    out.process[i] = random_below(5) - 1;
    out.id[i] = first + random_below(span);
    if (!is_dense && !random_below(8)) out.id[i] = special[random_below(LENGTH(special))];
  }
  return out;
}

static void free_pairs(pairs some) {
  free(some.process);
  free(some.id);
}

static int32_t first_row(pairs rows, int32_t process, int64_t id) {
  for (int32_t i = 0; i < rows.n; i++)
    if (id >= 0 && process >= 0 && rows.id[i] == id && rows.process[i] == process) return i;
  return -1;
}

static void first_launch_is_found(int32_t n, int32_t span) {
  int64_t first = random_below(2) ? 0 : INT64_MAX - span;
  pairs kernels = random_pairs(n, first, span), launches = random_pairs(2 * n, first, span);
  fp_join *join = fp_join_new(kernels.process, kernels.id, n);
  int32_t *row = ARRAY(int32_t, n);
  CHECK(join);
  fp_join_offer(join, launches.process, launches.id, launches.n);
  fp_join_rows(join, kernels.process, kernels.id, n, row);
  for (int32_t i = 0; i < n; i++) {
    CHECK(row[i] == first_row(launches, kernels.process[i], kernels.id[i]));
    CHECK(fp_join_has(join, kernels.process[i], kernels.id[i]) ==
          (kernels.id[i] >= 0 && kernels.process[i] >= 0));
  }
  for (int32_t i = 0; i < launches.n; i++)
    CHECK(fp_join_has(join, launches.process[i], launches.id[i]) ==
          (first_row(kernels, launches.process[i], launches.id[i]) >= 0));
  CHECK(!fp_join_has(join, INT32_MAX, first) && !fp_join_has(join, INT32_MIN, first));
  fp_join_free(join);
  free(row);
  free_pairs(kernels);
  free_pairs(launches);
}

static void a_table_of_nothing_has_nothing(void) {
  fp_join *join = fp_join_new(NULL, NULL, 0);
  CHECK(join && !fp_join_has(join, 0, 0) && !fp_join_has(join, -1, -1));
  fp_join_free(join);
  fp_join_free(NULL);
}

int main(void) {
  for (int i = 0; i < 500; i++) first_launch_is_found(random_below(40), 1 + random_below(2000));
  for (int i = 0; i < 10; i++) first_launch_is_found(1000, 1 + random_below(100000));
  a_table_of_nothing_has_nothing();
  return 0;
}
