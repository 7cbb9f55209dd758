/* rows.c: fp_rows and fp_seqmarkers: every kind of cell, into buffers of every size. */
#include "check.h"
#include "write/fp_rows.h"

/* The padding of texts. */
#define BEYOND_8 "\0\0\0\0\0\0\0\0"
#define BEYOND BEYOND_8 BEYOND_8 BEYOND_8 BEYOND_8
#define TEXT(bytes) ((fp_text){bytes BEYOND, sizeof(bytes) - 1})
enum { N = 3 };

static const int64_t wide[N] = {INT64_MIN, -1, INT64_MAX};
static const int32_t narrow[N] = {INT32_MIN, 0, -1};
static const int32_t triples[3 * N] = {1, 2, 3, -1, -1, -1, INT32_MAX, 0, 1};
static const int64_t offsets[N + 1] = {0, 2, 2, 3};
static const int64_t numbers[3] = {7, INT64_MIN, 9};
static const int32_t text_ids[N] = {1, -1, 0};
static const int64_t text_offsets[] = {0, 0, 4};

static fp_cell int_cell(int64_t width) {
  return (fp_cell){.kind = FP_CELL_INT,
                   .is_wide = 1,
                   .values = wide,
                   .none = -1,
                   .width = width,
                   .before = TEXT("|"),
                   .none_text = TEXT("na")};
}

static fp_cell triple_cell(int64_t width) {
  return (fp_cell){.kind = FP_CELL_INT3,
                   .values = triples,
                   .none = -1,
                   .width = width,
                   .before = TEXT("|"),
                   .none_text = TEXT("na"),
                   .open = TEXT("("),
                   .separator = TEXT(","),
                   .close = TEXT(")")};
}

static fp_cell list_cell(int64_t width) {
  return (fp_cell){.kind = FP_CELL_LIST,
                   .is_wide = 1,
                   .values = numbers,
                   .offsets = offsets,
                   .n_values = 3,
                   .width = width,
                   .before = TEXT("|"),
                   .none_text = TEXT("-"),
                   .open = TEXT("["),
                   .separator = TEXT(", "),
                   .close = TEXT("]")};
}

static fp_cell text_cell(void) {
  return (fp_cell){.kind = FP_CELL_TEXT,
                   .values = text_ids,
                   .before = TEXT("|"),
                   .none_text = TEXT("None"),
                   .texts = {"gemm" BEYOND, text_offsets, 2}};
}

/* Writes all rows with a buffer of `capacity`, which grows if a row does not fit. */
static char *written(const fp_cell *cells, int64_t n_cells, int64_t capacity) {
  char *out = ARRAY(char, 4096);
  int64_t length = 0, next = 0, used;
  fp_status status;
  do {
    char *buffer = ARRAY(char, capacity);
    status = fp_rows_write(cells, n_cells, TEXT("\n"), next, N, buffer, capacity, &next, &used);
    CHECK(status == FP_OK || status == FP_MORE);
    CHECK(used >= 0 && used <= capacity && length + used < 4096);
    memcpy(out + length, buffer, (size_t)used);
    length += used;
    free(buffer);
    if (used == 0) capacity++;
  } while (status == FP_MORE);
  CHECK(next == N);
  out[length] = 0;
  return out;
}

static void check_written(const fp_cell *cells, int64_t n_cells, const char *expected) {
  for (int64_t capacity = 1; capacity < 300; capacity++) {
    char *out = written(cells, n_cells, capacity);
    CHECK(strcmp(out, expected) == 0);
    free(out);
  }
}

static void every_kind_of_cell_is_written(void) {
  fp_cell cells[] = {int_cell(0), triple_cell(0), list_cell(0), text_cell()};
  check_written(cells, LENGTH(cells),
                "|-9223372036854775808|(1,2,3)|[7, -9223372036854775808]|gemm\n"
                "|na|na|-|None\n"
                "|9223372036854775807|(2147483647,0,1)|[9]|\n");
}

static void without_offsets_each_number_is_a_list(void) {
  fp_cell cell = list_cell(0);
  cell.offsets = NULL;
  cell.none = 9;
  check_written(&cell, 1, "|[7]\n|[-9223372036854775808]\n|-\n");
}

static void cells_are_cut_and_padded(void) {
  fp_cell cells[] = {int_cell(5), triple_cell(5), list_cell(3)};
  check_written(cells, LENGTH(cells),
                "|-9223372036854775808|(1,2,|[7,\n"
                "|   na|na   |-  \n"
                "|9223372036854775807|(2147|[9]\n");
}

static void texts_of_nothing_are_nothing(void) {
  fp_cell cell = {.kind = FP_CELL_INT, .values = narrow, .none = -1};
  check_written(&cell, 1, "-2147483648\n0\n\n");
  char buffer[1];
  int64_t next, used;
  fp_text nothing = {NULL, 0};
  CHECK(fp_rows_write(NULL, 0, nothing, 0, N, buffer, 0, &next, &used) == FP_OK);
  CHECK(next == N && used == 0);
}

