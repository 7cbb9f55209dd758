/* stages.c: one C stage on fixed input, for callgrind, which counts inside `measured`.
 *
 * stages NAME runs a stage, stages alone lists their names. Each has a function that makes its
 * input, which is not counted, and one that runs it. */
#include "stages.h"

#include "base/fp_keys.h"
#include "base/fp_take.h"
#include "cost/fp_share.h"
#include "path/fp_join.h"
#include "path/fp_nest.h"
#include "path/fp_path.h"

static void no_input(void) {}

static void make_nested(void) {
  make_run();
  nest_run();
}

static void make_frames(void) {
  make_nested();
  path_run();
}

/* The run's ranges, neighbours changed about, as they come out of several buffers. */
static void make_unordered(void) {
  make_run();
  for (int32_t i = 0; i + 8 < RUN.n; i += 8) {
    int32_t a = i + random_below(8), b = i + random_below(8);
    int64_t start = RUN.start[a], end = RUN.end[a];
    RUN.start[a] = RUN.start[b];
    RUN.end[a] = RUN.end[b];
    RUN.start[b] = start;
    RUN.end[b] = end;
  }
}

static void order(void) {
  static int32_t sorted[MOST_RANGES], scratch[MOST_RANGES];
  CHECK(!fp_order_holds(RUN.start, RUN.end, RUN.n));
  fp_order_sort(RUN.start, RUN.end, RUN.n, sorted, scratch);
}

static void path(void) {
  CHECK(fp_path(FRAMES.parent, FRAMES.label, FRAMES.n, NULL, N_LABELS, FRAMES.nodes, FRAMES.node) ==
        FP_OK);
  static uint8_t direction[MOST_RANGES];
  CHECK(fp_path_best(FRAMES.parent, FRAMES.label, FRAMES.n, RUN.bits, N_LABELS, FRAMES.node) ==
        FP_OK);
  CHECK(fp_path_directions(FRAMES.parent, FRAMES.label, FRAMES.n, RUN.bits, N_LABELS, direction) ==
        FP_OK);
}

static void link_stage(void) {
  static uint8_t counting[N_THREADS], role[MOST_RANGES], in_backward[MOST_RANGES];
  static int32_t scope[MOST_RANGES], forward[MOST_RANGES], call[MOST_RANGES];
  static uint8_t links[MOST_RANGES];
  for (int32_t i = 0; i < FRAMES.n; i++) {
    int32_t around = FRAMES.parent[i];
    in_backward[i] = (around >= 0 && in_backward[around]) ||
                     (RUN.bits[FRAMES.label[i]] & FP_LABEL_BACKWARD) != 0;
  }
  fp_link_ranges ranges = {RUN.label, RUN.thread, FRAMES.frame_of_range, RUN.seq,
                           RUN.n,     RUN.bits,   FRAMES.parent,         in_backward};
  fp_link_roles(&ranges, counting, N_THREADS, role);
  CHECK(fp_link(role, RUN.seq, scope, RUN.n, forward) == FP_OK);
  CHECK(fp_link_calls(FRAMES.parent, FRAMES.range, FRAMES.n, role, RUN.seq, call, links) == FP_OK);
}

/* Three calls a kernel, one of which launched it; in two processes with the same ids. */
enum { N_KERNELS = 20000, N_CALLS = 3 * N_KERNELS };
static int32_t process[N_CALLS], row[N_CALLS];
static int64_t correlation[N_CALLS], weight[N_CALLS], total[N_CALLS], share_of[N_CALLS];

static void make_calls(void) {
  for (int32_t i = 0; i < N_CALLS; i++) {
    process[i] = i % 2;
    correlation[i] = i / 2;
  }
}

static void join(void) {
  static int32_t kernel_process[N_KERNELS];
  static int64_t kernel_id[N_KERNELS];
  for (int32_t i = 0; i < N_KERNELS; i++) {
    kernel_process[i] = process[3 * i];
    kernel_id[i] = correlation[3 * i];
  }
  fp_join *table = fp_join_new(kernel_process, kernel_id, N_KERNELS);
  CHECK(table);
  int64_t n = 0;
  for (int32_t i = 0; i < N_CALLS; i++) n += fp_join_has(table, process[i], correlation[i]);
  fp_join_offer(table, process, correlation, N_CALLS);
  fp_join_rows(table, kernel_process, kernel_id, N_KERNELS, row);
  CHECK(n == N_KERNELS && row[1] == 3);
  fp_join_free(table);
}

