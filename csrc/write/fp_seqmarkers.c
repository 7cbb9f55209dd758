#include "write/fp_seqmarkers.h"

#include "base/fp_room.h"

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

enum { NO_FRAME = -1, FEW = 16 };

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

static fp_status find_one(fp_seqmarkers *markers, int32_t range) {
  const fp_seqmarkers_tables *t = &markers->tables;
  if (range < 0 || range >= t->n_ranges) return FP_E_INDEX;
  int32_t label = t->label_of_range[range];
  if (label < 0 || label >= t->heads.count) return FP_E_INDEX;
  if (!t->is_torch[label]) return FP_OK;
  fp_status status = fp_reserve(&markers->found, &markers->found_capacity, markers->n_found + 1,
                                sizeof *markers->found);
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

/* Most bytes of a marker without its head and tail: ", ", two quotes, two keys with numbers; and of
 * the bracket after the last. */
enum { KEY_LENGTH = 10, MARKER_LENGTH = 4 + 2 * (KEY_LENGTH + FP_NUMBER_LENGTH) + 1 };

static fp_status reserve_list(fp_seqmarkers *markers, int64_t length) {
  size_t needed = markers->list_length + (size_t)length + FP_TEXT_BEYOND;
  return fp_reserve(&markers->list, &markers->list_capacity, needed, 1);
}

static char *put(char *at, fp_text text) {
  for (int64_t done = 0; done < text.length; done += FP_TEXT_BEYOND)
    memcpy(at + done, text.bytes + done, FP_TEXT_BEYOND);
  return at + text.length;
}

static char *put_number(char *at, const char *key, int64_t length, int64_t value) {
  if (value < 0) return at;
  char digits[FP_NUMBER_LENGTH + FP_TEXT_BEYOND];
  char *end = digits + FP_NUMBER_LENGTH, *start = fp_number_before(end, value);
  memcpy(at, key, (size_t)length);
  return put(at + length, (fp_text){start, end - start});
}

static fp_status append_marker(fp_seqmarkers *markers, const marker *one) {
  if (one->head.length > INT64_MAX / 4 || one->tail.length > INT64_MAX / 4) return FP_E_MEMORY;
  fp_status status = reserve_list(markers, one->head.length + one->tail.length + MARKER_LENGTH);
  if (status != FP_OK) return status;
  char *at = markers->list + markers->list_length;
  if (markers->list_length > 1) {
    *at++ = ',';
    *at++ = ' ';
  }
  *at++ = markers->tables.quote;
  at = put(at, one->head);
  at = put_number(at, ", seq = ", 8, one->seq);
  at = put_number(at, ", op_id = ", 10, one->op_id);
  at = put(at, one->tail);
  *at++ = markers->tables.quote;
  markers->list_length = (size_t)(at - markers->list);
  return FP_OK;
}

static int contains(fp_text text, fp_text part) {
  if (part.length == 0) return 1;
  for (int64_t at = 0; at + part.length <= text.length; at++)
    if (memcmp(text.bytes + at, part.bytes, (size_t)part.length) == 0) return 1;
  return 0;
}

/* Sorts few markers without a call for each comparison. */
static void sort(marker *found, size_t n) {
  if (n > FEW) {
    qsort(found, n, sizeof *found, compare_markers);
    return;
  }
  for (size_t i = 1; i < n; i++) {
    marker one = found[i];
    size_t at = i;
    for (; at > 0 && compare_markers(&found[at - 1], &one) > 0; at--) found[at] = found[at - 1];
    found[at] = one;
  }
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
  fp_status status = reserve_list(markers, 2);
  if (status != FP_OK) return status;
  markers->list[markers->list_length++] = '[';
  for (size_t i = 0; i < markers->n_found && status == FP_OK; i++) {
    if (i > 0 && repeats(&found[i - 1], &found[i])) continue;
    status = append_marker(markers, &found[i]);
  }
  if (status == FP_OK) markers->list[markers->list_length++] = ']';
  return status;
}

fp_status fp_seqmarkers_list(fp_seqmarkers *markers, int64_t row, fp_text *list) {
  if (row < 0 || row >= markers->tables.n_rows) return FP_E_INDEX;
  int32_t frame = markers->tables.frame_of_row[row];
  if (!markers->is_valid || frame != markers->frame) {
    markers->is_valid = 0;
    fp_status status = find_all(markers, frame);
    if (status != FP_OK) return status;
    sort(markers->found, markers->n_found);
    status = append_all(markers);
    if (status != FP_OK) return status;
    markers->frame = frame;
    markers->is_valid = 1;
  }
  *list = (fp_text){markers->list, (int64_t)markers->list_length};
  return FP_OK;
}
