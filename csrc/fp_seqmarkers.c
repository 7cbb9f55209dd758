/* fp_seqmarkers.c: see fp_seqmarkers.h. */
#include "fp_seqmarkers.h"

#include <stdlib.h>
#include <string.h>

typedef struct {
  int64_t seq, op_id;
  fp_text head, tail;
} marker;

struct fp_seqmarkers {
  fp_seqmarkers_tables tables;
  marker *found; /* torch ranges of the current row */
  size_t n_found, found_capacity;
  char *list; /* the formatted list */
  size_t list_length, list_capacity;
  int is_valid; /* 1: `list` is the list of `frame` */
  int32_t frame;
};

enum { NO_FRAME = -1 };

fp_seqmarkers *fp_seqmarkers_new(const fp_seqmarkers_tables *tables) {
  fp_seqmarkers *markers = calloc(1, sizeof *markers);
  if (!markers) return NULL;
  markers->tables = *tables;
  return markers;
}

fp_seqmarkers *fp_seqmarkers_again(const fp_seqmarkers *markers) {
  return fp_seqmarkers_new(&markers->tables);
}

void fp_seqmarkers_free(fp_seqmarkers *markers) {
  if (!markers) return;
  free(markers->found);
  free(markers->list);
  free(markers);
}

/* Grows an array to at least `needed` items of `size` bytes, keeping its contents. */
static fp_status reserve(void **items, size_t *capacity, size_t needed, size_t size) {
  if (needed <= *capacity) return FP_OK;
  if (needed > SIZE_MAX / 2 / size) return FP_E_MEMORY;
  size_t grown = needed + needed / 2 + 16;
  if (grown > SIZE_MAX / size) return FP_E_MEMORY;
  void *moved = realloc(*items, grown * size);
  if (!moved) return FP_E_MEMORY;
  *items = moved;
  *capacity = grown;
  return FP_OK;
}

static fp_status find_one(fp_seqmarkers *markers, int32_t range) {
  const fp_seqmarkers_tables *t = &markers->tables;
  if (range < 0 || range >= t->n_ranges) return FP_E_INDEX;
  int32_t label = t->label_of_range[range];
  if (label < 0 || label >= t->heads.count) return FP_E_INDEX;
  if (!t->is_torch[label]) return FP_OK;
  void *items = markers->found;
  fp_status status =
      reserve(&items, &markers->found_capacity, markers->n_found + 1, sizeof(marker));
  markers->found = items;
  if (status != FP_OK) return status;
  markers->found[markers->n_found++] =
      (marker){t->seq_of_range[range], t->op_id_of_range[range], fp_texts_at(&t->heads, label),
               fp_texts_at(&t->tails, label)};
  return FP_OK;
}

static fp_status find_all(fp_seqmarkers *markers, int32_t frame) {
  const fp_seqmarkers_tables *t = &markers->tables;
  markers->n_found = 0;
  while (frame != NO_FRAME) {
    if (frame < 0 || frame >= t->n_frames) return FP_E_INDEX;
    fp_status status = find_one(markers, t->range_of_frame[frame]);
    if (status != FP_OK) return status;
    int32_t parent = t->frame_parent[frame];
    if (parent >= frame) return FP_E_INDEX;
    frame = parent;
  }
  return FP_OK;
}

static int compare_texts(fp_text a, fp_text b) {
  int64_t shorter = a.length < b.length ? a.length : b.length;
  int order = shorter ? memcmp(a.bytes, b.bytes, (size_t)shorter) : 0;
  return order ? order : (a.length > b.length) - (a.length < b.length);
}

static int compare_markers(const void *left, const void *right) {
  const marker *a = left, *b = right;
  if (a->seq != b->seq) return a->seq < b->seq ? -1 : 1;
  int order = compare_texts(a->head, b->head);
  if (order) return order;
  if (a->op_id != b->op_id) return a->op_id < b->op_id ? -1 : 1;
  return compare_texts(a->tail, b->tail);
}

