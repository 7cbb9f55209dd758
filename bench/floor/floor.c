/* floor.c: steps all rows of a table and drops them, through SQLite or from the file's pages.
 *
 * A shared library. SQLite loads it as a run-time extension; Python calls it through ctypes. */
#define _POSIX_C_SOURCE 200809L /* pread */
#include <stdlib.h>
#include <unistd.h>

#include "base/fp_hash.h"
#include "scan/fp_scan.h"
#include "scan/fp_walk.c" /* not the header: walks records without filling columns */

static const fp_sqlite_api *sqlite;

/* The entry point of the extension: keeps the routine table of the SQLite that APSW contains. */
int floor_extension_init(sqlite3 *db, char **error, const fp_sqlite_api *api) {
  (void)db, (void)error;
  sqlite = api;
  return 0;
}

/* Returns the number of rows of a SELECT, or -1: the connection has the error message. */
int64_t floor_select(sqlite3 *db, const char *sql) {
  sqlite3_stmt *statement;
  int64_t rows = 0;
  int result;
  if (sqlite->prepare_v2(db, sql, -1, &statement, NULL) != 0) return -1;
  while ((result = sqlite->step(statement)) == FP_SQLITE_ROW) rows++;
  sqlite->finalize(statement);
  return result == FP_SQLITE_DONE ? rows : -1;
}

typedef struct {
  fp_pages pages;
  fp_btree tree;
} floor_table;

/* Reads the interior pages of a table. `file` stays open until floor_table_free. NULL on error. */
floor_table *floor_table_new(int file, int64_t file_size, uint32_t root) {
  const char *why;
  uint8_t header[FP_PAGES_HEADER];
  floor_table *table = calloc(1, sizeof *table);
  if (!table) return NULL;
  if (pread(file, header, sizeof header, 0) == (ssize_t)sizeof header &&
      fp_pages_init(header, file_size, file, &table->pages, &why) == FP_OK &&
      fp_btree_init(&table->pages, root, &table->tree, &why) == FP_OK)
    return table;
  free(table);
  return NULL;
}

void floor_table_free(floor_table *table) {
  if (table) fp_btree_free(&table->tree);
  free(table);
}

static uint64_t hash_of(const uint8_t *text, uint32_t length) {
  uint64_t h = length;
  uint32_t at = 0;
  for (; at + 8 <= length; at += 8) h = fp_mix(h ^ fp_load_64(text + at), FP_MIX_1);
  for (; at < length; at++) h = (h ^ text[at]) * FP_MIX_0;
  return h;
}

static uint64_t sum_of_row(const fp_walk *w, const uint8_t *bytes) {
  uint64_t sum = 0;
  for (int i = 0; i < w->n_places; i++) {
    int place = w->places[i].place + 1;
    uint32_t type = w->layout->part[place].type;
    const uint8_t *value = bytes + w->layout->part[place].at;
    if (fp_type_is_integer(type))
      sum += (uint64_t)fp_record_integer(type, value);
    else if (type == FP_TYPE_1)
      sum += 1;
    else if (type >= FP_TYPE_BYTES)
      sum += hash_of(value, fp_type_length(type));
  }
  return sum;
}

/* Reads the rows with ids first .. last and returns their number, or -1 on error. Adds the values
 * at `places` (integers, hashes of texts) to *sum, modulo 2^64. */
int64_t floor_walk(const floor_table *table, const fp_place *places, int n_places, int64_t first,
                   int64_t last, uint64_t *sum) {
  fp_walk *w = fp_walk_new(&table->pages, &table->tree, places, n_places, first, last);
  if (!w) return -1;
  const uint8_t *bytes;
  fp_status status;
  int64_t rows = 0;
  while ((status = next_row(w, n_places, &bytes)) == FP_OK && bytes) {
    if (w->row_id < first) continue;
    rows++;
    *sum += sum_of_row(w, bytes);
  }
  fp_walk_free(w);
  return status == FP_OK ? rows : -1;
}
