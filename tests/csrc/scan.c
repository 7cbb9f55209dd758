/* scan.c: fp_scan over rows of a fake SQLite: NULL, extreme numbers, errors between rows. */
#include "check.h"
#include "fake_sqlite.h"
#include "scan/fp_scan.h"

static const cell ROWS[][FAKE_COLUMNS] = {
    {INT(INT64_MIN), INT(INT32_MIN), TEXT("mm, seq = 7, op_id = 9"), INT(5 << 24)},
    {INT(INT64_MAX), INT(INT32_MAX), TEXT("mm, seq = 8, op_id = 1"), INT((5 << 24) + 3)},
    {NOTHING, NOTHING, NOTHING, NOTHING},
    {INT(0), INT(0), TEXT(""), INT(0)},
    {INT(1), INT(-1), TEXT("a\0b, sizes = [[2]]"), INT(-1)},
};
enum { N = LENGTH(ROWS) };

typedef struct {
  fp_keys *keys;
  fp_names *names;
  int64_t wide[N], seq[N], op_id[N];
  int32_t narrow[N], label[N], process[N];
  fp_column columns[FAKE_COLUMNS];
  fp_together together;
  int64_t kept, stepped;
} target;

static void init(target *out) {
  memset(out, 0, sizeof *out);
  out->keys = fp_keys_new();
  out->names = fp_names_new();
  out->columns[0] = (fp_column){.kind = FP_COLUMN_I64, .none = -7, .out = out->wide};
  out->columns[1] = (fp_column){.kind = FP_COLUMN_I32, .none = -8, .out = out->narrow};
  out->columns[2] = (fp_column){.kind = FP_COLUMN_RANGE,
                                .none = -1,
                                .names = out->names,
                                .out = out->label,
                                .seq = out->seq,
                                .op_id = out->op_id};
  out->columns[3] = (fp_column){
      .kind = FP_COLUMN_KEY, .none = -9, .shift = 24, .keys = out->keys, .out = out->process};
  for (int i = 0; i < FAKE_COLUMNS; i++) out->columns[i].may_be_null = 1;
}

static void done(target *out) {
  fp_keys_free(out->keys);
  fp_names_free(out->names);
}

static const fp_row_filter ALL = {NULL, NULL, 0};

static void test_messages(void) {
  static const struct {
    const char *json, *message; /* NULL for none */
  } all[] = {
      {"{\"message\": \"mm, seq = 7\"}", "mm, seq = 7"},
      {"{ \"a\" : [1, {\"message\": 2}], \"message\":\"x\" , \"b\": 1}", "x"},
      {"{\"message\": \"\\\"\\u00e9\\n\"}", "\"\xc3\xa9\n"},
      {"{\"message\": \"\"}", ""},
      {"{\"a\": {\"message\": \"x\"}}", NULL},
      {"{\"message\": 5}", NULL},
      {"{\"message\": \"x", NULL},
      {"{\"message\"", NULL},
      {"{", NULL},
      {"{}", NULL},
      {"", NULL},
      {"[\"message\"]", NULL},
      {"{\"a\": 1", NULL},
  };
  fp_scratch scratch = {NULL, 0};
  for (size_t i = 0; i < LENGTH(all); i++) {
    fp_text message;
    const size_t length = strlen(all[i].json);
    char *text = malloc(length + !length); /* of this size, so that sanitizers see its end */
    memcpy(text, all[i].json, length);
    CHECK(fp_column_message(&scratch, text, length, &message) == FP_OK);
    CHECK(!message.bytes == !all[i].message);
    if (message.bytes) {
      CHECK((size_t)message.length == strlen(all[i].message));
      CHECK(memcmp(message.bytes, all[i].message, (size_t)message.length) == 0);
    }
    free(text);
  }
  free(scratch.bytes);
}

static struct sqlite3 database(const cell (*rows)[FAKE_COLUMNS], int n_rows, int result) {
  return (struct sqlite3){.statement = {.rows = rows, .n_rows = n_rows, .result = result}};
}

static fp_status step(fp_scan *scan, target *out, fp_row_filter filter, int64_t limit,
                      int64_t capacity) {
  fp_columns columns = {.each = out->columns, .n = FAKE_COLUMNS, .together = out->together};
  return fp_scan_step(scan, &columns, filter, limit, capacity, &out->kept, &out->stepped);
}

static void check_label(const target *out, int row, const char *label, size_t length, int64_t seq,
                        int64_t op_id) {
  const int64_t *offsets;
  const char *bytes = fp_names_bytes(out->names, &offsets);
  int64_t start = offsets[out->label[row]];
  CHECK((size_t)(offsets[out->label[row] + 1] - start) == length);
  CHECK(memcmp(bytes + start, label, length) == 0);
  CHECK(out->seq[row] == seq && out->op_id[row] == op_id);
}

