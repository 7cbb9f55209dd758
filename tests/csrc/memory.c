/* memory.c: each allocation fails once; the result is FP_E_MEMORY or NULL, without a leak.
 *
 * Linked with --wrap, so that the calls of malloc, calloc and realloc come here first. */
#include "check.h"
#include "fake_sqlite.h"
#include "kineto/fp_kineto.h"
#include "path/fp_join.h"
#include "path/fp_link.h"
#include "path/fp_nest.h"
#include "path/fp_path.h"
#include "scan/fp_scan.h"
#include "text/fp_dict.h"
#include "text/fp_names.h"
#include "write/fp_packets.h"
#include "write/fp_seqmarkers.h"

void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *old, size_t size);

static int64_t until_failure = -1; /* allocations that still succeed; -1: all do */
static int all_fail_then, has_failed;

static int fails(void) {
  if (until_failure < 0 || until_failure-- > 0) return 0;
  if (all_fail_then) until_failure = 0;
  has_failed = 1;
  return 1;
}

void *__wrap_malloc(size_t size) { return fails() ? NULL : __real_malloc(size); }
void *__wrap_calloc(size_t n, size_t size) { return fails() ? NULL : __real_calloc(n, size); }
void *__wrap_realloc(void *old, size_t size) { return fails() ? NULL : __real_realloc(old, size); }

/* Repeats a call that failed, with memory; it must then succeed. */
#define TRY(call)               \
  do {                          \
    fp_status tried = (call);   \
    if (tried == FP_E_MEMORY) { \
      CHECK(has_failed);        \
      until_failure = -1;       \
      tried = (call);           \
    }                           \
    CHECK(tried == FP_OK);      \
  } while (0)

#define TRY_NEW(object, call) \
  do {                        \
    object = (call);          \
    if (!object) {            \
      CHECK(has_failed);      \
      until_failure = -1;     \
      object = (call);        \
    }                         \
    CHECK(object);            \
  } while (0)

static void names_grow(void) {
  enum { N = 1500 };
  fp_names *names;
  char text[200];
  TRY_NEW(names, fp_names_new());
  memset(text, 'x', sizeof text);
  for (int32_t round = 0; round < 2; round++)
    for (int32_t i = 0, id; i < N; i++) {
      memcpy(text, &i, sizeof i);
      TRY(fp_names_intern(names, text, sizeof text, &id));
      CHECK(id == i);
    }
  CHECK(fp_names_count(names) == N);
  fp_names_free(names);
}

static void keys_grow(void) {
  enum { N = 1000 };
  fp_keys *keys;
  TRY_NEW(keys, fp_keys_new());
  for (int32_t i = 0, id; i < N; i++) {
    TRY(fp_keys_intern(keys, i, &id));
    CHECK(id == i);
  }
  for (int32_t i = 0; i < N; i++) CHECK(fp_keys_find(keys, i) == i);
  fp_keys_free(keys);
}

/* Processes 0 and 2 have bitmaps, process 1 has its ids in slots. */
static void a_join_is_made(void) {
  const int32_t process[] = {0, 1, 1, 2};
  const int64_t id[] = {7, 7, INT64_MAX, 8};
  int32_t row[4];
  fp_join *join;
  TRY_NEW(join, fp_join_new(process, id, 4));
  fp_join_offer(join, process, id, 4);
  fp_join_rows(join, process, id, 4, row);
  for (int32_t i = 0; i < 4; i++) CHECK(row[i] == i);
  fp_join_free(join);
}

static void ranges_are_linked(void) {
  const uint8_t role[] = {FP_LINK_FORWARD, FP_LINK_BACKWARD};
  const int64_t seq[] = {7, 7};
  const int32_t scope[] = {0, 0};
  int32_t forward[2];
  TRY(fp_link(role, seq, scope, 2, forward));
  CHECK(forward[0] == -1 && forward[1] == 0);
}

static void paths_and_trees_grow(void) {
  enum { N = 600 };
  static int32_t parent[N], label[N], node[N], found[N];
  static int64_t start[N], end[N], max_end[N], t[N];
  for (int32_t i = 0; i < N; i++) {
    parent[i] = i % 3 ? i - 1 : -1; /* many roots, too */
    label[i] = start[i] = t[i] = i;
    end[i] = N;
  }
  fp_tree *nodes;
  TRY_NEW(nodes, fp_tree_new());
  TRY(fp_path(parent, label, N, NULL, N, nodes, node));
  CHECK(fp_tree_count(nodes) == N);
  fp_itree_build(end, N, max_end);
  fp_itree tree = {start, end, max_end, N};
  TRY(fp_itree_nodes(tree, label, t, N, nodes, found, node));
  CHECK(fp_tree_count(nodes) > N);
  fp_tree_free(nodes);
}

