/* fp_record.h: the header of a row's record -> where its columns are, and of what type they are.
 *
 * A record is a header, which gives the type of each column, and the columns' values one after the
 * other (https://www.sqlite.org/fileformat2.html, "Record Format"). A table's rows have few
 * different headers: those met last are remembered, and nothing is done anew for them. */
#ifndef FP_RECORD_H
#define FP_RECORD_H

#include <stdbool.h>
#include <stdint.h>

#include "fp_pages.h"
#include "fp_status.h"

enum {
  FP_RECORD_COLUMNS = 256,   /* the first columns; where others are is not kept */
  FP_RECORD_REMEMBERED = 96, /* bytes of a header; longer ones are read each time */
};

/* Types 1 to 6 are integers, 8 and 9 the numbers 0 and 1, 7 is a real; an even type from 12 on is a
 * blob, an odd one text. 10 and 11 no row has: here they say what else a column can be. */
enum {
  FP_TYPE_NULL = 0,
  FP_TYPE_REAL = 7,
  FP_TYPE_0 = 8,
  FP_TYPE_1 = 9,
  FP_TYPE_ABSENT = 10, /* the row ends before it */
  FP_TYPE_ROW_ID = 11,
  FP_TYPE_BYTES = 12,
};

typedef struct {
  uint32_t type;
  uint32_t at; /* where the value begins, in bytes from the record's start */
} fp_part;

/* What all records with one header have. */
typedef struct {
  uint32_t header_length, length; /* of the record; 0: there is none */
  uint8_t header[FP_RECORD_REMEMBERED];
  fp_part part[]; /* [0] stands for the row id, [1 + i] for column i, absent ones too */
} fp_layout;

typedef struct {
  int n; /* columns that are told */
  size_t size;
  char *layouts;   /* by their headers' hashes, `size` bytes each */
  fp_layout *last; /* the one that was told last */
} fp_record;

static inline uint32_t fp_type_length(uint32_t type) {
  static const uint8_t lengths[FP_TYPE_BYTES] = {0, 1, 2, 3, 4, 6, 8, 8, 0, 0, 0, 0};
  return type < FP_TYPE_BYTES ? lengths[type] : (type - FP_TYPE_BYTES) / 2;
}

static inline bool fp_type_is_integer(uint32_t type) { return type - 1 < 6; }

/* The integer of type 1 to 6 at p; reads FP_PAGES_BEYOND bytes whatever its length. */
static inline int64_t fp_record_integer(uint32_t type, const uint8_t *p) {
  static const uint8_t shifts[] = {0, 56, 48, 40, 32, 16, 0};
  return (int64_t)fp_load_64(p) >> shifts[type];
}

/* What SQLite's column_int64 makes of the real at p; false where it is no number, which is NULL. */
bool fp_record_real(const uint8_t *p, int64_t *value);

/* How long the header is, or 0 when it begins as no header does. */
uint32_t fp_record_header_length(const uint8_t *bytes, uint32_t length);

/* Nothing is read yet. Of each record the first n columns will be told, whether it has them or not.
 * FP_E_MEMORY. */
fp_status fp_record_init(fp_record *record, int n);
void fp_record_free(fp_record *record);

/* Read the header of a record of `length` bytes, of which the header's are there: the record's
 * layout, until the next is read. NULL when the parts do not add up to the record. */
const fp_layout *fp_record_read(fp_record *record, const uint8_t *bytes, uint32_t header_length,
                                uint32_t length);

#endif
