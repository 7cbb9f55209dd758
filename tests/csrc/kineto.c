/* kineto.c: fp_kineto, fp_json, fp_decimal: traces in pieces, truncated and damaged traces. */
#include "check.h"
#include "kineto/fp_kineto.h"
#include "text/fp_json.h"

static const char TRACE[] =
    "\xef\xbb\xbf{\"schemaVersion\": 1, \"deviceProperties\": [{\"id\": 0, \"name\": \"V[}\"}],\n"
    "\"traceEvents\": [\n"
    "{\"ph\": \"X\", \"cat\": \"Kernel\", \"name\": \"k\\u00e9\\ud83d\\ude00\\\"\", \"pid\": 0,\n"
    " \"tid\": \"stream 7\", \"ts\": 1661938466265032.5, \"dur\": \"0.0005\", \"args\": {\n"
    "  \"External id\": \"12\", \"grid\": [110, 1, 2147483647], \"block\": [1, 2], \"stream\": 7,\n"
    "  \"correlation\": 9223372036854775807, \"registers per thread\": 2147483648}},\n"
    "{\"name\": \"aten::mm\", \"args\": {\"Input Dims\": [[2, 3], []], \"Input type\": [\"]\"],\n"
    "  \"dtype\": \"Float\", \"Rank\": 1, \"grid\": \"g\", \"kernel_hash\": \"h\"}, \"dur\": -1,\n"
    " \"ph\": \"X\", \"cat\": \"cpu_op\", \"ts\": 1e3, \"pid\": -9223372036854775807, \"tid\": "
    "5},\n"
    "{\"ph\": \"s\", \"cat\": \"fwdbwd\", \"id\": 71, \"ts\": 1, \"pid\": 1, \"tid\": 1}, {},\n"
    "{\"ph\": \"i\", \"name\": \"[memory]\", \"args\": {\"Bytes\": -8, \"Addr\": 1, \"x\": {}}},\n"
    "{\"ph\": \"M\", \"name\": \"process_name\", \"pid\": 3, \"args\": {\"name\": \"python\"}}\n"
    "], \"displayTimeUnit\": \"ms\", \"n\": NaN}\n ";
enum { MOST_ROWS = 64 };

typedef struct {
  fp_kineto *kineto;
  fp_kineto_rows tables[FP_KINETO_TABLES];
} reader;

/* Grows by one row at a time, so that FP_MORE occurs at every event. */
static void make_room(reader *read) {
  for (int t = 0; t < FP_KINETO_TABLES; t++) {
    fp_kineto_rows *table = &read->tables[t];
    fp_kineto_type type;
    if (table->rows < table->capacity) continue;
    table->capacity++;
    for (int i = 0; fp_kineto_column(t, i, &type); i++) {
      size_t size = type == FP_KINETO_INT64 ? 8 : type == FP_KINETO_INT32 ? 4 : 12;
      table->columns[i] = realloc(table->columns[i], (size_t)table->capacity * size);
      CHECK(table->columns[i]);
    }
  }
}

static void make_reader(reader *read) {
  memset(read, 0, sizeof *read);
  read->kineto = fp_kineto_new();
  CHECK(read->kineto);
}

static void free_reader(reader *read) {
  for (int t = 0; t < FP_KINETO_TABLES; t++)
    for (int i = 0; i < FP_KINETO_COLUMNS; i++) free(read->tables[t].columns[i]);
  fp_kineto_free(read->kineto);
}

/* Feeds bytes in blocks of `block` plus the rest of the last one; returns the bytes consumed. */
static size_t read_all(reader *read, const char *bytes, size_t length, size_t block) {
  size_t at = 0, end = 0;
  while (end < length) {
    end = length - end < block ? length : end + block;
    fp_status status = FP_MORE;
    while (status == FP_MORE) {
      size_t used;
      char *piece = exactly(bytes + at, end - at);
      status = fp_kineto_read(read->kineto, piece, end - at, read->tables, &used);
      free(piece);
      CHECK(used <= end - at);
      at += used;
      if (status == FP_MORE) make_room(read);
    }
    CHECK(status == FP_OK);
  }
  return at;
}

