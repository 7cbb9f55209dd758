/* threads.c: what threads share while a file is read: its pages, the leaves of a table, the filter
 * of API calls. Run under ThreadSanitizer, too. */
#define _XOPEN_SOURCE 700
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "check.h"
#include "path/fp_join.h"
#include "scan/fp_walk.h"

enum { SIZE = 4096, LEAVES = 300, ROWS_A_LEAF = 100, ROWS = LEAVES * ROWS_A_LEAF };
enum { ROOT = 2, FIRST_LEAF = 3, PAGES = 2 + LEAVES };
enum { THREADS = 4, PIECES = 16, SHIFT = 8, PROCESSES = 3, ROOM = 4000 };

static uint8_t file_bytes[PAGES * SIZE];

static void put(uint8_t *to, uint64_t value, int n) {
  for (int i = 0; i < n; i++) to[i] = (uint8_t)(value >> 8 * (n - 1 - i));
}

/* Row i: (start, thread, correlation id, name). Every process has the ids 0, 1, 2, ... */
static int64_t process_of(int64_t i) { return 1000 + i % PROCESSES; }
static int64_t correlation_of(int64_t i) { return i / PROCESSES; }

static uint32_t put_row(uint8_t *page, uint32_t end, int64_t i) {
  uint8_t cell[64] = {0};
  uint8_t *body = cell + 1 + 3 + 5;
  memcpy(cell + 4, "\5\4\4\4\25", 5); /* three numbers of four bytes and a text of four */
  put(body, (uint64_t)(10 * i), 4);
  put(body + 4, (uint64_t)(process_of(i) << SHIFT | i % 7), 4);
  put(body + 8, (uint64_t)correlation_of(i), 4);
  memcpy(body + 12, "call", 4);
  body[15] = (uint8_t)('a' + i % 20);
  cell[0] = 5 + 16;
  cell[1] = (uint8_t)(0x80 | i >> 14);
  cell[2] = (uint8_t)(0x80 | (i >> 7 & 0x7f));
  cell[3] = (uint8_t)(i & 0x7f);
  end -= 4 + 5 + 16;
  memcpy(page + end, cell, 4 + 5 + 16);
  return end;
}

static void make_file(void) {
  uint8_t *root = file_bytes + (ROOT - 1) * SIZE;
  uint32_t root_end = SIZE;
  memcpy(file_bytes, "SQLite format 3", 16);
  memcpy(file_bytes + 16, "\20\0\1\1\0\100\40\40\0\0\0\7", 12);
  put(file_bytes + 28, PAGES, 4);
  put(file_bytes + 44, 4, 4);
  put(file_bytes + 56, 1, 4);
  put(file_bytes + 92, 7, 4);
  root[0] = FP_BTREE_INTERIOR;
  put(root + 3, LEAVES - 1, 2);
  put(root + 8, PAGES, 4);
  for (int leaf = 0; leaf < LEAVES; leaf++) {
    uint8_t *page = file_bytes + (FIRST_LEAF - 1 + leaf) * SIZE;
    uint32_t end = SIZE;
    page[0] = FP_BTREE_LEAF;
    put(page + 3, ROWS_A_LEAF, 2);
    for (int k = 0; k < ROWS_A_LEAF; k++) {
      end = put_row(page, end, leaf * ROWS_A_LEAF + k);
      put(page + 8 + 2 * k, end, 2);
    }
    if (leaf == LEAVES - 1) break;
    int64_t last = (leaf + 1) * ROWS_A_LEAF - 1;
    root_end -= 7;
    put(root + root_end, (uint64_t)(FIRST_LEAF + leaf), 4);
    root[root_end + 4] = (uint8_t)(0x80 | last >> 14);
    root[root_end + 5] = (uint8_t)(0x80 | (last >> 7 & 0x7f));
    root[root_end + 6] = (uint8_t)(last & 0x7f);
    put(root + 12 + 2 * leaf, root_end, 2);
  }
}

/* What all threads look at while each reads pieces of the table. */
typedef struct {
  fp_pages pages;
  fp_btree tree;
  fp_join *join;
  fp_keys *processes;
  atomic_int next_piece;
  atomic_llong kept, stepped;
} shared;

/* As _join.LaunchFilter: rows of known processes that launched something. */
static int launched(const void *state, const int64_t *values) {
  const shared *all = state;
  int32_t process = fp_keys_find(all->processes, values[0] >> SHIFT);
  return process >= 0 && fp_join_has(all->join, process, values[1]);
}

