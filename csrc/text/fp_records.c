#include "text/fp_records.h"

#include "base/fp_room.h"
#include "text/fp_json.h"

enum { NONE = -1 };

/* A key that is part of a path; node 0 is the root of the text. */
typedef struct {
  char *key;
  int64_t length;
  int32_t first, next; /* the first child, and the next child of the same parent */
  int32_t table;       /* the table of the records in a list here */
  int32_t whole;       /* the table of whole values here */
  int32_t column;      /* of a field of a record, or of a whole value */
  uint8_t kind;
} node;

typedef struct {
  int32_t node; /* NONE: nothing in it is wanted */
  bool is_list;
} level;

/* The expected next token. */
typedef enum { VALUE, FIRST_VALUE, KEY, FIRST_KEY, COMMA, END } token;

struct fp_records {
  node *nodes;
  size_t capacity;
  int32_t n_nodes, root;
  fp_names *texts;
  char *room;
  size_t room_size;
  level levels[FP_JSON_DEPTH];
  int depth;
  int32_t next_node; /* of the expected value */
  token expected;
  int64_t n_roots;
};

static fp_status add_node(fp_records *records, int32_t parent, const char *key, size_t length,
                          int32_t *place) {
  char *copy = malloc(length + 1);
  fp_status status =
      fp_reserve(&records->nodes, &records->capacity, (size_t)records->n_nodes + 1, sizeof(node));
  if (!copy || status != FP_OK) {
    free(copy);
    return FP_E_MEMORY;
  }
  memcpy(copy, key, length);
  *place = records->n_nodes++;
  records->nodes[*place] = (node){copy, (int64_t)length, NONE, NONE, NONE, NONE, NONE, 0};
  if (parent == NONE) return FP_OK;
  int32_t *last = &records->nodes[parent].first; /* children in the order of their addition */
  while (*last != NONE) last = &records->nodes[*last].next;
  *last = *place;
  return FP_OK;
}

fp_records *fp_records_new(void) {
  fp_records *records = calloc(1, sizeof *records);
  if (!records) return NULL;
  int32_t top;
  records->root = NONE;
  records->texts = fp_names_new();
  if (records->texts && add_node(records, NONE, "", 0, &top) == FP_OK) return records;
  fp_records_free(records);
  return NULL;
}

void fp_records_free(fp_records *records) {
  if (!records) return;
  for (int32_t i = 0; i < records->n_nodes; i++) free(records->nodes[i].key);
  free(records->nodes);
  free(records->room);
  fp_names_free(records->texts);
  free(records);
}

/* The child of a node with a key, or NONE. */
static int32_t child_of(const fp_records *records, int32_t parent, const char *key,
                        int64_t length) {
  if (parent == NONE) return NONE;
  int32_t at = records->nodes[parent].first;
  for (; at != NONE; at = records->nodes[at].next) {
    const node *child = &records->nodes[at];
    if (child->length == length && memcmp(child->key, key, (size_t)length) == 0) break;
  }
  return at;
}

/* The node at a path below another, which is made if there is none. */
static fp_status find_node(fp_records *records, const char *path, int32_t *place) {
  while (*path) {
    const size_t length = strcspn(path, "/");
    int32_t child = child_of(records, *place, path, (int64_t)length);
    if (child == NONE) {
      fp_status status = add_node(records, *place, path, length, &child);
      if (status != FP_OK) return status;
    }
    *place = child;
    path += length + (path[length] == '/');
  }
  return FP_OK;
}

fp_status fp_records_add(fp_records *records, const char *path, const char *field, int table,
                         int column, int kind) {
  int32_t place = 0;
  fp_status status = find_node(records, path, &place);
  if (status != FP_OK) return status;
  if (*field) {
    records->nodes[place].table = table;
    status = find_node(records, field, &place);
    if (status != FP_OK) return status;
  } else {
    records->nodes[place].whole = table;
  }
  records->nodes[place].column = column;
  records->nodes[place].kind = (uint8_t)kind;
  return FP_OK;
}

