/* fp_record.c: see fp_record.h. */
#include "fp_record.h"

#include <math.h>
#include <string.h>

bool fp_record_real(const uint8_t *p, int64_t *value) {
  /* The largest double below 2^63; what lies beyond becomes the nearest integer there is. */
  static const double most = 9223372036854774784.0;
  uint64_t bits = fp_load_64(p);
  double real;
  memcpy(&real, &bits, sizeof real);
  if (isnan(real)) return false;
  *value = real < -most ? INT64_MIN : real > most ? INT64_MAX : (int64_t)real;
  return true;
}

uint32_t fp_record_header_length(const uint8_t *bytes, uint32_t length) {
  uint64_t header_length;
  const uint8_t *end = bytes + (length < 9 ? length : 9);
  const uint8_t *types = fp_varint(bytes, end, &header_length);
  if (!types || header_length > length || header_length < (uint64_t)(types - bytes)) return 0;
  return (uint32_t)header_length;
}

void fp_record_init(fp_record *record, int n) {
  record->n = n;
  record->type[0] = FP_TYPE_ROW_ID;
  record->at[0] = record->header_length = record->length = 0;
}

/* fp_type_length of the types that are one byte in a header. */
#define EIGHT(length) \
  length, length, (length) + 1, (length) + 1, (length) + 2, (length) + 2, (length) + 3, (length) + 3
static const uint8_t short_lengths[0x80] = {
    0,         1,         2,         3,         4,         6,         8,         8,
    0,         0,         0,         0,         0,         0,         1,         1,
    EIGHT(2),  EIGHT(6),  EIGHT(10), EIGHT(14), EIGHT(18), EIGHT(22), EIGHT(26), EIGHT(30),
    EIGHT(34), EIGHT(38), EIGHT(42), EIGHT(46), EIGHT(50), EIGHT(54)};
#undef EIGHT

static bool no_row_has(uint64_t type) { return (type | 1) == FP_TYPE_ROW_ID; }

/* The types from p to the end, the columns' values from `at` on: where these end, or UINT64_MAX. */
static uint64_t read_types(fp_record *record, const uint8_t *p, const uint8_t *end, uint64_t at) {
  int n = 0;
  bool bad = false;
  while (p < end) {
    uint64_t type = *p;
    if (type < 0x80) {
      p++;
    } else {
      p = fp_varint(p, end, &type);
      if (!p || type > UINT32_MAX || at > UINT32_MAX) return UINT64_MAX;
    }
    bad |= no_row_has(type);
    if (n < record->n) {
      n++;
      record->type[n] = (uint32_t)type;
      record->at[n] = (uint32_t)at;
    }
    at += type < 0x80 ? short_lengths[type] : fp_type_length((uint32_t)type);
  }
  while (n < record->n) record->type[++n] = FP_TYPE_ABSENT;
  return bad ? UINT64_MAX : at;
}

/* Whether the header is that of the record before. Most that differ do so in their first bytes. */
static bool is_remembered(const fp_record *record, const uint8_t *bytes, uint32_t n) {
  if (n < 8) return memcmp(record->header, bytes, n) == 0;
  for (uint32_t at = 0; at + 8 <= n; at += 8)
    if (fp_load_64(record->header + at) != fp_load_64(bytes + at)) return false;
  return fp_load_64(record->header + n - 8) == fp_load_64(bytes + n - 8);
}

bool fp_record_read(fp_record *record, const uint8_t *bytes, uint32_t header_length,
                    uint32_t length) {
  if (record->header_length == header_length && record->length == length &&
      is_remembered(record, bytes, header_length))
    return true;
  const uint8_t *end = bytes + header_length;
  uint64_t first;
  const uint8_t *types = fp_varint(bytes, end, &first);
  record->header_length = 0;
  if (!types || read_types(record, types, end, header_length) != length) return false;
  if (header_length <= FP_RECORD_REMEMBERED) {
    memcpy(record->header, bytes, header_length);
    record->header_length = header_length;
    record->length = length;
  }
  return true;
}
