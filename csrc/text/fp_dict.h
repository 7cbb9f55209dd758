/* fp_dict.h: parse dict lines, one Python dict literal per kernel, into columns. */
#pragma once

#include "base/fp_status.h"
#include "text/fp_names.h"

/* Number of keys of each kind; fp_dict_key has their names. */
enum { FP_DICT_INTS = 5, FP_DICT_TRIPLES = 2, FP_DICT_LISTS = 2, FP_DICT_TEXTS = 10 };

typedef enum { FP_DICT_INT, FP_DICT_TRIPLE, FP_DICT_LIST, FP_DICT_TEXT } fp_dict_kind;

/* Name of key `i` of a kind, which is column i of the arrays below; NULL past the last. */
const char *fp_dict_key(fp_dict_kind kind, int i);

/* Output columns; the caller owns them and may reallocate them between calls. Missing values and
 * None become -1, or an empty list. */
typedef struct {
  int64_t rows, capacity;               /* in rows */
  int64_t *ints[FP_DICT_INTS];          /* [capacity] */
  int32_t *triples[FP_DICT_TRIPLES];    /* [capacity, 3] */
  int32_t *texts[FP_DICT_TEXTS];        /* [capacity] ids in fp_dict_pool(.., i) */
  int64_t *list_offsets[FP_DICT_LISTS]; /* [capacity + 1], the first is 0 */
  int64_t *list_values[FP_DICT_LISTS];  /* [list_capacity] */
  int64_t list_capacity[FP_DICT_LISTS];
} fp_dict_columns;

/* Parser state: the distinct texts so far and the current line number. */
typedef struct fp_dict fp_dict;

/* NULL when out of memory. */
fp_dict *fp_dict_new(void);
void fp_dict_free(fp_dict *dict);

/* Appends a row for each line in `bytes` that ends in a newline (with is_end, also for the last).
 * *used is the number of bytes consumed, always complete lines; pass the rest again in front of the
 * next bytes. FP_MORE: rows or list_values are full; grow them and call again. FP_E_SYNTAX,
 * FP_E_RANGE: line fp_dict_line, which starts at *used, is malformed or has a number out of range
 * at byte fp_dict_stop. */
fp_status fp_dict_read(fp_dict *dict, const char *bytes, size_t length, int is_end,
                       fp_dict_columns *columns, size_t *used);

int64_t fp_dict_line(const fp_dict *dict);
int64_t fp_dict_stop(const fp_dict *dict);

/* The distinct raw literals of text key i, and the line of the first occurrence of each. Literals
 * of seqMarker have ", seq = N" and ", op_id = N" removed, because these make each one distinct. */
const fp_names *fp_dict_pool(const fp_dict *dict, int i);
const int64_t *fp_dict_lines(const fp_dict *dict, int i);