static fp_status append(fp_seqmarkers *markers, const char *bytes, int64_t length) {
  if ((uint64_t)length > SIZE_MAX - markers->list_length) return FP_E_MEMORY;
  size_t needed = markers->list_length + (size_t)length;
  void *items = markers->list;
  fp_status status = reserve(&items, &markers->list_capacity, needed + FP_TEXT_BEYOND, 1);
  markers->list = items;
  if (status != FP_OK) return status;
  if (length) memcpy(markers->list + markers->list_length, bytes, (size_t)length);
  markers->list_length = needed;
  return FP_OK;
}

static fp_status append_number(fp_seqmarkers *markers, const char *key, int64_t value) {
  if (value < 0) return FP_OK;
  char digits[FP_NUMBER_LENGTH];
  char *end = digits + sizeof digits, *start = fp_number_before(end, value);
  fp_status status = append(markers, key, (int64_t)strlen(key));
  return status == FP_OK ? append(markers, start, end - start) : status;
}

static fp_status append_marker(fp_seqmarkers *markers, const marker *one) {
  const char *quote = &markers->tables.quote;
  fp_status status = append(markers, quote, 1);
  if (status == FP_OK) status = append(markers, one->head.bytes, one->head.length);
  if (status == FP_OK) status = append_number(markers, ", seq = ", one->seq);
  if (status == FP_OK) status = append_number(markers, ", op_id = ", one->op_id);
  if (status == FP_OK) status = append(markers, one->tail.bytes, one->tail.length);
  return status == FP_OK ? append(markers, quote, 1) : status;
}

static int contains(fp_text text, fp_text part) {
  if (part.length == 0) return 1;
  for (int64_t at = 0; at + part.length <= text.length; at++)
    if (memcmp(text.bytes + at, part.bytes, (size_t)part.length) == 0) return 1;
  return 0;
}

/* PyTorch 1 nested `native_layer_norm, seq = 7` in `layer_norm, seq = 7`. Of two ranges with equal
 * numbers where one name contains the other, PyProf kept the first; so does this. Ranges with op_id
 * or sizes are always distinct. */
static int repeats(const marker *before, const marker *one) {
  if (compare_markers(before, one) == 0) return 1;
  if (one->seq < 0 || before->seq != one->seq) return 0;
  if (before->op_id >= 0 || one->op_id >= 0 || before->tail.length || one->tail.length) return 0;
  return contains(before->head, one->head) || contains(one->head, before->head);
}

static fp_status append_all(fp_seqmarkers *markers) {
  const marker *found = markers->found;
  markers->list_length = 0;
  fp_status status = append(markers, "[", 1);
  for (size_t i = 0; i < markers->n_found && status == FP_OK; i++) {
    if (i > 0 && repeats(&found[i - 1], &found[i])) continue;
    if (i > 0) status = append(markers, ", ", 2);
    if (status == FP_OK) status = append_marker(markers, &found[i]);
  }
  return status == FP_OK ? append(markers, "]", 1) : status;
}

fp_status fp_seqmarkers_list(fp_seqmarkers *markers, int64_t row, fp_text *list) {
  if (row < 0 || row >= markers->tables.n_rows) return FP_E_INDEX;
  int32_t frame = markers->tables.frame_of_row[row];
  if (!markers->is_valid || frame != markers->frame) {
    markers->is_valid = 0;
    fp_status status = find_all(markers, frame);
    if (status != FP_OK) return status;
    if (markers->n_found > 1)
      qsort(markers->found, markers->n_found, sizeof(marker), compare_markers);
    status = append_all(markers);
    if (status != FP_OK) return status;
    markers->frame = frame;
    markers->is_valid = 1;
  }
  *list = (fp_text){markers->list, (int64_t)markers->list_length};
  return FP_OK;
}
