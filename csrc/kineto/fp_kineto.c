#include "kineto/fp_kineto.h"

#include <stdlib.h>

/* The expected next token. */
typedef enum {
  AT_START,
  AT_KEY,   /* a key of the root object, or its end */
  AT_COMMA, /* after a value of the root object */
  AT_EVENT, /* an event, or the end of their list */
  AT_END,
  AT_NO_TRACE,
} place;

/* Longer values of the root object are skipped. */
enum { LONGEST_VALUE = 1 << 24 };

struct fp_kineto {
  fp_kineto_keys keys;
  fp_kineto_events events;
  fp_kineto_event event;
  place at;
  int is_list, has_events;
  int first_field; /* the first field of the last event with a duration */
  int64_t lost, lost_bytes;
};

fp_kineto *fp_kineto_new(void) {
  fp_kineto *kineto = calloc(1, sizeof *kineto);
  if (!kineto) return NULL;
  fp_kineto_keys_make(&kineto->keys);
  kineto->first_field = FP_FIELD_PH;
  if (fp_kineto_events_make(&kineto->events) == FP_OK) return kineto;
  fp_kineto_free(kineto);
  return NULL;
}

void fp_kineto_free(fp_kineto *kineto) {
  if (!kineto) return;
  fp_kineto_events_free(&kineto->events);
  free(kineto);
}

/* The comma before the next event after `at`, recognised by the first key of the event; NULL if
 * there is none. */
static const char *find_event(const fp_kineto *kineto, const char *at, const char *end) {
  const char *usual = fp_kineto_field_key(FP_FIELD_PH);
  const char *first = fp_kineto_field_key(kineto->first_field);
  while (at < end && (at = memchr(at, ',', (size_t)(end - at)))) {
    const char *comma = at++;
    fp_cursor json = {at, end};
    fp_json_value key;
    fp_json_blanks(&json);
    if (!fp_cursor_pass(&json, '{')) continue;
    fp_json_blanks(&json);
    if (json.at == end || *json.at != '"' || fp_json_string(&json, &key) != FP_OK) continue;
    if (fp_json_is(&key, usual) || fp_json_is(&key, first)) return comma;
  }
  return NULL;
}

static void lose(fp_kineto *kineto, const char *start, const char *end) {
  kineto->lost += end > start; /* nothing is lost if only a comma is missing */
  kineto->lost_bytes += end - start;
}

/* Skips the malformed event at `start`: to its end if its brackets close before the next event
 * starts, else to the comma before that event. Brackets alone are not reliable, because an extra
 * quote swaps the inside and outside of strings. FP_MORE: neither is in the text. */
static fp_status pass_malformed(fp_kineto *kineto, const char *start, fp_cursor *json) {
  const char *comma = find_event(kineto, start, json->end);
  fp_cursor whole = {start, comma ? comma + 1 : json->end};
  fp_json_value ignored;
  if (fp_json_read(&whole, &ignored) == FP_OK &&
      fp_kineto_is_behind_event((fp_cursor){whole.at, json->end}, kineto->is_list))
    json->at = whole.at;
  else if (comma)
    json->at = comma;
  else
    return FP_MORE;
  lose(kineto, start, json->at);
  kineto->at = AT_EVENT;
  return FP_OK;
}

static fp_status read_event(fp_kineto *kineto, fp_cursor *json, fp_kineto_rows *tables) {
  char c;
  if (fp_json_next(json, &c) != FP_OK) return FP_MORE;
  if (c == ',' || c == ']') {
    json->at++;
    if (c == ']') kineto->at = kineto->is_list ? AT_END : AT_COMMA;
    return FP_OK;
  }
  const char *start = json->at;
  if (c != '{') return pass_malformed(kineto, start, json);
  fp_status status = fp_kineto_event_read(&kineto->keys, json, &kineto->event);
  if (status == FP_E_SYNTAX) return pass_malformed(kineto, start, json);
  if (status != FP_OK) return status;
  if (fp_kineto_value(&kineto->event, FP_FIELD_DUR) && kineto->event.first < FP_FIELDS)
    kineto->first_field = kineto->event.first;
  return fp_kineto_events_add(&kineto->events, &kineto->event, tables);
}

/* Stores a key and value of the root object. */
static fp_status keep_value(fp_kineto *kineto, const fp_json_value *key, const char *start,
                            const char *end) {
  if (end - start > LONGEST_VALUE) return FP_OK;
  const fp_json_value pair = {key->bytes - 1, end - (key->bytes - 1), FP_JSON_SCALAR, 0};
  int32_t id;
  return fp_kineto_intern(&kineto->events.texts, FP_KINETO_ROOT, &pair, &id);
}

