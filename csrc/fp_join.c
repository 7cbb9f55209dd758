/* fp_join.c: see fp_join.h.
 *
 * Correlation ids grow with time: those of one process are dense, so one array indexed by id minus
 * the smallest serves it, and neighbours in time are neighbours in memory. Pairs of a process whose
 * ids lie too far apart for that go to a hash table. */
#include "fp_join.h"

#include <stdlib.h>
#include <string.h>

#include "fp_mix.h"

/* What stands in an array or slot: nothing, an id without a row, or FIRST_ROW + row. */
enum { EMPTY = 0, NO_ROW = 1, FIRST_ROW = 2 };

/* An array of at most this many places an id is worth it; a hash slot takes 16 bytes, a place 4. */
enum { MOST_PLACES_AN_ID = 8, FEW_PLACES = 1024 };

typedef struct {
  int64_t first, last; /* ids; first > last: no array */
  int64_t n;           /* pairs of the process, repeats counted */
  uint32_t *rows;      /* [last - first + 1] */
} process_ids;

typedef struct {
  int64_t id;
  int32_t process;
  uint32_t row;
} slot;

struct fp_join {
  process_ids *processes;
  int32_t n_processes;
  slot *slots;
  uint64_t mask;
};

static uint32_t *place_in_slots(const fp_join *join, int32_t process, int64_t id, slot **place) {
  uint64_t h = fp_mix((uint64_t)id ^ FP_MIX_1, (uint64_t)(uint32_t)process ^ FP_MIX_0);
  for (uint64_t at = h & join->mask;; at = (at + 1) & join->mask) {
    *place = &join->slots[at];
    if ((*place)->row == EMPTY || ((*place)->id == id && (*place)->process == process))
      return &(*place)->row;
  }
}

/* Where the row of a pair stands; NULL if the pair cannot be in the table. */
static uint32_t *place_of(const fp_join *join, int32_t process, int64_t id) {
  if (id < 0 || (uint32_t)process >= (uint32_t)join->n_processes) return NULL;
  const process_ids *p = &join->processes[process];
  if (p->rows) return id < p->first || id > p->last ? NULL : &p->rows[id - p->first];
  slot *unused;
  return join->slots ? place_in_slots(join, process, id, &unused) : NULL;
}

static fp_status count_ids(fp_join *join, const int32_t *process, const int64_t *id, int64_t n) {
  for (int64_t i = 0; i < n; i++)
    if (process[i] >= join->n_processes) join->n_processes = process[i] + 1;
  join->processes = calloc((size_t)join->n_processes + 1, sizeof(process_ids));
  if (!join->processes) return FP_E_MEMORY;
  for (int32_t p = 0; p < join->n_processes; p++) join->processes[p].first = INT64_MAX;
  for (int64_t i = 0; i < n; i++) {
    if (process[i] < 0 || id[i] < 0) continue;
    process_ids *p = &join->processes[process[i]];
    if (id[i] < p->first) p->first = id[i];
    if (id[i] > p->last) p->last = id[i];
    p->n++;
  }
  return FP_OK;
}

/* An array for each process whose ids are dense, slots for the others. */
static fp_status allocate(fp_join *join) {
  uint64_t n_scattered = 0, n_slots = 64;
  for (int32_t i = 0; i < join->n_processes; i++) {
    process_ids *p = &join->processes[i];
    if (p->n == 0) continue;
    uint64_t span = (uint64_t)(p->last - p->first); /* plus one; ids are not negative */
    if (span / MOST_PLACES_AN_ID >= (uint64_t)p->n && span >= FEW_PLACES) {
      n_scattered += (uint64_t)p->n;
      continue;
    }
    p->rows = calloc((size_t)span + 1, sizeof(uint32_t));
    if (!p->rows) return FP_E_MEMORY;
  }
  if (n_scattered == 0) return FP_OK;
  while (n_slots < n_scattered * 2) n_slots *= 2;
  join->slots = calloc(n_slots, sizeof(slot));
  join->mask = n_slots - 1;
  return join->slots ? FP_OK : FP_E_MEMORY;
}

static void add(fp_join *join, int32_t process, int64_t id) {
  if (process < 0 || id < 0) return;
  process_ids *p = &join->processes[process];
  if (p->rows) {
    p->rows[id - p->first] = NO_ROW;
    return;
  }
  slot *place;
  place_in_slots(join, process, id, &place);
  *place = (slot){id, process, NO_ROW};
}

fp_join *fp_join_new(const int32_t *process, const int64_t *id, int64_t n) {
  fp_join *join = calloc(1, sizeof *join);
  if (!join) return NULL;
  if (count_ids(join, process, id, n) != FP_OK || allocate(join) != FP_OK) {
    fp_join_free(join);
    return NULL;
  }
  for (int64_t i = 0; i < n; i++) add(join, process[i], id[i]);
  return join;
}

void fp_join_free(fp_join *join) {
  if (!join) return;
  for (int32_t i = 0; join->processes && i < join->n_processes; i++) free(join->processes[i].rows);
  free(join->processes);
  free(join->slots);
  free(join);
}

bool fp_join_has(const fp_join *join, int32_t process, int64_t id) {
  const uint32_t *row = place_of(join, process, id);
  return row && *row != EMPTY;
}

void fp_join_offer(fp_join *join, const int32_t *process, const int64_t *id, int64_t n) {
  for (int64_t i = 0; i < n; i++) {
    uint32_t *row = place_of(join, process[i], id[i]);
    if (row && *row == NO_ROW) *row = FIRST_ROW + (uint32_t)i;
  }
}

void fp_join_rows(const fp_join *join, const int32_t *process, const int64_t *id, int64_t n,
                  int32_t *row) {
  for (int64_t i = 0; i < n; i++) {
    const uint32_t *place = place_of(join, process[i], id[i]);
    row[i] = place && *place >= FIRST_ROW ? (int32_t)(*place - FIRST_ROW) : -1;
  }
}
