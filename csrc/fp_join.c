/* fp_join.c: see fp_join.h.
 *
 * Correlation ids grow with time, so 16 neighbours share a block of slots (one look-up finds its
 * neighbours cached), while blocks are spread by a multiplicative hash against long runs. */
#include "fp_join.h"

#include <stdlib.h>

enum { EMPTY = 0, NO_ROW = 1, FIRST_ROW = 2 };

typedef struct {
  int64_t id;
  int32_t process;
  uint32_t row; /* EMPTY, NO_ROW, or FIRST_ROW + row */
} slot;

struct fp_join {
  slot *slots;
  uint64_t mask;
  uint64_t free_slots; /* one slot always stays empty, so that every search ends */
};

fp_join *fp_join_new(int64_t n) {
  if (n < 0 || (uint64_t)n > SIZE_MAX / sizeof(slot) / 4) return NULL;
  uint64_t n_slots = 64;
  while (n_slots < (uint64_t)n * 3 / 2) n_slots *= 2;
  fp_join *join = malloc(sizeof *join);
  if (!join) return NULL;
  join->slots = calloc(n_slots, sizeof(slot));
  join->mask = n_slots - 1;
  join->free_slots = n_slots - 1;
  if (!join->slots) {
    free(join);
    return NULL;
  }
  return join;
}

void fp_join_free(fp_join *join) {
  if (!join) return;
  free(join->slots);
  free(join);
}

static slot *place_of(const fp_join *join, int32_t process, int64_t id) {
  uint64_t block = (((uint64_t)id >> 4) + (uint64_t)process * 0xd6e8feb86659fd93u);
  block *= 0x9e3779b97f4a7c15u;
  uint64_t at = ((block >> 20) << 4 | ((uint64_t)id & 15)) & join->mask;
  for (;; at = (at + 1) & join->mask) {
    slot *place = &join->slots[at];
    if (place->row == EMPTY || (place->id == id && place->process == process)) return place;
  }
}

fp_status fp_join_add(fp_join *join, const int32_t *process, const int64_t *id, int64_t n) {
  for (int64_t i = 0; i < n; i++) {
    if (id[i] < 0) continue;
    slot *place = place_of(join, process[i], id[i]);
    if (place->row != EMPTY) continue;
    if (join->free_slots == 0) return FP_E_TOO_MANY;
    join->free_slots--;
    *place = (slot){id[i], process[i], NO_ROW};
  }
  return FP_OK;
}

bool fp_join_has(const fp_join *join, int32_t process, int64_t id) {
  return id >= 0 && place_of(join, process, id)->row != EMPTY;
}

void fp_join_offer(fp_join *join, const int32_t *process, const int64_t *id, int64_t n) {
  for (int64_t i = 0; i < n; i++) {
    if (id[i] < 0) continue;
    slot *place = place_of(join, process[i], id[i]);
    if (place->row == NO_ROW) place->row = FIRST_ROW + (uint32_t)i;
  }
}

void fp_join_rows(const fp_join *join, const int32_t *process, const int64_t *id, int64_t n,
                  int32_t *row) {
  for (int64_t i = 0; i < n; i++) {
    const slot *place = id[i] < 0 ? NULL : place_of(join, process[i], id[i]);
    row[i] = place && place->row >= FIRST_ROW ? (int32_t)(place->row - FIRST_ROW) : -1;
  }
}
