#include "scan/fp_column.h"

#include "base/fp_room.h"
#include "text/fp_json.h"

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

/* Reads `"key": value` and the comma behind it, if any. FP_MORE at the end of the object. */
static fp_status next_member(fp_cursor *json, fp_json_value *key, fp_json_value *value) {
  char c;
  if (fp_json_next(json, &c) != FP_OK || c != '"') return FP_MORE;
  fp_status status = fp_json_string(json, key);
  if (status == FP_OK) status = fp_json_colon(json);
  if (status == FP_OK) status = fp_json_read(json, value);
  if (status != FP_OK) return status;
  fp_json_blanks(json);
  fp_cursor_pass(json, ',');
  return FP_OK;
}

fp_status fp_column_message(fp_scratch *scratch, const char *text, size_t length,
                            fp_text *message) {
  fp_cursor json = {text, text + length};
  *message = (fp_text){NULL, 0};
  fp_json_blanks(&json);
  if (!fp_cursor_pass(&json, '{')) return FP_OK;
  fp_json_value key, value;
  do {
    if (next_member(&json, &key, &value) != FP_OK) return FP_OK;
  } while (!fp_json_is(&key, "message"));
  if (value.kind != FP_JSON_STRING) return FP_OK;
  *message = (fp_text){value.bytes, value.length};
  if (!value.escaped) return FP_OK;
  fp_status status = fp_reserve(&scratch->bytes, &scratch->capacity, (size_t)value.length, 1);
  if (status != FP_OK) return status;
  *message = (fp_text){scratch->bytes, fp_json_unescape(&value, scratch->bytes)};
  return FP_OK;
}

/* Stores the message of a JSON object. The label is built in other memory than the message. */
static fp_status put_message(const fp_column *column, fp_scratch *scratch, int64_t row,
                             const char *text, size_t length) {
  fp_scratch decoded = {NULL, 0};
  fp_text message;
  fp_status status = fp_column_message(&decoded, text, length, &message);
  int32_t *id = (int32_t *)column->out + row;
  if (status == FP_OK && message.bytes) {
    status = fp_column_range_name(column->names, scratch, message.bytes, (size_t)message.length, id,
                                  column->seq + row, column->op_id + row);
  } else {
    *id = (int32_t)column->none;
    column->seq[row] = column->op_id[row] = -1;
  }
  free(decoded.bytes);
  return status;
}

fp_status fp_column_put_text(const fp_column *column, fp_scratch *scratch, int64_t row,
                             const char *text, size_t length) {
  int32_t *id = (int32_t *)column->out + row;
  bool range = fp_column_is_range(column->kind);
  if (!text) {
    *id = (int32_t)column->none;
    if (range) column->seq[row] = column->op_id[row] = -1;
    return FP_OK;
  }
  if (column->kind == FP_COLUMN_MESSAGE) return put_message(column, scratch, row, text, length);
  if (range)
    return fp_column_range_name(column->names, scratch, text, length, id, column->seq + row,
                                column->op_id + row);
  if (column->kind == FP_COLUMN_TEXT) return fp_names_intern(column->names, text, length, id);
  *id = length < INT32_MAX ? (int32_t)length : INT32_MAX;
  return FP_OK;
}