static void check_all_rows(const target *out) {
  CHECK(out->kept == N && out->stepped == N);
  CHECK(out->wide[0] == INT64_MIN && out->wide[1] == INT64_MAX && out->wide[2] == -7);
  CHECK(out->narrow[0] == INT32_MIN && out->narrow[1] == INT32_MAX && out->narrow[2] == -8);
  CHECK(out->wide[3] == 0 && out->narrow[3] == 0);
  check_label(out, 0, "\1mm", 3, 7, 9);
  CHECK(out->label[1] == out->label[0] && out->seq[1] == 8 && out->op_id[1] == 1);
  CHECK(out->label[2] == -1 && out->seq[2] == -1 && out->op_id[2] == -1);
  check_label(out, 3, "", 0, -1, -1);
  check_label(out, 4, "\1a\0b, sizes = [[2]]", 19, -1, -1);
  CHECK(out->process[0] == 0 && out->process[1] == 0 && out->process[2] == -1);
  CHECK(fp_keys_values(out->keys)[out->process[3]] == 0);
  CHECK(fp_keys_values(out->keys)[out->process[4]] == -1);
}

static void rows_fill_columns_in_steps_of_any_size(void) {
  for (int64_t limit = 1; limit <= N + 1; limit++) {
    struct sqlite3 db = database(ROWS, N, FP_SQLITE_DONE);
    fp_scan *scan = fp_scan_new(&FAKE_API, &db, "SELECT");
    target out;
    fp_status status;
    init(&out);
    while ((status = step(scan, &out, ALL, limit, N)) == FP_MORE && out.kept < N)
      CHECK(out.stepped % limit == 0);
    CHECK(status == (limit > N ? FP_MORE : status));
    check_all_rows(&out);
    CHECK(step(scan, &out, ALL, limit, N) == FP_MORE);
    CHECK(step(scan, &out, ALL, limit, N + 1) == FP_OK);
    check_all_rows(&out);
    fp_scan_free(scan);
    CHECK(db.n_open == 0);
    done(&out);
  }
}

/* Rows 0 and 2 have equal first columns and processes. */
static void numbers_of_rows_that_are_alike_are_kept_once(void) {
  static const cell rows[][FAKE_COLUMNS] = {
      {INT(INT64_MIN), NOTHING, TEXT("a"), INT(5 << 24)},
      {INT(INT64_MIN), INT(8), TEXT("b"), INT(5 << 24)},
      {INT(INT64_MIN), INT(-8), TEXT("c"), INT((5 << 24) + 1)},
      {INT(0), INT(-8), TEXT("d"), INT(5 << 24)},
  };
  static const int32_t expected[] = {0, 1, 0, 2};
  struct sqlite3 db = database(rows, LENGTH(rows), FP_SQLITE_DONE);
  fp_scan *scan = fp_scan_new(&FAKE_API, &db, "SELECT");
  struct {
    int64_t wide;
    int32_t narrow, process;
  } parts;
  int32_t alike[LENGTH(rows)];
  fp_names *pool = fp_names_new();
  target out;
  init(&out);
  CHECK(pool && scan);
  void *places[] = {&parts.wide, &parts.narrow, NULL, &parts.process};
  for (int i = 0; i < FAKE_COLUMNS; i++) {
    out.columns[i].is_part = places[i] != NULL;
    if (places[i]) out.columns[i].out = places[i];
  }
  out.together = (fp_together){pool, (const char *)&parts, sizeof parts, alike};
  CHECK(step(scan, &out, ALL, 100, N) == FP_OK && out.kept == LENGTH(rows));
  for (int i = 0; i < out.kept; i++) CHECK(alike[i] == expected[i] && out.label[i] == i);
  const int64_t *offsets;
  const char *bytes = fp_names_bytes(pool, &offsets);
  CHECK(fp_names_count(pool) == 3 && offsets[3] == 3 * sizeof parts);
  memcpy(&parts, bytes + offsets[1], sizeof parts);
  CHECK(parts.wide == INT64_MIN && parts.narrow == 8 && parts.process == 0);
  fp_scan_free(scan);
  fp_names_free(pool);
  done(&out);
}

static void a_full_column_is_not_written_past(void) {
  struct sqlite3 db = database(ROWS, N, FP_SQLITE_DONE);
  fp_scan *scan = fp_scan_new(&FAKE_API, &db, "SELECT");
  target out;
  init(&out);
  CHECK(step(scan, &out, ALL, 100, 0) == FP_MORE && out.stepped == 0);
  CHECK(step(scan, &out, ALL, 100, 2) == FP_MORE && out.kept == 2 && out.stepped == 2);
  CHECK(out.wide[2] == 0 && out.seq[2] == 0);
  CHECK(step(scan, &out, ALL, 0, N) == FP_MORE && out.kept == 2);
  fp_scan_free(scan);
  done(&out);
}

