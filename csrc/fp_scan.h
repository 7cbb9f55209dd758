/* fp_scan.h: step a SELECT inside APSW's SQLite and put its rows into columns.
 *
 * The caller owns the columns. Text is interned while stepping, torch's range names are split, so
 * that what comes out is numbers only. */
#ifndef FP_SCAN_H
#define FP_SCAN_H

#include <stdbool.h>
#include <stdint.h>

#include "fp_keys.h"
#include "fp_names.h"
#include "fp_sqlite.h"
#include "fp_status.h"

typedef enum {
  FP_SCAN_I64,   /* int64_t */
  FP_SCAN_I32,   /* int32_t; a value outside is FP_E_RANGE */
  FP_SCAN_KEY,   /* (value >> shift) as int32_t id in `keys` */
  FP_SCAN_TEXT,  /* int32_t id in `names` */
  FP_SCAN_RANGE, /* a range's name: int32_t id of its label in `names`, seq and op_id beside it.
                    The label is the name and its sizes, without the numbers; FP_LABEL_OF_TORCH
                    in front says that torch's suffix was there. */
} fp_scan_kind;

enum { FP_SCAN_MAX_COLUMNS = 32 };

/* The first byte of a label that is not just the range's text: torch's suffix was there, or the
 * text itself begins with one of these two. */
enum { FP_LABEL_OF_TORCH = 1, FP_LABEL_AS_IS = 2 };

typedef struct {
  fp_scan_kind kind;
  int64_t none; /* what NULL becomes */
  int shift;
  bool may_be_null; /* false where the table is declared so: one call less for every 0 */
  fp_keys *keys;
  fp_names *names;
  void *out;  /* int64_t or int32_t, [capacity * stride] */
  int stride; /* 1, or more where columns lie beside each other in one array */
  int64_t *seq, *op_id;
} fp_scan_column;

/* Whether to keep a row (0: no), by the numbers in its first columns. */
typedef int (*fp_scan_keep)(const void *state, const int64_t *values);

typedef struct {
  fp_scan_keep keep; /* NULL keeps all rows */
  const void *state;
  int n_columns; /* how many of the first columns it looks at: numbers, not texts */
} fp_scan_filter;

typedef struct fp_scan fp_scan;

/* NULL when SQLite cannot prepare the statement (its errmsg says why) or out of memory. */
fp_scan *fp_scan_new(const fp_sqlite_api *api, sqlite3 *db, const char *sql);
void fp_scan_free(fp_scan *scan);

/* Step at most `limit` rows, writing kept ones from column[...][*kept] on while *kept < capacity.
 * FP_OK: all rows are read; FP_MORE: limit or capacity reached. *stepped counts rows stepped. */
fp_status fp_scan_step(fp_scan *scan, const fp_scan_column *columns, int n_columns,
                       fp_scan_filter filter, int64_t limit, int64_t capacity, int64_t *kept,
                       int64_t *stepped);

/* The floor: step all rows and do nothing with them. */
fp_status fp_scan_floor(fp_scan *scan, int64_t *stepped);

/* The name of a range -> label id, seq, op_id, as FP_SCAN_RANGE does. `scratch` may be NULL-started
 * and grows; the caller frees it. */
typedef struct {
  char *bytes;
  size_t capacity;
} fp_scratch;

fp_status fp_scan_range_name(fp_names *names, fp_scratch *scratch, const char *text, size_t length,
                             int32_t *label, int64_t *seq, int64_t *op_id);

#endif