fp_status fp_records_root(fp_records *records, const char *path) {
  records->root = 0;
  return find_node(records, path, &records->root);
}

/* The number in a text, which may be hexadecimal; FP_RECORDS_NONE for others. */
static int64_t number_of(const fp_json_value *value) {
  int64_t number;
  const char *at = value->bytes, *end = at + value->length;
  if (value->kind != FP_JSON_STRING && value->kind != FP_JSON_SCALAR) return FP_RECORDS_NONE;
  if (value->length < 3 || at[0] != '0' || (at[1] | 0x20) != 'x') {
    const fp_status status = fp_decimal_read(at, value->length, 0, &number);
    return status == FP_OK ? number : FP_RECORDS_NONE;
  }
  uint64_t bits = 0;
  for (at += 2; at < end; at++) {
    const char letter = (char)(*at | 0x20);
    const bool is_digit = *at >= '0' && *at <= '9';
    if (!is_digit && (letter < 'a' || letter > 'f')) return FP_RECORDS_NONE;
    if (bits >> 59) return FP_RECORDS_NONE; /* exceeds 63 bits */
    bits = bits << 4 | (uint64_t)(is_digit ? *at - '0' : letter - 'a' + 10);
  }
  return (int64_t)bits;
}

static fp_status text_of(fp_records *records, const fp_json_value *value, int64_t *number) {
  const char *text = value->bytes;
  size_t length = (size_t)value->length;
  int32_t id = 0;
  if (value->escaped) {
    if (fp_reserve(&records->room, &records->room_size, length, 1) != FP_OK) return FP_E_MEMORY;
    length = (size_t)fp_json_unescape(value, records->room);
    text = records->room;
  }
  fp_status status = fp_names_intern(records->texts, text, length, &id);
  *number = id;
  return status;
}

static fp_status put(fp_records *records, const node *field, const fp_json_value *value,
                     fp_records_rows *rows) {
  int64_t *cell = &rows->columns[field->column][rows->rows];
  if (field->kind == FP_RECORDS_TEXT) return text_of(records, value, cell);
  *cell = number_of(value);
  return FP_OK;
}

/* Reads the object at the cursor, which is a record or an object in one, into the next row. */
static fp_status read_object(fp_records *records, int32_t place, int depth, fp_cursor *json,
                             fp_records_rows *rows) {
  char c;
  if (depth == FP_JSON_DEPTH) return FP_E_SYNTAX;
  json->at++;
  for (bool is_first = true;; is_first = false) {
    fp_json_value key, value;
    if (fp_json_next(json, &c) != FP_OK) return FP_MORE;
    if (c == '}' && is_first) break;
    if (!is_first) {
      if (c == '}') break;
      if (!fp_cursor_pass(json, ',')) return FP_E_SYNTAX;
      if (fp_json_next(json, &c) != FP_OK) return FP_MORE;
    }
    if (c != '"') return FP_E_SYNTAX;
    fp_status status = fp_json_string(json, &key);
    if (status == FP_OK) status = fp_json_colon(json);
    if (status != FP_OK) return status;
    const int32_t child = child_of(records, place, key.bytes, key.length);
    if (child != NONE && *json->at == '{' && records->nodes[child].column == NONE)
      status = read_object(records, child, depth + 1, json, rows);
    else if ((status = fp_json_read(json, &value)) == FP_OK && child != NONE &&
             records->nodes[child].column != NONE)
      status = put(records, &records->nodes[child], &value, rows);
    if (status != FP_OK) return status;
  }
  json->at++;
  return FP_OK;
}

static void begin_row(const fp_records *records, fp_records_rows *rows) {
  rows->columns[0][rows->rows] = records->n_roots - 1;
  for (int i = 1; i < FP_RECORDS_COLUMNS && rows->columns[i]; i++)
    rows->columns[i][rows->rows] = FP_RECORDS_NONE;
}

static fp_status read_record(fp_records *records, int32_t place, fp_cursor *json,
                             fp_records_rows *rows) {
  begin_row(records, rows);
  fp_status status = read_object(records, place, 0, json, rows);
  rows->rows += status == FP_OK;
  return status;
}

