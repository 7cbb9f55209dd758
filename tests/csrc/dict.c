/* dict.c: fp_dict: complete lines, lines in pieces, truncated and damaged lines. */
#include "check.h"
#include "text/fp_dict.h"

static const char LINES[] =
    "{'kShortName': 'gemm', 'kDuration': 12, 'layer': ['a', 'b'], 'trace': [], 'reprMarkers': [], "
    "'marker': [\"{'mod': 1}\"], 'seqMarker': ['mm, seq = 7, op_id = 3, sizes = [[2], []]', 'x'], "
    "'seqId': [7, 8], 'subSeqId': 0, 'altSeqId': (9,), 'dir': 'fprop', 'mod': ['na'], "
    "'op': ['mm'], 'tid': 9223372036854775807, 'device': 0, 'stream': -9223372036854775808, "
    "'grid': (1, 2, 3), 'block': (2147483647, 1, 1), 'kLongName': 'void gemm<\\'>()'}\n"
    "\n"
    "{'stream': 4, 'unknown': {'a': [1, (2,)]}, 'tid': None, \"kLongName\": u'x', 'grid': None, "
    "'seqId': None, 'altSeqId': [1, 2, 3,], 'layer': None}\n"
    "  { }\t\r\n";
enum { N_ROWS = 3 };

static void grow(void *items, int64_t n, size_t size) {
  void **place = items;
  *place = realloc(*place, (size_t)n * size);
  CHECK(*place);
}

static void make_rows(fp_dict_columns *columns, int64_t capacity) {
  columns->capacity = capacity;
  for (int i = 0; i < FP_DICT_INTS; i++) grow(&columns->ints[i], capacity, sizeof(int64_t));
  for (int i = 0; i < FP_DICT_TRIPLES; i++)
    grow(&columns->triples[i], 3 * capacity, sizeof(int32_t));
  for (int i = 0; i < FP_DICT_TEXTS; i++) grow(&columns->texts[i], capacity, sizeof(int32_t));
  for (int i = 0; i < FP_DICT_LISTS; i++)
    grow(&columns->list_offsets[i], capacity + 1, sizeof(int64_t));
}

/* Grows by one row or number at a time, so that FP_MORE occurs at every line. */
static void make_room(fp_dict_columns *columns) {
  if (columns->rows == columns->capacity) {
    make_rows(columns, columns->capacity + 1);
    return;
  }
  for (int i = 0; i < FP_DICT_LISTS; i++)
    grow(&columns->list_values[i], ++columns->list_capacity[i], sizeof(int64_t));
}

static void free_columns(fp_dict_columns *columns) {
  for (int i = 0; i < FP_DICT_INTS; i++) free(columns->ints[i]);
  for (int i = 0; i < FP_DICT_TRIPLES; i++) free(columns->triples[i]);
  for (int i = 0; i < FP_DICT_TEXTS; i++) free(columns->texts[i]);
  for (int i = 0; i < FP_DICT_LISTS; i++) {
    free(columns->list_offsets[i]);
    free(columns->list_values[i]);
  }
}

/* Feeds bytes in blocks of `block` bytes, which grow if no complete line fits. */
static fp_status read_all(fp_dict *dict, const char *bytes, size_t length, size_t block,
                          fp_dict_columns *columns) {
  size_t at = 0, size = block;
  for (;;) {
    int is_end = length - at <= size;
    size_t n = is_end ? length - at : size, used;
    char *piece = exactly(bytes + at, n);
    fp_status status = fp_dict_read(dict, piece, n, is_end, columns, &used);
    CHECK(used <= n);
    free(piece);
    at += used;
    if (status == FP_MORE) {
      make_room(columns);
      continue;
    }
    if (status != FP_OK || is_end) return status;
    size = used ? block : size + 1;
  }
}

