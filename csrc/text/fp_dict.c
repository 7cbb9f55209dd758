#include "text/fp_dict.h"

#include "base/fp_room.h"
#include "text/fp_literal.h"

typedef struct {
  const char *name;
  int length;
  const char *usual; /* the usual spelling, with colon */
  int usual_length;
  fp_dict_kind kind;
  int column;
} dict_key;

#define TEXT(text) text, sizeof(text) - 1
#define KEY(name, kind, column) {TEXT(name), TEXT("'" name "': "), kind, column}

/* In line order: the next key is nearly always the one after the last. */
static const dict_key KEYS[] = {
    KEY("kShortName", FP_DICT_TEXT, 0),  KEY("kDuration", FP_DICT_INT, 0),
    KEY("layer", FP_DICT_TEXT, 1),       KEY("trace", FP_DICT_TEXT, 2),
    KEY("reprMarkers", FP_DICT_TEXT, 3), KEY("marker", FP_DICT_TEXT, 4),
    KEY("seqMarker", FP_DICT_TEXT, 5),   KEY("seqId", FP_DICT_LIST, 0),
    KEY("subSeqId", FP_DICT_INT, 1),     KEY("altSeqId", FP_DICT_LIST, 1),
    KEY("dir", FP_DICT_TEXT, 6),         KEY("mod", FP_DICT_TEXT, 7),
    KEY("op", FP_DICT_TEXT, 8),          KEY("tid", FP_DICT_INT, 2),
    KEY("device", FP_DICT_INT, 3),       KEY("stream", FP_DICT_INT, 4),
    KEY("grid", FP_DICT_TRIPLE, 0),      KEY("block", FP_DICT_TRIPLE, 1),
    KEY("kLongName", FP_DICT_TEXT, 9),
};
enum { N_KEYS = sizeof KEYS / sizeof KEYS[0], SEQ_MARKER = 5 };

/* Distinct texts of one key, and the line of the first occurrence of each. */
typedef struct {
  fp_names *names;
  int64_t *lines;
  size_t capacity;
} text_pool;

struct fp_dict {
  text_pool pools[FP_DICT_TEXTS];
  char *stripped; /* scratch: a seqMarker without its numbers */
  size_t stripped_capacity;
  int64_t line, stop;
};

const char *fp_dict_key(fp_dict_kind kind, int i) {
  for (int k = 0; k < N_KEYS; k++)
    if (KEYS[k].kind == kind && KEYS[k].column == i) return KEYS[k].name;
  return NULL;
}

fp_dict *fp_dict_new(void) {
  fp_dict *dict = calloc(1, sizeof *dict);
  if (!dict) return NULL;
  for (int i = 0; i < FP_DICT_TEXTS; i++) {
    dict->pools[i].names = fp_names_new();
    if (!dict->pools[i].names) {
      fp_dict_free(dict);
      return NULL;
    }
  }
  return dict;
}

void fp_dict_free(fp_dict *dict) {
  if (!dict) return;
  for (int i = 0; i < FP_DICT_TEXTS; i++) {
    fp_names_free(dict->pools[i].names);
    free(dict->pools[i].lines);
  }
  free(dict->stripped);
  free(dict);
}

int64_t fp_dict_line(const fp_dict *dict) { return dict->line; }
int64_t fp_dict_stop(const fp_dict *dict) { return dict->stop; }
const fp_names *fp_dict_pool(const fp_dict *dict, int i) { return dict->pools[i].names; }
const int64_t *fp_dict_lines(const fp_dict *dict, int i) { return dict->pools[i].lines; }

static fp_status intern(text_pool *pool, fp_text text, int64_t line, int32_t *id) {
  const int32_t count = fp_names_count(pool->names);
  fp_status status =
      fp_reserve(&pool->lines, &pool->capacity, (size_t)count + 1, sizeof *pool->lines);
  if (status != FP_OK) return status;
  status = fp_names_intern(pool->names, text.bytes, (size_t)text.length, id);
  if (status == FP_OK && *id == count) pool->lines[count] = line;
  return status;
}

/* Returns 1 if the text is a list or tuple of plain strings, and sets *stripped to the same list
 * with only the names and sizes of its torch ranges. It is never longer than the text; *stripped
 * has room for that. */