static int keep_positive(const void *state, const int64_t *values) {
  ++*(int64_t *)(uintptr_t)state;
  return values[0] > 0 && values[1] != 5;
}

static void rows_that_the_filter_leaves_out_take_no_room(void) {
  int64_t asked = 0;
  struct sqlite3 db = database(ROWS, N, FP_SQLITE_DONE);
  fp_scan *scan = fp_scan_new(&FAKE_API, &db, "SELECT");
  fp_row_filter filter = {keep_positive, &asked, 2};
  target out;
  init(&out);
  CHECK(step(scan, &out, filter, 100, N) == FP_OK);
  CHECK(asked == N && out.stepped == N && out.kept == 2);
  CHECK(out.wide[0] == INT64_MAX && out.wide[1] == 1 && out.seq[0] == 8);
  CHECK(fp_names_count(out.names) == 2);
  fp_scan_free(scan);
  done(&out);
}

static void an_error_in_the_middle_ends_the_scan(void) {
  for (int n = 0; n < N; n++) {
    struct sqlite3 db = database(ROWS, n, 11);
    fp_scan *scan = fp_scan_new(&FAKE_API, &db, "SELECT");
    target out;
    init(&out);
    CHECK(step(scan, &out, ALL, 100, N) == FP_E_SQLITE);
    CHECK(out.kept == n && out.stepped == n);
    fp_scan_free(scan);
    done(&out);
  }
}

static fp_status status_of_row(const cell (*row)[FAKE_COLUMNS]) {
  struct sqlite3 db = database(row, 1, FP_SQLITE_DONE);
  fp_scan *scan = fp_scan_new(&FAKE_API, &db, "SELECT");
  target out;
  init(&out);
  fp_status status = step(scan, &out, ALL, 100, N);
  CHECK(out.kept == (status == FP_OK));
  fp_scan_free(scan);
  done(&out);
  return status;
}

static void numbers_that_do_not_fit_are_refused(void) {
  static const cell high[1][FAKE_COLUMNS] = {{INT(0), INT(INT32_MAX + 1LL), TEXT(""), INT(0)}};
  static const cell low[1][FAKE_COLUMNS] = {{INT(0), INT(INT32_MIN - 1LL), TEXT(""), INT(0)}};
  static const cell fits[1][FAKE_COLUMNS] = {{INT(0), INT(0), TEXT(""), INT(INT64_MIN)}};
  CHECK(status_of_row(high) == FP_E_RANGE);
  CHECK(status_of_row(low) == FP_E_RANGE);
  CHECK(status_of_row(fits) == FP_OK);
}

static void a_text_that_sqlite_had_no_memory_for_is_not_none(void) {
  static const cell row[1][FAKE_COLUMNS] = {{INT(0), INT(0), {CELL_NO_MEMORY, 0, NULL, 0}, INT(0)}};
  CHECK(status_of_row(row) == FP_E_MEMORY);
}

static void what_cannot_be_prepared_is_no_scan(void) {
  struct sqlite3 db = database(ROWS, N, FP_SQLITE_DONE);
  CHECK(!fp_scan_new(&FAKE_API, &db, ""));
  db.refuses = 1;
  CHECK(!fp_scan_new(&FAKE_API, &db, "SELECT"));
  CHECK(db.n_open == 0);
  fp_scan_free(NULL);
}

static void too_many_columns_are_refused(void) {
  struct sqlite3 db = database(ROWS, N, FP_SQLITE_DONE);
  fp_scan *scan = fp_scan_new(&FAKE_API, &db, "SELECT");
  int64_t kept = 0, stepped = 0;
  fp_columns columns = {.n = FP_MAX_COLUMNS + 1};
  CHECK(fp_scan_step(scan, &columns, ALL, 1, 1, &kept, &stepped) == FP_E_TOO_MANY);
  CHECK(kept == 0 && stepped == 0);
  fp_scan_free(scan);
}

int main(void) {
  test_messages();
  rows_fill_columns_in_steps_of_any_size();
  numbers_of_rows_that_are_alike_are_kept_once();
  a_full_column_is_not_written_past();
  rows_that_the_filter_leaves_out_take_no_room();
  an_error_in_the_middle_ends_the_scan();
  numbers_that_do_not_fit_are_refused();
  a_text_that_sqlite_had_no_memory_for_is_not_none();
  what_cannot_be_prepared_is_no_scan();
  too_many_columns_are_refused();
  return 0;
}
