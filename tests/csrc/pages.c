/* pages.c: fp_pages, fp_btree, fp_record and fp_walk on a file made here, whole and with each of
 * its bytes damaged, cut short, and while memory runs out.
 *
 * Linked with --wrap, so that the calls of malloc, calloc, realloc and pread come here first. */
#define _XOPEN_SOURCE 700
#include <sys/types.h>
#include <unistd.h>

#include "check.h"
#include "scan/fp_pages.h"
#include "scan/fp_record.h"
#include "scan/fp_walk.h"

void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *old, size_t size);

static int64_t until_failure = -1; /* allocations that still succeed; -1: all do */

static int fails(void) { return until_failure >= 0 && until_failure-- == 0; }

void *__wrap_malloc(size_t size) { return fails() ? NULL : __real_malloc(size); }
void *__wrap_calloc(size_t n, size_t size) { return fails() ? NULL : __real_calloc(n, size); }
void *__wrap_realloc(void *old, size_t size) { return fails() ? NULL : __real_realloc(old, size); }

/* The file: a header page, an interior page with two leaves, and a chain of two overflow pages. */
enum { SIZE = 512, PAGES = 6, ROOT = 2, FIRST_LEAF = 3, SECOND_LEAF = 4, CHAIN = 5 };
enum { LONG = 1100, N_ROWS = 5 };
static uint8_t file[PAGES * SIZE];
static int64_t file_size = sizeof file;
static int64_t most_at_once = SIZE; /* reads may return fewer bytes than requested */
static int reads_fail;

ssize_t __wrap_pread(int descriptor, void *bytes, size_t n, off_t at) {
  CHECK(descriptor == 77);
  if (reads_fail) return -1;
  if (at >= file_size) return 0;
  int64_t left = file_size - at, most = (int64_t)n < left ? (int64_t)n : left;
  if (most > most_at_once) most = most_at_once;
  memcpy(bytes, file + at, (size_t)most);
  return most;
}

/* The C library's name of pread with 64-bit offsets. */
ssize_t __wrap_pread64(int descriptor, void *bytes, size_t n, int64_t at) {
  return __wrap_pread(descriptor, bytes, n, (off_t)at);
}

static void put_16(uint8_t *p, uint32_t value) {
  p[0] = (uint8_t)(value >> 8);
  p[1] = (uint8_t)value;
}

static void put_32(uint8_t *p, uint32_t value) {
  put_16(p, value >> 16);
  put_16(p + 2, value & 0xffff);
}

static uint8_t *page(int number) { return file + (number - 1) * SIZE; }

static void make_header(void) {
  memcpy(file, "SQLite format 3", 16);
  put_16(file + 16, SIZE);
  memcpy(file + 18, "\1\1\0\100\40\40\0\0\0\7\0\0\0", 13);
  put_32(file + 28, PAGES);
  put_32(file + 44, 4);
  put_32(file + 56, 1);
  put_32(file + 92, 7);
}

/* Puts cells at the end of the page, as SQLite does. */
static uint8_t *add_cell(uint8_t *to, int i, uint32_t *end, const void *cell, uint32_t length) {
  *end -= length;
  memcpy(to + *end, cell, length);
  put_16(to + 8 + 2 * i, *end);
  put_16(to + 3, (uint32_t)i + 1);
  return to + *end;
}

