#include "scan/fp_column.h"

#include "base/fp_room.h"

fp_status fp_column_range_name(fp_names *names, fp_scratch *scratch, const char *text,
                               size_t length, int32_t *label, int64_t *seq, int64_t *op_id) {
  fp_torch_name parts;
  fp_names_split(text, length, &parts);
  *seq = parts.seq;
  *op_id = parts.op_id;
  bool torch = parts.name_length != length;
  bool marked = length && (text[0] == FP_LABEL_OF_TORCH || text[0] == FP_LABEL_AS_IS);
  if (!torch && !marked) return fp_names_intern(names, text, length, label);
  size_t label_length = 1 + parts.name_length + parts.sizes_length;
  fp_status status = fp_reserve(&scratch->bytes, &scratch->capacity, label_length, 1);
  if (status != FP_OK) return status;
  scratch->bytes[0] = torch ? FP_LABEL_OF_TORCH : FP_LABEL_AS_IS;
  memcpy(scratch->bytes + 1, text, parts.name_length);
  if (parts.sizes_length)
    memcpy(scratch->bytes + 1 + parts.name_length, parts.sizes, parts.sizes_length);
  return fp_names_intern(names, scratch->bytes, label_length, label);
}

fp_status fp_column_put_text(const fp_column *column, fp_scratch *scratch, int64_t row,
                             const char *text, size_t length) {
  int32_t *id = (int32_t *)column->out + row;
  bool range = column->kind == FP_COLUMN_RANGE;
  if (!text) {
    *id = (int32_t)column->none;
    if (range) column->seq[row] = column->op_id[row] = -1;
    return FP_OK;
  }
  if (range)
    return fp_column_range_name(column->names, scratch, text, length, id, column->seq + row,
                                column->op_id + row);
  if (column->kind == FP_COLUMN_TEXT) return fp_names_intern(column->names, text, length, id);
  *id = length < INT32_MAX ? (int32_t)length : INT32_MAX;
  return FP_OK;
}