static int strip_numbers(fp_text text, char *out, fp_text *stripped) {
  fp_literal list = {text.bytes, text.bytes + text.length};
  char *at = out;
  if (!fp_literal_character(&list, '[') && !fp_literal_character(&list, '(')) return 0;
  *at++ = '[';
  for (fp_literal_blanks(&list); list.at < list.end - 1; fp_literal_blanks(&list)) {
    const char *start = list.at;
    fp_text label;
    fp_torch_name parts;
    if (fp_literal_string(&list, &label) != FP_OK) return 0;
    fp_names_split(label.bytes, (size_t)label.length, &parts);
    if (parts.name_length && label.bytes[parts.name_length - 1] == '\\')
      return 0; /* the cut would split an escape sequence */
    size_t head = (size_t)(label.bytes - start) + parts.name_length;
    memcpy(at, start, head);
    at += head;
    if (parts.sizes_length) memcpy(at, parts.sizes, parts.sizes_length);
    at += parts.sizes_length;
    *at++ = label.bytes[-1];
    fp_literal_blanks(&list);
    if (fp_literal_character(&list, ','))
      *at++ = ',';
    else if (list.at != list.end - 1)
      return 0;
  }
  *at++ = ']';
  *stripped = (fp_text){out, at - out};
  return 1;
}

static fp_status read_text(fp_dict *dict, int column, fp_literal *line, int32_t *id) {
  fp_text text;
  fp_literal none = *line;
  if (fp_literal_none(&none)) {
    *line = none;
    *id = -1;
    return FP_OK;
  }
  fp_status status = fp_literal_value(line, &text);
  if (status != FP_OK) return status;
  if (column == SEQ_MARKER) {
    status = fp_reserve(&dict->stripped, &dict->stripped_capacity, (size_t)text.length, 1);
    if (status != FP_OK) return status;
    strip_numbers(text, dict->stripped, &text);
  }
  return intern(&dict->pools[column], text, dict->line, id);
}

static fp_status read_int(fp_literal *line, int64_t *value) {
  if (!fp_literal_none(line)) return fp_literal_int(line, value);
  *value = -1;
  return FP_OK;
}

/* Parses a list of at most `capacity` numbers; None is an empty list. FP_MORE: it has more. */
static fp_status read_list(fp_literal *line, int64_t *values, int64_t capacity, int64_t *n) {
  *n = 0;
  if (fp_literal_none(line)) return FP_OK;
  char close = fp_literal_character(line, '[') ? ']' : ')';
  if (close == ')' && !fp_literal_character(line, '(')) return FP_E_SYNTAX;
  for (;;) {
    fp_literal_blanks(line);
    if (fp_literal_character(line, close)) return FP_OK;
    if (*n == capacity) return FP_MORE;
    fp_status status = fp_literal_int(line, &values[*n]);
    if (status != FP_OK) return status;
    ++*n;
    fp_literal_blanks(line);
    if (fp_literal_character(line, close)) return FP_OK;
    if (!fp_literal_character(line, ',')) return FP_E_SYNTAX;
  }
}

static fp_status read_triple(fp_literal *line, int32_t *triple) {
  int64_t values[3] = {-1, -1, -1}, n = 3;
  fp_status status = fp_literal_none(line) ? FP_OK : read_list(line, values, 3, &n);
  if (status == FP_MORE || (status == FP_OK && n != 3)) return FP_E_SYNTAX;
  if (status != FP_OK) return status;
  for (int i = 0; i < 3; i++) {
    if (values[i] < INT32_MIN || values[i] > INT32_MAX) return FP_E_RANGE;
    triple[i] = (int32_t)values[i];
  }
  return FP_OK;
}