static fp_status read_whole(fp_records *records, const node *field, fp_cursor *json,
                            fp_records_rows *rows) {
  fp_json_value value;
  fp_status status = fp_json_read(json, &value);
  if (status != FP_OK) return status;
  begin_row(records, rows);
  status = put(records, field, &value, rows);
  rows->rows += status == FP_OK;
  return status;
}

/* Reads a value that is a record, a whole value or a single one, or enters it. */
static fp_status read_value(fp_records *records, char c, fp_cursor *json, fp_records_rows *tables) {
  const int32_t place = records->next_node;
  const node *at = place == NONE ? NULL : &records->nodes[place];
  const bool in_list = records->depth && records->levels[records->depth - 1].is_list;
  fp_json_value ignored;
  records->expected = COMMA;
  if (at && at->whole != NONE) return read_whole(records, at, json, &tables[at->whole]);
  if (at && at->table != NONE && in_list && c == '{')
    return read_record(records, place, json, &tables[at->table]);
  if (c != '{' && c != '[') return fp_json_read(json, &ignored);
  if (records->depth == FP_JSON_DEPTH) return FP_E_SYNTAX;
  records->levels[records->depth++] = (level){place, c == '['};
  records->n_roots += c == '{' && place != NONE && place == records->root;
  records->expected = c == '[' ? FIRST_VALUE : FIRST_KEY;
  json->at++;
  return FP_OK;
}

static fp_status read_key(fp_records *records, fp_cursor *json) {
  fp_json_value key;
  fp_status status = fp_json_string(json, &key);
  if (status == FP_OK) status = fp_json_colon(json);
  if (status != FP_OK) return status;
  const int32_t around = records->levels[records->depth - 1].node;
  records->next_node = child_of(records, around, key.bytes, key.length);
  records->expected = VALUE;
  return FP_OK;
}

/* Reads one token between records, or a record. */
static fp_status read_token(fp_records *records, fp_cursor *json, fp_records_rows *tables) {
  char c;
  if (fp_json_next(json, &c) != FP_OK) return FP_MORE;
  const level *top = records->depth ? &records->levels[records->depth - 1] : NULL;
  const token expected = records->expected;
  const bool may_end = expected != VALUE && expected != KEY;
  if (top && may_end && c == (top->is_list ? ']' : '}')) {
    json->at++;
    records->expected = --records->depth ? COMMA : END;
    return FP_OK;
  }
  if (expected == COMMA) {
    if (!top || c != ',') return FP_E_SYNTAX;
    json->at++;
    records->expected = top->is_list ? VALUE : KEY;
    if (top->is_list) records->next_node = top->node;
    return FP_OK;
  }
  if (expected == KEY || expected == FIRST_KEY)
    return c == '"' ? read_key(records, json) : FP_E_SYNTAX;
  if (!top && c != '{' && c != '[') return FP_E_SYNTAX;
  if (expected == FIRST_VALUE) records->next_node = top->node;
  return read_value(records, c, json, tables);
}

static bool is_full(const fp_records_rows *tables, int n_tables) {
  bool full = false;
  for (int i = 0; i < n_tables; i++) full |= tables[i].rows >= tables[i].capacity;
  return full;
}

fp_status fp_records_read(fp_records *records, const char *bytes, size_t length,
                          fp_records_rows *tables, int n_tables, size_t *used) {
  fp_cursor json = {bytes, bytes + length};
  *used = 0;
  while (records->expected != END) {
    if (is_full(tables, n_tables)) return FP_MORE;
    const token expected = records->expected;
    const fp_status status = read_token(records, &json, tables);
    if (status != FP_OK) {
      records->expected = expected;
      return status == FP_MORE ? FP_OK : status;
    }
    *used = (size_t)(json.at - bytes);
  }
  return FP_OK;
}

bool fp_records_is_whole(const fp_records *records) { return records->expected == END; }

const fp_names *fp_records_texts(const fp_records *records) { return records->texts; }
