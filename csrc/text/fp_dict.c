#include "text/fp_dict.h"

#include "base/fp_room.h"
#include "text/fp_text.h"

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

/* Literals. Each function skips or reads what is at the cursor, or returns false or FP_E_SYNTAX. */
enum { DEEPEST = 100 }; /* nesting of brackets */

static inline bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\f'; }

static inline void pass_blanks(fp_cursor *line) {
  while (line->at < line->end && is_blank(*line->at)) line->at++;
}

static inline bool pass_bytes(fp_cursor *line, const char *bytes, int64_t length) {
  if (line->end - line->at < length || memcmp(line->at, bytes, (size_t)length) != 0) return false;
  line->at += length;
  return true;
}

/* Skips None or JSON's null. */
static inline bool pass_none(fp_cursor *line) {
  return pass_bytes(line, "None", 4) || pass_bytes(line, "null", 4);
}

/* Moves from after the opening quote to after the closing one. Searches each next quote only once
 * for all backslashes before it, to stay linear for strings of many escapes. */
static fp_status to_closing_quote(fp_cursor *line, char quote) {
  const char *p = line->at, *end = line->end, *next_quote = NULL;
  while (p < end) {
    if (!next_quote || next_quote < p) next_quote = memchr(p, quote, (size_t)(end - p));
    if (!next_quote) return FP_E_SYNTAX;
    const char *backslash = memchr(p, '\\', (size_t)(next_quote - p));
    if (!backslash) {
      line->at = next_quote + 1;
      return FP_OK;
    }
    p = backslash + 2;
  }
  return FP_E_SYNTAX;
}

static inline bool is_prefix(char c) { return c == 'u' || c == 'b' || c == 'U' || c == 'B'; }

/* Reads a string in either quote, with optional prefix u or b; `inside` is the raw text between the
 * quotes. */
static fp_status read_string(fp_cursor *line, fp_text *inside) {
  const char *p = line->at;
  if (p < line->end && is_prefix(*p)) p++;
  if (p == line->end || (*p != '\'' && *p != '"')) return FP_E_SYNTAX;
  line->at = p + 1;
  fp_status status = to_closing_quote(line, *p);
  if (status == FP_OK) *inside = (fp_text){p + 1, line->at - p - 2};
  return status;
}

/* Reads a decimal integer; FP_E_RANGE if it exceeds 64 bits. */
static fp_status read_number(fp_cursor *line, int64_t *value) {
  const char *p = line->at;
  int is_negative = p < line->end && *p == '-';
  if (p < line->end && (*p == '-' || *p == '+')) p++;
  const uint64_t limit = (uint64_t)INT64_MAX + (uint64_t)is_negative;
  const char *digits = p;
  uint64_t size = 0;
  for (; p < line->end && *p >= '0' && *p <= '9'; p++) {
    uint64_t digit = (uint64_t)(*p - '0');
    if (size > (limit - digit) / 10) return FP_E_RANGE;
    size = size * 10 + digit;
  }
  if (p == digits) return FP_E_SYNTAX;
  *value = is_negative ? (int64_t)(0 - size) : (int64_t)size;
  line->at = p;
  return FP_OK;
}

/* The closing bracket for an opening one. */
static inline char closing(char open) { return open == '(' ? ')' : open == '[' ? ']' : '}'; }

static inline bool ends_value(char c) {
  return c == ',' || c == ':' || c == '}' || c == ']' || c == ')';
}

/* Skips any value, up to the comma, colon or closing bracket that ends it; `text` is its raw text.
 * Checks only strings and the nesting of brackets. */
static fp_status pass_value(fp_cursor *line, fp_text *text) {
  char expected[DEEPEST];
  int depth = 0;
  const char *start = line->at;
  while (line->at < line->end && (depth > 0 || !ends_value(*line->at))) {
    char c = *line->at++;
    switch (c) {
      case '\'':
      case '"':
        if (to_closing_quote(line, c) != FP_OK) return FP_E_SYNTAX;
        break;
      case '(':
      case '[':
      case '{':
        if (depth == DEEPEST) return FP_E_SYNTAX;
        expected[depth++] = closing(c);
        break;
      case ')':
      case ']':
      case '}':
        if (expected[--depth] != c) return FP_E_SYNTAX;
        break;
      default:
        break;
    }
  }
  const char *end = line->at;
  while (end > start && is_blank(end[-1])) end--;
  *text = (fp_text){start, end - start};
  return depth > 0 || end == start ? FP_E_SYNTAX : FP_OK;
}

/* Returns 1 if the text is a list or tuple of plain strings, and sets *stripped to the same list
 * with only the names and sizes of its torch ranges. It is never longer than the text; *stripped
 * has room for that. */
