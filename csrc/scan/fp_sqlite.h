/* fp_sqlite.h: the functions of APSW's SQLite that are needed to step a SELECT.
 *
 * SQLite passes run-time extensions a table of its functions, which only grows at the end
 * (https://www.sqlite.org/loadext.html, struct sqlite3_api_routines). Only the members in use are
 * named here. The caller detects a wrong layout by comparing libversion_number() with APSW's
 * version. */
#ifndef FP_SQLITE_H
#define FP_SQLITE_H

#include <stddef.h>
#include <stdint.h>

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

#endif
