/* fp_column.h: values of one row after another -> columns; text becomes ids of pools on the way.
 *
 * Whoever reads rows (fp_scan through SQLite, fp_walk from the pages of the file) hands each value
 * to its column here, so that both give the same. The caller owns the columns. */
#ifndef FP_COLUMN_H
#define FP_COLUMN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fp_keys.h"
#include "fp_names.h"
#include "fp_status.h"

typedef enum {
  FP_COLUMN_I64,   /* int64_t */
  FP_COLUMN_I32,   /* int32_t; a value outside is FP_E_RANGE */
  FP_COLUMN_KEY,   /* (value >> shift) as int32_t id in `keys` */
  FP_COLUMN_TEXT,  /* int32_t id in `names` */
  FP_COLUMN_RANGE, /* a range's name: int32_t id of its label in `names`, seq and op_id beside it.
                      The label is the name and its sizes, without the numbers; FP_LABEL_OF_TORCH
                      in front says that torch's suffix was there. */
} fp_column_kind;

enum { FP_MAX_COLUMNS = 32 };

/* The first byte of a label that is not just the range's text: torch's suffix was there, or the
 * text itself begins with one of these two. */
enum { FP_LABEL_OF_TORCH = 1, FP_LABEL_AS_IS = 2 };

typedef struct {
  fp_column_kind kind;
  int64_t none; /* what NULL becomes */
  int shift;
  bool may_be_null; /* false where the table is declared so: NULL, against the rules, is then 0 */
  fp_keys *keys;
  fp_names *names;
  bool is_part; /* of `together`: a number, of the row that is being read only */
  void *out;    /* int64_t or int32_t, [capacity]; [1] for a part */
  int64_t *seq, *op_id;
} fp_column;

/* Numbers that are kept once for all rows that have the same: their columns put them into `values`,
 * and each row gets the id of what is there then. */
typedef struct {
  fp_names *pool; /* NULL: there are none */
  const char *values;
  size_t length; /* bytes of `values` */
  int32_t *out;  /* [capacity] */
} fp_together;

typedef struct {
  const fp_column *each;
  int n;
  fp_together together;
} fp_columns;

/* Whether to keep a row (0: no), by the numbers in its first columns. */
typedef int (*fp_row_keep)(const void *state, const int64_t *values);

typedef struct {
  fp_row_keep keep; /* NULL keeps all rows */
  const void *state;
  int n_columns; /* how many of the first columns it looks at: numbers, not texts */
} fp_row_filter;

/* Room for putting labels together; starts as {NULL, 0}, grows, and the owner frees `bytes`. */
typedef struct {
  char *bytes;
  size_t capacity;
} fp_scratch;

/* The name of a range -> label id, seq, op_id, as FP_COLUMN_RANGE does. */
fp_status fp_column_range_name(fp_names *names, fp_scratch *scratch, const char *text,
                               size_t length, int32_t *label, int64_t *seq, int64_t *op_id);

/* Text into a column of texts; NULL for none. */
fp_status fp_column_put_text(const fp_column *column, fp_scratch *scratch, int64_t row,
                             const char *text, size_t length);

/* A number, or `none`, into any other column. */
static inline fp_status fp_column_put_number(const fp_column *column, int64_t row, int64_t value) {
  int64_t at = column->is_part ? 0 : row;
  switch (column->kind) {
    case FP_COLUMN_I64:
      ((int64_t *)column->out)[at] = value;
      return FP_OK;
    case FP_COLUMN_I32:
      if (value < INT32_MIN || value > INT32_MAX) return FP_E_RANGE;
      ((int32_t *)column->out)[at] = (int32_t)value;
      return FP_OK;
    default: /* FP_COLUMN_KEY */
      ((int32_t *)column->out)[at] = -1;
      if (value == column->none) return FP_OK;
      return fp_keys_intern(column->keys, value >> column->shift, (int32_t *)column->out + at);
  }
}

/* To be called when all values of a row are in its columns. */
static inline fp_status fp_column_end_row(const fp_together *together, int64_t row) {
  if (!together->pool) return FP_OK;
  return fp_names_intern(together->pool, together->values, together->length, together->out + row);
}

#endif