static fp_status status_of(fp_cell cell) {
  char buffer[256];
  int64_t next, used;
  return fp_rows_write(&cell, 1, TEXT("\n"), 0, N, buffer, sizeof buffer, &next, &used);
}

static void what_points_nowhere_is_said_to_do_so(void) {
  static const int32_t high[N] = {2, 0, 0}, low[N] = {-2, 0, 0};
  static const int64_t backwards[N + 1] = {2, 1, 1, 1}, behind[N + 1] = {0, 4, 4, 4},
                                     before[N + 1] = {-1, 0, 0, 0};
  const int64_t *const wrong[] = {backwards, behind, before};
  fp_cell text = text_cell(), list = list_cell(0);
  text.values = high;
  CHECK(status_of(text) == FP_E_INDEX);
  text.values = low;
  CHECK(status_of(text) == FP_E_INDEX);
  for (int i = 0; i < LENGTH(wrong); i++) {
    list.offsets = wrong[i];
    CHECK(status_of(list) == FP_E_INDEX);
  }
}

/* Two labels of torch, one of the user; frames 0 <- 1 <- 2 <- 3, and 4 alone. */
static const int32_t frame_of_row[N] = {3, 3, -1};
static const int32_t frame_parent[] = {-1, 0, 1, 2, -1}, range_of_frame[] = {0, 1, 2, 3, 0};
static const int32_t label_of_range[] = {0, 2, 1, 0};
static const int64_t seq_of_range[] = {7, -1, INT64_MAX, 7}, op_id_of_range[] = {-1, 1, 3, -1};
static const uint8_t is_torch[] = {1, 1, 0};
static const int64_t head_offsets[] = {0, 2, 3, 7}, tail_offsets[] = {0, 0, 14, 14};

static fp_seqmarkers_tables tables(void) {
  return (fp_seqmarkers_tables){.frame_of_row = frame_of_row,
                                .frame_parent = frame_parent,
                                .range_of_frame = range_of_frame,
                                .label_of_range = label_of_range,
                                .seq_of_range = seq_of_range,
                                .op_id_of_range = op_id_of_range,
                                .is_torch = is_torch,
                                .n_rows = N,
                                .n_frames = LENGTH(frame_parent),
                                .n_ranges = LENGTH(label_of_range),
                                .heads = {"mmauser" BEYOND, head_offsets, 3},
                                .tails = {", sizes = [[]]" BEYOND, tail_offsets, 3},
                                .quote = '\''};
}

static void the_torch_ranges_around_a_row_are_listed_once(void) {
  fp_seqmarkers_tables all = tables();
  fp_cell cell = {.kind = FP_CELL_SEQMARKERS, .markers = fp_seqmarkers_new(&all)};
  check_written(&cell, 1,
                "['mm, seq = 7', 'a, seq = 9223372036854775807, op_id = 3, sizes = [[]]']\n"
                "['mm, seq = 7', 'a, seq = 9223372036854775807, op_id = 3, sizes = [[]]']\n"
                "[]\n");
  fp_seqmarkers_free(cell.markers);
  fp_seqmarkers_free(NULL);
}

static void check_refused(fp_seqmarkers_tables wrong, int64_t row) {
  fp_seqmarkers *markers = fp_seqmarkers_new(&wrong);
  fp_text list;
  CHECK(fp_seqmarkers_list(markers, row, &list) == FP_E_INDEX);
  CHECK(fp_seqmarkers_list(markers, row, &list) == FP_E_INDEX);
  fp_seqmarkers_free(markers);
}

static void markers_that_point_nowhere_are_refused(void) {
  static const int32_t loop[] = {1, 1, 1, 3, -1}, high[] = {9, 9, 9, 9, 9},
                       low[] = {-2, -2, -2, -2, -2};
  check_refused(tables(), -1);
  check_refused(tables(), N);
  fp_seqmarkers_tables wrong = tables();
  wrong.frame_parent = loop;
  check_refused(wrong, 0);
  wrong = tables();
  for (int i = 0; i < 2; i++) {
    wrong.range_of_frame = i ? high : low;
    check_refused(wrong, 0);
  }
  wrong = tables();
  for (int i = 0; i < 2; i++) {
    wrong.label_of_range = i ? high : low;
    check_refused(wrong, 0);
  }
  wrong = tables();
  for (int i = 0; i < 2; i++) {
    wrong.frame_of_row = i ? high : low;
    check_refused(wrong, 0);
  }
}

int main(void) {
  every_kind_of_cell_is_written();
  without_offsets_each_number_is_a_list();
  cells_are_cut_and_padded();
  what_points_nowhere_is_said_to_do_so();
  the_torch_ranges_around_a_row_are_listed_once();
  markers_that_point_nowhere_are_refused();
  texts_of_nothing_are_nothing();
  return 0;
}
