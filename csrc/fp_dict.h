/* fp_dict.h: dict lines, one Python dict literal a kernel -> columns of numbers and text ids. */
#ifndef FP_DICT_H
#define FP_DICT_H

#include <stddef.h>

#include "fp_names.h"
#include "fp_status.h"

/* How many keys of each kind there are; fp_dict_key names them. */
enum { FP_DICT_INTS = 5, FP_DICT_TRIPLES = 2, FP_DICT_LISTS = 2, FP_DICT_TEXTS = 10 };

typedef enum { FP_DICT_INT, FP_DICT_TRIPLE, FP_DICT_LIST, FP_DICT_TEXT } fp_dict_kind;

/* Name of key `i` of a kind, i.e. of column i in the arrays below; NULL if there is none. */
const char *fp_dict_key(fp_dict_kind kind, int i);

/* Where rows go; the caller owns all of it and may move it between calls. What a line lacks or says
 * None for is -1, and an empty list. */
typedef struct {
  int64_t rows, capacity;               /* rows so far, rows that fit */
  int64_t *ints[FP_DICT_INTS];          /* [capacity] */
  int32_t *triples[FP_DICT_TRIPLES];    /* [capacity, 3] */
  int32_t *texts[FP_DICT_TEXTS];        /* [capacity] ids in fp_dict_pool(.., i) */
  int64_t *list_offsets[FP_DICT_LISTS]; /* [capacity + 1], the first is 0 */
  int64_t *list_values[FP_DICT_LISTS];  /* [list_capacity] */
  int64_t list_capacity[FP_DICT_LISTS];
} fp_dict_columns;

/* The texts met so far and the number of the current line. */
typedef struct fp_dict fp_dict;

/* NULL when out of memory. */
fp_dict *fp_dict_new(void);
void fp_dict_free(fp_dict *dict);

/* Appends a row for each line of bytes that ends in a newline (with is_end: also for the last one).
 * *used is how many bytes were read, always whole lines; give the rest again, with more behind it.
 * FP_MORE: rows or list_values are full, make room and go on. FP_E_SYNTAX, FP_E_RANGE: line
 * fp_dict_line, which starts at *used, is no dict line from byte fp_dict_stop on, or has a number
 * that does not fit. */
fp_status fp_dict_read(fp_dict *dict, const char *bytes, size_t length, int is_end,
                       fp_dict_columns *columns, size_t *used);

int64_t fp_dict_line(const fp_dict *dict);
int64_t fp_dict_stop(const fp_dict *dict);

/* The distinct raw literals of text key i, and for each the line where it first stood. Those of
 * seqMarker come without ", seq = N" and ", op_id = N", so that they stay few. */
const fp_names *fp_dict_pool(const fp_dict *dict, int i);
const int64_t *fp_dict_lines(const fp_dict *dict, int i);

#endif
