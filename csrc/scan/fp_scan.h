/* fp_scan.h: step a SELECT in APSW's SQLite and append its rows to columns. */
#ifndef FP_SCAN_H
#define FP_SCAN_H

#include <stdint.h>

#include "base/fp_status.h"
#include "scan/fp_column.h"
#include "scan/fp_sqlite.h"

typedef struct fp_scan fp_scan;

/* NULL if SQLite cannot prepare the statement (errmsg has the reason) or out of memory. */
fp_scan *fp_scan_new(const fp_sqlite_api *api, sqlite3 *db, const char *sql);
void fp_scan_free(fp_scan *scan);

/* Steps at most `limit` rows and appends those that the filter keeps at index *kept, while *kept is
 * below `capacity`. Adds the rows stepped to *stepped. FP_OK: all rows are read. FP_MORE: limit or
 * capacity reached. */
fp_status fp_scan_step(fp_scan *scan, const fp_columns *columns, fp_row_filter filter,
                       int64_t limit, int64_t capacity, int64_t *kept, int64_t *stepped);

#endif