static void check_text(const fp_dict *dict, int key, int32_t id, const char *expected) {
  const int64_t *offsets;
  const char *bytes = fp_names_bytes(fp_dict_pool(dict, key), &offsets);
  CHECK(id >= 0 && id < fp_names_count(fp_dict_pool(dict, key)));
  CHECK((size_t)(offsets[id + 1] - offsets[id]) == strlen(expected));
  CHECK(memcmp(bytes + offsets[id], expected, strlen(expected)) == 0);
}

static int column_of(fp_dict_kind kind, const char *key) {
  int i = 0;
  while (strcmp(fp_dict_key(kind, i), key) != 0) i++;
  return i;
}

static int64_t int_at(const fp_dict_columns *columns, const char *key, int row) {
  return columns->ints[column_of(FP_DICT_INT, key)][row];
}

static void check_list(const fp_dict_columns *columns, const char *key, int row, int64_t n,
                       int64_t last) {
  int i = column_of(FP_DICT_LIST, key);
  int64_t end = columns->list_offsets[i][row + 1];
  CHECK(end - columns->list_offsets[i][row] == n);
  CHECK(n == 0 || columns->list_values[i][end - 1] == last);
}

static void check_columns(const fp_dict *dict, const fp_dict_columns *columns) {
  int seq_marker = column_of(FP_DICT_TEXT, "seqMarker"),
      name = column_of(FP_DICT_TEXT, "kLongName");
  CHECK(columns->rows == N_ROWS);
  CHECK(int_at(columns, "kDuration", 0) == 12 && int_at(columns, "kDuration", 1) == -1);
  CHECK(int_at(columns, "tid", 0) == INT64_MAX && int_at(columns, "tid", 1) == -1);
  CHECK(int_at(columns, "stream", 0) == INT64_MIN && int_at(columns, "stream", 1) == 4);
  check_list(columns, "seqId", 0, 2, 8);
  check_list(columns, "seqId", 1, 0, 0);
  check_list(columns, "altSeqId", 0, 1, 9);
  check_list(columns, "altSeqId", 1, 3, 3);
  check_list(columns, "altSeqId", 2, 0, 0);
  check_text(dict, seq_marker, columns->texts[seq_marker][0], "['mm, sizes = [[2], []]','x']");
  check_text(dict, name, columns->texts[name][0], "'void gemm<\\'>()'");
  check_text(dict, name, columns->texts[name][1], "u'x'");
  CHECK(columns->texts[name][2] == -1 && columns->triples[0][2 * 3] == -1);
  CHECK(columns->triples[column_of(FP_DICT_TRIPLE, "block")][0] == INT32_MAX);
  CHECK(fp_dict_lines(dict, name)[columns->texts[name][1]] == 3);
}

static void lines_in_any_pieces_are_the_same_rows(void) {
  for (size_t block = 1; block <= sizeof LINES; block++) {
    fp_dict *dict = fp_dict_new();
    fp_dict_columns columns = {0};
    make_rows(&columns, 1);
    CHECK(read_all(dict, LINES, sizeof LINES - 1, block, &columns) == FP_OK);
    check_columns(dict, &columns);
    CHECK(fp_dict_line(dict) == 4);
    free_columns(&columns);
    fp_dict_free(dict);
  }
}

static fp_status status_of(const char *bytes, size_t length) {
  fp_dict *dict = fp_dict_new();
  fp_dict_columns columns = {0};
  make_rows(&columns, 1);
  fp_status status = read_all(dict, bytes, length, length, &columns);
  CHECK(status == FP_OK || status == FP_E_SYNTAX || status == FP_E_RANGE);
  CHECK(fp_dict_stop(dict) >= 0 && fp_dict_stop(dict) <= (int64_t)length);
  free_columns(&columns);
  fp_dict_free(dict);
  return status;
}

static void a_line_that_is_cut_short_is_no_dict_line(void) {
  size_t line = (size_t)(strchr(LINES, '\n') - LINES);
  CHECK(status_of(LINES, 0) == FP_OK && status_of(LINES, line) == FP_OK);
  for (size_t length = 1; length < line; length++) CHECK(status_of(LINES, length) == FP_E_SYNTAX);
}

