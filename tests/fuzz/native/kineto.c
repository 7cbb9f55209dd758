/* kineto.c: any text -> the events of a trace; of JSON, cut off or not, the same in whatever
 * blocks. Where an event ends that has a quote too many, and where the next one starts, is a guess,
 * made with what text there is. */
#include "check.h"
#include "kineto/fp_kineto.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static size_t size_of(int table, int column) {
  fp_kineto_type type;
  if (!fp_kineto_column(table, column, &type)) return 0;
  return type == FP_KINETO_INT64 ? 8 : type == FP_KINETO_TRIPLE ? 12 : 4;
}

static void grow(fp_kineto_rows *tables) {
  for (int table = 0; table < FP_KINETO_TABLES; table++) {
    if (tables[table].rows < tables[table].capacity) continue;
    tables[table].capacity += tables[table].capacity / 2 + 3;
    for (int column = 0; column < FP_KINETO_COLUMNS && size_of(table, column); column++) {
      void **to = &tables[table].columns[column];
      *to = realloc(*to, (size_t)tables[table].capacity * size_of(table, column));
      CHECK(*to);
    }
  }
}

/* A checksum of all rows; texts contribute their ids. */
static uint64_t sum_of(const fp_kineto_rows *tables) {
  uint64_t sum = 0;
  for (int table = 0; table < FP_KINETO_TABLES; table++) {
    sum = sum * 31 + (uint64_t)tables[table].rows;
    for (int column = 0; column < FP_KINETO_COLUMNS && size_of(table, column); column++) {
      const uint8_t *bytes = tables[table].columns[column];
      size_t n = (size_t)tables[table].rows * size_of(table, column);
      for (size_t i = 0; i < n; i++) sum = sum * 31 + bytes[i];
    }
  }
  return sum;
}

static uint64_t read_all(const char *bytes, size_t length, size_t block, int64_t *lost) {
  fp_kineto_rows tables[FP_KINETO_TABLES] = {{0}};
  fp_kineto *kineto = fp_kineto_new();
  size_t at = 0, given = block < length ? block : length;
  CHECK(kineto);
  for (;;) {
    size_t used = given + 1;
    int has_events;
    char *piece = exactly(bytes + at, given);
    fp_status status = fp_kineto_read(kineto, piece, given, tables, &used);
    free(piece);
    CHECK(used <= given);
    at += used;
    given -= used;
    CHECK(status == FP_OK || status == FP_MORE);
    if (status == FP_MORE) {
      grow(tables);
      continue;
    }
    if (fp_kineto_state(kineto, &has_events) != FP_KINETO_READING || at + given == length) break;
    given += block;
    if (given > length - at) given = length - at;
  }
  int has_events;
  int64_t lost_bytes;
  uint64_t sum = sum_of(tables);
  sum = sum * 31 + (uint64_t)fp_kineto_state(kineto, &has_events) * 2;
  sum = sum * 31 + (uint64_t)has_events;
  *lost = fp_kineto_lost(kineto, &lost_bytes);
  CHECK(*lost >= 0 && lost_bytes >= *lost && lost_bytes <= (int64_t)length);
  fp_kineto_free(kineto);
  for (int table = 0; table < FP_KINETO_TABLES; table++)
    for (int column = 0; column < FP_KINETO_COLUMNS; column++) free(tables[table].columns[column]);
  return sum;
}

/* What follows moves `at` behind a piece of JSON, as strictly as RFC 8259 has it but for what is
 * within numbers and names; to `end` where the text is cut off within it. 0: it is none. */
typedef struct {
  const char *at, *end;
} text;

static int blanks(text *json) {
  while (json->at < json->end && strchr(" \t\r\n", *json->at) && *json->at) json->at++;
  return json->at == json->end;
}

static int is_string(text *json) {
  for (json->at++; json->at < json->end; json->at++) {
    if ((unsigned char)*json->at < ' ') return 0;
    if (*json->at == '"') return json->at++, 1;
    if (*json->at == '\\' && ++json->at == json->end) break;
  }
  return 1;
}

static int is_word(text *json) {
  const char *start = json->at;
  while (json->at < json->end && *json->at && strchr("+-.0123456789Eaeflnrstu", *json->at))
    json->at++;
  return json->at > start;
}

static int is_json(text *json, int depth) {
  if (blanks(json)) return 1;
  char open = *json->at;
  if (open == '"') return is_string(json);
  if (open != '{' && open != '[') return is_word(json);
  json->at++;
  if (depth == 0) return 0; /* nesting limit */
  for (int first = 1;; first = 0) {
    if (blanks(json)) return 1;
    if (*json->at == (open == '{' ? '}' : ']') && first) return json->at++, 1;
    if (open == '{') {
      if (*json->at != '"' || !is_string(json)) return 0;
      if (blanks(json)) return 1;
      if (*json->at++ != ':') return 0;
    }
    if (!is_json(json, depth - 1)) return 0;
    if (blanks(json)) return 1;
    char next = *json->at++;
    if (next == (open == '{' ? '}' : ']')) return 1;
    if (next != ',') return 0;
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  const char *bytes = (const char *)data;
  size_t block = size ? 1 + data[size - 1] : 1;
  int64_t lost, lost_in_blocks;
  uint64_t whole = read_all(bytes, size, size + 1, &lost);
  uint64_t in_blocks = read_all(bytes, size, block + 40, &lost_in_blocks);
  text json = {bytes, bytes + size};
  CHECK(!is_json(&json, 100) || !blanks(&json) || (whole == in_blocks && lost == lost_in_blocks));
  return 0;
}
