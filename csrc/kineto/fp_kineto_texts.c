/* fp_kineto_texts.c: see fp_kineto_texts.h. */
#include "kineto/fp_kineto_texts.h"

#include "base/fp_room.h"

enum { SEPARATOR = 0x1f };

fp_status fp_kineto_texts_make(fp_kineto_texts *texts) {
  memset(texts, 0, sizeof *texts);
  for (int i = 0; i < FP_KINETO_POOLS; i++) {
    texts->pools[i] = fp_names_new();
    if (!texts->pools[i]) return FP_E_MEMORY;
  }
  return FP_OK;
}

void fp_kineto_texts_free(fp_kineto_texts *texts) {
  for (int i = 0; i < FP_KINETO_POOLS; i++) fp_names_free(texts->pools[i]);
  free(texts->room);
}

fp_status fp_kineto_intern(fp_kineto_texts *texts, int pool, const fp_json_value *value,
                           int32_t *id) {
  const char *text = value->bytes;
  size_t length = (size_t)value->length;
  if (value->escaped) {
    if (fp_reserve(&texts->room, &texts->capacity, length, 1) != FP_OK) return FP_E_MEMORY;
    length = (size_t)fp_json_unescape(value, texts->room);
    text = texts->room;
  }
  return fp_names_intern(texts->pools[pool], text, length, id);
}

/* Reserves `length` bytes and some punctuation after the first `used` bytes. */
static fp_status make_more_room(fp_kineto_texts *texts, size_t used, int64_t length) {
  return fp_reserve(&texts->room, &texts->capacity, used + (size_t)length + 8, 1);
}

/* Appends the raw text of a value; strings with their quotes. */
static fp_status add_value(fp_kineto_texts *texts, const fp_json_value *value, size_t *used) {
  int64_t quotes = value->kind == FP_JSON_STRING;
  int64_t length = value->length + 2 * quotes;
  if (make_more_room(texts, *used, length) != FP_OK) return FP_E_MEMORY;
  memcpy(texts->room + *used, value->bytes - quotes, (size_t)length);
  *used += (size_t)length;
  return FP_OK;
}

/* Appends "key":value, preceded by a comma unless it is the first of its part. */
static fp_status add_pair(fp_kineto_texts *texts, const fp_kineto_event *event, int field,
                          int *is_first, size_t *used) {
  const fp_json_value *value = fp_kineto_value(event, field);
  if (!value) return FP_OK;
  const char *key = fp_kineto_field_key(field);
  size_t length = strlen(key);
  if (make_more_room(texts, *used, (int64_t)length) != FP_OK) return FP_E_MEMORY;
  char *at = texts->room + *used;
  if (!*is_first) *at++ = ',';
  *at++ = '"';
  memcpy(at, key, length);
  at += length;
  *at++ = '"';
  *at++ = ':';
  *used = (size_t)(at - texts->room);
  *is_first = 0;
  return add_value(texts, value, used);
}

/* Appends the pairs of the fields `first` to `last` that are present; if any, `extra` comes first.
 */
static fp_status add_pairs(fp_kineto_texts *texts, const fp_kineto_event *event, int first,
                           int last, int extra, size_t *used) {
  uint64_t fields = ((uint64_t)2 << last) - ((uint64_t)1 << first);
  int is_first = 1;
  texts->room[(*used)++] = SEPARATOR;
  if (!(event->seen & fields)) return make_more_room(texts, *used, 0);
  fp_status status = FP_OK;
  if (extra < FP_FIELDS) status = add_pair(texts, event, extra, &is_first, used);
  for (int field = first; field <= last && status == FP_OK; field++)
    status = add_pair(texts, event, field, &is_first, used);
  return status == FP_OK ? make_more_room(texts, *used, 0) : status;
}

fp_status fp_kineto_label(fp_kineto_texts *texts, const fp_kineto_event *event, int32_t *id) {
  const fp_json_value *name = fp_kineto_value(event, FP_FIELD_NAME);
  size_t used = 0;
  if (make_more_room(texts, 0, name ? name->length : 0) != FP_OK) return FP_E_MEMORY;
  if (name && name->escaped) {
    used = (size_t)fp_json_unescape(name, texts->room);
  } else if (name) {
    used = (size_t)name->length;
    memcpy(texts->room, name->bytes, used);
  }
  for (int field = FP_FIELD_DIMS; field <= FP_FIELD_CONCRETE; field++) {
    const fp_json_value *value = fp_kineto_value(event, field);
    texts->room[used++] = SEPARATOR;
    fp_status status = value ? add_value(texts, value, &used) : FP_OK;
    if (status == FP_OK) status = make_more_room(texts, used, 0);
    if (status != FP_OK) return status;
  }
  fp_status status =
      add_pairs(texts, event, FP_FIELD_COLLECTIVE, FP_FIELD_COLLECTIVE_LAST, FP_FIELDS, &used);
  if (status == FP_OK)
    status = add_pairs(texts, event, FP_FIELD_TRITON, FP_FIELD_TRITON_LAST, FP_FIELD_GRID, &used);
  if (status != FP_OK) return status;
  return fp_names_intern(texts->pools[FP_KINETO_LABELS], texts->room, used, id);
}
