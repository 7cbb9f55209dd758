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

static char *put(char *at, const char *text, int64_t length) {
  if (length) memcpy(at, text, (size_t)length);
  return at + length;
}

/* Appends the raw text of a value; strings with their quotes. */
static char *put_value(char *at, const fp_json_value *value) {
  int64_t quotes = value->kind == FP_JSON_STRING;
  return put(at, value->bytes - quotes, value->length + 2 * quotes);
}

/* Appends "key":value, preceded by a comma unless it is the first of its part. */
static char *put_pair(char *at, const fp_kineto_event *event, int field) {
  const fp_json_value *value = fp_kineto_value(event, field);
  if (!value) return at;
  const char *key = fp_kineto_field_key(field);
  if (at[-1] != SEPARATOR) *at++ = ',';
  *at++ = '"';
  at = put(at, key, (int64_t)strlen(key));
  *at++ = '"';
  *at++ = ':';
  return put_value(at, value);
}

/* Appends the pairs of the fields `first` to `last` that are present; if any, after `extra`. */
static char *put_pairs(char *at, const fp_kineto_event *event, int first, int last, int extra) {
  uint64_t fields = ((uint64_t)2 << last) - ((uint64_t)1 << first);
  *at++ = SEPARATOR;
  if (!(event->seen & fields)) return at;
  if (extra < FP_FIELDS) at = put_pair(at, event, extra);
  for (int field = first; field <= last; field++) at = put_pair(at, event, field);
  return at;
}

/* The most bytes of a label: all values of the event, with keys and punctuation. */
static size_t most_of(const fp_kineto_event *event) {
  size_t most = FP_FIELDS * (FP_KINETO_LONGEST_KEY + 6);
  for (int field = 0; field < FP_FIELDS; field++) {
    const fp_json_value *value = fp_kineto_value(event, field);
    if (value) most += (size_t)value->length;
  }
  return most;
}

fp_status fp_kineto_label(fp_kineto_texts *texts, const fp_kineto_event *event, int32_t *id) {
  const fp_json_value *name = fp_kineto_value(event, FP_FIELD_NAME);
  if (fp_reserve(&texts->room, &texts->capacity, most_of(event), 1) != FP_OK) return FP_E_MEMORY;
  char *at = texts->room;
  if (name && name->escaped)
    at += fp_json_unescape(name, at);
  else if (name)
    at = put(at, name->bytes, name->length);
  for (int field = FP_FIELD_DIMS; field <= FP_FIELD_CONCRETE; field++) {
    const fp_json_value *value = fp_kineto_value(event, field);
    *at++ = SEPARATOR;
    if (value) at = put_value(at, value);
  }
  at = put_pairs(at, event, FP_FIELD_COLLECTIVE, FP_FIELD_COLLECTIVE_LAST, FP_FIELDS);
  at = put_pairs(at, event, FP_FIELD_TRITON, FP_FIELD_TRITON_LAST, FP_FIELD_GRID);
  const size_t length = (size_t)(at - texts->room);
  return fp_names_intern(texts->pools[FP_KINETO_LABELS], texts->room, length, id);
}

/* Args of GPU work that profilers write themselves, and that no column needs. */
static const char *const OF_PROFILERS[] = {
    "queued",
    "blocks per SM",
    "warps per SM",
    "memory bandwidth (GB/s)",
    "kind",
    "priority",
    "stream priority",
    "cbid",
    "cluster",
    "channel id",
    "channel type",
    "launch type",
    "wait_on_stream",
    "wait_on_cuda_event_record_corr_id",
    "wait_on_cuda_event_id",
    "occupancy",
    "cuda_sync_kind",
};

static int is_of_profiler(const fp_json_value *key) {
  for (size_t i = 0; i < sizeof OF_PROFILERS / sizeof OF_PROFILERS[0]; i++)
    if (fp_json_is(key, OF_PROFILERS[i])) return 1;
  return 0;
}

static int is_graph_node(const fp_kineto_event *event) {
  const fp_json_value *node = fp_kineto_value(event, FP_FIELD_GRAPH_NODE);
  return node && !fp_json_is(node, "0") && !fp_json_is(node, "-1");
}

fp_status fp_kineto_annotation(fp_kineto_texts *texts, const fp_kineto_event *event, int32_t *id) {
  *id = -1;
  if (!is_graph_node(event)) return FP_OK;
  size_t most = most_of(event) + 2;
  for (int i = 0; i < event->n_others; i++)
    most += (size_t)(event->other_keys[i].length + event->others[i].length + 6);
  if (fp_reserve(&texts->room, &texts->capacity, most, 1) != FP_OK) return FP_E_MEMORY;
  char *at = texts->room;
  *at++ = SEPARATOR;
  for (int i = 0; i < event->n_others; i++) {
    if (is_of_profiler(&event->other_keys[i])) continue;
    if (at[-1] != SEPARATOR) *at++ = ',';
    at = put_value(at, &event->other_keys[i]);
    *at++ = ':';
    at = put_value(at, &event->others[i]);
  }
  at = put_pair(at, event, FP_FIELD_META_NAME);
  for (int field = FP_FIELD_COLLECTIVE; field <= FP_FIELD_COLLECTIVE_LAST; field++)
    at = put_pair(at, event, field);
  const size_t length = (size_t)(at - texts->room) - 1;
  if (!length) return FP_OK;
  return fp_names_intern(texts->pools[FP_KINETO_NOTES], texts->room + 1, length, id);
}
