#include "scan/fp_scan.h"

#include <stdlib.h>

struct fp_scan {
  const fp_sqlite_api *api;
  sqlite3_stmt *statement;
  fp_scratch scratch;
};

/* SQLite calls this when it loads the extension. The routine table is the same for all connections
 * of one SQLite library; it is stored for fp_scan_loaded_api. */
static const fp_sqlite_api *loaded_api;

__attribute__((visibility("default"))) int fp_scan_extension_init(sqlite3 *db, char **error,
                                                                  const fp_sqlite_api *api) {
  (void)db;
  (void)error;
  loaded_api = api;
  return 0;
}

const fp_sqlite_api *fp_scan_loaded_api(void) { return loaded_api; }

fp_scan *fp_scan_new(const fp_sqlite_api *api, sqlite3 *db, const char *sql) {
  fp_scan *scan = calloc(1, sizeof *scan);
  if (!scan) return NULL;
  scan->api = api;
  if (api->prepare_v2(db, sql, -1, &scan->statement, NULL) != 0 || !scan->statement) {
    free(scan);
    return NULL;
  }
  return scan;
}

void fp_scan_free(fp_scan *scan) {
  if (!scan) return;
  scan->api->finalize(scan->statement);
  free(scan->scratch.bytes);
  free(scan);
}

static fp_status put_text(fp_scan *scan, const fp_column *column, int i, int64_t row) {
  const char *text = (const char *)scan->api->column_text(scan->statement, i);
  /* SQLite also returns NULL when out of memory; the type is then not NULL. */
  if (!text && scan->api->column_type(scan->statement, i) != FP_SQLITE_NULL) return FP_E_MEMORY;
  size_t length = text ? (size_t)scan->api->column_bytes(scan->statement, i) : 0;
  return fp_column_put_text(column, &scan->scratch, row, text, length);
}

/* The number in a column. NULL reads as 0, so only 0 requires a check of the type. */
static int64_t number_of(fp_scan *scan, int i, const fp_column *column) {
  const fp_sqlite_api *api = scan->api;
  int64_t value = api->column_int64(scan->statement, i);
  if (value != 0 || !column->may_be_null) return value;
  return api->column_type(scan->statement, i) == FP_SQLITE_NULL ? column->none : value;
}

static fp_status put_row(fp_scan *scan, const fp_columns *columns, int64_t row) {
  for (int i = 0; i < columns->n; i++) {
    const fp_column *column = &columns->each[i];
    fp_status status = column->kind >= FP_COLUMN_TEXT
                           ? put_text(scan, column, i, row)
                           : fp_column_put_number(column, row, number_of(scan, i, column));
    if (status != FP_OK) return status;
  }
  return fp_column_end_row(&columns->together, row);
}

static bool wanted(fp_scan *scan, const fp_column *columns, const fp_row_filter *filter) {
  int64_t values[FP_MAX_COLUMNS];
  for (int i = 0; i < filter->n_columns; i++) values[i] = number_of(scan, i, &columns[i]);
  return filter->keep(filter->state, values);
}

fp_status fp_scan_step(fp_scan *scan, const fp_columns *columns, fp_row_filter filter,
                       int64_t limit, int64_t capacity, int64_t *kept, int64_t *stepped) {
  if (columns->n > FP_MAX_COLUMNS || filter.n_columns > columns->n) return FP_E_TOO_MANY;
  for (int64_t n = 0; n < limit; n++) {
    if (*kept >= capacity) return FP_MORE;
    int result = scan->api->step(scan->statement);
    if (result == FP_SQLITE_DONE) return FP_OK;
    if (result != FP_SQLITE_ROW) return FP_E_SQLITE;
    ++*stepped;
    if (filter.keep && !wanted(scan, columns->each, &filter)) continue;
    fp_status status = put_row(scan, columns, *kept);
    if (status != FP_OK) return status;
    ++*kept;
  }
  return FP_MORE;
}
