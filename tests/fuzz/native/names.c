/* names.c: any text as a range's name, whose parts must lie inside; and a pool of texts. */
#include "check.h"
#include "text/fp_names.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void split(const char *text, size_t length) {
  fp_torch_name parts;
  fp_names_split(text, length, &parts);
  CHECK(parts.name_length <= length && parts.seq >= -1 && parts.op_id >= -1);
  size_t end = parts.name_length;
  if (parts.sizes) {
    CHECK(parts.sizes >= text + end && parts.sizes_length >= 11);
    CHECK(parts.sizes + parts.sizes_length <= text + length);
    CHECK(memcmp(parts.sizes, ", sizes = [", 11) == 0 &&
          parts.sizes[parts.sizes_length - 1] == ']');
  } else {
    CHECK(parts.sizes_length == 0);
  }
  if (parts.seq >= 0) CHECK(length - end >= 9 && memcmp(text + end, ", seq = ", 8) == 0);
  if (parts.seq < 0 && parts.op_id >= 0) CHECK(memcmp(text + end, ", op_id = ", 10) == 0);
  if (end < length) CHECK(text[end] == ',');
}

/* Each line is a text; equal lines must get equal ids. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  const char *text = (const char *)data;
  fp_names *names = fp_names_new();
  CHECK(names);
  split(text, size);
  for (size_t start = 0, end = 0; end <= size; end++) {
    if (end < size && text[end] != '\n') continue;
    int32_t id, again;
    split(text + start, end - start);
    int32_t count = fp_names_count(names);
    CHECK(fp_names_intern(names, text + start, end - start, &id) == FP_OK);
    CHECK(id >= 0 && id <= count && fp_names_count(names) == count + (id == count));
    CHECK(fp_names_intern(names, text + start, end - start, &again) == FP_OK && again == id);
    const int64_t *offsets;
    const char *bytes = fp_names_bytes(names, &offsets);
    CHECK((size_t)(offsets[id + 1] - offsets[id]) == end - start);
    CHECK(end == start || memcmp(bytes + offsets[id], text + start, end - start) == 0);
    start = end + 1;
  }
  fp_names_free(names);
  return 0;
}