static int strip_numbers(fp_text text, char *out, fp_text *stripped) {
  fp_cursor list = {text.bytes, text.bytes + text.length};
  char *at = out;
  if (!fp_cursor_pass(&list, '[') && !fp_cursor_pass(&list, '(')) return 0;
  *at++ = '[';
  for (pass_blanks(&list); list.at < list.end - 1; pass_blanks(&list)) {
    const char *start = list.at;
    fp_text label;
    fp_torch_name parts;
    if (read_string(&list, &label) != FP_OK) return 0;
    fp_names_split(label.bytes, (size_t)label.length, &parts);
    if (parts.name_length && label.bytes[parts.name_length - 1] == '\\')
      return 0; /* the cut would split an escape sequence */
    size_t head = (size_t)(label.bytes - start) + parts.name_length;
    memcpy(at, start, head);
    at += head;
    if (parts.sizes_length) memcpy(at, parts.sizes, parts.sizes_length);
    at += parts.sizes_length;
    *at++ = label.bytes[-1];
    pass_blanks(&list);
    if (fp_cursor_pass(&list, ','))
      *at++ = ',';
    else if (list.at != list.end - 1)
      return 0;
  }
  *at++ = ']';
  *stripped = (fp_text){out, at - out};
  return 1;
}

static fp_status read_text(fp_dict *dict, int column, fp_cursor *line, int32_t *id) {
  fp_text text;
  fp_cursor none = *line;
  if (pass_none(&none)) {
    *line = none;
    *id = -1;
    return FP_OK;
  }
  fp_status status = pass_value(line, &text);
  if (status != FP_OK) return status;
  if (column == SEQ_MARKER) {
    status = fp_reserve(&dict->stripped, &dict->stripped_capacity, (size_t)text.length, 1);
    if (status != FP_OK) return status;
    strip_numbers(text, dict->stripped, &text);
  }
  return intern(&dict->pools[column], text, dict->line, id);
}

static fp_status read_int(fp_cursor *line, int64_t *value) {
  if (!pass_none(line)) return read_number(line, value);
  *value = -1;
  return FP_OK;
}

/* Parses a list of at most `capacity` numbers; None is an empty list. FP_MORE: it has more. */
static fp_status read_list(fp_cursor *line, int64_t *values, int64_t capacity, int64_t *n) {
  *n = 0;
  if (pass_none(line)) return FP_OK;
  char close = fp_cursor_pass(line, '[') ? ']' : ')';
  if (close == ')' && !fp_cursor_pass(line, '(')) return FP_E_SYNTAX;
  for (;;) {
    pass_blanks(line);
    if (fp_cursor_pass(line, close)) return FP_OK;
    if (*n == capacity) return FP_MORE;
    fp_status status = read_number(line, &values[*n]);
    if (status != FP_OK) return status;
    ++*n;
    pass_blanks(line);
    if (fp_cursor_pass(line, close)) return FP_OK;
    if (!fp_cursor_pass(line, ',')) return FP_E_SYNTAX;
  }
}

static fp_status read_triple(fp_cursor *line, int32_t *triple) {
  int64_t values[3] = {-1, -1, -1}, n = 3;
  fp_status status = pass_none(line) ? FP_OK : read_list(line, values, 3, &n);
  if (status == FP_MORE || (status == FP_OK && n != 3)) return FP_E_SYNTAX;
  if (status != FP_OK) return status;
  for (int i = 0; i < 3; i++) {
    if (values[i] < INT32_MIN || values[i] > INT32_MAX) return FP_E_RANGE;
    triple[i] = (int32_t)values[i];
  }
  return FP_OK;
}

static fp_status read_value(fp_dict *dict, const dict_key *key, fp_cursor *line,
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
static fp_status read_key(fp_cursor *line, const dict_key **found) {
  fp_text name;
  fp_status status = read_string(line, &name);
  if (status != FP_OK) return status;
  pass_blanks(line);
  if (!fp_cursor_pass(line, ':')) return FP_E_SYNTAX;
  pass_blanks(line);
  *found = find_key(name);
  return FP_OK;
}

/* *expected is the key that usually follows the last one. */
static fp_status read_item(fp_dict *dict, fp_cursor *line, fp_dict_columns *columns,
                           const dict_key **expected) {
  const dict_key *key = *expected;
  if (key == KEYS + N_KEYS || !pass_bytes(line, key->usual, key->usual_length)) {
    fp_status status = read_key(line, &key);
    if (status != FP_OK) return status;
  }
  fp_text ignored;
  if (!key) return pass_value(line, &ignored);
  *expected = key + 1;
  return read_value(dict, key, line, columns);
}

/* Parses one line, without its newline; it must not be blank. */
static fp_status read_row(fp_dict *dict, fp_cursor *line, fp_dict_columns *columns) {
  const dict_key *expected = KEYS;
  clear_row(columns);
  if (!fp_cursor_pass(line, '{')) return FP_E_SYNTAX;
  for (;;) {
    pass_blanks(line);
    if (fp_cursor_pass(line, '}')) break;
    fp_status status = read_item(dict, line, columns, &expected);
    if (status != FP_OK) return status;
    pass_blanks(line);
    if (fp_cursor_pass(line, ',')) continue;
    if (fp_cursor_pass(line, '}')) break;
    return FP_E_SYNTAX;
  }
  pass_blanks(line);
  return line->at == line->end ? FP_OK : FP_E_SYNTAX;
}

fp_status fp_dict_read(fp_dict *dict, const char *bytes, size_t length, int is_end,
                       fp_dict_columns *columns, size_t *used) {
  const char *end = bytes + length;
  *used = 0;
  while (*used < length) {
    const char *start = bytes + *used, *newline = memchr(start, '\n', length - *used);
    if (!newline && !is_end) return FP_OK;
    fp_cursor line = {start, newline ? newline : end};
    dict->line++;
    pass_blanks(&line);
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
