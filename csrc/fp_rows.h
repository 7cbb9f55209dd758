/* fp_rows.h: columns -> the bytes of rows: CSV, aligned columns, JSON lines, dict lines. */
#ifndef FP_ROWS_H
#define FP_ROWS_H

#include "fp_seqmarkers.h"
#include "fp_status.h"
#include "fp_text.h"

typedef enum {
  FP_CELL_INT,        /* values [n]: one number, right aligned to `width` */
  FP_CELL_INT3,       /* values [n, 3]: open x separator y separator z close */
  FP_CELL_TEXT,       /* values int32 [n]: ids of `texts`, which come quoted, cut and padded */
  FP_CELL_LIST,       /* values[offsets[row] .. offsets[row + 1]): open a separator b close */
  FP_CELL_SEQMARKERS, /* what fp_seqmarkers_list says */
} fp_cell_kind;

/* One column. Fields that its kind does not name are not read. Behind all texts, and behind the
 * last of a table, FP_TEXT_BEYOND bytes can be read. */
typedef struct {
  fp_cell_kind kind;
  int is_wide;            /* values are int64, else int32 */
  const void *values;     /* INT, INT3, TEXT, LIST */
  const int64_t *offsets; /* LIST [n + 1] */
  int64_t n_values;       /* LIST */
  int64_t none;           /* INT, INT3: the number (of x) that means "not known" */
  int64_t width; /* INT: at least; INT3, LIST: exactly, left aligned and cut; 0: as long as it is */
  fp_text before;    /* written before every cell */
  fp_text none_text; /* instead of a cell that is not known (TEXT: id -1) or an empty list */
  fp_text open, separator, close; /* INT3, LIST */
  fp_texts texts;                 /* TEXT */
  fp_seqmarkers *markers;         /* SEQMARKERS */
} fp_cell;

/* Writes rows first, first + 1, ... below last, each its cells and then row_end, into buffer until
 * the next row does not fit. *next is the row to go on with, *used the number of bytes written.
 * FP_OK: all are written. FP_MORE: the buffer is full; where *used is 0, a single row needs a
 * larger one. FP_E_INDEX: a text id or a list offset points outside its table. */
fp_status fp_rows_write(const fp_cell *cells, int64_t n_cells, fp_text row_end, int64_t first,
                        int64_t last, char *buffer, int64_t capacity, int64_t *next, int64_t *used);

#endif
