/* driver.c: a small coverage-guided fuzzer for compilers without libFuzzer (gcc).
 *
 *   target [-max_total_time=SECONDS] [-seed=N] [-runs=N] FILE...
 *
 * What is tested is compiled with -fsanitize-coverage=trace-pc, this file without. An input that
 * takes a way through the code that none before it took is kept and mutated further. An input that
 * crashes the target, or takes longer than PATIENCE, is written to the file crash-input. */
#define _XOPEN_SOURCE 700
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { EDGES = 1 << 16, MOST_INPUTS = 1 << 14, LONGEST = 1 << 16, PATIENCE = 20 /* seconds */ };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
void __sanitizer_cov_trace_pc(void);
void __sanitizer_set_death_callback(void (*callback)(void));

typedef struct {
  uint8_t *bytes;
  size_t size;
} input;

static uint8_t hits[EDGES], seen[EDGES]; /* hits in this run; classes of hits in all runs */
static uintptr_t before;
static input inputs[MOST_INPUTS];
static int n_inputs;
static uint8_t current[LONGEST];
static size_t current_size;
static uint64_t random_state = 1;
static int is_done;

/* The compiler inserts a call of this at the start of each basic block. */
void __sanitizer_cov_trace_pc(void) {
  uintptr_t here = (uintptr_t)__builtin_return_address(0) - (uintptr_t)&LLVMFuzzerTestOneInput;
  size_t edge = (here * 0x9e3779b97f4a7c15u >> 48) ^ before;
  if (hits[edge % EDGES] < 255) hits[edge % EDGES]++;
  before = (here * 0x9e3779b97f4a7c15u >> 48) >> 1;
}

static uint64_t random_bits(void) { /* splitmix64 */
  uint64_t x = random_state += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

static size_t below(size_t n) { return n ? (size_t)(random_bits() % n) : 0; }

static void keep_crash(void) {
  FILE *file = is_done ? NULL : fopen("crash-input", "wb");
  if (!file) return;
  fwrite(current, 1, current_size, file);
  fclose(file);
}

static void stop(int number) {
  static const char late[] = "\nan input takes too long: crash-input\n";
  keep_crash();
  if (number == SIGALRM) (void)!write(2, late, sizeof late - 1);
  _exit(1);
}

/* 1, 2, 3, 4 to 7, 8 to 15, 16 to 31, 32 to 127 or more hits: a bit each. */
static uint8_t class_of(uint8_t n) {
  static const uint8_t least[] = {128, 32, 16, 8, 4, 3, 2, 1};
  int i = 0;
  while (n < least[i]) i++;
  return (uint8_t)(1 << i);
}

/* Runs the current input; returns whether it has new coverage. */
static int is_new(void) {
  int found = 0;
  uint8_t *exact = malloc(current_size ? current_size : 1); /* exact size, to detect overreads */
  if (!exact) exit(2);
  memcpy(exact, current, current_size);
  memset(hits, 0, sizeof hits);
  before = 0;
  alarm(PATIENCE);
  LLVMFuzzerTestOneInput(exact, current_size);
  free(exact);
  for (size_t i = 0; i < EDGES; i += 8) {
    uint64_t eight;
    memcpy(&eight, hits + i, 8);
    if (!eight) continue;
    for (size_t k = i; k < i + 8; k++) {
      if (!hits[k] || (seen[k] & class_of(hits[k]))) continue;
      seen[k] |= class_of(hits[k]);
      found = 1;
    }
  }
  return found;
}

static void keep(void) {
  input *to = &inputs[n_inputs < MOST_INPUTS ? n_inputs++ : (int)below(MOST_INPUTS)];
  free(to->bytes);
  to->bytes = malloc(current_size ? current_size : 1);
  if (!to->bytes) exit(2);
  to->size = current_size;
  memcpy(to->bytes, current, current_size);
}

/* Replaces `length` bytes of the current input. */
static void splice(size_t at, size_t length, const uint8_t *bytes, size_t n) {
  if (current_size - length + n > LONGEST) return;
  memmove(current + at + n, current + at + length, current_size - at - length);
  if (n) memmove(current + at, bytes, n);
  current_size += n - length;
}

static void change_number(size_t at) {
  static const uint8_t edges[] = {0,   1,   5,   10,  13,  127, 128, 254,
                                  255, '0', '9', '[', '}', '"', ','};
  uint8_t by = (uint8_t)(1 + below(16));
  switch (below(4)) {
    case 0:
      current[at] ^= (uint8_t)(1 << below(8));
      break;
    case 1:
      current[at] = edges[below(sizeof edges)];
      break;
    case 2:
      current[at] = (uint8_t)(below(2) ? current[at] + by : current[at] - by);
      break;
    default:
      current[at] = (uint8_t)random_bits();
  }
}

static void mutate(void) {
  static uint8_t other[LONGEST];
  for (size_t n = (size_t)1 << below(5); n > 0; n--) {
    size_t at = below(current_size), left = current_size - at;
    size_t length = below(left < 64 || below(8) == 0 ? left + 1 : 64);
    const input *from = &inputs[below((size_t)n_inputs)];
    switch (below(6)) {
      case 0:
        splice(at, length, NULL, 0);
        break;
      case 1: /* copy a part of this or another input */
        length = below(from->size < 256 ? from->size + 1 : 256);
        memcpy(other, from->bytes + below(from->size - length + 1), length);
        splice(at, below(2) ? 0 : (length < left ? length : left), other, length);
        break;
      case 2:
        other[0] = (uint8_t)random_bits();
        splice(at, 0, other, 1);
        break;
      default:
        if (current_size) change_number(at);
    }
  }
}

static void load(const char *path) {
  FILE *file = fopen(path, "rb");
  if (!file) exit(2);
  current_size = fread(current, 1, LONGEST, file);
  fclose(file);
  is_new();
  keep();
}

int main(int argc, char **argv) {
  double seconds = 60;
  long long most = -1, n_runs = 0;
  struct sigaction action = {.sa_handler = stop};
  sigaction(SIGALRM, &action, NULL);
  sigaction(SIGABRT, &action, NULL);
  __sanitizer_set_death_callback(keep_crash);
  atexit(keep_crash); /* a failed CHECK */
  for (int i = 1; i < argc; i++) {
    if (strncmp(argv[i], "-max_total_time=", 16) == 0)
      seconds = atof(argv[i] + 16);
    else if (strncmp(argv[i], "-seed=", 6) == 0)
      random_state = strtoull(argv[i] + 6, NULL, 10);
    else if (strncmp(argv[i], "-runs=", 6) == 0)
      most = atoll(argv[i] + 6);
    else
      load(argv[i]);
  }
  if (!n_inputs) keep();
  int n_seeds = n_inputs;
  struct timespec start, now;
  clock_gettime(CLOCK_MONOTONIC, &start);
  for (now = start; most != n_runs; n_runs++) {
    if (n_runs % 64 == 0) clock_gettime(CLOCK_MONOTONIC, &now);
    if (difftime(now.tv_sec, start.tv_sec) >= seconds) break;
    const input *from = &inputs[below((size_t)n_inputs)];
    current_size = from->size;
    memcpy(current, from->bytes, from->size);
    mutate();
    if (is_new()) keep();
  }
  int n_edges = 0;
  is_done = 1;
  for (size_t i = 0; i < EDGES; i++) n_edges += seen[i] != 0;
  printf("%lld runs, %d edges, %d inputs of which %d were given\n", n_runs, n_edges, n_inputs,
         n_seeds);
  for (int i = 0; i < n_inputs; i++) free(inputs[i].bytes);
  return 0;
}