/* Rows of (number, text): (-1, "a"), (300, NULL), (NULL, ""), (1, long text); and (2). */
static void make_file(void) {
  uint32_t end = SIZE;
  file_size = sizeof file;
  most_at_once = SIZE;
  reads_fail = 0;
  memset(file, 0, sizeof file);
  make_header();
  uint8_t *root = page(ROOT), *leaf = page(FIRST_LEAF);
  root[0] = FP_BTREE_INTERIOR;
  put_16(root + 3, 1);
  put_32(root + 8, SECOND_LEAF);
  put_16(root + 12, SIZE - 5);
  memcpy(root + SIZE - 5, "\0\0\0\3\2", 5);
  leaf[0] = FP_BTREE_LEAF;
  add_cell(leaf, 0, &end, "\5\1\3\1\17\377a", 7);
  add_cell(leaf, 1, &end, "\5\2\3\2\0\1\54", 7);
  end = SIZE;
  leaf = page(SECOND_LEAF);
  leaf[0] = FP_BTREE_LEAF;
  add_cell(leaf, 0, &end, "\3\3\3\0\15", 5);
  /* A header of 4 bytes, types 9 and 13 + 2 * LONG; 1104 bytes, 88 of them in the leaf. */
  enum { LENGTH = 4 + LONG, LOCAL = 39 + (LENGTH - 39) % (SIZE - 4) };
  uint8_t cell[3 + LOCAL + 4];
  memset(cell, 'x', sizeof cell);
  memcpy(cell, "\210\120\4\4\11\221\45", 7);
  put_32(cell + 3 + LOCAL, CHAIN);
  add_cell(leaf, 1, &end, cell, sizeof cell);
  add_cell(leaf, 2, &end, "\3\5\2\1\2", 5);
  for (int i = CHAIN; i <= PAGES; i++) {
    memset(page(i), 'x', SIZE);
    put_32(page(i), i < PAGES ? (uint32_t)i + 1 : 0);
  }
}

typedef struct {
  int64_t numbers[N_ROWS + 8], ids[N_ROWS + 8];
  int32_t texts[N_ROWS + 8];
  int64_t kept, stepped;
  fp_names *names;
  const char *why;
} rows;

static const fp_row_filter ALL = {NULL, NULL, 0};
static const fp_place PLACES[] = {
    {0, FP_ADDED_NULL, 0}, {1, FP_ADDED_NULL, 0}, {FP_PLACE_OF_ROW_ID, FP_ADDED_NULL, 0}};

static fp_status step(fp_walk *walk, rows *out, fp_row_filter filter, int64_t limit) {
  const fp_column each[] = {
      {.kind = FP_COLUMN_I64, .none = -9, .may_be_null = 1, .out = out->numbers},
      {.kind = FP_COLUMN_TEXT, .none = -1, .names = out->names, .out = out->texts},
      {.kind = FP_COLUMN_I64, .none = -9, .out = out->ids}};
  const fp_columns columns = {.each = each, .n = LENGTH(each)};
  fp_status status;
  do {
    int64_t before = out->stepped;
    status = fp_walk_step(walk, &columns, filter, limit, N_ROWS + 8, &out->kept, &out->stepped);
    CHECK(out->stepped - before <= limit);
  } while (status == FP_MORE && out->kept < N_ROWS + 8);
  out->why = status == FP_E_UNUSUAL ? fp_walk_why(walk) : "";
  return status;
}

/* All objects from the open file to its rows. */
static fp_status read_rows(rows *out, int64_t first, int64_t last, int64_t limit) {
  fp_pages pages;
  fp_btree tree = {NULL, 0};
  memset(out, 0, sizeof *out);
  fp_status status = fp_pages_init(file, file_size, 77, &pages, &out->why);
  if (status == FP_OK) status = fp_btree_init(&pages, ROOT, &tree, &out->why);
  if (status != FP_OK) return status;
  out->names = fp_names_new();
  fp_walk *walk = fp_walk_new(&pages, &tree, PLACES, 3, first, last);
  status = out->names && walk ? step(walk, out, ALL, limit) : FP_E_MEMORY;
  fp_walk_free(walk);
  fp_btree_free(&tree);
  return status;
}

static void done(rows *out) { fp_names_free(out->names); }