static void markers_are_listed(void) {
  enum { N = 40 };
  static int32_t frame_of_row[2] = {N - 1, 0}, parent[N], range[N], label[N];
  static int64_t seq[N], op_id[N];
  static const uint8_t is_torch[] = {1};
  static const int64_t head_offsets[] = {0, 2}, tail_offsets[] = {0, 0};
  static const char mm[2 + FP_TEXT_BEYOND] = "mm";
  for (int32_t i = 0; i < N; i++) {
    parent[i] = i - 1;
    range[i] = i;
    seq[i] = op_id[i] = i;
  }
  const fp_seqmarkers_tables tables = {.frame_of_row = frame_of_row,
                                       .frame_parent = parent,
                                       .range_of_frame = range,
                                       .label_of_range = label,
                                       .seq_of_range = seq,
                                       .op_id_of_range = op_id,
                                       .is_torch = is_torch,
                                       .n_rows = 2,
                                       .n_frames = N,
                                       .n_ranges = N,
                                       .heads = {mm, head_offsets, 1},
                                       .tails = {mm, tail_offsets, 1},
                                       .quote = '"'};
  fp_seqmarkers *markers;
  fp_text list;
  TRY_NEW(markers, fp_seqmarkers_new(&tables));
  TRY(fp_seqmarkers_list(markers, 1, &list));
  CHECK(list.length == (int64_t)strlen("[\"mm, seq = 0, op_id = 0\"]"));
  TRY(fp_seqmarkers_list(markers, 0, &list));
  CHECK(list.bytes[0] == '[' && list.bytes[list.length - 1] == ']');
  fp_seqmarkers_free(markers);
}

enum { DICT_ROWS = 40 };

static fp_status read_line(fp_dict *dict, fp_dict_columns *columns, int32_t row) {
  char line[200];
  size_t used;
  int length =
      snprintf(line, sizeof line, "{'op': ['%d'], 'seqMarker': ['mm%d, seq = 1']}\n", row, row);
  columns->rows = row;
  return fp_dict_read(dict, line, (size_t)length, 1, columns, &used);
}

static void dict_lines_are_read(void) {
  static int64_t ints[DICT_ROWS], offsets[DICT_ROWS + 1];
  static int32_t triples[3 * DICT_ROWS], texts[FP_DICT_TEXTS][DICT_ROWS];
  fp_dict_columns columns = {.capacity = DICT_ROWS};
  for (int i = 0; i < FP_DICT_INTS; i++) columns.ints[i] = ints;
  for (int i = 0; i < FP_DICT_TRIPLES; i++) columns.triples[i] = triples;
  for (int i = 0; i < FP_DICT_LISTS; i++) columns.list_offsets[i] = offsets;
  for (int i = 0; i < FP_DICT_TEXTS; i++) columns.texts[i] = texts[i];
  fp_dict *dict;
  TRY_NEW(dict, fp_dict_new());
  for (int32_t row = 0; row < DICT_ROWS; row++) TRY(read_line(dict, &columns, row));
  for (int i = 0; i < FP_DICT_TEXTS; i++)
    if (strcmp(fp_dict_key(FP_DICT_TEXT, i), "op") == 0)
      for (int32_t row = 0; row < DICT_ROWS; row++) CHECK(texts[i][row] == row);
  fp_dict_free(dict);
}

static void range_names_are_scanned(void) {
  static const cell rows[][FAKE_COLUMNS] = {{TEXT("mm, seq = 7"), INT(1), INT(1), INT(1)}};
  struct sqlite3 db = {.statement = {.rows = rows, .n_rows = 1, .result = FP_SQLITE_DONE}};
  fp_scratch scratch = {NULL, 0};
  fp_names *names;
  fp_scan *scan;
  int32_t label;
  int64_t seq, op_id, kept = 0, stepped = 0;
  const fp_columns none = {.n = 0};
  const fp_row_filter all = {NULL, NULL, 0};
  TRY_NEW(names, fp_names_new());
  TRY(fp_column_range_name(names, &scratch, "mm, seq = 7", 11, &label, &seq, &op_id));
  CHECK(label == 0 && seq == 7 && op_id == -1);
  TRY_NEW(scan, fp_scan_new(&FAKE_API, &db, "SELECT"));
  CHECK(db.n_open == 1);
  TRY(fp_scan_step(scan, &none, all, 2, 2, &kept, &stepped));
  fp_scan_free(scan);
  CHECK(db.n_open == 0 && stepped == 1);
  fp_names_free(names);
  free(scratch.bytes);
}