static void make_groups(void) {
  for (int32_t i = 0; i < N_CALLS; i++) {
    row[i] = i / 4;
    weight[i] = 1 + random_below(100000);
    total[i] = 1000000 + i / 4;
  }
}

static void share(void) {
  static int64_t sum[N_CALLS], passed[N_CALLS];
  static int32_t seen[N_CALLS], ordinal[N_CALLS];
  static const int8_t part[N_CALLS];
  static int32_t scratch[N_CALLS], group[N_CALLS];
  int32_t n_groups;
  CHECK(fp_share_pairs(row, row, N_CALLS, N_CALLS, part, N_CALLS, 1, scratch, group, &n_groups) ==
        FP_OK);
  const fp_share_rows rows = {group, row, weight, total, N_CALLS, n_groups, N_CALLS};
  uint64_t expected, found;
  CHECK(fp_share_sum(&rows, sum) == FP_OK);
  CHECK(fp_share(&rows, sum, passed, share_of) == FP_OK);
  CHECK(fp_share_add_up(&rows, share_of, sum, &expected, &found) == FP_OK && expected == found);
  CHECK(fp_share_ordinal(row, N_CALLS, N_CALLS, seen, ordinal) == FP_OK);
}

static void take(void) {
  static int32_t number[N_CALLS + 1], used[N_CALLS + 1], place[N_CALLS];
  int32_t n_used;
  const int64_t none = -1;
  CHECK(fp_take(total, 8, N_CALLS, row, N_CALLS, &none, share_of) == FP_OK);
  CHECK(fp_take(row, 4, N_CALLS, row, N_CALLS, &none, place) == FP_OK);
  const fp_take_index index = {.row = row, .n = N_CALLS};
  CHECK(fp_take_distinct(&index, N_CALLS, number, used, &n_used, place) == FP_OK);
}

/* What is open at each launch, of ranges in any arrangement. */
static void itree(void) {
  static int64_t max_end[MOST_RANGES];
  static int32_t found[MOST_RANGES], node[MOST_RANGES];
  fp_tree *nodes = fp_tree_new();
  CHECK(nodes);
  fp_itree_build(RUN.end, RUN.n, max_end);
  fp_itree tree = {RUN.start, RUN.end, max_end, RUN.n};
  CHECK(fp_itree_nodes(tree, RUN.label, RUN.launch_start, RUN.n_launches, nodes, found, node) ==
        FP_OK);
  fp_tree_free(nodes);
}

static void keys(void) {
  fp_keys *pool = fp_keys_new();
  int32_t id;
  CHECK(pool);
  for (int64_t i = 0; i < N_CALLS; i++)
    CHECK(fp_keys_intern(pool, 281474976710656 + i * 7919 % 4001 * 16777216, &id) == FP_OK);
  CHECK(fp_keys_count(pool) == 4001);
  fp_keys_free(pool);
}

static const stage STAGES[] = {
    {"pages", make_pages, pages},    {"scan", make_table, scan},
    {"names", make_names, names},    {"keys", no_input, keys},
    {"join", make_calls, join},      {"order", make_unordered, order},
    {"nest", make_run, nest_run},    {"itree", make_run, itree},
    {"path", make_frames, path},     {"link", make_frames, link_stage},
    {"share", make_groups, share},   {"take", make_groups, take},
    {"rows", make_rows, rows},       {"dict", make_dict_lines, dict},
    {"kineto", make_events, kineto},
};

__attribute__((noinline)) void measured(const stage *one) { one->run(); }

int main(int argc, char **argv) {
  for (int i = 0; i < LENGTH(STAGES); i++) {
    if (argc < 2) {
      puts(STAGES[i].name);
    } else if (strcmp(argv[1], STAGES[i].name) == 0) {
      STAGES[i].make();
      measured(&STAGES[i]);
      return 0;
    }
  }
  return argc < 2 ? 0 : 2;
}
