/* fp_walk.h: the leaf pages of a table -> its rows, put into columns: what fp_scan does through
 * SQLite, done without it.
 *
 * Leaves are read in runs of pages that lie beside each other in the file. What SQLite would call
 * damaged, and what it would convert in a way of its own, is FP_E_UNUSUAL: the caller then asks
 * SQLite. Rows that come out before are those that SQLite gives. */
#ifndef FP_WALK_H
#define FP_WALK_H

#include <stdint.h>

#include "fp_btree.h"
#include "fp_column.h"
#include "fp_pages.h"
#include "fp_status.h"

/* What a row has in a column that was added to the table after the row was written. */
typedef enum { FP_ADDED_NULL, FP_ADDED_NUMBER, FP_ADDED_OTHER } fp_added;

enum { FP_PLACE_OF_ROW_ID = -1 };

/* Where in the table's rows a column comes from. */
typedef struct {
  int place; /* 0 for the first column, FP_PLACE_OF_ROW_ID for the row id */
  fp_added added;
  int64_t added_number;
} fp_place;

typedef struct fp_walk fp_walk;

/* Rows with ids first .. last. Pages, leaves and places must stay while the walk is used; places
 * are below FP_RECORD_COLUMNS. NULL when out of memory. */
fp_walk *fp_walk_new(const fp_pages *pages, const fp_btree *tree, const fp_place *places,
                     int n_places, int64_t first, int64_t last);
void fp_walk_free(fp_walk *walk);

/* As fp_scan_step; the places are those of the columns. FP_E_UNUSUAL: fp_walk_why says it. */
fp_status fp_walk_step(fp_walk *walk, const fp_columns *columns, fp_row_filter filter,
                       int64_t limit, int64_t capacity, int64_t *kept, int64_t *stepped);
const char *fp_walk_why(const fp_walk *walk);

#endif
