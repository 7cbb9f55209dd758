/* join.c: fp_join against a walk over all launches. */
#include "check.h"
#include "fp_join.h"

typedef struct {
  int32_t n;
  int32_t *process;
  int64_t *id;
} pairs;

static pairs random_pairs(int32_t n) {
  pairs out = {n, ARRAY(int32_t, n), ARRAY(int64_t, n)};
  static const int64_t special[] = {INT64_MIN, INT64_MAX, -1, 1LL << 32, 1LL << 31};
  for (int32_t i = 0; i < n; i++) {
    out.process[i] = random_below(3) - 1;
    out.id[i] = random_below(8) ? random_below(n) : special[random_below(LENGTH(special))];
  }
  return out;
}

static void free_pairs(pairs some) {
  free(some.process);
  free(some.id);
}

static int32_t first_row(pairs rows, int32_t process, int64_t id) {
  for (int32_t i = 0; i < rows.n; i++)
    if (id >= 0 && rows.id[i] == id && rows.process[i] == process) return i;
  return -1;
}

static void first_launch_is_found(int32_t n) {
  pairs kernels = random_pairs(n), launches = random_pairs(2 * n);
  fp_join *join = fp_join_new(n);
  int32_t *row = ARRAY(int32_t, n);
  CHECK(fp_join_add(join, kernels.process, kernels.id, n) == FP_OK);
  fp_join_offer(join, launches.process, launches.id, launches.n);
  fp_join_rows(join, kernels.process, kernels.id, n, row);
  for (int32_t i = 0; i < n; i++) {
    CHECK(row[i] == first_row(launches, kernels.process[i], kernels.id[i]));
    CHECK(fp_join_has(join, kernels.process[i], kernels.id[i]) == (kernels.id[i] >= 0));
  }
  for (int32_t i = 0; i < launches.n; i++)
    CHECK(fp_join_has(join, launches.process[i], launches.id[i]) ==
          (first_row(kernels, launches.process[i], launches.id[i]) >= 0));
  fp_join_free(join);
  free(row);
  free_pairs(kernels);
  free_pairs(launches);
}

static void a_full_table_says_so_and_is_still_searched(void) {
  fp_join *join = fp_join_new(0);
  int32_t process = 0;
  fp_status status = FP_OK;
  for (int64_t id = 0; id < 1000 && status == FP_OK; id++)
    status = fp_join_add(join, &process, &id, 1);
  CHECK(status == FP_E_TOO_MANY);
  CHECK(fp_join_has(join, 0, 0) && !fp_join_has(join, 0, 5000) && !fp_join_has(join, 1, 0));
  fp_join_free(join);
}

int main(void) {
  for (int i = 0; i < 300; i++) first_launch_is_found(random_below(40));
  first_launch_is_found(2000);
  a_full_table_says_so_and_is_still_searched();
  CHECK(!fp_join_new(-1) && !fp_join_new(INT64_MAX));
  fp_join_free(NULL);
  return 0;
}
