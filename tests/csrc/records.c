/* records.c: fp_records: lists of records in pieces, cut short, malformed and deeply nested. */
#include "check.h"
#include "text/fp_json.h"
#include "text/fp_records.h"

static const char TEXT[] =
    "{\"root\": [{\"about\": {\"a\": [1, \"}\"]}, \"other\": [[{\"x\": 1}], {}, \"s\", -1.5e3],\n"
    " \"list\": [{\"x\": 7, \"in\": {\"y\": {\"z\": 8}, \"n\": 1}, \"t\": \"\\u00e9\\\"\"},\n"
    "  {}, 5, [{\"x\": 1}], {\"t\": \"plain\", \"in\": {\"y\": 3}, \"x\": \"0x7f\"},\n"
    "  {\"x\": null, \"t\": 12, \"x\": 18446744073709551615}]},\n"
    " {\"list\": [{\"x\": \"0x8000000000000000\", \"deep\": [[{\"x\": 9}]]}], \"about\": null}]} ";
enum { RECORDS, WHOLE, TABLES, COLUMNS = 4 };

typedef struct {
  fp_records *records;
  fp_records_rows tables[TABLES];
} reader;

static void make_reader(reader *read) {
  memset(read, 0, sizeof *read);
  read->records = fp_records_new();
  CHECK(read->records);
  fp_records *to = read->records;
  CHECK(fp_records_root(to, "root") == FP_OK);
  CHECK(fp_records_add(to, "root/list", "x", RECORDS, 1, FP_RECORDS_NUMBER) == FP_OK);
  CHECK(fp_records_add(to, "root/list", "in/y/z", RECORDS, 2, FP_RECORDS_NUMBER) == FP_OK);
  CHECK(fp_records_add(to, "root/list", "t", RECORDS, 3, FP_RECORDS_TEXT) == FP_OK);
  CHECK(fp_records_add(to, "root/about", "", WHOLE, 1, FP_RECORDS_TEXT) == FP_OK);
}

/* Grows by one row at a time, so that FP_MORE occurs at every record. */
static void make_room(reader *read) {
  for (int t = 0; t < TABLES; t++) {
    fp_records_rows *table = &read->tables[t];
    if (table->rows < table->capacity) continue;
    table->capacity++;
    for (int i = 0; i < (t == RECORDS ? COLUMNS : 2); i++) {
      table->columns[i] = realloc(table->columns[i], (size_t)table->capacity * sizeof(int64_t));
      CHECK(table->columns[i]);
    }
  }
}

static void free_reader(reader *read) {
  for (int t = 0; t < TABLES; t++)
    for (int i = 0; i < COLUMNS; i++) free(read->tables[t].columns[i]);
  fp_records_free(read->records);
}

/* Feeds bytes in blocks of `block` plus the rest of the last one; sets the bytes consumed. */
static fp_status read_all(reader *read, const char *bytes, size_t length, size_t block,
                          size_t *consumed) {
  size_t at = 0, end = 0;
  fp_status status = FP_OK;
  while (end < length && status == FP_OK) {
    end = length - end < block ? length : end + block;
    do {
      size_t used;
      char *piece = exactly(bytes + at, end - at);
      status = fp_records_read(read->records, piece, end - at, read->tables, TABLES, &used);
      free(piece);
      CHECK(used <= end - at);
      at += used;
      if (status == FP_MORE) make_room(read);
    } while (status == FP_MORE);
  }
  *consumed = at;
  return status;
}

static void check_text(const reader *read, int64_t id, const char *expected) {
  const int64_t *offsets;
  const fp_names *names = fp_records_texts(read->records);
  const char *bytes = fp_names_bytes(names, &offsets);
  CHECK(id >= 0 && id < fp_names_count(names));
  CHECK((size_t)(offsets[id + 1] - offsets[id]) == strlen(expected));
  CHECK(memcmp(bytes + offsets[id], expected, strlen(expected)) == 0);
}

static void check_tables(const reader *read) {
  const int64_t none = FP_RECORDS_NONE;
  const int64_t roots[] = {0, 0, 0, 0, 0, 1};
  const int64_t numbers[] = {7, none, 1, 127, none, none};
  const fp_records_rows *rows = &read->tables[RECORDS], *whole = &read->tables[WHOLE];
  CHECK(rows->rows == LENGTH(roots) && whole->rows == 2);
  for (int i = 0; i < LENGTH(roots); i++) {
    CHECK(rows->columns[0][i] == roots[i] && rows->columns[1][i] == numbers[i]);
    CHECK(rows->columns[2][i] == (i ? none : 8));
  }
  check_text(read, rows->columns[3][0], "\xc3\xa9\"");
  check_text(read, rows->columns[3][3], "plain");
  check_text(read, rows->columns[3][4], "12");
  CHECK(rows->columns[3][1] == none && rows->columns[3][5] == none);
  check_text(read, whole->columns[1][0], "{\"a\": [1, \"}\"]}");
  check_text(read, whole->columns[1][1], "null");
  CHECK(whole->columns[0][0] == 0 && whole->columns[0][1] == 1);
}