/* Reads a key and value of the root object, or the key and the '[' of the events. */
static fp_status read_pair(fp_kineto *kineto, fp_cursor *json) {
  fp_json_value key, value;
  fp_status status = fp_json_string(json, &key);
  if (status == FP_OK) status = fp_json_colon(json);
  if (status != FP_OK) return status;
  if (*json->at == '[' && fp_json_is(&key, "traceEvents")) {
    json->at++;
    kineto->at = AT_EVENT;
    kineto->has_events = 1;
    return FP_OK;
  }
  const char *start = json->at;
  status = fp_json_read(json, &value);
  if (status != FP_OK) return status;
  kineto->at = AT_COMMA;
  return keep_value(kineto, &key, start, json->at);
}

/* Skips malformed text of the root object: to the key of the events or, after these, to the next
 * key. */
static fp_status pass_malformed_pair(fp_kineto *kineto, const char *start, fp_cursor *json) {
  static const char name[] = "\"traceEvents\"";
  if (kineto->has_events) return pass_malformed(kineto, start, json);
  const char *at = json->at;
  while ((at = memchr(at, '"', (size_t)(json->end - at))) != NULL) {
    if (json->end - at < (ptrdiff_t)sizeof name - 1) return FP_MORE;
    if (memcmp(at, name, sizeof name - 1) == 0) break;
    at++;
  }
  if (!at) return FP_MORE;
  lose(kineto, start, at);
  json->at = at;
  kineto->at = AT_KEY;
  return FP_OK;
}

static fp_status read_root(fp_kineto *kineto, fp_cursor *json) {
  char c;
  if (fp_json_next(json, &c) != FP_OK) return FP_MORE;
  const char *start = json->at;
  fp_status status = FP_E_SYNTAX;
  if (c == ',' || c == '}') { /* repeated commas are accepted */
    json->at++;
    kineto->at = c == ',' ? AT_KEY : AT_END;
    return FP_OK;
  }
  if (c == '"' && kineto->at == AT_KEY) status = read_pair(kineto, json);
  return status == FP_E_SYNTAX ? pass_malformed_pair(kineto, start, json) : status;
}

static fp_status read_start(fp_kineto *kineto, fp_cursor *json) {
  static const char mark[] = "\xef\xbb\xbf";
  char c;
  for (int i = 0; i < 3 && fp_cursor_pass(json, mark[i]); i++) continue;
  if (fp_json_next(json, &c) != FP_OK) return FP_MORE;
  kineto->at = c == '{' ? AT_KEY : c == '[' ? AT_EVENT : AT_NO_TRACE;
  kineto->is_list = kineto->has_events = c == '[';
  json->at += c == '{' || c == '[';
  return FP_OK;
}

static int is_full(const fp_kineto_rows *tables) {
  int full = 0;
  for (int i = 0; i < FP_KINETO_TABLES; i++) full |= tables[i].rows >= tables[i].capacity;
  return full;
}

fp_status fp_kineto_read(fp_kineto *kineto, const char *bytes, size_t length,
                         fp_kineto_rows tables[FP_KINETO_TABLES], size_t *used) {
  fp_cursor json = {bytes, bytes + length};
  if (kineto->at != AT_START && kineto->at != AT_END) fp_json_blanks(&json);
  *used = (size_t)(json.at - bytes);
  while (kineto->at != AT_END && kineto->at != AT_NO_TRACE) {
    fp_status status;
    if (is_full(tables)) return FP_MORE;
    if (kineto->at == AT_START)
      status = read_start(kineto, &json);
    else if (kineto->at == AT_EVENT)
      status = read_event(kineto, &json, tables);
    else
      status = read_root(kineto, &json);
    if (status == FP_MORE) break;
    if (status != FP_OK) return status;
    if (kineto->at != AT_END) fp_json_blanks(&json);
    *used = (size_t)(json.at - bytes);
  }
  return FP_OK;
}

fp_kineto_progress fp_kineto_state(const fp_kineto *kineto, int *has_events) {
  *has_events = kineto->has_events;
  if (kineto->at == AT_NO_TRACE) return FP_KINETO_NO_TRACE;
  return kineto->at == AT_END ? FP_KINETO_WHOLE : FP_KINETO_READING;
}

int64_t fp_kineto_lost(const fp_kineto *kineto, int64_t *bytes) {
  *bytes = kineto->lost_bytes;
  return kineto->lost;
}

int64_t fp_kineto_count(const fp_kineto *kineto, int32_t i, int32_t *phase, int32_t *category) {
  const fp_kineto_events *events = &kineto->events;
  if (i < 0 || i >= fp_keys_count(events->count_keys)) return 0;
  const int64_t key = fp_keys_values(events->count_keys)[i];
  *phase = (int32_t)(key >> 32);
  *category = (int32_t)(key & 0xffffffff) - 1;
  return events->counts[i];
}

const fp_names *fp_kineto_texts_of(const fp_kineto *kineto, int pool) {
  return kineto->events.texts.pools[pool];
}
