/* pages.c: a table of range names in an SQLite file -> columns, from the file's pages. */
#define _POSIX_C_SOURCE 200809L /* fileno */
#include <stdio.h>

#include "scan/fp_walk.h"
#include "stages.h"

/* A header page, an interior page, and leaves that are filled from their end. */
enum { SIZE = 65536, MOST_CELL = 256, ROOT = 2 };
static uint8_t root[SIZE], leaf[SIZE];
static uint32_t leaf_end, root_end, n_pages;
static FILE *file;

static void put(uint8_t *p, int n, uint64_t value) {
  while (n--) {
    p[n] = (uint8_t)value;
    value >>= 8;
  }
}

/* https://www.sqlite.org/fileformat2.html, "A variable-length integer or varint": in three bytes.
 */
static uint8_t *put_varint(uint8_t *p, uint32_t value) {
  p[0] = (uint8_t)(value >> 14 | 0x80);
  p[1] = (uint8_t)(value >> 7 | 0x80);
  p[2] = value & 0x7f;
  return p + 3;
}

static void write_page(uint32_t number, const uint8_t *page) {
  CHECK(fseek(file, (long)(number - 1) * SIZE, SEEK_SET) == 0);
  CHECK(fwrite(page, SIZE, 1, file) == 1);
}

static void end_leaf(int row_id) {
  uint32_t page = ++n_pages, n = (uint32_t)root[3] << 8 | root[4];
  write_page(page, leaf);
  root_end -= 7;
  put(root + root_end, 4, page);
  put_varint(root + root_end + 4, (uint32_t)row_id);
  put(root + 12 + 2 * n, 2, root_end);
  put(root + 3, 2, n + 1);
  put(root + 8, 4, page);
  memset(leaf, 0, SIZE);
  leaf[0] = FP_BTREE_LEAF;
  leaf_end = SIZE;
}

/* A row of start, end, type, text, no text id, and a thread. */
static void add_row(int row_id, const run_text *name) {
  uint8_t cell[MOST_CELL], *header = cell + 6, *p = header + 1;
  memcpy(p, "\5\5\1", 3);
  p = put_varint(p + 3, (uint32_t)(13 + 2 * name->length));
  memcpy(p, "\0\6", 2);
  p += 2;
  *header = (uint8_t)(p - header);
  put(p, 6, 1000000000000 + 300u * (uint64_t)row_id);
  put(p + 6, 6, 1000000000100 + 300u * (uint64_t)row_id);
  p[12] = 59;
  memcpy(p + 13, name->bytes, name->length);
  p += 13 + name->length;
  put(p, 8, 282578800148737 + (uint64_t)(row_id / 100 % 2));
  p += 8;
  put_varint(put_varint(cell, (uint32_t)(p - header)), (uint32_t)row_id);
  uint32_t n = (uint32_t)leaf[3] << 8 | leaf[4], length = (uint32_t)(p - cell);
  leaf_end -= length;
  memcpy(leaf + leaf_end, cell, length);
  put(leaf + 8 + 2 * n, 2, leaf_end);
  put(leaf + 3, 2, n + 1);
}

void make_pages(void) {
  uint8_t first[SIZE] = "SQLite format 3";
  make_names();
  file = tmpfile();
  CHECK(file);
  n_pages = ROOT;
  root[0] = FP_BTREE_INTERIOR;
  root_end = leaf_end = SIZE;
  leaf[0] = FP_BTREE_LEAF;
  for (int i = 0; i < N_TEXTS; i++) {
    if (leaf_end < MOST_CELL + 8 + 4096) end_leaf(i);
    add_row(i + 1, &RANGE_NAMES[i]);
  }
  end_leaf(N_TEXTS);
  /* The last leaf is the right-most child, and no cell. */
  put(root + 3, 2, n_pages - ROOT - 1);
  write_page(ROOT, root);
  memcpy(first + 16, "\0\1\1\1\0\100\40\40", 8);
  put(first + 27, 1, 7);
  put(first + 28, 4, n_pages);
  put(first + 44, 4, 4);
  put(first + 56, 4, 1);
  put(first + 92, 4, 7);
  write_page(1, first);
  CHECK(fflush(file) == 0);
}

void pages(void) {
  static int64_t start[N_TEXTS], end[N_TEXTS], seq[N_TEXTS], op_id[N_TEXTS];
  static int32_t type[N_TEXTS], label[N_TEXTS], text_id[N_TEXTS], thread[N_TEXTS];
  static const fp_place places[] = {{2, FP_ADDED_NULL, 0}, {0, FP_ADDED_NULL, 0},
                                    {1, FP_ADDED_NULL, 0}, {3, FP_ADDED_NULL, 0},
                                    {4, FP_ADDED_NULL, 0}, {5, FP_ADDED_NULL, 0}};
  fp_names *labels = fp_names_new();
  fp_keys *keys = fp_keys_new();
  const fp_column each[] = {
      {.kind = FP_COLUMN_I32, .none = -1, .out = type},
      {.kind = FP_COLUMN_I64, .none = -1, .out = start},
      {.kind = FP_COLUMN_I64, .none = -1, .may_be_null = true, .out = end},
      {.kind = FP_COLUMN_RANGE,
       .none = -1,
       .names = labels,
       .out = label,
       .seq = seq,
       .op_id = op_id},
      {.kind = FP_COLUMN_KEY, .none = -1, .may_be_null = true, .keys = keys, .out = text_id},
      {.kind = FP_COLUMN_KEY, .none = -1, .keys = keys, .out = thread}};
  uint8_t header[FP_PAGES_HEADER];
  const char *why = "";
  fp_pages all;
  fp_btree tree;
  int64_t kept = 0, stepped = 0;
  rewind(file);
  CHECK(fread(header, sizeof header, 1, file) == 1);
  CHECK(fp_pages_init(header, (int64_t)n_pages * SIZE, fileno(file), &all, &why) == FP_OK);
  CHECK(fp_btree_init(&all, ROOT, &tree, &why) == FP_OK);
  fp_walk *walk = fp_walk_new(&all, &tree, places, LENGTH(places), INT64_MIN, INT64_MAX);
  CHECK(labels && keys && walk);
  const fp_columns columns = {.each = each, .n = LENGTH(each)};
  CHECK(fp_walk_step(walk, &columns, (fp_row_filter){NULL, NULL, 0}, INT64_MAX, N_TEXTS, &kept,
                     &stepped) == FP_MORE);
  CHECK(kept == N_TEXTS && fp_names_count(labels) == N_DISTINCT && fp_keys_count(keys) == 2);
  fp_walk_free(walk);
  fp_btree_free(&tree);
  fp_keys_free(keys);
  fp_names_free(labels);
}
