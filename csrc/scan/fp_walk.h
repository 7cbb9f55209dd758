/* fp_walk.h: append the rows of a table to columns, read from its leaf pages without SQLite.
 *
 * Leaves are read in runs of adjacent pages. Damage, and values that SQLite would convert, return
 * FP_E_UNUSUAL; the caller then reads the table through SQLite. Rows read before equal SQLite's. */
#pragma once

#include "base/fp_status.h"
#include "scan/fp_column.h"
#include "scan/fp_pages.h"

/* The value of a column that was added to the table after the row was written. */
typedef enum { FP_ADDED_NULL, FP_ADDED_NUMBER, FP_ADDED_OTHER } fp_added;

enum { FP_PLACE_OF_ROW_ID = -1 };

/* The source of a column. */
typedef struct {
  int place; /* index of the column in the record, or FP_PLACE_OF_ROW_ID */
  fp_added added;
  int64_t added_number;
} fp_place;

typedef struct fp_walk fp_walk;

/* Prepares to read the rows with ids first .. last. Pages, tree and places are borrowed and must
 * outlive the walk; places are below FP_RECORD_COLUMNS. NULL when out of memory. */
fp_walk *fp_walk_new(const fp_pages *pages, const fp_btree *tree, const fp_place *places,
                     int n_places, int64_t first, int64_t last);
void fp_walk_free(fp_walk *walk);

/* Like fp_scan_step, with one place per column. FP_E_UNUSUAL: fp_walk_why has the reason. */
fp_status fp_walk_step(fp_walk *walk, const fp_columns *columns, fp_row_filter filter,
                       int64_t limit, int64_t capacity, int64_t *kept, int64_t *stepped);
const char *fp_walk_why(const fp_walk *walk);
