/* dict.c: any text as dict lines, or the position of the error; independent of block sizes. */
#include "check.h"
#include "text/fp_dict.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void grow(fp_dict_columns *columns) {
  int64_t n = columns->capacity + 3;
  columns->capacity = n;
  for (int i = 0; i < FP_DICT_INTS; i++)
    CHECK((columns->ints[i] = realloc(columns->ints[i], (size_t)n * 8)) != NULL);
  for (int i = 0; i < FP_DICT_TRIPLES; i++)
    CHECK((columns->triples[i] = realloc(columns->triples[i], (size_t)n * 12)) != NULL);
  for (int i = 0; i < FP_DICT_TEXTS; i++)
    CHECK((columns->texts[i] = realloc(columns->texts[i], (size_t)n * 4)) != NULL);
  for (int i = 0; i < FP_DICT_LISTS; i++) {
    int64_t **offsets = &columns->list_offsets[i], **values = &columns->list_values[i];
    CHECK((*offsets = realloc(*offsets, (size_t)(n + 1) * 8)) != NULL);
    if (n == 3) **offsets = 0;
    columns->list_capacity[i] += 2;
    CHECK((*values = realloc(*values, (size_t)columns->list_capacity[i] * 8)) != NULL);
  }
}

static void check_rows(const fp_dict *dict, const fp_dict_columns *columns) {
  for (int i = 0; i < FP_DICT_TEXTS; i++) {
    int32_t count = fp_names_count(fp_dict_pool(dict, i));
    for (int64_t row = 0; row < columns->rows; row++)
      CHECK(columns->texts[i][row] >= -1 && columns->texts[i][row] < count);
  }
  for (int i = 0; i < FP_DICT_LISTS; i++)
    for (int64_t row = 0; row < columns->rows; row++)
      CHECK(columns->list_offsets[i][row] <= columns->list_offsets[i][row + 1] &&
            columns->list_offsets[i][row + 1] <= columns->list_capacity[i]);
}

/* A checksum of the rows. */
static uint64_t read_all(const char *bytes, size_t length, size_t block) {
  fp_dict_columns columns = {0};
  fp_dict *dict = fp_dict_new();
  fp_status status = FP_MORE;
  size_t at = 0, size = block;
  CHECK(dict);
  grow(&columns);
  for (;;) {
    int is_end = length - at <= size;
    size_t n = is_end ? length - at : size, used = n + 1;
    char *piece = exactly(bytes + at, n);
    status = fp_dict_read(dict, piece, n, is_end, &columns, &used);
    free(piece);
    CHECK(used <= n);
    at += used;
    if (status == FP_MORE) {
      grow(&columns);
      continue;
    }
    CHECK(status == FP_OK || status == FP_E_SYNTAX || status == FP_E_RANGE);
    if (status != FP_OK || is_end) break;
    size = used ? block : 2 * size;
  }
  check_rows(dict, &columns);
  uint64_t sum = (uint64_t)columns.rows * 31 + (uint64_t)fp_dict_line(dict);
  if (status != FP_OK) sum = sum * 31 + (uint64_t)(status + 100) + (uint64_t)fp_dict_stop(dict);
  for (int64_t row = 0; row < columns.rows; row++) {
    for (int i = 0; i < FP_DICT_INTS; i++) sum = sum * 31 + (uint64_t)columns.ints[i][row];
    for (int i = 0; i < FP_DICT_TEXTS; i++) sum = sum * 31 + (uint64_t)columns.texts[i][row];
    for (int i = 0; i < 3 * FP_DICT_TRIPLES; i++)
      sum = sum * 31 + (uint64_t)columns.triples[i / 3][3 * row + i % 3];
  }
  fp_dict_free(dict);
  for (int i = 0; i < FP_DICT_INTS; i++) free(columns.ints[i]);
  for (int i = 0; i < FP_DICT_TRIPLES; i++) free(columns.triples[i]);
  for (int i = 0; i < FP_DICT_TEXTS; i++) free(columns.texts[i]);
  for (int i = 0; i < FP_DICT_LISTS; i++) {
    free(columns.list_offsets[i]);
    free(columns.list_values[i]);
  }
  return sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  size_t block = size ? 1 + data[size - 1] : 1;
  uint64_t whole = read_all((const char *)data, size, size + 1);
  CHECK(read_all((const char *)data, size, block) == whole);
  return 0;
}
