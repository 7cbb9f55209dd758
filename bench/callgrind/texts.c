/* texts.c: the stages that read or write text, on the texts of the simulated run. */
#include "kineto/fp_kineto.h"
#include "scan/fp_scan.h"
#include "stages.h"
#include "text/fp_dict.h"
#include "write/fp_rows.h"

run_text RANGE_NAMES[N_TEXTS];

/* Names as torch writes them, with numbers that make each of them another one. */
void make_names(void) {
  for (int i = 0; i < N_TEXTS; i++)
    add_text(&RANGE_NAMES[i], "aten::operator_%d, seq = %d, op_id = %d, sizes = [[%d, 2048], []]",
             i % N_DISTINCT / 2, i / 3, i, i % N_DISTINCT);
}

void names(void) {
  fp_names *labels = fp_names_new();
  fp_scratch scratch = {NULL, 0};
  CHECK(labels);
  for (int i = 0; i < N_TEXTS; i++) {
    int64_t seq, op_id;
    int32_t label;
    CHECK(fp_column_range_name(labels, &scratch, RANGE_NAMES[i].bytes, RANGE_NAMES[i].length,
                               &label, &seq, &op_id) == FP_OK);
  }
  CHECK(fp_names_count(labels) == N_DISTINCT);
  free(scratch.bytes);
  fp_names_free(labels);
}

/* A statement that serves rows of a number that may be NULL, two others, and a range's name. */
struct sqlite3_stmt {
  int at;
};
struct sqlite3 {
  sqlite3_stmt statement;
};

static int step(sqlite3_stmt *statement) {
  return statement->at++ < N_TEXTS ? FP_SQLITE_ROW : FP_SQLITE_DONE;
}
static int type_of(sqlite3_stmt *statement, int column) {
  return column == 0 && statement->at % 5 == 0 ? FP_SQLITE_NULL : 1;
}
static long long number_of(sqlite3_stmt *statement, int column) {
  return column == 0 && statement->at % 5 == 0 ? 0 : 1000LL * statement->at + column;
}
static const unsigned char *text_of(sqlite3_stmt *statement, int column) {
  (void)column;
  return (const unsigned char *)RANGE_NAMES[statement->at - 1].bytes;
}
static int length_of(sqlite3_stmt *statement, int column) {
  (void)column;
  return (int)RANGE_NAMES[statement->at - 1].length;
}
static int finalize(sqlite3_stmt *statement) {
  (void)statement;
  return 0;
}
static int prepare(sqlite3 *db, const char *sql, int length, sqlite3_stmt **statement,
                   const char **tail) {
  (void)sql, (void)length, (void)tail;
  *statement = &db->statement;
  return 0;
}

static const fp_sqlite_api API = {
    .step = step,
    .column_type = type_of,
    .column_int64 = number_of,
    .column_text = text_of,
    .column_bytes = length_of,
    .finalize = finalize,
    .prepare_v2 = prepare,
};

void make_table(void) { make_names(); }

void scan(void) {
  static int64_t start[N_TEXTS], end[N_TEXTS], seq[N_TEXTS], op_id[N_TEXTS];
  static int32_t thread[N_TEXTS], label[N_TEXTS];
  struct sqlite3 db = {{0}};
  fp_names *labels = fp_names_new();
  fp_keys *threads = fp_keys_new();
  fp_scan *statement = fp_scan_new(&API, &db, "");
  CHECK(labels && threads && statement);
  const fp_column each[] = {
      {.kind = FP_COLUMN_I64, .none = -1, .may_be_null = true, .out = start},
      {.kind = FP_COLUMN_I64, .none = -1, .out = end},
      {.kind = FP_COLUMN_KEY, .none = -1, .shift = 24, .keys = threads, .out = thread},
      {.kind = FP_COLUMN_RANGE,
       .none = -1,
       .names = labels,
       .out = label,
       .seq = seq,
       .op_id = op_id},
  };
  int64_t kept = 0, stepped = 0;
  fp_row_filter all = {NULL, NULL, 0};
  const fp_columns columns = {.each = each, .n = LENGTH(each)};
  CHECK(fp_scan_step(statement, &columns, all, N_TEXTS + 1, N_TEXTS + 1, &kept, &stepped) == FP_OK);
  CHECK(kept == N_TEXTS);
  fp_scan_free(statement);
  fp_names_free(labels);
  fp_keys_free(threads);
}

