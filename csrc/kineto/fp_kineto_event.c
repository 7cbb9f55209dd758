#include "kineto/fp_kineto_event.h"

_Static_assert(FP_FIELDS <= 64, "a bit in `seen` for every field");

typedef struct {
  const char *text;
  uint8_t length;
  uint8_t is_arg;
  uint8_t field;
} known_key;

#define KEY(field, text) {text, sizeof(text) - 1, 0, FP_FIELD_##field},
#define ARG(field, text) {text, sizeof(text) - 1, 1, FP_FIELD_##field},

/* Keys of other versions since 2021. */
#define OTHER_KEYS(ARG)                \
  ARG(EXTERNAL_ID, "external id")      \
  ARG(BYTES, "Bytes")                  \
  ARG(SEQ, "sequence number")          \
  ARG(FORWARD_THREAD, "fwd thread id") \
  ARG(STACK, "Call Stack")             \
  ARG(DIMS, "Input dims")              \
  ARG(TYPE, "Input Type")

/* The first key of a field is the usual one. */
static const known_key KEYS[] = {FP_KINETO_FIELDS(KEY, ARG) OTHER_KEYS(ARG)};
enum { N_KEYS = sizeof KEYS / sizeof KEYS[0], NO_KEY = 255 };

/* The known keys never change, so they have a table of their own, without seed: 512 bytes, hashed
 * by four characters. Length, first, last and middle characters distinguish them well. */
static inline uint8_t hash_of(const char *text, int64_t length) {
  const unsigned char *bytes = (const unsigned char *)text;
  return (uint8_t)(length * 11 + bytes[0] * 7 + bytes[length / 2] * 37 + bytes[length - 1] * 101);
}

void fp_kineto_keys_make(fp_kineto_keys *keys) {
  memset(keys, NO_KEY, sizeof *keys);
  for (int i = 0; i < N_KEYS; i++) {
    uint8_t *slots = keys->slots[KEYS[i].is_arg], at = hash_of(KEYS[i].text, KEYS[i].length);
    while (slots[at] != NO_KEY) at++;
    slots[at] = (uint8_t)i;
  }
}

const char *fp_kineto_field_key(int field) {
  for (int i = 0; i < N_KEYS; i++)
    if (KEYS[i].field == field) return KEYS[i].text;
  return NULL;
}

/* The field of a key, or FP_FIELDS. */
static int field_of(const fp_kineto_keys *keys, int is_arg, const fp_json_value *key) {
  char plain[FP_KINETO_LONGEST_KEY * 6];
  const char *text = key->bytes;
  int64_t length = key->length;
  if (key->escaped) {
    if (length > (int64_t)sizeof plain) return FP_FIELDS;
    length = fp_json_unescape(key, plain);
    text = plain;
  }
  if (length < 1 || length > FP_KINETO_LONGEST_KEY) return FP_FIELDS;
  const uint8_t *slots = keys->slots[is_arg];
  for (uint8_t at = hash_of(text, length); slots[at] != NO_KEY; at++) {
    const known_key *known = &KEYS[slots[at]];
    if (known->length == length && memcmp(known->text, text, (size_t)length) == 0)
      return known->field;
  }
  return FP_FIELDS;
}

static void keep(fp_kineto_event *event, int field, const fp_json_value *value) {
  if (field == FP_FIELDS) return;
  if (value->kind == FP_JSON_SCALAR && fp_json_is(value, "null")) {
    event->seen &= ~((uint64_t)1 << field);
    return;
  }
  event->values[field] = *value;
  event->seen |= (uint64_t)1 << field;
}

/* Skips the comma after a value; sets *is_last if the object ends instead. */
static fp_status pass_comma(fp_cursor *json, int *is_last) {
  char c;
  if (fp_json_next(json, &c) != FP_OK) return FP_MORE;
  *is_last = c == '}';
  if (c != '}' && c != ',') return FP_E_SYNTAX;
  json->at++;
  return FP_OK;
}

/* Skips '{'; sets *is_last if the object is empty. */
static fp_status open_object(fp_cursor *json, int *is_last) {
  char c;
  json->at++;
  if (fp_json_next(json, &c) != FP_OK) return FP_MORE;
  *is_last = c == '}';
  if (*is_last) json->at++;
  return FP_OK;
}

static fp_status read_key(const fp_kineto_keys *keys, int is_arg, fp_cursor *json, int *field,
                          fp_json_value *key) {
  char c;
  if (fp_json_next(json, &c) != FP_OK) return FP_MORE;
  if (c != '"') return FP_E_SYNTAX;
  if (fp_json_string(json, key) != FP_OK) return FP_MORE;
  *field = field_of(keys, is_arg, key);
  return fp_json_colon(json);
}

static void keep_other(fp_kineto_event *event, const fp_json_value *key,
                       const fp_json_value *value) {
  if (event->n_others == FP_KINETO_OTHERS) return;
  event->other_keys[event->n_others] = *key;
  event->others[event->n_others++] = *value;
}

