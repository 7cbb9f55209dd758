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

bool fp_record_read(fp_record *record, const uint8_t *bytes, uint32_t header_length,
                    uint32_t length) {
  if (record->header_length == header_length && record->length == length &&
      memcmp(record->header, bytes, header_length) == 0)
    return true;
  const uint8_t *end = bytes + header_length, *p;
  uint64_t first, type, at = header_length;
  int n = 0;
  record->header_length = 0;
  p = fp_varint(bytes, end, &first);
  while (p && p < end) {
    p = fp_varint(p, end, &type);
    if (!p || type > UINT32_MAX || type == FP_TYPE_ABSENT || type == FP_TYPE_ROW_ID) return false;
    if (n < record->n) {
      n++;
      record->type[n] = (uint32_t)type;
      record->at[n] = (uint32_t)at;
    }
    at += fp_type_length((uint32_t)type);
    if (at > length) return false;
  }
  if (!p || at != length) return false;
  while (n < record->n) record->type[++n] = FP_TYPE_ABSENT;
  if (header_length <= FP_RECORD_REMEMBERED) {
    memcpy(record->header, bytes, header_length);
    record->header_length = header_length;
    record->length = length;
  }
  return true;
}