static int64_t wide(const reader *read, int table, const char *name, int row) {
  fp_kineto_type type;
  int i = 0;
  CHECK(row < read->tables[table].rows);
  while (strcmp(fp_kineto_column(table, i, &type), name) != 0) i++;
  if (type == FP_KINETO_INT64) return ((int64_t *)read->tables[table].columns[i])[row];
  return ((int32_t *)read->tables[table].columns[i])[(type == FP_KINETO_TRIPLE ? 3 : 1) * row];
}

static void check_text(const reader *read, int pool, int64_t id, const char *expected) {
  const int64_t *offsets;
  const fp_names *names = fp_kineto_texts_of(read->kineto, pool);
  const char *bytes = fp_names_bytes(names, &offsets);
  CHECK(id >= 0 && id < fp_names_count(names));
  CHECK((size_t)(offsets[id + 1] - offsets[id]) == strlen(expected));
  CHECK(memcmp(bytes + offsets[id], expected, strlen(expected)) == 0);
}

static void check_tables(const reader *read) {
  static const char label[] =
      "aten::mm\x1f[[2, 3], []]\x1f[\"]\"]\x1f\x1f\x1f\"dtype\":\"Float\",\"Rank\":1\x1f"
      "\"grid\":\"g\",\"kernel_hash\":\"h\"";
  int64_t tid = wide(read, FP_KINETO_GPU, "tid", 0), bytes;
  int has_events;
  check_text(read, FP_KINETO_NAMES, wide(read, FP_KINETO_GPU, "name", 0),
             "k\xc3\xa9\xf0\x9f\x98\x80\"");
  check_text(read, FP_KINETO_PLACES, FP_KINETO_TEXT_PLACE - tid, "stream 7");
  CHECK(wide(read, FP_KINETO_GPU, "start", 0) == 1661938466265032500);
  CHECK(wide(read, FP_KINETO_GPU, "duration", 0) == 1);
  CHECK(wide(read, FP_KINETO_GPU, "external_id", 0) == 12);
  CHECK(wide(read, FP_KINETO_GPU, "correlation", 0) == INT64_MAX);
  CHECK(wide(read, FP_KINETO_GPU, "registers", 0) == -1);
  CHECK(wide(read, FP_KINETO_GPU, "grid", 0) == 110 && wide(read, FP_KINETO_GPU, "block", 0) == -1);
  check_text(read, FP_KINETO_LABELS, wide(read, FP_KINETO_RANGES, "label", 0), label);
  CHECK(wide(read, FP_KINETO_RANGES, "start", 0) == 1000000);
  CHECK(wide(read, FP_KINETO_RANGES, "duration", 0) == -1000);
  CHECK(wide(read, FP_KINETO_RANGES, "pid", 0) < FP_KINETO_TEXT_PLACE);
  CHECK(wide(read, FP_KINETO_FLOWS, "phase", 0) == 's');
  CHECK(wide(read, FP_KINETO_MEMORY, "bytes", 0) == -8);
  CHECK(wide(read, FP_KINETO_MEMORY, "time", 0) == FP_KINETO_NONE);
  check_text(read, FP_KINETO_NAMES, wide(read, FP_KINETO_METADATA, "value", 0), "python");
  check_text(read, FP_KINETO_ROOT, 2, "\"displayTimeUnit\": \"ms\"");
  CHECK(fp_names_count(fp_kineto_texts_of(read->kineto, FP_KINETO_ROOT)) == 4);
  CHECK(fp_kineto_state(read->kineto, &has_events) == FP_KINETO_WHOLE && has_events);
  CHECK(fp_kineto_lost(read->kineto, &bytes) == 0 && bytes == 0);
}