static void a_text_in_any_pieces_is_the_same_tables(void) {
  for (size_t block = 1; block <= sizeof TEXT; block++) {
    reader read;
    size_t used;
    make_reader(&read);
    CHECK(read_all(&read, TEXT, sizeof TEXT - 1, block, &used) == FP_OK);
    CHECK(used == sizeof TEXT - 2 && fp_records_is_whole(read.records));
    check_tables(&read);
    free_reader(&read);
  }
}

static void a_text_that_is_cut_short_gives_the_records_before(void) {
  int64_t before = 0;
  for (size_t length = 0; length < sizeof TEXT - 2; length++) {
    reader read;
    size_t used;
    make_reader(&read);
    CHECK(read_all(&read, TEXT, length, length + 1, &used) == FP_OK);
    CHECK(used <= length && !fp_records_is_whole(read.records));
    const int64_t n = read.tables[RECORDS].rows;
    CHECK(n >= before && n - before <= 1);
    before = n;
    free_reader(&read);
  }
  CHECK(before == 6);
}

static void malformed_texts_end_the_reading(void) {
  static const char *wrong[] = {
      "{\"x\" 1}",    "{\"x\": }",
      "{\"x\": 1,}",  "{\"x\": 1 \"t\": 2}",
      "{x: 1}",       "{\"in\": {\"y\"}}",
      "{\"x\": [1}}", "{,}",
      "] ]",          "} ",
      "{\"x\": 1]",   "@",
      "{\"x\": 1} 4", "{\"in\": {\"y\": {,}}}",
  };
  for (int i = 0; i < LENGTH(wrong); i++) {
    for (size_t block = 1; block <= 90; block += 89) {
      char text[200];
      reader read;
      size_t used;
      make_reader(&read);
      snprintf(text, sizeof text, "{\"root\": [{\"list\": [{\"x\": 1}, %s, {\"x\": 2}]}]}",
               wrong[i]);
      CHECK(read_all(&read, text, strlen(text), block, &used) == FP_E_SYNTAX);
      CHECK(read.tables[RECORDS].rows >= 1 && !fp_records_is_whole(read.records));
      CHECK(read.tables[RECORDS].columns[1][0] == 1);
      free_reader(&read);
    }
  }
}

/* The status of a text of n opening brackets after a beginning. */
static fp_status nested(const char *begin, const char *bracket, int n) {
  const size_t size = strlen(bracket);
  char *text = malloc(strlen(begin) + size * (size_t)n + 1);
  CHECK(text);
  char *at = text + sprintf(text, "%s", begin);
  for (int i = 0; i < n; i++) at += sprintf(at, "%s", bracket);
  reader read;
  size_t used;
  make_reader(&read);
  const fp_status status = read_all(&read, text, (size_t)(at - text), SIZE_MAX / 2, &used);
  free_reader(&read);
  free(text);
  return status;
}

static void deep_nesting_is_an_error_and_no_crash(void) {
  CHECK(nested("", "[", FP_JSON_DEPTH) == FP_OK);
  CHECK(nested("", "[", FP_JSON_DEPTH + 1) == FP_E_SYNTAX);
  CHECK(nested("", "{\"a\":", FP_JSON_DEPTH + 1) == FP_E_SYNTAX);
  CHECK(nested("{\"root\": [{\"list\": [{\"q\": ", "[", 100000) == FP_E_SYNTAX);
  CHECK(nested("{\"root\": [{\"list\": [{\"in\": ", "{\"y\": ", 100000) == FP_E_SYNTAX);
}

static void a_text_that_is_no_object_or_list_is_an_error(void) {
  static const char *wrong[] = {"1", "\"a\"", "}", "nul", ","};
  for (int i = 0; i < LENGTH(wrong); i++) {
    reader read;
    size_t used;
    make_reader(&read);
    CHECK(read_all(&read, wrong[i], strlen(wrong[i]), 9, &used) == FP_E_SYNTAX && used == 0);
    free_reader(&read);
  }
}

int main(void) {
  a_text_in_any_pieces_is_the_same_tables();
  a_text_that_is_cut_short_gives_the_records_before();
  malformed_texts_end_the_reading();
  deep_nesting_is_an_error_and_no_crash();
  a_text_that_is_no_object_or_list_is_an_error();
  return 0;
}
