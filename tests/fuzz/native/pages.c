/* pages.c: any bytes as an SQLite file: the rows of each of its tables, or a reason. */
#define _GNU_SOURCE /* memfd_create */
#include <sys/mman.h>
#include <unistd.h>

#include "check.h"
#include "scan/fp_walk.h"

enum { ROOM = 64, MOST_ROOTS = 12 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef struct {
  int64_t numbers[ROOM], seqs[ROOM], op_ids[ROOM], ids[ROOM];
  int32_t texts[ROOM], ranges[ROOM], keys[ROOM], small[ROOM], alike[ROOM];
  int32_t parts[2]; /* of the current row */
} rows;

static const fp_place PLACES[] = {{FP_PLACE_OF_ROW_ID, FP_ADDED_NULL, 0},
                                  {0, FP_ADDED_NUMBER, 7},
                                  {1, FP_ADDED_NULL, 0},
                                  {1, FP_ADDED_OTHER, 0},
                                  {2, FP_ADDED_NULL, 0},
                                  {3, FP_ADDED_NUMBER, -1}};

/* The first columns of all kinds, one more for each variant; the last variant has all, and keeps
 * the numbers of two together. */
enum { N_COLUMNS = 6, VARIANTS = N_COLUMNS + 1 };

static int columns_for(int variant, rows *out, fp_names *names, fp_keys *keys, fp_column *columns) {
  bool are_parts = variant == N_COLUMNS;
  const fp_column all[] = {
      {.kind = FP_COLUMN_I64, .none = -9, .out = out->ids},
      {.kind = FP_COLUMN_I64, .none = -9, .may_be_null = 1, .out = out->numbers},
      {.kind = FP_COLUMN_TEXT, .none = -1, .names = names, .out = out->texts},
      {.kind = FP_COLUMN_RANGE,
       .none = -1,
       .names = names,
       .out = out->ranges,
       .seq = out->seqs,
       .op_id = out->op_ids},
      {.kind = FP_COLUMN_KEY,
       .none = -1,
       .keys = keys,
       .shift = 3,
       .is_part = are_parts,
       .out = are_parts ? out->parts : out->keys},
      {.kind = FP_COLUMN_I32,
       .none = -1,
       .may_be_null = 1,
       .is_part = are_parts,
       .out = are_parts ? out->parts + 1 : out->small}};
  int n = are_parts ? N_COLUMNS : 1 + variant;
  memcpy(columns, all, sizeof all[0] * (size_t)n);
  return n;
}

/* Reads all rows with ids first .. last, in steps; returns their number, or -1 if they need SQLite.
 */
static int64_t read_rows(const fp_pages *pages, const fp_btree *tree, int variant, int64_t first,
                         int64_t last, int64_t limit) {
  static const fp_row_filter all = {NULL, NULL, 0};
  fp_names *names = fp_names_new();
  fp_keys *keys = fp_keys_new();
  rows *out = malloc(sizeof *out);
  fp_names *distinct = fp_names_new();
  CHECK(names && keys && distinct && out);
  fp_column each[N_COLUMNS];
  fp_columns columns = {.each = each, .n = columns_for(variant, out, names, keys, each)};
  if (each[columns.n - 1].is_part)
    columns.together =
        (fp_together){distinct, (const char *)out->parts, sizeof out->parts, out->alike};
  fp_walk *walk = fp_walk_new(pages, tree, PLACES, columns.n, first, last);
  int64_t total = 0, before = INT64_MIN;
  CHECK(walk);
  fp_status status;
  do {
    int64_t kept = 0, stepped = 0;
    status = fp_walk_step(walk, &columns, all, limit, ROOM, &kept, &stepped);
    CHECK(kept >= 0 && kept <= stepped && stepped <= limit && kept <= ROOM);
    for (int64_t i = 0; i < kept; i++) {
      CHECK(out->ids[i] >= first && out->ids[i] <= last);
      CHECK((total == 0 && i == 0) || out->ids[i] > before);
      before = out->ids[i];
      if (columns.together.pool) CHECK(out->alike[i] < fp_names_count(distinct));
    }
    total += kept;
  } while (status == FP_MORE);
  CHECK(status == FP_OK || status == FP_E_RANGE || status == FP_E_UNUSUAL);
  if (status == FP_E_UNUSUAL) CHECK(*fp_walk_why(walk));
  fp_walk_free(walk);
  fp_names_free(names);
  fp_names_free(distinct);
  fp_keys_free(keys);
  free(out);
  return status == FP_OK ? total : -1;
}

static void read_table(const fp_pages *pages, uint32_t root) {
  fp_btree tree = {NULL, 0};
  const char *why = "";
  fp_status status = fp_btree_init(pages, root, &tree, &why);
  CHECK(status == FP_OK || (status == FP_E_UNUSUAL && *why));
  for (int variant = 0; status == FP_OK && variant < VARIANTS; variant++) {
    int64_t whole = read_rows(pages, &tree, variant, INT64_MIN, INT64_MAX, ROOM);
    if (whole < 0) break;
    int64_t middle = tree.n > 1 ? tree.leaves[tree.n / 2 - 1].last : whole / 2;
    if (middle == INT64_MAX) continue;
    int64_t low = read_rows(pages, &tree, variant, INT64_MIN, middle, 5);
    int64_t high = read_rows(pages, &tree, variant, middle + 1, INT64_MAX, 7);
    if (low >= 0 && high >= 0) CHECK(low + high == whole);
  }
  fp_btree_free(&tree);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static int file = -1;
  fp_pages pages;
  const char *why = "";
  if (size < FP_PAGES_HEADER) return 0;
  if (file < 0) file = memfd_create("pages", MFD_CLOEXEC);
  CHECK(file >= 0 && ftruncate(file, (off_t)size) == 0);
  CHECK(pwrite(file, data, size, 0) == (ssize_t)size);
  fp_status status = fp_pages_init(data, (int64_t)size, file, &pages, &why);
  CHECK(status == FP_OK || (status == FP_E_UNUSUAL && *why));
  if (status != FP_OK) return 0;
  for (uint32_t root = 2; root < 2 + MOST_ROOTS && fp_pages_has(&pages, root); root++)
    read_table(&pages, root);
  return 0;
}
