/* fp_scan.h: step a SELECT in APSW's SQLite and append its rows to columns. */
#pragma once

#include "base/fp_status.h"
#include "scan/fp_column.h"

/* The functions of SQLite in use. SQLite passes run-time extensions a table of its functions, which
 * only grows at the end (https://www.sqlite.org/loadext.html, struct sqlite3_api_routines). The
 * caller detects a wrong layout by comparing libversion_number() with APSW's version. */
typedef struct sqlite3 sqlite3;
typedef struct sqlite3_stmt sqlite3_stmt;
typedef void (*fp_unused_routine)(void);

typedef struct {
  fp_unused_routine unused_0[20];
  int (*column_bytes)(sqlite3_stmt *, int); /* 20 */
  fp_unused_routine unused_21[8];
  long long (*column_int64)(sqlite3_stmt *, int); /* 29 */
  fp_unused_routine unused_30[6];
  const unsigned char *(*column_text)(sqlite3_stmt *, int); /* 36 */
  fp_unused_routine unused_37[1];
  int (*column_type)(sqlite3_stmt *, int); /* 38 */
  fp_unused_routine unused_39[14];
  const char *(*errmsg)(sqlite3 *); /* 53 */
  fp_unused_routine unused_54[3];
  int (*finalize)(sqlite3_stmt *); /* 57 */
  fp_unused_routine unused_58[9];
  int (*libversion_number)(void); /* 67 */
  fp_unused_routine unused_68[26];
  int (*step)(sqlite3_stmt *); /* 94 */
  fp_unused_routine unused_95[21];
  int (*prepare_v2)(sqlite3 *, const char *, int, sqlite3_stmt **, const char **); /* 116 */
} fp_sqlite_api;

_Static_assert(offsetof(fp_sqlite_api, prepare_v2) == 116 * sizeof(fp_unused_routine),
               "wrong layout of SQLite's routine table");

enum { FP_SQLITE_ROW = 100, FP_SQLITE_DONE = 101, FP_SQLITE_NULL = 5 };

typedef struct fp_scan fp_scan;

/* NULL if SQLite cannot prepare the statement (errmsg has the reason) or out of memory. */
fp_scan *fp_scan_new(const fp_sqlite_api *api, sqlite3 *db, const char *sql);
void fp_scan_free(fp_scan *scan);

/* Steps at most `limit` rows and appends those that the filter keeps at index *kept, while *kept is
 * below `capacity`. Adds the rows stepped to *stepped. FP_OK: all rows are read. FP_MORE: limit or
 * capacity reached. */
fp_status fp_scan_step(fp_scan *scan, const fp_columns *columns, fp_row_filter filter,
                       int64_t limit, int64_t capacity, int64_t *kept, int64_t *stepped);
