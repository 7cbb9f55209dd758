/* fp_kineto_events.c: see fp_kineto_events.h. */
#include "kineto/fp_kineto_events.h"

#include <stdlib.h>
#include <string.h>

fp_status fp_kineto_events_make(fp_kineto_events *events) {
  memset(events, 0, sizeof *events);
  events->count_keys = fp_keys_new();
  fp_status status = fp_kineto_texts_make(&events->texts);
  return events->count_keys ? status : FP_E_MEMORY;
}

void fp_kineto_events_free(fp_kineto_events *events) {
  fp_kineto_texts_free(&events->texts);
  fp_keys_free(events->count_keys);
  free(events->counts);
  free(events->classes);
}

/* Grows an array for item `i`; new items are zeroed. */
static fp_status grow(void *items, int32_t *capacity, int32_t i, size_t size) {
  void **place = items;
  if (i < *capacity) return FP_OK;
  int32_t more = i < INT32_MAX / 2 ? i * 2 + 64 : INT32_MAX;
  char *grown = realloc(*place, (size_t)more * size);
  if (!grown) return FP_E_MEMORY;
  memset(grown + (size_t)*capacity * size, 0, (size_t)(more - *capacity) * size);
  *place = grown;
  *capacity = more;
  return FP_OK;
}

static fp_status count_event(fp_kineto_events *events, int32_t phase, int32_t category) {
  int32_t id;
  int64_t key = (int64_t)phase << 32 | (category + 1);
  fp_status status = fp_keys_intern(events->count_keys, key, &id);
  if (status == FP_OK)
    status = grow(&events->counts, &events->counts_capacity, id, sizeof(int64_t));
  if (status == FP_OK) events->counts[id]++;
  return status;
}

/* The id and class of the event's category; -1 and no class if missing. */
static fp_status read_category(fp_kineto_events *events, const fp_kineto_event *event,
                               int32_t *category, fp_kineto_class *means) {
  const fp_json_value *value = fp_kineto_value(event, FP_FIELD_CATEGORY);
  *category = -1;
  *means = (fp_kineto_class){-1, -1};
  if (!value || value->kind != FP_JSON_STRING) return FP_OK;
  fp_status status = fp_kineto_intern(&events->texts, FP_KINETO_CATEGORIES, value, category);
  if (status == FP_OK)
    status = grow(&events->classes, &events->classes_capacity, *category, sizeof(fp_kineto_class));
  if (status != FP_OK) return status;
  for (; events->n_classes <= *category; events->n_classes++) {
    const int64_t *offsets;
    const char *bytes = fp_names_bytes(events->texts.pools[FP_KINETO_CATEGORIES], &offsets);
    offsets += events->n_classes;
    events->classes[events->n_classes] =
        fp_kineto_classify(bytes + offsets[0], (size_t)(offsets[1] - offsets[0]));
  }
  *means = events->classes[*category];
  return FP_OK;
}

static int is_memory(const fp_kineto_event *event) {
  static const char name[] = "[memory]";
  const fp_json_value *value = fp_kineto_value(event, FP_FIELD_NAME);
  return value && value->length == sizeof name - 1 &&
         memcmp(value->bytes, name, sizeof name - 1) == 0;
}

/* The table of an event, or -1. */
static int table_of(const fp_kineto_event *event, int32_t phase, fp_kineto_class means) {
  switch (phase) {
    case 'X':
      return means.table == FP_KINETO_FLOWS ? -1 : means.table;
    case 's':
    case 't':
    case 'f':
      return means.table == FP_KINETO_FLOWS ? FP_KINETO_FLOWS : -1;
    case 'i':
    case 'I':
      return is_memory(event) ? FP_KINETO_MEMORY : -1;
    case 'M':
      return FP_KINETO_METADATA;
    default:
      return -1;
  }
}

fp_status fp_kineto_events_add(fp_kineto_events *events, const fp_kineto_event *event,
                               fp_kineto_rows *tables) {
  const fp_json_value *ph = fp_kineto_value(event, FP_FIELD_PH);
  int is_letter = ph && ph->kind == FP_JSON_STRING && ph->length == 1;
  int32_t phase = is_letter ? (unsigned char)ph->bytes[0] : 0, category;
  fp_kineto_class means;
  fp_status status = read_category(events, event, &category, &means);
  if (status != FP_OK) return status;
  int table = table_of(event, phase, means);
  if (table >= 0)
    status = fp_kineto_append(&events->texts, event, table, means.kind, category, &tables[table]);
  if (status != FP_OK) return status;
  status = count_event(events, phase, category);
  if (status != FP_OK && table >= 0) tables[table].rows--;
  return status;
}

int64_t fp_kineto_events_count(const fp_kineto_events *events, int32_t i, int32_t *phase,
                               int32_t *category) {
  if (i < 0 || i >= fp_keys_count(events->count_keys)) return 0;
  int64_t key = fp_keys_values(events->count_keys)[i];
  *phase = (int32_t)(key >> 32);
  *category = (int32_t)(key & 0xffffffff) - 1;
  return events->counts[i];
}