static void check_all(const rows *out) {
  const int64_t *offsets;
  const char *bytes = fp_names_bytes(out->names, &offsets);
  CHECK(out->kept == N_ROWS && out->stepped == N_ROWS);
  const int64_t numbers[] = {-1, 300, -9, 1, 2};
  const int32_t texts[] = {0, -1, 1, 2, -1};
  for (int i = 0; i < N_ROWS; i++) {
    CHECK(out->ids[i] == i + 1 && out->numbers[i] == numbers[i] && out->texts[i] == texts[i]);
  }
  CHECK(bytes[0] == 'a' && offsets[1] == 1 && offsets[2] == 1 && offsets[3] == 1 + LONG);
  for (int i = 1; i <= LONG; i++) CHECK(bytes[i] == 'x');
}

static void rows_fill_columns_in_steps_of_any_size(void) {
  rows out;
  for (int64_t limit = 1; limit <= N_ROWS + 1; limit++) {
    make_file();
    CHECK(read_rows(&out, INT64_MIN, INT64_MAX, limit) == FP_OK);
    check_all(&out);
    done(&out);
  }
}

static void short_reads_are_read_on(void) {
  rows out;
  for (most_at_once = 1; most_at_once < SIZE; most_at_once += 13) {
    int64_t most = most_at_once;
    make_file();
    most_at_once = most;
    CHECK(read_rows(&out, INT64_MIN, INT64_MAX, 100) == FP_OK);
    check_all(&out);
    done(&out);
  }
  make_file();
}

static void row_ids_bound_what_is_read(void) {
  rows out;
  make_file();
  for (int64_t first = 0; first <= N_ROWS + 1; first++)
    for (int64_t last = -1; last <= N_ROWS + 1; last++) {
      int64_t low = first < 1 ? 1 : first, high = last > N_ROWS ? N_ROWS : last;
      CHECK(read_rows(&out, first, last, 100) == FP_OK);
      CHECK(out.kept == (high < low ? 0 : high - low + 1));
      for (int64_t i = 0; i < out.kept; i++) CHECK(out.ids[i] == low + i);
      done(&out);
    }
}

static void a_file_that_shrinks_is_unusual(void) {
  rows out;
  for (int n = 0; n < PAGES; n++) {
    make_file();
    fp_pages pages;
    fp_btree tree;
    CHECK(fp_pages_init(file, file_size, 77, &pages, &out.why) == FP_OK);
    file_size = n * SIZE + n;
    fp_status status = fp_btree_init(&pages, ROOT, &tree, &out.why);
    if (status == FP_OK) {
      memset(&out, 0, sizeof out);
      out.names = fp_names_new();
      fp_walk *walk = fp_walk_new(&pages, &tree, PLACES, 3, INT64_MIN, INT64_MAX);
      status = step(walk, &out, ALL, 100);
      fp_walk_free(walk);
      done(&out);
    }
    CHECK(status == FP_E_UNUSUAL && strcmp(out.why, "the file ends early") == 0);
    fp_btree_free(&tree);
  }
  make_file();
  reads_fail = 1;
  fp_pages pages;
  fp_btree tree;
  CHECK(fp_pages_init(file, file_size, 77, &pages, &out.why) == FP_OK);
  CHECK(fp_btree_init(&pages, ROOT, &tree, &out.why) == FP_E_UNUSUAL);
  CHECK(strcmp(out.why, "the file cannot be read") == 0 && !tree.leaves);
}

/* For any value of a byte: rows, at most as many as pages can hold, or a reason. */
static void any_damaged_byte_ends_in_rows_or_in_a_reason(void) {
  int64_t n_refused = 0;
  rows out;
  for (int at = 0; at < (int)sizeof file; at++) {
    static const uint8_t values[] = {0, 1, 2, 3, 5, 13, 127, 128, 254, 255};
    for (int i = 0; i < LENGTH(values); i++) {
      make_file();
      file[at] = values[i];
      fp_status status = read_rows(&out, INT64_MIN, INT64_MAX, 100);
      CHECK(status == FP_OK || (status == FP_E_UNUSUAL && *out.why));
      n_refused += status != FP_OK;
      done(&out);
    }
  }
  CHECK(n_refused > 500);
}

