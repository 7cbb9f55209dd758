/* fp_rows.h: format columns as rows of text: CSV, aligned columns, JSON lines, dict lines. */
#pragma once

#include "base/fp_status.h"
#include "text/fp_text.h"
#include "write/fp_seqmarkers.h"

typedef enum {
  FP_CELL_INT,        /* values [n]: one number, right-aligned to `width` */
  FP_CELL_INT3,       /* values [n, 3]: open x separator y separator z close */
  FP_CELL_TEXT,       /* values int32 [n]: ids of `texts`, already quoted, cut and padded */
  FP_CELL_LIST,       /* values[offsets[row] .. offsets[row + 1]): open a separator b close; without
                         offsets, values[row], or nothing if it is `none` */
  FP_CELL_SEQMARKERS, /* the result of fp_seqmarkers_list */
} fp_cell_kind;

/* One column. Fields not listed for its kind are ignored. All texts, and the last text of a table,
 * are padded with FP_TEXT_BEYOND readable bytes. Everything is borrowed. */
typedef struct {
  fp_cell_kind kind;
  int is_wide;            /* values are int64, else int32 */
  const void *values;     /* INT, INT3, TEXT, LIST */
  const int64_t *offsets; /* LIST [n + 1], or NULL */
  int64_t n_values;       /* LIST */
  int64_t none;           /* INT, INT3, LIST: the number (of x) that means "unknown" */
  int64_t width;          /* INT: minimum; INT3, LIST: exact, left-aligned and cut; 0: no padding */
  fp_text before;         /* written before every cell */
  fp_text none_text;      /* text of an unknown cell (TEXT: id -1) or an empty list */
  fp_text open, separator, close; /* INT3, LIST */
  fp_texts texts;                 /* TEXT */
  fp_seqmarkers *markers;         /* SEQMARKERS */
} fp_cell;

/* Formats rows first .. last - 1 into `buffer`, the cells of each followed by row_end, until the
 * next row does not fit. *next is the next row, *used the number of bytes written. FP_OK: all rows
 * are written. FP_MORE: the buffer is full; if *used is 0, the row needs a larger buffer.
 * FP_E_INDEX: a text id or list offset is out of bounds. */
fp_status fp_rows_write(const fp_cell *cells, int64_t n_cells, fp_text row_end, int64_t first,
                        int64_t last, char *buffer, int64_t capacity, int64_t *next, int64_t *used);