/* Rows of the run's launches as dict lines have them. */
enum { LONGEST_ROW = 1024, MOST_BYTES = 1 << 24 };
static char written[MOST_BYTES];
static int64_t n_written;
static int64_t duration[MOST_RANGES], op_id[MOST_RANGES], offsets[MOST_RANGES + 1];
static int64_t numbers[MOST_RANGES];
static int32_t grid[3 * MOST_RANGES], name_of[MOST_RANGES];

/* As much as is read behind a text. */
#define BEYOND_8 "\0\0\0\0\0\0\0\0"
#define BEYOND BEYOND_8 BEYOND_8 BEYOND_8 BEYOND_8
#define TEXT(bytes) ((fp_text){bytes BEYOND, sizeof(bytes) - 1})
static const char NAMES[] =
    "'vectorized_elementwise_kernel''nvjet_tst_192x192_64x4_2x1_v_bz'None" BEYOND;
static const int64_t NAME_OFFSETS[] = {0, 31, 64, 68};
static int64_t head_offsets[N_LABELS + 1], tail_offsets[N_LABELS + 1];
static uint8_t is_torch[N_LABELS];
static run_text heads, tails;

void make_rows(void) {
  make_run();
  nest_run();
  for (int32_t i = 0; i < RUN.n_launches; i++) {
    duration[i] = 1000 + random_below(100000);
    numbers[i] = i;
    offsets[i + 1] = offsets[i] + i % 2;
    for (int side = 0; side < 3; side++) grid[3 * i + side] = 1 + random_below(500);
    name_of[i] = random_below(3);
  }
  for (int32_t i = 0; i < RUN.n; i++) op_id[i] = i;
  for (int32_t label = 0; label < N_LABELS; label++) {
    add_text(&heads, "aten::operator_%d", label);
    if (label % 2) add_text(&tails, ", sizes = [[%d, 2048], []]", label);
    head_offsets[label + 1] = (int64_t)heads.length;
    tail_offsets[label + 1] = (int64_t)tails.length;
    is_torch[label] = label >= FORWARD_LABEL;
  }
}

void rows(void) {
  fp_seqmarkers_tables tables = {
      .frame_of_row = FRAMES.frame_of_launch,
      .frame_parent = FRAMES.parent,
      .range_of_frame = FRAMES.range,
      .label_of_range = RUN.label,
      .seq_of_range = RUN.seq,
      .op_id_of_range = op_id,
      .is_torch = is_torch,
      .n_rows = RUN.n_launches,
      .n_frames = FRAMES.n,
      .n_ranges = RUN.n,
      .heads = {heads.bytes, head_offsets, N_LABELS},
      .tails = {tails.bytes, tail_offsets, N_LABELS},
      .quote = '\'',
  };
  fp_seqmarkers *markers = fp_seqmarkers_new(&tables);
  CHECK(markers);
  fp_cell cells[] = {
      {.kind = FP_CELL_TEXT,
       .values = name_of,
       .before = TEXT("{'kShortName': "),
       .texts = {NAMES, NAME_OFFSETS, 3}},
      {.kind = FP_CELL_INT,
       .is_wide = 1,
       .values = duration,
       .none = -1,
       .before = TEXT(", 'kDuration': ")},
      {.kind = FP_CELL_SEQMARKERS, .before = TEXT(", 'seqMarker': "), .markers = markers},
      {.kind = FP_CELL_LIST,
       .is_wide = 1,
       .values = numbers,
       .offsets = offsets,
       .n_values = RUN.n_launches,
       .before = TEXT(", 'seqId': "),
       .none_text = TEXT("[]"),
       .open = TEXT("["),
       .separator = TEXT(", "),
       .close = TEXT("]")},
      {.kind = FP_CELL_INT3,
       .values = grid,
       .none = -1,
       .before = TEXT(", 'grid': "),
       .open = TEXT("("),
       .separator = TEXT(", "),
       .close = TEXT(")")},
  };
  int64_t next;
  CHECK(fp_rows_write(cells, LENGTH(cells), TEXT("}\n"), 0, RUN.n_launches, written, MOST_BYTES,
                      &next, &n_written) == FP_OK);
  fp_seqmarkers_free(markers);
}

