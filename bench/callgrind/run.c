/* run.c: see run.h. Layers of operators forward on one thread, in reverse on the other. */
#include "run.h"

#include <stdarg.h>

run_ranges RUN;
run_frames FRAMES;

static int64_t now; /* ns */

static int32_t open_range(int32_t thread, int32_t label, int64_t seq) {
  int32_t i = RUN.n++;
  CHECK(i < MOST_RANGES);
  now += 1 + random_below(200);
  RUN.start[i] = now;
  RUN.thread[i] = thread;
  RUN.label[i] = label;
  RUN.seq[i] = seq;
  return i;
}

static void close_range(int32_t i) {
  now += 1 + random_below(100);
  RUN.end[i] = now;
}

static void launch(int32_t thread) {
  int32_t i = RUN.n_launches++;
  CHECK(i < MOST_RANGES);
  now += 1 + random_below(300);
  RUN.launch_start[i] = now;
  now += 5;
  RUN.launch_thread[i] = thread;
}

static void play_operator(int32_t thread, int32_t form, int32_t op, int64_t seq) {
  int32_t label = FORWARD_LABEL + form * N_OPS + op;
  int32_t outer = open_range(thread, label, seq);
  int32_t inner = open_range(thread, label + N_OPS, form == 0 && op % 2 ? seq : -1);
  for (int32_t i = 0; i <= op % 3; i++) launch(thread);
  close_range(inner);
  close_range(outer);
}

static void play_step(int64_t seq) {
  for (int32_t layer = 0; layer < N_LAYERS; layer++) {
    int32_t around = open_range(0, layer, -1);
    for (int32_t op = 0; op < N_OPS; op++) play_operator(0, 0, op, seq + layer * N_OPS + op);
    close_range(around);
  }
  for (int32_t i = N_LAYERS * N_OPS - 1; i >= 0; i--) play_operator(1, 2, i % N_OPS, seq + i);
}

void make_run(void) {
  for (int32_t label = FORWARD_LABEL; label < N_LABELS; label++) {
    int32_t form = (label - FORWARD_LABEL) / N_OPS;
    RUN.bits[label] = form < 2 ? FP_LABEL_TORCH : FP_LABEL_TORCH | FP_LABEL_BACKWARD;
    if (form == 2) RUN.bits[label] |= FP_LABEL_NODE;
  }
  for (int64_t step = 0; step < N_STEPS; step++) play_step(step * N_LAYERS * N_OPS);
}

void nest_run(void) {
  fp_intervals ranges = {RUN.start, RUN.end, RUN.thread, RUN.n};
  fp_points points = {RUN.launch_start, RUN.launch_thread, RUN.n_launches};
  fp_frames frames = {FRAMES.parent, FRAMES.range, FRAMES.first, 0, MOST_RANGES};
  fp_nest_place place = {0, 0};
  int32_t top[N_THREADS];
  for (int32_t i = 0; i < N_THREADS; i++) top[i] = -1;
  CHECK(fp_nest(ranges, points, N_THREADS, top, &frames, &place, FRAMES.frame_of_range,
                FRAMES.frame_of_launch) == FP_OK);
  FRAMES.n = frames.n;
}

void path_run(void) {
  for (int32_t i = 0; i < FRAMES.n; i++) FRAMES.label[i] = RUN.label[FRAMES.range[i]];
  FRAMES.nodes = fp_tree_new();
  CHECK(FRAMES.nodes);
}

void add_text(run_text *text, const char *format, ...) {
  enum { LONGEST = 4096 };
  if (text->capacity - text->length < LONGEST) {
    text->capacity = 2 * text->capacity + LONGEST;
    text->bytes = realloc(text->bytes, text->capacity);
    CHECK(text->bytes);
  }
  va_list arguments;
  va_start(arguments, format);
  int n = vsnprintf(text->bytes + text->length, LONGEST, format, arguments);
  va_end(arguments);
  CHECK(n >= 0 && n < LONGEST);
  text->length += (size_t)n;
}
