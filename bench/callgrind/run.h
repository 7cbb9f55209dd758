/* run.h: a simulated training run of fixed size, and the output of earlier stages. */
#ifndef RUN_H
#define RUN_H

#include "check.h" /* tests/csrc */
#include "path/fp_link.h"
#include "path/fp_nest.h"
#include "path/fp_tree.h"

enum { N_STEPS = 40, N_LAYERS = 12, N_OPS = 8, N_THREADS = 2, MOST_RANGES = 40000 };

/* Labels: of layers, then of each operator forward, inside it, backward, and inside that. */
enum { FORWARD_LABEL = N_LAYERS, N_FORMS = 4, N_LABELS = N_LAYERS + N_FORMS * N_OPS };

/* Ranges and launches in order of start, as fp_order_sort sorts; seq -1 is none. */
typedef struct {
  int64_t start[MOST_RANGES], end[MOST_RANGES], seq[MOST_RANGES];
  int32_t thread[MOST_RANGES], label[MOST_RANGES], n;
  int64_t launch_start[MOST_RANGES];
  int32_t launch_thread[MOST_RANGES], n_launches;
  uint8_t bits[N_LABELS]; /* of FP_LABEL_* */
} run_ranges;

/* Frames, nodes and links of the run; every function fills what those before it left empty. */
typedef struct {
  int32_t parent[MOST_RANGES], range[MOST_RANGES], n;
  int32_t first[MOST_RANGES];
  int32_t frame_of_range[MOST_RANGES], frame_of_launch[MOST_RANGES];
  int32_t label[MOST_RANGES], node[MOST_RANGES];
  fp_tree *nodes;
} run_frames;

extern run_ranges RUN;
extern run_frames FRAMES;

void make_run(void);
void nest_run(void);
void path_run(void);

/* A text of `length` bytes and room for more. */
typedef struct {
  char *bytes;
  size_t length, capacity;
} run_text;

void add_text(run_text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