static void wrong_lines_are_refused(void) {
  static const struct {
    const char *line;
    fp_status status;
  } cases[] = {
      {"{'tid': 9223372036854775808}", FP_E_RANGE},
      {"{'tid': -9223372036854775809}", FP_E_RANGE},
      {"{'tid': 99999999999999999999999999999999}", FP_E_RANGE},
      {"{'grid': (2147483648, 1, 1)}", FP_E_RANGE},
      {"{'grid': (1, 2)}", FP_E_SYNTAX},
      {"{'grid': (1, 2, 3, 4)}", FP_E_SYNTAX},
      {"{'grid': (1, 2, 3]}", FP_E_SYNTAX},
      {"{'tid': 1.5}", FP_E_SYNTAX},
      {"{'tid': -}", FP_E_SYNTAX},
      {"{'tid': }", FP_E_SYNTAX},
      {"{'tid' 1}", FP_E_SYNTAX},
      {"{tid: 1}", FP_E_SYNTAX},
      {"{'tid': 1} x", FP_E_SYNTAX},
      {"{'tid': 1}{}", FP_E_SYNTAX},
      {"{'tid': 1 'device': 2}", FP_E_SYNTAX},
      {"{'op': }", FP_E_SYNTAX},
      {"{'op': ['a}", FP_E_SYNTAX},
      {"{'op': 'a\\'}", FP_E_SYNTAX},
      {"{'op': (]}", FP_E_SYNTAX},
      {"[]", FP_E_SYNTAX},
      {"{'seqMarker': []}", FP_OK},
      {"{'seqMarker': ()}", FP_OK},
      {"{'seqMarker': [] [}", FP_E_SYNTAX},
      {"{'seqMarker': [ 'a' , 'b' , ]}", FP_OK},
      {"{'seqMarker': ['a' 'b']}", FP_OK},
      {"{'seqMarker': ['']}", FP_OK},
      {"{,}", FP_E_SYNTAX},
      {"{'op': 'a', 'op': None, 'seqId': [1, 2], 'seqId': [3]}", FP_OK},
  };
  for (int i = 0; i < LENGTH(cases); i++)
    CHECK(status_of(cases[i].line, strlen(cases[i].line)) == cases[i].status);
}

static void damaged_lines_are_read_or_refused(void) {
  static const char bytes[] = "{}[]()'\"\\,: \n\r-+0789NonulbuaZ\0\xff";
  for (int i = 0; i < rounds(20000); i++) {
    char *lines = exactly(LINES, sizeof LINES - 1);
    for (int k = 1 + random_below(3); k > 0; k--)
      lines[random_below(LENGTH(LINES) - 1)] = bytes[random_below(LENGTH(bytes) - 1)];
    status_of(lines, sizeof LINES - 1);
    free(lines);
  }
}

static void deep_and_long_values_are_read_or_refused(void) {
  enum { LONG = 1000000 };
  char *line = ARRAY(char, LONG);
  memset(line, '[', LONG);
  memcpy(line, "{'op': ", 7);
  CHECK(status_of(line, LONG) == FP_E_SYNTAX);
  memset(line + 7, '\\', LONG - 7);
  line[7] = '\'';
  CHECK(status_of(line, LONG) == FP_E_SYNTAX);
  memset(line + 8, 'x', LONG - 8);
  memcpy(line + LONG - 2, "'}", 2);
  CHECK(status_of(line, LONG) == FP_OK);
  free(line);
}

int main(void) {
  lines_in_any_pieces_are_the_same_rows();
  a_line_that_is_cut_short_is_no_dict_line();
  wrong_lines_are_refused();
  damaged_lines_are_read_or_refused();
  deep_and_long_values_are_read_or_refused();
  CHECK(fp_dict_key(FP_DICT_INT, FP_DICT_INTS) == NULL && fp_dict_key(FP_DICT_TEXT, -1) == NULL);
  fp_dict_free(NULL);
  return 0;
}