static void a_trace_in_any_pieces_is_the_same_tables(void) {
  for (size_t block = 1; block <= sizeof TRACE; block++) {
    reader read;
    make_reader(&read);
    CHECK(read_all(&read, TRACE, sizeof TRACE - 1, block) == strlen(TRACE) - 2);
    check_tables(&read);
    free_reader(&read);
  }
}

static int64_t n_events(const reader *read) {
  int32_t phase, category;
  int64_t n, sum = 0;
  for (int32_t i = 0; (n = fp_kineto_count(read->kineto, i, &phase, &category)); i++) sum += n;
  return sum;
}

/* Returns the number of events read, and in *lost the number of events skipped. */
static int64_t events_of(const char *text, size_t length, size_t block, int64_t *lost) {
  reader read;
  int64_t bytes;
  make_reader(&read);
  CHECK(read_all(&read, text, length, block) <= length);
  int64_t n = n_events(&read), rows = 0;
  *lost = fp_kineto_lost(read.kineto, &bytes);
  CHECK(bytes >= 0 && bytes <= (int64_t)length);
  for (int t = 0; t < FP_KINETO_TABLES; t++) rows += read.tables[t].rows;
  CHECK(rows <= n);
  free_reader(&read);
  return n;
}

static void a_trace_that_is_cut_short_gives_the_events_before(void) {
  int64_t before = 0, lost;
  for (size_t length = 0; length < sizeof TRACE; length++) {
    int64_t n = events_of(TRACE, length, length + 1, &lost);
    CHECK(lost == 0 && n - before <= 1 && n >= before);
    before = n;
  }
  CHECK(before == 6);
}

static void malformed_events_are_left_out(void) {
  static const char *wrong[] = {
      "{\"ph\": \"X\", \"name\": \"a\"b\"}",
      "{\"ph\": \"X\", \"name\": \"a\"b\", \"c\": \"{\"}",
      "{\"ph\": \"X\" \"name\": 1}",
      "{\"ph\": }",
      "{\"ph\": \"X\", \"args\": {\"a\": [1}}}",
      "{\"ph\": \"X\", \"name\": \"a}",
      "{ph: 1}",
      "{\"ph\": \"X\", \"args\": {\"a\": 1}",
      "17",
      "\"x\"",
      "[{\"ph\": \"X\"}]",
      "@",
      "{\"ph\": \"X\", @}",
      "{\"ph\" \"X\"}",
      "{\"a\": [{\"b\": 1}] ! {\"b\": 2}}",
      "nul",
  };
  for (int i = 0; i < LENGTH(wrong); i++) {
    char text[400];
    int64_t lost;
    snprintf(text, sizeof text, "[{\"ph\": \"X\"}, {\"ph\": \"f\"}, %s,\n{\"ph\": \"s\"},%s]",
             wrong[i], "{\"ph\": \"t\"}");
    int64_t n = events_of(text, strlen(text), 7, &lost);
    CHECK(n == 4 && lost == 1);
  }
}

static void bare_quotes_are_a_part_of_the_name(void) {
  static const char *names[] = {"say \"hi\"", "{'a': \"it's\"}]}", "{'a': 'b\"c'}]}", "\"",
                                "x\", y"};
  for (int i = 0; i < LENGTH(names); i++) {
    char text[400];
    snprintf(text, sizeof text, "%s%s%s", "{\"traceEvents\": [{\"ph\": \"X\", \"name\": \"",
             names[i], "\", \"cat\": \"kernel\"}, {\"ph\": \"X\"}]}");
    for (size_t block = 1; block <= strlen(text); block++) {
      reader read;
      int64_t bytes;
      make_reader(&read);
      CHECK(read_all(&read, text, strlen(text), block) == strlen(text));
      CHECK(n_events(&read) == 2 && fp_kineto_lost(read.kineto, &bytes) == 0);
      check_text(&read, FP_KINETO_NAMES, wide(&read, FP_KINETO_GPU, "name", 0), names[i]);
      free_reader(&read);
    }
  }
}

