#include "write/fp_rows.h"

#include <string.h>

enum { LONG = 256 }; /* bytes: from here on, memcpy is faster */

/* Appends a text, which must be padded with FP_TEXT_BEYOND bytes. */
static inline fp_status put_text(fp_room *out, fp_text text) {
  int64_t left = out->end - out->at;
  if (left < text.length) return FP_MORE;
  if (text.length > LONG || left < text.length + FP_TEXT_BEYOND) {
    if (text.length) memcpy(out->at, text.bytes, (size_t)text.length);
  } else {
    for (int64_t done = 0; done < text.length; done += FP_TEXT_BEYOND)
      memcpy(out->at + done, text.bytes + done, FP_TEXT_BEYOND);
  }
  out->at += text.length;
  return FP_OK;
}

static inline fp_status put_blanks(fp_room *out, int64_t n) {
  if (n <= 0) return FP_OK;
  if (out->end - out->at < n) return FP_MORE;
  memset(out->at, ' ', (size_t)n);
  out->at += n;
  return FP_OK;
}

static inline fp_status put_number(fp_room *out, int64_t value) {
  char digits[FP_NUMBER_LENGTH + FP_TEXT_BEYOND];
  char *end = digits + FP_NUMBER_LENGTH, *start = fp_number_before(end, value);
  return put_text(out, (fp_text){start, end - start});
}

/* Cuts or pads the text since `start` to the width. */
static fp_status fit(fp_room *out, char *start, int64_t width) {
  int64_t written = out->at - start;
  if (width == 0) return FP_OK;
  if (written > width) out->at = start + width;
  return put_blanks(out, width - written);
}

static inline int64_t value_at(const fp_cell *cell, int64_t i) {
  return cell->is_wide ? ((const int64_t *)cell->values)[i] : ((const int32_t *)cell->values)[i];
}

static fp_status write_int(const fp_cell *cell, int64_t row, fp_room *out) {
  int64_t value = value_at(cell, row);
  char digits[FP_NUMBER_LENGTH + FP_TEXT_BEYOND];
  char *end = digits + FP_NUMBER_LENGTH, *start = fp_number_before(end, value);
  fp_text text = {start, end - start};
  if (value == cell->none) text = cell->none_text;
  fp_status status = put_blanks(out, cell->width - text.length);
  return status == FP_OK ? put_text(out, text) : status;
}

/* Writes open, values[first .. last) with separators, close. */
static fp_status write_numbers(const fp_cell *cell, int64_t first, int64_t last, fp_room *out) {
  fp_status status = put_text(out, cell->open);
  for (int64_t i = first; i < last && status == FP_OK; i++) {
    if (i > first) status = put_text(out, cell->separator);
    if (status == FP_OK) status = put_number(out, value_at(cell, i));
  }
  return status == FP_OK ? put_text(out, cell->close) : status;
}

static fp_status write_int3(const fp_cell *cell, int64_t row, fp_room *out) {
  char *start = out->at;
  int is_none = value_at(cell, 3 * row) == cell->none;
  fp_status status =
      is_none ? put_text(out, cell->none_text) : write_numbers(cell, 3 * row, 3 * row + 3, out);
  return status == FP_OK ? fit(out, start, cell->width) : status;
}

static fp_status write_text(const fp_cell *cell, int64_t row, fp_room *out) {
  int32_t id = ((const int32_t *)cell->values)[row];
  if (id == -1) return put_text(out, cell->none_text);
  if (id < 0 || id >= cell->texts.count) return FP_E_INDEX;
  return put_text(out, fp_texts_at(&cell->texts, id));
}

static fp_status write_list(const fp_cell *cell, int64_t row, fp_room *out) {
  int64_t first = row, last = row + 1;
  if (cell->offsets) {
    first = cell->offsets[row], last = cell->offsets[row + 1];
    if (first < 0 || last < first || last > cell->n_values) return FP_E_INDEX;
  } else if (value_at(cell, row) == cell->none) {
    last = first;
  }
  char *start = out->at;
  fp_status status =
      first == last ? put_text(out, cell->none_text) : write_numbers(cell, first, last, out);
  return status == FP_OK ? fit(out, start, cell->width) : status;
}

static fp_status write_seqmarkers(const fp_cell *cell, int64_t row, fp_room *out) {
  fp_text list;
  fp_status status = fp_seqmarkers_list(cell->markers, row, &list);
  return status == FP_OK ? put_text(out, list) : status;
}

static fp_status write_cell(const fp_cell *cell, int64_t row, fp_room *out) {
  fp_status status = put_text(out, cell->before);
  if (status != FP_OK) return status;
  switch (cell->kind) {
    case FP_CELL_INT:
      return write_int(cell, row, out);
    case FP_CELL_INT3:
      return write_int3(cell, row, out);
    case FP_CELL_TEXT:
      return write_text(cell, row, out);
    case FP_CELL_LIST:
      return write_list(cell, row, out);
    case FP_CELL_SEQMARKERS:
      return write_seqmarkers(cell, row, out);
  }
  return FP_E_INDEX;
}

fp_status fp_rows_write(const fp_cell *cells, int64_t n_cells, fp_text row_end, int64_t first,
                        int64_t last, char *buffer, int64_t capacity, int64_t *next,
                        int64_t *used) {
  fp_room out = {buffer, buffer + capacity};
  fp_status status = FP_OK;
  *next = first;
  *used = 0;
  for (int64_t row = first; row < last; row++) {
    for (int64_t i = 0; i < n_cells && status == FP_OK; i++)
      status = write_cell(&cells[i], row, &out);
    if (status == FP_OK) status = put_text(&out, row_end);
    if (status != FP_OK) return status;
    *next = row + 1;
    *used = out.at - buffer;
  }
  return FP_OK;
}
