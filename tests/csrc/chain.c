/* chain.c: fp_chain and fp_grouped on arrays of exactly their size, against plain loops. */
#include "analysis/fp_chain.h"
#include "analysis/fp_grouped.h"
#include "check.h"

enum { MOST_WORK = 40, MOST_PIECES = 12, LABELS = 3000, END = 200 };

/* The label at each moment, of the first work to start; -1 for none. */
static void paint(const fp_chain_work *work, int32_t *label_at) {
  int64_t until = 0;
  for (int64_t t = 0; t < END; t++) label_at[t] = -1;
  for (int64_t i = 0; i < work->n; i++) {
    for (int64_t t = work->start[i]; t < work->end[i]; t++)
      if (t >= until) label_at[t] = work->label[i];
    if (work->end[i] > until) until = work->end[i];
  }
}

static void entries_are_those_of_loops(int32_t n_work, int32_t n_pieces, int32_t n_idle,
                                       int32_t spread) {
  int64_t room = n_work + n_pieces + n_idle, begin = 0, covered = 0, at = 0;
  int64_t *start = ARRAY(int64_t, n_work), *end = ARRAY(int64_t, n_work);
  int64_t *time = ARRAY(int64_t, n_pieces), *idle_ns = ARRAY(int64_t, n_idle);
  int32_t *label = ARRAY(int32_t, n_work), *idle_label = ARRAY(int32_t, n_idle);
  int32_t *piece = ARRAY(int32_t, n_idle), *label_at = ARRAY(int32_t, END);
  for (int32_t i = 0; i < n_work; i++) {
    start[i] = at += random_below(4);
    end[i] = start[i] + random_below(8);
    label[i] = random_below(spread);
  }
  for (int32_t p = 0; p < n_pieces; p++)
    time[p] = p == n_pieces - 1 ? END : p * (END / MOST_PIECES);
  for (int32_t i = 0; i < n_idle; i++) {
    piece[i] = (int32_t)((int64_t)i * n_pieces / n_idle);
    idle_label[i] = random_below(spread);
    idle_ns[i] = 1;
  }
  const fp_chain_work work = {start, end, label, n_work};
  const fp_chain_idle idle = {piece, idle_label, idle_ns, n_idle};
  const fp_chain_scratch scratch = {ARRAY(int64_t, LABELS), ARRAY(int32_t, LABELS),
                                    ARRAY(int32_t, LABELS), ARRAY(uint64_t, LABELS / 64 + 1)};
  const fp_chain_entries found = {ARRAY(int64_t, n_pieces + 1), ARRAY(int32_t, room),
                                  ARRAY(int64_t, room), ARRAY(int32_t, room)};
  memset(scratch.is_used, 0, (LABELS / 64 + 1) * sizeof *scratch.is_used);
  CHECK(fp_chain(&work, &idle, 0, time, n_pieces, LABELS, &scratch, &found) == FP_OK);
  CHECK(found.offsets[n_pieces] <= room);
  paint(&work, label_at);
  for (int32_t p = 0; p < n_pieces; begin = time[p++])
    for (int64_t i = found.offsets[p]; i < found.offsets[p + 1]; i++) {
      int64_t ns = 0;
      CHECK(i == found.offsets[p] || found.label[i] > found.label[i - 1]);
      for (int64_t t = begin; t < time[p]; t++) ns += label_at[t] == found.label[i];
      covered += ns;
      for (int32_t k = 0; k < n_idle; k++) ns += piece[k] == p && idle_label[k] == found.label[i];
      CHECK(found.ns[i] == ns);
    }
  for (int64_t t = 0; t < END; t++) covered -= label_at[t] >= 0;
  CHECK(covered == 0);
  if (n_work) {
    label[n_work - 1] = LABELS;
    end[n_work - 1] = END;
    CHECK(fp_chain(&work, &idle, 0, time, n_pieces, LABELS, &scratch, &found) == FP_E_INDEX);
  }
  void *all[] = {start,         end,           label,        time,
                 idle_ns,       idle_label,    piece,        label_at,
                 scratch.ns,    scratch.count, scratch.used, scratch.is_used,
                 found.offsets, found.label,   found.ns,     found.count};
  for (int32_t i = 0; i < LENGTH(all); i++) free(all[i]);
}