static void damaged_traces_are_read_as_far_as_they_go(void) {
  static const char bytes[] = "{}[]'\"\\,: \n-+.0789eNul\0\xff\x1f";
  int64_t lost;
  for (int i = 0; i < rounds(20000); i++) {
    char *text = exactly(TRACE, sizeof TRACE - 1);
    for (int k = 1 + random_below(3); k > 0; k--)
      text[random_below(LENGTH(TRACE) - 1)] = bytes[random_below(LENGTH(bytes) - 1)];
    CHECK(events_of(text, sizeof TRACE - 1, 1 + (size_t)random_below(2000), &lost) <= MOST_ROWS);
    free(text);
  }
}

static void deep_and_long_values_are_read_or_left_out(void) {
  enum { LONG = 1 << 20 };
  char *text = ARRAY(char, LONG);
  int64_t lost;
  memset(text, '[', LONG);
  memcpy(text, "[{\"ph\":", 7);
  CHECK(events_of(text, LONG, LONG, &lost) == 0);
  memset(text + 7, 'x', LONG - 7);
  text[7] = '"';
  memcpy(text + LONG - 3, "\"}]", 3);
  CHECK(events_of(text, LONG, LONG, &lost) == 1);
  memset(text + 8, '\\', LONG - 12); /* an odd number: the last escapes the quote */
  text[LONG - 4] = '\\';
  CHECK(events_of(text, LONG, LONG, &lost) <= 1);
  free(text);
}

static void other_roots_are_told(void) {
  static const struct {
    const char *text;
    fp_kineto_progress state;
    int has_events;
  } cases[] = {
      {"", FP_KINETO_READING, 0},
      {" ", FP_KINETO_READING, 0},
      {"\xef\xbb", FP_KINETO_READING, 0},
      {"[]", FP_KINETO_WHOLE, 1},
      {"{}", FP_KINETO_WHOLE, 0},
      {"x", FP_KINETO_NO_TRACE, 0},
      {"{\"traceEvents\": null}", FP_KINETO_WHOLE, 0},
      {"{\"traceEvents\": [", FP_KINETO_READING, 1},
      {"{\"a\": \\, \"traceEvents\": []}", FP_KINETO_WHOLE, 1},
      {"{\"a\": \\, \"b\": []}", FP_KINETO_READING, 0},
      {"{\"traceEvents\": [], \"traceEvents\": [],}", FP_KINETO_WHOLE, 1},
  };
  for (int i = 0; i < LENGTH(cases); i++) {
    reader read;
    int has_events;
    make_reader(&read);
    read_all(&read, cases[i].text, strlen(cases[i].text), 1);
    CHECK(fp_kineto_state(read.kineto, &has_events) == cases[i].state);
    CHECK(has_events == cases[i].has_events);
    free_reader(&read);
  }
}

