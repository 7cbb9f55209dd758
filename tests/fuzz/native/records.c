/* records.c: any text -> the records of a JSON text; the same in whatever blocks. */
#include "check.h"
#include "text/fp_records.h"

enum { KERNELS, MESSAGES, WHOLE, TABLES, COLUMNS = 4 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static fp_records *made(void) {
  static const char top[] = "rocprofiler-sdk-tool";
  static const struct {
    const char *path, *field;
    int table, column, kind;
  } fields[] = {
      {"rocprofiler-sdk-tool/buffer_records/kernel_dispatch", "start_timestamp", KERNELS, 1,
       FP_RECORDS_NUMBER},
      {"rocprofiler-sdk-tool/buffer_records/kernel_dispatch", "correlation_id/internal", KERNELS, 2,
       FP_RECORDS_NUMBER},
      {"rocprofiler-sdk-tool/buffer_records/kernel_dispatch", "dispatch_info/grid_size/x", KERNELS,
       3, FP_RECORDS_NUMBER},
      {"rocprofiler-sdk-tool/strings/marker_api", "key", MESSAGES, 1, FP_RECORDS_NUMBER},
      {"rocprofiler-sdk-tool/strings/marker_api", "value", MESSAGES, 2, FP_RECORDS_TEXT},
      {"rocprofiler-sdk-tool/metadata", "", WHOLE, 1, FP_RECORDS_TEXT},
  };
  fp_records *records = fp_records_new();
  CHECK(records && fp_records_root(records, top) == FP_OK);
  for (int i = 0; i < LENGTH(fields); i++)
    CHECK(fp_records_add(records, fields[i].path, fields[i].field, fields[i].table,
                         fields[i].column, fields[i].kind) == FP_OK);
  return records;
}

static void grow(fp_records_rows *tables) {
  static const int n_columns[] = {4, 3, 2};
  for (int table = 0; table < TABLES; table++) {
    if (tables[table].rows < tables[table].capacity) continue;
    tables[table].capacity += tables[table].capacity / 2 + 3;
    for (int i = 0; i < n_columns[table]; i++) {
      int64_t **to = &tables[table].columns[i];
      *to = realloc(*to, (size_t)tables[table].capacity * sizeof **to);
      CHECK(*to);
    }
  }
}

/* A checksum of all rows, the texts, and how the text ended. */
static uint64_t sum_of(const fp_records *records, const fp_records_rows *tables, fp_status status) {
  uint64_t sum = (uint64_t)status * 31 + (uint64_t)fp_records_is_whole(records);
  for (int table = 0; table < TABLES; table++) {
    sum = sum * 31 + (uint64_t)tables[table].rows;
    for (int i = 0; i < COLUMNS && tables[table].columns[i]; i++)
      for (int64_t row = 0; row < tables[table].rows; row++)
        sum = sum * 31 + (uint64_t)tables[table].columns[i][row];
  }
  return sum * 31 + (uint64_t)fp_names_count(fp_records_texts(records));
}

static uint64_t read_all(const char *bytes, size_t length, size_t block) {
  fp_records_rows tables[TABLES] = {{0}};
  fp_records *records = made();
  size_t at = 0, given = block < length ? block : length;
  fp_status status;
  for (;;) {
    size_t used = given + 1;
    char *piece = exactly(bytes + at, given);
    status = fp_records_read(records, piece, given, tables, TABLES, &used);
    free(piece);
    CHECK(used <= given);
    at += used;
    given -= used;
    CHECK(status == FP_OK || status == FP_MORE || status == FP_E_SYNTAX);
    if (status == FP_MORE) {
      grow(tables);
      continue;
    }
    if (status != FP_OK || fp_records_is_whole(records) || at + given == length) break;
    given += block;
    if (given > length - at) given = length - at;
  }
  const uint64_t sum = sum_of(records, tables, status) * 31 + at;
  fp_records_free(records);
  for (int table = 0; table < TABLES; table++)
    for (int i = 0; i < COLUMNS; i++) free(tables[table].columns[i]);
  return sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  const char *bytes = (const char *)data;
  const size_t block = size ? 1 + data[size - 1] : 1;
  CHECK(read_all(bytes, size, size + 1) == read_all(bytes, size, block));
  return 0;
}