static void groups_are_busy_as_long(int32_t n, int32_t n_threads, int32_t n_groups) {
  int64_t *start = ARRAY(int64_t, n), *end = ARRAY(int64_t, n),
          *bounds = ARRAY(int64_t, n_groups + 1);
  int32_t *thread = ARRAY(int32_t, n), *group = ARRAY(int32_t, n_threads);
  const fp_grouped_scratch scratch = {ARRAY(int64_t, n_groups), ARRAY(int64_t, n_groups),
                                      ARRAY(uint8_t, n_groups)};
  for (int32_t i = 0; i < n; i++) {
    start[i] = i + random_below(2);
    end[i] = start[i] + random_below(9);
    thread[i] = random_below(n_threads + 1) - 1;
  }
  for (int32_t t = 0; t < n_threads; t++) group[t] = t % n_groups;
  const fp_grouped_events events = {thread, start, end, n, n_threads};
  const fp_grouped_choice choice = {group, NULL, NULL, n_groups, 0};
  memset(scratch.has_any, 0, (size_t)n_groups);
  CHECK(fp_grouped_count(&events, &choice, &scratch, bounds) == FP_OK);
  int64_t *first = ARRAY(int64_t, bounds[n_groups]), *last = ARRAY(int64_t, bounds[n_groups]);
  memset(scratch.has_any, 0, (size_t)n_groups);
  CHECK(fp_grouped_unite(&events, &choice, &scratch, bounds, first, last) == FP_OK);
  for (int32_t g = 0; g < n_groups; g++)
    for (int64_t t = 0; t < n + 12; t++) {
      bool is_busy = false, is_found = false;
      for (int32_t i = 0; i < n; i++)
        is_busy |= thread[i] >= 0 && group[thread[i]] == g && start[i] <= t && t < end[i];
      for (int64_t i = bounds[g]; i < bounds[g + 1]; i++) is_found |= first[i] <= t && t < last[i];
      CHECK(is_busy == is_found);
    }
  void *all[] = {start,         end,          bounds,          thread, group,
                 scratch.until, scratch.next, scratch.has_any, first,  last};
  for (int32_t i = 0; i < LENGTH(all); i++) free(all[i]);
}

static void threads_are_in_order(int32_t n, int32_t n_threads) {
  int32_t *thread = ARRAY(int32_t, n), known = 0;
  int64_t *start = ARRAY(int64_t, n), *next = ARRAY(int64_t, n_threads);
  for (int32_t i = 0; i < n; i++) {
    start[i] = i;
    thread[i] = random_below(n_threads + 1) - 1;
    known += thread[i] >= 0;
  }
  const fp_grouped_events events = {thread, start, start, n, n_threads};
  const fp_grouped_threads found = {ARRAY(int64_t, n_threads + 1), ARRAY(int64_t, n),
                                    ARRAY(int64_t, n), ARRAY(int64_t, n)};
  CHECK(fp_grouped(&events, next, &found) == FP_OK);
  CHECK(found.bounds[n_threads] == known);
  for (int32_t t = 0; t < n_threads; t++)
    for (int64_t i = found.bounds[t]; i < found.bounds[t + 1]; i++) {
      CHECK(thread[found.order[i]] == t && found.start[i] == found.order[i]);
      CHECK(i == found.bounds[t] || found.order[i] > found.order[i - 1]);
    }
  void *all[] = {thread, start, next, found.bounds, found.order, found.start, found.until};
  for (int32_t i = 0; i < LENGTH(all); i++) free(all[i]);
}

int main(void) {
  for (int32_t round = 0; round < rounds(4000); round++) {
    int32_t n_pieces = 1 + random_below(MOST_PIECES);
    entries_are_those_of_loops(random_below(MOST_WORK), n_pieces, random_below(20),
                               random_below(2) ? 30 : LABELS);
    groups_are_busy_as_long(random_below(30), 1 + random_below(5), 1 + random_below(2));
    threads_are_in_order(random_below(30), 1 + random_below(5));
  }
  entries_are_those_of_loops(0, 1, 0, 1);
  groups_are_busy_as_long(0, 1, 1);
  threads_are_in_order(0, 1);
  return 0;
}