static void random_pages_end_in_rows_or_in_a_reason(void) {
  rows out;
  for (int round = 0; round < rounds(20000); round++) {
    make_file();
    for (int n = 1 + random_below(6); n > 0; n--) {
      uint8_t *to = page(2 + random_below(PAGES - 1));
      to[random_below(random_below(3) ? 24 : SIZE)] = (uint8_t)random_bits();
    }
    if (random_below(8) == 0) memcpy(page(3), page(2 + random_below(PAGES - 1)), SIZE);
    fp_status status = read_rows(&out, INT64_MIN, INT64_MAX, 3);
    CHECK(status == FP_OK || status == FP_MORE || (status == FP_E_UNUSUAL && *out.why));
    done(&out);
  }
}

static void pages_that_are_met_twice_are_refused(void) {
  rows out;
  make_file();
  put_32(page(ROOT) + 8, FIRST_LEAF);
  CHECK(read_rows(&out, INT64_MIN, INT64_MAX, 100) == FP_E_UNUSUAL);
  CHECK(strcmp(out.why, "two interior pages refer to the same page") == 0);
  make_file();
  put_32(page(ROOT) + 8, ROOT);
  CHECK(read_rows(&out, INT64_MIN, INT64_MAX, 100) == FP_E_UNUSUAL);
  make_file();
  put_32(page(PAGES - 1), PAGES - 1);
  CHECK(read_rows(&out, INT64_MIN, INT64_MAX, 100) == FP_E_UNUSUAL);
  CHECK(strcmp(out.why, "two overflow chains share a page") == 0);
  done(&out);
}

static void every_allocation_may_fail(void) {
  int64_t n_allocations = 0;
  rows out;
  make_file();
  for (;; n_allocations++) {
    until_failure = n_allocations;
    fp_status status = read_rows(&out, INT64_MIN, INT64_MAX, 100);
    int failed = until_failure < 0;
    until_failure = -1;
    done(&out);
    if (!failed) break;
    CHECK(status == FP_E_MEMORY);
  }
  CHECK(n_allocations > 8);
}

static const char *refusal_with(int at, uint8_t value) {
  fp_pages pages;
  const char *why;
  make_file();
  file[at] = value;
  CHECK(fp_pages_init(file, file_size, 77, &pages, &why) == FP_E_UNUSUAL);
  return why;
}

static void headers_that_are_not_known_are_refused(void) {
  static const int places[] = {0, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 27, 28, 31, 44, 47, 59};
  for (int i = 0; i < LENGTH(places); i++) CHECK(*refusal_with(places[i], 77));
  CHECK(strcmp(refusal_with(59, 2), "the text encoding is not UTF-8") == 0);
  CHECK(strncmp(refusal_with(19, 2), "the file has a write-ahead log", 30) == 0);
}

static void numbers_of_any_length_are_read(void) {
  const uint8_t bytes[] = {0x81, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0xff};
  uint64_t value;
  CHECK(fp_varint(bytes, bytes + 9, &value) == bytes + 9 && value == (1ull << 57) + 255);
  for (int n = 0; n < 9; n++) {
    uint8_t *copy = (uint8_t *)exactly((const char *)bytes, (size_t)n);
    CHECK(!fp_varint(copy, copy + n, &value));
    free(copy);
  }
  const uint8_t number[FP_PAGES_BEYOND] = {0x80, 1, 2, 3, 4, 5, 6, 7};
  CHECK(fp_record_integer(1, number) == -128 && fp_record_integer(2, number) == -32767);
  CHECK(fp_record_integer(6, number) == INT64_MIN + 0x01020304050607);
}