static fp_status read_args(const fp_kineto_keys *keys, fp_cursor *json, fp_kineto_event *event) {
  int is_last = 0, field;
  fp_json_value key, value;
  fp_status status = open_object(json, &is_last);
  while (status == FP_OK && !is_last) {
    status = read_key(keys, 1, json, &field, &key);
    if (status == FP_OK) status = fp_json_read(json, &value);
    if (status != FP_OK) return status;
    if (field == FP_FIELDS)
      keep_other(event, &key, &value);
    else
      keep(event, field, &value);
    status = pass_comma(json, &is_last);
  }
  return status;
}

int fp_kineto_is_behind_event(fp_cursor json, int is_list) {
  fp_json_blanks(&json);
  int ends = fp_cursor_pass(&json, ']');
  if (!ends && !fp_cursor_pass(&json, ',')) return 0;
  fp_json_blanks(&json);
  if (!ends) { /* the next event */
    if (!fp_cursor_pass(&json, '{')) return 0;
    fp_json_blanks(&json);
    return json.at == json.end || *json.at == '"' || *json.at == '}';
  }
  if (is_list) return json.at == json.end;
  int is_closed = fp_cursor_pass(&json, '}');
  if (!is_closed && !fp_cursor_pass(&json, ',')) return 0;
  fp_json_blanks(&json);
  return json.at == json.end ? is_closed : !is_closed && *json.at == '"';
}

/* Whether a comma, a key and a colon follow the cursor; with `keys`, the key must be known. */
static fp_status expect_field(const fp_kineto_keys *keys, fp_cursor json) {
  char c;
  fp_json_value key;
  if (fp_json_next(&json, &c) != FP_OK) return FP_MORE;
  if (!fp_cursor_pass(&json, ',')) return FP_E_SYNTAX;
  if (fp_json_next(&json, &c) != FP_OK) return FP_MORE;
  if (c != '"') return FP_E_SYNTAX;
  if (fp_json_string(&json, &key) != FP_OK) return FP_MORE;
  if (keys && field_of(keys, 0, &key) == FP_FIELDS) return FP_E_SYNTAX;
  if (fp_json_next(&json, &c) != FP_OK) return FP_MORE;
  return c == ':' ? FP_OK : FP_E_SYNTAX;
}

/* Whether the text before a quote cannot be part of a name: it opens a JSON object or contains a
 * line end, which torch removes from names. */
static int is_outside_name(const char *start, const char *quote) {
  if (memchr(start, '\n', (size_t)(quote - start))) return 1;
  while (quote > start && (unsigned char)quote[-1] <= ' ') quote--;
  return quote > start && quote[-1] == '{';
}

/* torch does not escape names of ranges: a quote in a name seems to end it. The true end is the
 * quote after which the event continues, or ends, as a valid event does. */
static fp_status pass_bare_quotes(const fp_kineto_keys *keys, fp_cursor *json,
                                  fp_json_value *name) {
  const char *start = name->bytes;
  char c;
  fp_cursor behind = *json;
  if (fp_json_next(&behind, &c) != FP_OK) return FP_MORE;
  if (fp_cursor_pass(&behind, '}')) {
    fp_json_blanks(&behind);
    if (behind.at == behind.end || *behind.at == ',' || *behind.at == ']') return FP_OK;
  }
  fp_status field = expect_field(NULL, *json);
  if (field != FP_E_SYNTAX) return field;
  for (fp_cursor at = *json;;) {
    if (is_outside_name(start, at.at - 1)) return FP_E_SYNTAX;
    fp_status status = expect_field(keys, at);
    if (status == FP_OK) {
      json->at = at.at;
      name->length = at.at - 1 - name->bytes;
      name->escaped = memchr(name->bytes, '\\', (size_t)name->length) != NULL;
      return FP_OK;
    }
    if (status == FP_MORE) return FP_MORE;
    fp_cursor rest = at;
    fp_json_blanks(&rest);
    if (fp_cursor_pass(&rest, '}') && fp_kineto_is_behind_event(rest, 0)) return FP_E_SYNTAX;
    start = at.at;
    const char *quote = memchr(start, '"', (size_t)(at.end - start));
    if (!quote) return FP_MORE;
    at.at = quote + 1;
  }
}

fp_status fp_kineto_event_read(const fp_kineto_keys *keys, fp_cursor *json,
                               fp_kineto_event *event) {
  int is_last = 0, field;
  fp_json_value key, value;
  event->seen = 0;
  event->n_others = 0;
  event->first = FP_FIELDS;
  fp_status status = open_object(json, &is_last);
  while (status == FP_OK && !is_last) {
    status = read_key(keys, 0, json, &field, &key);
    if (status != FP_OK) return status;
    if (event->first == FP_FIELDS) event->first = (uint8_t)field;
    if (field == FP_FIELD_ARGS) { /* discard an earlier "args" */
      event->seen &= ((uint64_t)1 << FP_FIELD_ARGS) - 1;
      event->n_others = 0;
    }
    if (field == FP_FIELD_ARGS && *json->at == '{') {
      status = read_args(keys, json, event);
    } else {
      status = fp_json_read(json, &value);
      if (status == FP_OK && field == FP_FIELD_NAME && value.kind == FP_JSON_STRING)
        status = pass_bare_quotes(keys, json, &value);
      if (status == FP_OK) keep(event, field, &value);
    }
    if (status == FP_OK) status = pass_comma(json, &is_last);
  }
  return status;
}
