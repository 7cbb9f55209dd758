/* fp_column.h: append the values of rows to columns; text is interned in pools.
 *
 * Both readers of rows (fp_scan through SQLite, fp_walk from the pages of the file) store values
 * through these functions, and so give equal results. The caller owns the columns. */
#pragma once

#include "base/fp_keys.h"
#include "base/fp_status.h"
#include "text/fp_names.h"
#include "text/fp_text.h"

typedef enum {
  FP_COLUMN_I64,     /* int64_t */
  FP_COLUMN_I32,     /* int32_t; FP_E_RANGE for other values */
  FP_COLUMN_KEY,     /* (value >> shift) as int32_t id in `keys` */
  FP_COLUMN_TEXT,    /* int32_t id in `names` */
  FP_COLUMN_LENGTH,  /* int32_t number of bytes of a text */
  FP_COLUMN_RANGE,   /* the name of a range: int32_t id of its label in `names`, and int64_t seq and
                        op_id. The label is the name and its sizes without these numbers, preceded by
                        FP_LABEL_OF_TORCH if the text has torch's suffix. */
  FP_COLUMN_MESSAGE, /* the same of the string `message` in a JSON object; `none` without it */
} fp_column_kind;

static inline bool fp_column_is_range(fp_column_kind kind) { return kind >= FP_COLUMN_RANGE; }

enum { FP_MAX_COLUMNS = 32 };

/* First byte of a label that differs from the range's text: the text has torch's suffix, or it
 * begins with one of these two bytes itself. */
enum { FP_LABEL_OF_TORCH = 1, FP_LABEL_AS_IS = 2 };

typedef struct {
  fp_column_kind kind;
  int64_t none; /* value for NULL */
  int shift;
  bool may_be_null; /* false for columns declared NOT NULL: a NULL in a damaged file is then 0 */
  fp_keys *keys;
  fp_names *names;
  bool is_part; /* stored in `together`; `out` then holds the current row only */
  void *out;    /* int64_t or int32_t, [capacity]; [1] for a part */
  int64_t *seq, *op_id;
} fp_column;

/* Columns of numbers stored once per distinct combination: their values of the current row are in
 * `values`, and each row gets the id of its combination. */
typedef struct {
  fp_names *pool; /* NULL: no such columns */
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
  int n_columns; /* number of leading columns that `keep` reads; all must be numbers */
} fp_row_filter;

/* Scratch memory for building labels; starts as {NULL, 0}, grows; the owner frees `bytes`. */
typedef struct {
  char *bytes;
  size_t capacity;
} fp_scratch;

/* Splits the name of a range into label id, seq and op_id, as for FP_COLUMN_RANGE. */
fp_status fp_column_range_name(fp_names *names, fp_scratch *scratch, const char *text,
                               size_t length, int32_t *label, int64_t *seq, int64_t *op_id);

/* The decoded string `message` of a JSON object, in the scratch memory if it has escapes.
 * message->bytes is NULL if there is none: the text is no object, is damaged before the message, or
 * the message is no string. FP_E_MEMORY. */
fp_status fp_column_message(fp_scratch *scratch, const char *text, size_t length, fp_text *message);

/* Stores a text, or NULL for none, in a column of texts. */
fp_status fp_column_put_text(const fp_column *column, fp_scratch *scratch, int64_t row,
                             const char *text, size_t length);

/* Stores a number, or `none`, in any other column. */
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

/* Call after all values of a row are stored. */
static inline fp_status fp_column_end_row(const fp_together *together, int64_t row) {
  if (!together->pool) return FP_OK;
  return fp_names_intern(together->pool, together->values, together->length, together->out + row);
}
