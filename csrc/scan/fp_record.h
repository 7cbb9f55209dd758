/* fp_record.h: parse the header of a record: the offset and type of each column.
 *
 * A record is a header with the type of each column, followed by the values
 * (https://www.sqlite.org/fileformat2.html, "Record Format"). The rows of a table have few distinct
 * headers, so parsed headers are cached. */
#pragma once

#include "base/fp_status.h"
#include "scan/fp_pages.h"

enum {
  FP_RECORD_COLUMNS = 256,   /* maximum number of columns to locate */
  FP_RECORD_REMEMBERED = 96, /* maximum bytes of cached headers; longer ones are parsed each time */
};

/* Serial types: 1 to 6 are integers, 7 is a real, 8 and 9 are the numbers 0 and 1; even types from
 * 12 on are blobs, odd ones text. 10 and 11 do not occur in files and have other meanings here. */
enum {
  FP_TYPE_NULL = 0,
  FP_TYPE_REAL = 7,
  FP_TYPE_0 = 8,
  FP_TYPE_1 = 9,
  FP_TYPE_ABSENT = 10, /* the record ends before the column */
  FP_TYPE_ROW_ID = 11,
  FP_TYPE_BYTES = 12,
};

typedef struct {
  uint32_t type;
  uint32_t at; /* offset of the value in the record, in bytes */
} fp_part;

/* The layout of all records with the same header. */
typedef struct {
  uint32_t header_length, length; /* of the record in bytes; 0: unused cache entry */
  uint8_t header[FP_RECORD_REMEMBERED];
  fp_part part[]; /* [0]: row id; [1 + i]: column i, also if absent */
} fp_layout;

typedef struct {
  int n; /* number of columns to locate */
  size_t size;
  char *layouts;   /* hash table of layouts, `size` bytes each */
  fp_layout *last; /* the last result */
} fp_record;

static inline uint32_t fp_type_length(uint32_t type) {
  static const uint8_t lengths[FP_TYPE_BYTES] = {0, 1, 2, 3, 4, 6, 8, 8, 0, 0, 0, 0};
  return type < FP_TYPE_BYTES ? lengths[type] : (type - FP_TYPE_BYTES) / 2;
}

static inline bool fp_type_is_integer(uint32_t type) { return type - 1 < 6; }

/* The integer of type 1 to 6 at p; always reads FP_PAGES_BEYOND bytes. */
static inline int64_t fp_record_integer(uint32_t type, const uint8_t *p) {
  static const uint8_t shifts[] = {0, 56, 48, 40, 32, 16, 0};
  return (int64_t)fp_load_64(p) >> shifts[type];
}

/* Converts the real at p as SQLite's column_int64 does; false for NaN, which is SQLite's NULL. */
bool fp_record_real(const uint8_t *p, int64_t *value);

/* The length of the record header in bytes, or 0 if it is invalid. */
uint32_t fp_record_header_length(const uint8_t *bytes, uint32_t length);

/* Prepares to locate the first n columns of records. Returns FP_OK or FP_E_MEMORY. */
fp_status fp_record_init(fp_record *record, int n);
void fp_record_free(fp_record *record);

/* Parses the header of a record of `length` bytes; at least the header must be in `bytes`. Returns
 * the layout, valid until the next call, or NULL if the column sizes do not match `length`. */
const fp_layout *fp_record_read(fp_record *record, const uint8_t *bytes, uint32_t header_length,
                                uint32_t length);