static void decimals_are_exact(void) {
  static const struct {
    const char *text;
    int shift;
    fp_status status;
    int64_t value;
  } cases[] = {
      {"0", 3, FP_OK, 0},
      {" -1.5\n", 3, FP_OK, -1500},
      {"1712195495519689.0625", 3, FP_OK, 1712195495519689063},
      {"1712195495519689.0624999", 3, FP_OK, 1712195495519689062},
      {"-0.0005", 3, FP_OK, -1},
      {"0.00049999999999999999999999", 3, FP_OK, 0},
      {"9223372036854775.807", 3, FP_OK, INT64_MAX},
      {"9223372036854775.8075", 3, FP_E_RANGE, 0},
      {"9223372036854775.80749", 3, FP_OK, INT64_MAX},
      {"-9223372036854775808", 0, FP_E_RANGE, 0},
      {"-9223372036854775807", 0, FP_OK, -INT64_MAX},
      {"1234567890123456789.5", 0, FP_OK, 1234567890123456790},
      {"12345678901234567890", 0, FP_E_RANGE, 0},
      {"0000000000000000000000000001", 0, FP_OK, 1},
      {"0.000000000000000000000001e24", 0, FP_OK, 1},
      {"1.5E+3", 0, FP_OK, 1500},
      {"15e-1", 0, FP_OK, 2},
      {"1e99999999999999999999", 0, FP_E_RANGE, 0},
      {"1e-99999999999999999999", 0, FP_OK, 0},
      {"9e-19", 0, FP_OK, 0},
      {"6e-20", 0, FP_OK, 0},
      {"", 0, FP_E_SYNTAX, 0},
      {"-", 0, FP_E_SYNTAX, 0},
      {".", 0, FP_E_SYNTAX, 0},
      {"1e", 0, FP_E_SYNTAX, 0},
      {"1e+", 0, FP_E_SYNTAX, 0},
      {"1.2.3", 0, FP_E_SYNTAX, 0},
      {"NaN", 0, FP_E_SYNTAX, 0},
      {"0x10", 0, FP_E_SYNTAX, 0},
  };
  for (int i = 0; i < LENGTH(cases); i++) {
    size_t length = strlen(cases[i].text);
    char *text = exactly(cases[i].text, length);
    int64_t value = 0;
    CHECK(fp_decimal_read(text, (int64_t)length, cases[i].shift, &value) == cases[i].status);
    CHECK(value == cases[i].value);
    free(text);
  }
}

static void escapes_become_utf8(void) {
  static const struct {
    const char *escaped, *plain;
  } cases[] = {
      {"\\\"\\\\\\/\\b\\f\\n\\r\\t", "\"\\/\b\f\n\r\t"},
      {"\\u0041\\u00e9\\u20AC\\uD83D\\uDE00", "A\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80"},
      {"\\ud83d", "\xef\xbf\xbd"},
      {"\\ud83dx", "\xef\xbf\xbdx"},
      {"\\ud83d\\u0041", "\xef\xbf\xbd\x41"},
      {"\\ude00\\ud83d", "\xef\xbf\xbd\xef\xbf\xbd"},
      {"\\u12", "\\u12"},
      {"\\uzzzz", "\\uzzzz"},
      {"C:\\Users", "C:\\Users"},
      {"x\\", "x\\"},
  };
  for (int i = 0; i < LENGTH(cases); i++) {
    size_t length = strlen(cases[i].escaped);
    char *text = exactly(cases[i].escaped, length), *out = ARRAY(char, (int64_t)length);
    fp_json_value string = {text, (int64_t)length, FP_JSON_STRING, 1};
    CHECK(fp_json_unescape(&string, out) == (int64_t)strlen(cases[i].plain));
    CHECK(memcmp(out, cases[i].plain, strlen(cases[i].plain)) == 0);
    free(text);
    free(out);
  }
}

static void categories_have_one_meaning(void) {
  CHECK(fp_kineto_classify("KERNEL", 6).table == FP_KINETO_GPU);
  CHECK(fp_kineto_classify("gpu_memset", 10).kind == 2);
  CHECK(fp_kineto_classify("kernel\0x", 8).table == -1);
  CHECK(fp_kineto_classify("kerne", 5).table == -1);
  CHECK(fp_kineto_classify("", 0).table == -1);
}

int main(void) {
  fp_kineto_type type;
  a_trace_in_any_pieces_is_the_same_tables();
  a_trace_that_is_cut_short_gives_the_events_before();
  malformed_events_are_left_out();
  bare_quotes_are_a_part_of_the_name();
  damaged_traces_are_read_as_far_as_they_go();
  deep_and_long_values_are_read_or_left_out();
  other_roots_are_told();
  decimals_are_exact();
  escapes_become_utf8();
  categories_have_one_meaning();
  CHECK(fp_kineto_column(FP_KINETO_TABLES, 0, &type) == NULL);
  CHECK(fp_kineto_column(FP_KINETO_GPU, FP_KINETO_COLUMNS, &type) == NULL);
  CHECK(fp_kineto_column(FP_KINETO_GPU, -1, &type) == NULL);
  fp_kineto_free(NULL);
  return 0;
}