static void *room(size_t n, size_t size) {
  void *memory = calloc(n, size);
  CHECK(memory);
  return memory;
}

static fp_dict_columns dict_columns;

void make_dict_lines(void) {
  make_rows();
  rows();
  size_t n = (size_t)RUN.n_launches;
  dict_columns.capacity = RUN.n_launches;
  for (int i = 0; i < FP_DICT_INTS; i++) dict_columns.ints[i] = room(n, 8);
  for (int i = 0; i < FP_DICT_TRIPLES; i++) dict_columns.triples[i] = room(3 * n, 4);
  for (int i = 0; i < FP_DICT_TEXTS; i++) dict_columns.texts[i] = room(n, 4);
  for (int i = 0; i < FP_DICT_LISTS; i++) {
    dict_columns.list_offsets[i] = room(n + 1, 8);
    dict_columns.list_values[i] = room(n, 8);
    dict_columns.list_capacity[i] = RUN.n_launches;
  }
}

void dict(void) {
  fp_dict *lines = fp_dict_new();
  size_t used;
  CHECK(lines);
  CHECK(fp_dict_read(lines, written, (size_t)n_written, 1, &dict_columns, &used) == FP_OK);
  CHECK(dict_columns.rows == RUN.n_launches && used == (size_t)n_written);
  fp_dict_free(lines);
}

enum { N_EVENTS = 4000 };
static run_text trace;
static fp_kineto_rows tables[FP_KINETO_TABLES];

void make_events(void) {
  add_text(&trace, "{\"schemaVersion\": 1, \"traceEvents\": [\n");
  for (int i = 0; i < N_EVENTS; i++) {
    add_text(&trace,
             "{\"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": \"aten::mm_%d\", \"pid\": 7, "
             "\"tid\": 8, \"ts\": %d.125, \"dur\": 20.5, \"args\": {\"External id\": %d, "
             "\"Sequence number\": %d, \"Input Dims\": [[%d, 2048], [2048, 512]], "
             "\"Input type\": [\"float\", \"float\"]}},\n",
             i % 50, 1000 + 30 * i, i, i, i % 90);
    add_text(&trace,
             "{\"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"gemm\\u0020%d\", \"pid\": 0, "
             "\"tid\": 7, \"ts\": %d.5, \"dur\": 9, \"args\": {\"External id\": %d, \"device\": 0, "
             "\"stream\": 7, \"correlation\": %d, \"grid\": [%d, 1, 1], \"block\": [128, 1, 1]}}%s",
             i % 40, 1010 + 30 * i, i, i, i % 70, i + 1 < N_EVENTS ? ",\n" : "\n]}\n");
  }
  for (int t = 0; t < FP_KINETO_TABLES; t++) {
    tables[t].capacity = 2 * N_EVENTS;
    for (int i = 0; i < FP_KINETO_COLUMNS; i++) tables[t].columns[i] = room(2 * N_EVENTS, 12);
  }
}

void kineto(void) {
  fp_kineto *reader = fp_kineto_new();
  size_t used;
  CHECK(reader);
  CHECK(fp_kineto_read(reader, trace.bytes, trace.length, tables, &used) == FP_OK);
  CHECK(tables[FP_KINETO_GPU].rows == N_EVENTS && tables[FP_KINETO_RANGES].rows == N_EVENTS);
  fp_kineto_free(reader);
}