enum { KINETO_ROWS = 100, WIDEST_CELL = 12 };

static fp_status read_event(fp_kineto *kineto, fp_kineto_rows *tables, int32_t row) {
  char text[300];
  size_t used;
  int length =
      snprintf(text, sizeof text,
               "{\"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": \"\\n%d\", \"tid\": \"t%d\", "
               "\"args\": {\"Input Dims\": [%d], \"Rank\": \"%0*d\"}},\n"
               "{\"ph\": \"f\", \"cat\": \"other%d\"},",
               row, row, row, row, row, row);
  for (int i = 0; i < FP_KINETO_TABLES; i++) CHECK(tables[i].rows <= row);
  fp_status status = fp_kineto_read(kineto, text, (size_t)length, tables, &used);
  if (status != FP_E_MEMORY) {
    CHECK(used == (size_t)length);
    return status;
  }
  until_failure = -1; /* bytes consumed before the failure are not passed again */
  return fp_kineto_read(kineto, text + used, (size_t)length - used, tables, &used);
}

static void traces_are_read(void) {
  static int64_t cells[KINETO_ROWS * WIDEST_CELL / sizeof(int64_t) + 1];
  static int32_t labels[KINETO_ROWS];
  fp_kineto_rows tables[FP_KINETO_TABLES] = {{0}};
  fp_kineto_type type;
  fp_kineto *kineto;
  int32_t phase, category;
  size_t used;
  for (int t = 0; t < FP_KINETO_TABLES; t++) {
    tables[t].capacity = KINETO_ROWS;
    for (int i = 0; fp_kineto_column(t, i, &type); i++) {
      int is_label = strcmp(fp_kineto_column(t, i, &type), "label") == 0;
      tables[t].columns[i] = is_label ? (void *)labels : cells;
    }
  }
  TRY_NEW(kineto, fp_kineto_new());
  CHECK(fp_kineto_read(kineto, "[", 1, tables, &used) == FP_OK && used == 1);
  for (int32_t row = 0; row < KINETO_ROWS - 1; row++) {
    CHECK(read_event(kineto, tables, row) == FP_OK);
    CHECK(labels[row] == row);
  }
  CHECK(tables[FP_KINETO_RANGES].rows == KINETO_ROWS - 1);
  CHECK(fp_kineto_count(kineto, 0, &phase, &category) == KINETO_ROWS - 1 && phase == 'X');
  CHECK(fp_kineto_count(kineto, KINETO_ROWS - 1, &phase, &category) == 1 && phase == 'f');
  fp_kineto_free(kineto);
}

/* Runs a test with the first, second, ... allocation failing, until all allocations succeed. */
static void slices_are_divided(void) {
  const int64_t start[] = {0, 1}, end[] = {2, 3};
  const int32_t track[] = {0, 0};
  int32_t lane[2], n_lanes;
  TRY(fp_lanes(&(fp_lanes_slices){start, end, track, 2, 1, 0}, lane, &n_lanes));
  CHECK(n_lanes == 2);
}

static void with_each_allocation_failing(void (*work)(void)) {
  int64_t n_allocations = 0;
  for (all_fail_then = 0; all_fail_then < 2; all_fail_then++)
    for (int64_t k = 0;; k++) {
      until_failure = k;
      has_failed = 0;
      work();
      until_failure = -1;
      n_allocations = k;
      if (!has_failed) break;
    }
  CHECK(n_allocations > 0);
}

int main(void) {
  with_each_allocation_failing(names_grow);
  with_each_allocation_failing(keys_grow);
  with_each_allocation_failing(a_join_is_made);
  with_each_allocation_failing(ranges_are_linked);
  with_each_allocation_failing(paths_and_trees_grow);
  with_each_allocation_failing(markers_are_listed);
  with_each_allocation_failing(dict_lines_are_read);
  with_each_allocation_failing(range_names_are_scanned);
  with_each_allocation_failing(traces_are_read);
  with_each_allocation_failing(slices_are_divided);
  return 0;
}
