/* names.c: fp_names and fp_keys: ids, growth, and hostile texts. */
#include "base/fp_keys.h"
#include "check.h"
#include "text/fp_names.h"

static void check_text(const fp_names *names, int32_t id, const char *text, size_t length) {
  const int64_t *offsets;
  const char *bytes = fp_names_bytes(names, &offsets);
  CHECK(id >= 0 && id < fp_names_count(names));
  CHECK((size_t)(offsets[id + 1] - offsets[id]) == length);
  CHECK(length == 0 || memcmp(bytes + offsets[id], text, length) == 0);
}

static void texts_keep_their_ids(void) {
  enum { N = 30000 };
  fp_names *names = fp_names_new();
  char **texts = ARRAY(char *, N);
  size_t *lengths = ARRAY(size_t, N);
  int32_t *ids = ARRAY(int32_t, N);
  for (int i = 0; i < N; i++) {
    lengths[i] = (size_t)random_below(i % 100 ? 40 : 5000);
    texts[i] = ARRAY(char, lengths[i]);
    for (size_t k = 0; k < lengths[i]; k++) texts[i][k] = "ab\0,"[random_below(4)];
    CHECK(fp_names_intern(names, texts[i], lengths[i], &ids[i]) == FP_OK);
    CHECK(ids[i] <= fp_names_count(names) - 1);
  }
  int32_t count = fp_names_count(names);
  for (int i = 0; i < N; i++) {
    int32_t again;
    check_text(names, ids[i], texts[i], lengths[i]);
    CHECK(fp_names_intern(names, texts[i], lengths[i], &again) == FP_OK && again == ids[i]);
    free(texts[i]);
  }
  CHECK(fp_names_count(names) == count);
  fp_names_free(names);
  free(texts);
  free(lengths);
  free(ids);
}

static void empty_and_huge_texts_are_texts(void) {
  enum { LONG = 10 << 20 };
  fp_names *names = fp_names_new();
  char *text = ARRAY(char, LONG);
  int32_t id;
  memset(text, 'x', LONG);
  CHECK(fp_names_intern(names, NULL, 0, &id) == FP_OK && id == 0);
  CHECK(fp_names_intern(names, text, 0, &id) == FP_OK && id == 0);
  CHECK(fp_names_intern(names, text, LONG, &id) == FP_OK && id == 1);
  CHECK(fp_names_intern(names, text, LONG - 1, &id) == FP_OK && id == 2);
  check_text(names, 1, text, LONG);
  fp_names_free(names);
  fp_names_free(NULL);
  free(text);
}

static fp_torch_name split(const char *text, size_t length) {
  char *copy = exactly(text, length);
  fp_torch_name parts;
  fp_names_split(copy, length, &parts);
  CHECK(parts.name_length <= length);
  CHECK(parts.seq >= -1 && parts.op_id >= -1);
  if (parts.sizes) {
    CHECK(parts.sizes >= copy + parts.name_length);
    CHECK(parts.sizes + parts.sizes_length <= copy + length);
    CHECK(parts.sizes[parts.sizes_length - 1] == ']');
    parts.sizes = text + (parts.sizes - copy);
  } else {
    CHECK(parts.sizes_length == 0);
  }
  free(copy);
  return parts;
}

static void torch_names_are_split(void) {
  static const char text[] =
      "aten::mm, a, seq = 7, op_id = 9223372036854775807, sizes = [[2, 3], []], "
      "input_op_ids = [(5, 0), (0, -1)]";
  size_t length = sizeof text - 1;
  fp_torch_name parts = split(text, length);
  CHECK(parts.name_length == strlen("aten::mm, a"));
  CHECK(parts.seq == 7 && parts.op_id == INT64_MAX);
  CHECK(parts.sizes_length == strlen(", sizes = [[2, 3], []]"));
  CHECK(memcmp(parts.sizes, ", sizes = [[2, 3], []]", parts.sizes_length) == 0);
  for (size_t first = 0; first <= length; first++)
    for (size_t last = first; last <= length; last++) split(text + first, last - first);
}

static void fill(char *text, size_t length, const char *unit) {
  for (size_t i = 0, n = strlen(unit); i < length; i++) text[i] = unit[i % n];
}

static void hostile_texts_are_split(void) {
  static const char *const units[] = {
      ",",        "7",         "]",           ", sizes = [", ", input_op_ids = [",
      ", seq = ", ", seq = 7", ", op_id = 7", " ",
  };
  enum { LONG = 1000000 };
  char *text = ARRAY(char, LONG);
  fp_torch_name parts;
  fp_names_split(NULL, 0, &parts);
  CHECK(parts.name_length == 0 && parts.seq == -1 && parts.op_id == -1 && !parts.sizes);
  for (int i = 0; i < LENGTH(units); i++) {
    fill(text, LONG, units[i]);
    split(text, LONG);
    text[LONG - 1] = ']';
    split(text, LONG);
  }
  fill(text, LONG, "7");
  memcpy(text, ", seq = ", 8);
  CHECK(split(text, LONG).name_length == LONG);
  CHECK(split(text, 8 + 18).seq == 777777777777777777);
  CHECK(split(text, 8 + 19).seq == 7777777777777777777);
  CHECK(split(text, 8 + 20).seq == -1);
  CHECK(split(", seq = 9223372036854775808", 27).seq == -1);
  free(text);
}

static void keys_keep_their_ids(void) {
  enum { N = 100000 };
  static const int64_t special[] = {INT64_MIN, INT64_MAX, -1, 0, 1, INT64_MIN + 1};
  fp_keys *keys = fp_keys_new();
  int64_t *numbers = ARRAY(int64_t, N);
  int32_t *ids = ARRAY(int32_t, N);
  for (int i = 0; i < N; i++) {
    numbers[i] = i < LENGTH(special) ? special[i] : (int64_t)random_bits() >> random_below(64);
    int32_t found = fp_keys_find(keys, numbers[i]);
    CHECK(fp_keys_intern(keys, numbers[i], &ids[i]) == FP_OK);
    CHECK(found == -1 ? ids[i] == fp_keys_count(keys) - 1 : ids[i] == found);
  }
  for (int i = 0; i < N; i++) {
    CHECK(fp_keys_values(keys)[ids[i]] == numbers[i]);
    CHECK(fp_keys_find(keys, numbers[i]) == ids[i]);
  }
  fp_keys_free(keys);
  fp_keys_free(NULL);
  free(numbers);
  free(ids);
}

int main(void) {
  texts_keep_their_ids();
  empty_and_huge_texts_are_texts();
  torch_names_are_split();
  hostile_texts_are_split();
  keys_keep_their_ids();
  return 0;
}