static void read_piece(shared *all, int piece, fp_names *names, fp_keys *threads) {
  static const fp_place places[] = {
      {1, FP_ADDED_NULL, 0}, {2, FP_ADDED_NULL, 0}, {0, FP_ADDED_NULL, 0}, {3, FP_ADDED_NULL, 0}};
  int32_t *thread = ARRAY(int32_t, ROOM), *name = ARRAY(int32_t, ROOM);
  int64_t *correlation = ARRAY(int64_t, ROOM), *start = ARRAY(int64_t, ROOM);
  int64_t first = (int64_t)ROWS * piece / PIECES, last = (int64_t)ROWS * (piece + 1) / PIECES - 1;
  const fp_column each[] = {{.kind = FP_COLUMN_KEY, .none = -1, .keys = threads, .out = thread},
                            {.kind = FP_COLUMN_I64, .none = -1, .out = correlation},
                            {.kind = FP_COLUMN_I64, .none = -1, .out = start},
                            {.kind = FP_COLUMN_TEXT, .none = -1, .names = names, .out = name}};
  const fp_columns columns = {.each = each, .n = LENGTH(each)};
  fp_walk *walk = fp_walk_new(&all->pages, &all->tree, places, LENGTH(places), first, last);
  int64_t kept = 0, stepped = 0;
  CHECK(walk);
  fp_status status = FP_MORE;
  while (status == FP_MORE)
    status =
        fp_walk_step(walk, &columns, (fp_row_filter){launched, all, 2}, 100, ROOM, &kept, &stepped);
  CHECK(status == FP_OK && stepped == last - first + 1);
  for (int64_t i = 0; i < kept; i++) {
    int64_t row = start[i] / 10;
    CHECK(row >= first && row <= last && correlation[i] == correlation_of(row));
    CHECK(fp_keys_values(threads)[thread[i]] == (process_of(row) << SHIFT | row % 7));
  }
  all->kept += kept;
  all->stepped += stepped;
  fp_walk_free(walk);
  free(thread);
  free(name);
  free(correlation);
  free(start);
}

static void *read_pieces(void *state) {
  shared *all = state;
  fp_names *names = fp_names_new();
  fp_keys *threads = fp_keys_new();
  CHECK(names && threads);
  for (int piece; (piece = all->next_piece++) < PIECES;) read_piece(all, piece, names, threads);
  fp_names_free(names);
  fp_keys_free(threads);
  return NULL;
}

static void run_threads(void *(*run)(void *), void *state) {
  pthread_t threads[THREADS];
  for (int i = 0; i < THREADS; i++) CHECK(pthread_create(&threads[i], NULL, run, state) == 0);
  for (int i = 0; i < THREADS; i++) CHECK(pthread_join(threads[i], NULL) == 0);
}

/* Every third call launched something, in two of the three processes. */
static void threads_read_pieces_of_one_table(void) {
  shared all = {.kept = 0};
  int32_t process[ROWS / PROCESSES];
  int64_t id[ROWS / PROCESSES], n = 0, expected = 0;
  const char *why;
  FILE *file = tmpfile();
  make_file();
  CHECK(file && fwrite(file_bytes, 1, sizeof file_bytes, file) == sizeof file_bytes);
  CHECK(fflush(file) == 0);
  CHECK(fp_pages_init(file_bytes, sizeof file_bytes, fileno(file), &all.pages, &why) == FP_OK);
  CHECK(fp_btree_init(&all.pages, ROOT, &all.tree, &why) == FP_OK && all.tree.n == LEAVES);
  CHECK((all.processes = fp_keys_new()) != NULL);
  for (int64_t i = 0; i < ROWS; i++) {
    if (process_of(i) == 1000 || correlation_of(i) % 3) continue;
    CHECK(fp_keys_intern(all.processes, process_of(i), &process[n]) == FP_OK);
    id[n++] = correlation_of(i);
    expected++;
  }
  CHECK((all.join = fp_join_new(process, id, n)) != NULL);
  run_threads(read_pieces, &all);
  CHECK(all.stepped == ROWS && all.kept == expected);
  fp_join_free(all.join);
  fp_keys_free(all.processes);
  fp_btree_free(&all.tree);
  fclose(file);
}

int main(void) {
  threads_read_pieces_of_one_table();
  return 0;
}