static void a_type_says_how_long_a_value_is(void) {
  for (uint32_t type = 0; type < 700; type++) {
    uint8_t header[3] = {type < 0x80 ? 2 : 3, (uint8_t)(type < 0x80 ? type : type >> 7 | 0x80),
                         (uint8_t)(type & 0x7f)};
    uint32_t length = header[0] + fp_type_length(type);
    fp_record record;
    CHECK(fp_record_init(&record, 2) == FP_OK);
    bool there_is = type != FP_TYPE_ABSENT && type != FP_TYPE_ROW_ID;
    CHECK((fp_record_read(&record, header, header[0], length) != NULL) == there_is);
    CHECK(!fp_record_read(&record, header, header[0], length + 1));
    const fp_layout *layout = fp_record_read(&record, header, header[0], length);
    CHECK((layout != NULL) == there_is);
    if (there_is) {
      CHECK(layout->part[1].type == type && layout->part[1].at == header[0]);
      CHECK(layout->part[0].type == FP_TYPE_ROW_ID && layout->part[2].type == FP_TYPE_ABSENT);
    }
    fp_record_free(&record);
  }
}

/* More distinct headers than the cache holds, short and long, in random order. */
static void a_header_that_returns_says_the_same(void) {
  enum { HEADERS = 300, MOST = 120 };
  static uint8_t headers[HEADERS][MOST + 8];
  uint32_t length[HEADERS];
  fp_record record;
  CHECK(fp_record_init(&record, 40) == FP_OK);
  for (int i = 0; i < HEADERS; i++) {
    int n = 1 + random_below(random_below(5) ? 30 : MOST - 1);
    headers[i][0] = (uint8_t)(n + 1);
    length[i] = (uint32_t)n + 1;
    for (int k = 1; k <= n; k++) {
      do headers[i][k] = (uint8_t)random_below(0x80);
      while (headers[i][k] == FP_TYPE_ABSENT || headers[i][k] == FP_TYPE_ROW_ID);
      length[i] += fp_type_length(headers[i][k]);
    }
  }
  for (int round = 0; round < rounds(5000); round++) {
    int i = random_below(random_below(2) ? 20 : HEADERS);
    const fp_layout *layout = fp_record_read(&record, headers[i], headers[i][0], length[i]);
    uint32_t at = headers[i][0];
    CHECK(layout);
    for (int k = 1; k <= 40; k++) {
      bool is_there = k < headers[i][0];
      CHECK(layout->part[k].type == (is_there ? headers[i][k] : FP_TYPE_ABSENT));
      if (!is_there) continue;
      CHECK(layout->part[k].at == at);
      at += fp_type_length(headers[i][k]);
    }
    CHECK(!fp_record_read(&record, headers[i], headers[i][0], length[i] + 1));
  }
  fp_record_free(&record);
}

static void reals_become_integers_as_in_sqlite(void) {
  static const struct {
    double real;
    int64_t value;
  } cases[] = {{-1.9, -1},
               {1e300, INT64_MAX},
               {-1e300, INT64_MIN},
               {9223372036854774784.0, 9223372036854774784}};
  int64_t value;
  for (int i = 0; i < LENGTH(cases); i++) {
    uint8_t bytes[8];
    uint64_t bits;
    memcpy(&bits, &cases[i].real, 8);
    put_32(bytes, (uint32_t)(bits >> 32));
    put_32(bytes + 4, (uint32_t)bits);
    CHECK(fp_record_real(bytes, &value) && value == cases[i].value);
  }
  CHECK(!fp_record_real((const uint8_t *)"\177\370\0\0\0\0\0\0", &value));
}

int main(void) {
  rows_fill_columns_in_steps_of_any_size();
  short_reads_are_read_on();
  row_ids_bound_what_is_read();
  a_file_that_shrinks_is_unusual();
  any_damaged_byte_ends_in_rows_or_in_a_reason();
  random_pages_end_in_rows_or_in_a_reason();
  pages_that_are_met_twice_are_refused();
  every_allocation_may_fail();
  headers_that_are_not_known_are_refused();
  numbers_of_any_length_are_read();
  a_type_says_how_long_a_value_is();
  a_header_that_returns_says_the_same();
  reals_become_integers_as_in_sqlite();
  return 0;
}
