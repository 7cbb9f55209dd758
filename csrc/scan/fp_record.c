#include "scan/fp_record.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/fp_hash.h"

bool fp_record_real(const uint8_t *p, int64_t *value) {
  /* The largest double below 2^63; larger values are clamped. */
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

/* The last entry is for headers that are too long to cache. */
enum { PLACES = 64 };

static fp_layout *layout_at(const fp_record *record, uint64_t place) {
  return (fp_layout *)(void *)(record->layouts + place * record->size);
}

fp_status fp_record_init(fp_record *record, int n) {
  record->n = n;
  record->size = sizeof(fp_layout) + (1 + (size_t)n) * sizeof(fp_part);
  record->layouts = calloc(PLACES + 1, record->size);
  if (!record->layouts) return FP_E_MEMORY;
  for (uint64_t i = 0; i <= PLACES; i++) layout_at(record, i)->part[0].type = FP_TYPE_ROW_ID;
  record->last = layout_at(record, PLACES);
  return FP_OK;
}

void fp_record_free(fp_record *record) { free(record->layouts); }

/* Parses the types from p to end; values start at `at`. Returns the end of the values, or
 * UINT64_MAX if a type is invalid. */
static uint64_t read_types(fp_layout *layout, int n_columns, const uint8_t *p, const uint8_t *end,
                           uint64_t at) {
  int n = 0;
  bool bad = false;
  while (p < end) {
    uint64_t type;
    p = fp_varint(p, end, &type);
    if (!p || type > UINT32_MAX || at > UINT32_MAX) return UINT64_MAX;
    bad |= type == FP_TYPE_ABSENT || type == FP_TYPE_ROW_ID; /* no row has these */
    if (n < n_columns) layout->part[++n] = (fp_part){(uint32_t)type, (uint32_t)at};
    at += fp_type_length((uint32_t)type);
  }
  while (n < n_columns) layout->part[++n].type = FP_TYPE_ABSENT;
  return bad ? UINT64_MAX : at;
}

/* Whether the header matches the layout. */
static bool is_of(const fp_layout *layout, const uint8_t *bytes, uint32_t n, uint32_t length) {
  return layout->header_length == n && layout->length == length &&
         memcmp(layout->header, bytes, n) == 0;
}

static uint64_t place_of(const uint8_t *bytes, uint32_t n, uint32_t length) {
  uint64_t h = length;
  for (uint32_t at = 0; at + 8 <= n; at += 8) h = (h ^ fp_load_64(bytes + at)) * FP_MIX_0;
  if (n >= 8) h = (h ^ fp_load_64(bytes + n - 8)) * FP_MIX_0;
  return fp_mix(h ^ FP_MIX_1, FP_MIX_0) % PLACES;
}

const fp_layout *fp_record_read(fp_record *record, const uint8_t *bytes, uint32_t header_length,
                                uint32_t length) {
  if (is_of(record->last, bytes, header_length, length)) return record->last;
  bool is_short = header_length <= FP_RECORD_REMEMBERED;
  uint64_t place = is_short ? place_of(bytes, header_length, length) : PLACES;
  fp_layout *layout = record->last = layout_at(record, place);
  if (is_of(layout, bytes, header_length, length)) return layout;
  const uint8_t *end = bytes + header_length;
  uint64_t first;
  const uint8_t *types = fp_varint(bytes, end, &first);
  layout->header_length = 0;
  if (!types || read_types(layout, record->n, types, end, header_length) != length) return NULL;
  if (is_short) {
    memcpy(layout->header, bytes, header_length);
    layout->header_length = header_length;
    layout->length = length;
  }
  return layout;
}
