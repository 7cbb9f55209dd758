/* chain.c: fp_chain, fp_held and fp_grouped on arrays of exactly their size, against plain loops.
 */
#include "analysis/fp_chain.h"
#include "analysis/fp_grouped.h"
#include "analysis/fp_held.h"
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

static void events_overlap_windows(int32_t n, int32_t n_windows) {
  int64_t *start = ARRAY(int64_t, n), *end = ARRAY(int64_t, n), *rows = ARRAY(int64_t, n + 1);
  int64_t *first = ARRAY(int64_t, n_windows), *last = ARRAY(int64_t, n_windows);
  int64_t n_rows, next = 0;
  int32_t *label = ARRAY(int32_t, n);
  const uint8_t wanted[] = {1, 0};
  for (int32_t i = 0; i < n; i++) {
    start[i] = i;
    end[i] = i + random_below(9);
    label[i] = random_below(3) - 1;
  }
  for (int32_t w = 0; w < n_windows; w++) {
    first[w] = 6 * w + random_below(3);
    last[w] = first[w] + random_below(4);
  }
  const fp_grouped_events events = {NULL, start, end, n, 0};
  const fp_grouped_choice choice = {NULL, label, wanted, 0, LENGTH(wanted)};
  const fp_grouped_windows windows = {first, last, n_windows};
  CHECK(fp_grouped_overlapping(&events, &choice, &windows, rows, &n_rows) == FP_OK);
  for (int32_t i = 0; i < n; i++) {
    bool overlaps = false;
    for (int32_t w = 0; w < n_windows; w++) overlaps |= first[w] < end[i] && last[w] > start[i];
    if (overlaps && label[i] == 0) CHECK(next < n_rows && rows[next++] == i);
  }
  CHECK(next == n_rows);
  void *all[] = {start, end, rows, first, last, label};
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

/* Work of one after the other, launched by calls of odd numbers. */
static void launches_hold_up_pieces(int32_t n_work, int32_t n_pieces) {
  int32_t n_calls = n_work / 2, *row = ARRAY(int32_t, n_work), *call = ARRAY(int32_t, n_work);
  int32_t *thread = ARRAY(int32_t, n_calls);
  int64_t *start = ARRAY(int64_t, n_work), *end = ARRAY(int64_t, n_work), at = 0, total = 0;
  int64_t *launch = ARRAY(int64_t, n_work), *returned = ARRAY(int64_t, n_calls);
  int64_t *time = ARRAY(int64_t, n_pieces), *sums = ARRAY(int64_t, n_pieces);
  int64_t *waiting = ARRAY(int64_t, n_pieces + 1), busy = 0;
  double *stretched = ARRAY(double, n_pieces);
  for (int32_t i = 0; i < n_work; i++) {
    launch[i] = random_below(5) ? at - random_below(9) : FP_HELD_NO_TIME;
    start[i] = at += random_below(4);
    end[i] = at += random_below(5);
    busy += end[i] - start[i];
    row[i] = i;
    call[i] = i % 2 ? i / 2 : -1;
  }
  for (int32_t i = 0; i < n_calls; i++) {
    thread[i] = i;
    returned[i] = random_below(200);
  }
  for (int32_t p = 0; p < n_pieces; p++) {
    time[p] = p == n_pieces - 1 ? at + 1 : p * at / n_pieces;
    stretched[p] = 1 + random_below(3) / 2.0;
  }
  const fp_held_work work = {start, end, row, n_work, 0};
  const fp_held_arrivals arrivals = {NULL, NULL, NULL, 0};
  const fp_held_launches launches = {launch, call, thread, returned, n_work, n_calls};
  const fp_held_pieces pieces = {time, sums, stretched, n_pieces};
  fp_held held = {ARRAY(int64_t, n_pieces),
                  ARRAY(int32_t, n_pieces),
                  ARRAY(int64_t, n_pieces),
                  ARRAY(int64_t, n_pieces),
                  ARRAY(int64_t, n_work),
                  ARRAY(int64_t, n_work),
                  0};
  CHECK(fp_held_sums(&work, time, n_pieces, sums) == FP_OK);
  for (int32_t p = 0; p < n_pieces; p++) total += sums[p];
  CHECK(total == busy);
  CHECK(fp_held_find(&work, &arrivals, &launches, &pieces, 4, 20, &held) == FP_OK);
  for (int32_t p = 0; p < n_pieces; p++) {
    int64_t latest = FP_HELD_NO_TIME;
    for (int32_t i = 0; i < n_work; i++) {
      const bool begins =
          end[i] > start[i] && start[i] < time[p] && (!p || start[i] >= time[p - 1]);
      if (begins && launch[i] > latest) latest = launch[i];
    }
    CHECK(held.launch[p] == latest);
    CHECK((held.allowed[p] == FP_HELD_NO_TIME) == (latest == FP_HELD_NO_TIME));
  }
  CHECK(fp_held_waiting(&work, &arrivals, &launches, time, n_pieces, waiting) == FP_OK);
  if (n_work && end[n_work - 1] > start[n_work - 1]) {
    row[n_work - 1] = n_work;
    CHECK(fp_held_find(&work, &arrivals, &launches, &pieces, 4, 20, &held) == FP_E_INDEX);
  }
  void *all[] = {row,          call,      thread,       start,
                 end,          launch,    returned,     time,
                 sums,         waiting,   stretched,    held.launch,
                 held.thread,  held.rest, held.allowed, held.slow_launch,
                 held.slow_end};
  for (int32_t i = 0; i < LENGTH(all); i++) free(all[i]);
}

int main(void) {
  for (int32_t round = 0; round < rounds(4000); round++) {
    int32_t n_pieces = 1 + random_below(MOST_PIECES);
    entries_are_those_of_loops(random_below(MOST_WORK), n_pieces, random_below(20),
                               random_below(2) ? 30 : LABELS);
    groups_are_busy_as_long(random_below(30), 1 + random_below(5), 1 + random_below(2));
    threads_are_in_order(random_below(30), 1 + random_below(5));
    events_overlap_windows(random_below(40), random_below(7));
    launches_hold_up_pieces(random_below(MOST_WORK), 1 + random_below(MOST_PIECES));
  }
  entries_are_those_of_loops(0, 1, 0, 1);
  groups_are_busy_as_long(0, 1, 1);
  threads_are_in_order(0, 1);
  return 0;
}
