/* fp_records.h: read lists of records in a JSON text into tables of numbers, in pieces.
 *
 * A record is an object in a list. A path names a value by the keys around it, separated by '/';
 * lists add nothing to a path: the records of {"a": {"b": [{"c": {"d": 1}}]}} have the path "a/b",
 * and their number 1 has the path "c/d" in them. Other values are skipped. */
#pragma once

#include "text/fp_names.h"

typedef struct fp_records fp_records;

enum { FP_RECORDS_COLUMNS = 24 };

/* A missing value, or one that is not of the column's kind. */
#define FP_RECORDS_NONE INT64_MIN

typedef enum {
  FP_RECORDS_NUMBER, /* a whole number, also in a string, there also hexadecimal with 0x */
  FP_RECORDS_TEXT,   /* the id of the text in the pool; of other values than strings, as written */
} fp_records_kind;

/* A table; the caller owns its columns and may reallocate them between calls. Column 0 counts the
 * objects at the root path, see fp_records_root, that began before the record, less one. */
typedef struct {
  int64_t rows, capacity; /* in rows */
  int64_t *columns[FP_RECORDS_COLUMNS];
} fp_records_rows;

/* NULL when out of memory. */
fp_records *fp_records_new(void);
void fp_records_free(fp_records *records);

/* Adds the column of a table: a field of the records at a path. A field "" is the whole value at
 * the path, also outside of lists, as a text. */
fp_status fp_records_add(fp_records *records, const char *path, const char *field, int table,
                         int column, int kind);

/* Sets the path of the objects to count. */
fp_status fp_records_root(fp_records *records, const char *path);

/* Parses complete records and values. `bytes` continue where the bytes consumed so far ended. *used
 * is the number of bytes consumed; pass the rest again in front of the next bytes. FP_OK: more
 * bytes are needed, unless fp_records_is_whole. FP_MORE: a table is full; grow it and call again.
 * FP_E_SYNTAX: malformed after the consumed bytes. */
fp_status fp_records_read(fp_records *records, const char *bytes, size_t length,
                          fp_records_rows *tables, int n_tables, size_t *used);

/* Whether all brackets are closed. */
bool fp_records_is_whole(const fp_records *records);

/* The pool of texts. */
const fp_names *fp_records_texts(const fp_records *records);