static fp_status read_value(fp_dict *dict, const dict_key *key, fp_literal *line,
                            fp_dict_columns *columns) {
  int64_t row = columns->rows, n, first, left, *values;
  int i = key->column;
  fp_status status;
  switch (key->kind) {
    case FP_DICT_INT:
      return read_int(line, &columns->ints[i][row]);
    case FP_DICT_TRIPLE:
      return read_triple(line, &columns->triples[i][3 * row]);
    case FP_DICT_TEXT:
      return read_text(dict, i, line, &columns->texts[i][row]);
    case FP_DICT_LIST:
      first = columns->list_offsets[i][row];
      left = columns->list_capacity[i] - first;
      values = left > 0 ? columns->list_values[i] + first : NULL; /* NULL + 0 is undefined */
      status = read_list(line, values, left, &n);
      columns->list_offsets[i][row + 1] = first + n;
      return status;
  }
  return FP_E_SYNTAX;
}

static void clear_row(fp_dict_columns *columns) {
  int64_t row = columns->rows;
  for (int i = 0; i < FP_DICT_INTS; i++) columns->ints[i][row] = -1;
  for (int i = 0; i < FP_DICT_TRIPLES; i++)
    memset(&columns->triples[i][3 * row], 0xff, 3 * sizeof(int32_t));
  for (int i = 0; i < FP_DICT_TEXTS; i++) columns->texts[i][row] = -1;
  for (int i = 0; i < FP_DICT_LISTS; i++) {
    if (row == 0) columns->list_offsets[i][0] = 0;
    columns->list_offsets[i][row + 1] = columns->list_offsets[i][row];
  }
}

/* The known key with this name, or NULL. */
static const dict_key *find_key(fp_text name) {
  for (const dict_key *key = KEYS; key < KEYS + N_KEYS; key++)
    if (key->length == name.length && memcmp(key->name, name.bytes, (size_t)name.length) == 0)
      return key;
  return NULL;
}

/* Parses a key and its colon; *found is NULL for unknown keys. */
static fp_status read_key(fp_literal *line, const dict_key **found) {
  fp_text name;
  fp_status status = fp_literal_string(line, &name);
  if (status != FP_OK) return status;
  fp_literal_blanks(line);
  if (!fp_literal_character(line, ':')) return FP_E_SYNTAX;
  fp_literal_blanks(line);
  *found = find_key(name);
  return FP_OK;
}

/* *expected is the key that usually follows the last one. */
static fp_status read_item(fp_dict *dict, fp_literal *line, fp_dict_columns *columns,
                           const dict_key **expected) {
  const dict_key *key = *expected;
  if (key == KEYS + N_KEYS || !fp_literal_bytes(line, key->usual, key->usual_length)) {
    fp_status status = read_key(line, &key);
    if (status != FP_OK) return status;
  }
  fp_text ignored;
  if (!key) return fp_literal_value(line, &ignored);
  *expected = key + 1;
  return read_value(dict, key, line, columns);
}

/* Parses one line, without its newline; it must not be blank. */
static fp_status read_row(fp_dict *dict, fp_literal *line, fp_dict_columns *columns) {
  const dict_key *expected = KEYS;
  clear_row(columns);
  if (!fp_literal_character(line, '{')) return FP_E_SYNTAX;
  for (;;) {
    fp_literal_blanks(line);
    if (fp_literal_character(line, '}')) break;
    fp_status status = read_item(dict, line, columns, &expected);
    if (status != FP_OK) return status;
    fp_literal_blanks(line);
    if (fp_literal_character(line, ',')) continue;
    if (fp_literal_character(line, '}')) break;
    return FP_E_SYNTAX;
  }
  fp_literal_blanks(line);
  return line->at == line->end ? FP_OK : FP_E_SYNTAX;
}

fp_status fp_dict_read(fp_dict *dict, const char *bytes, size_t length, int is_end,
                       fp_dict_columns *columns, size_t *used) {
  const char *end = bytes + length;
  *used = 0;
  while (*used < length) {
    const char *start = bytes + *used, *newline = memchr(start, '\n', length - *used);
    if (!newline && !is_end) return FP_OK;
    fp_literal line = {start, newline ? newline : end};
    dict->line++;
    fp_literal_blanks(&line);
    if (line.at < line.end) {
      fp_status status =
          columns->rows < columns->capacity ? read_row(dict, &line, columns) : FP_MORE;
      dict->stop = line.at - start;
      if (status == FP_MORE) dict->line--;
      if (status != FP_OK) return status;
      columns->rows++;
    }
    *used = newline ? (size_t)(newline + 1 - bytes) : length;
  }
  return FP_OK;
}
