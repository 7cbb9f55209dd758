/* fp_kinds.c: see fp_kinds.h. Open addressing. */
#include "cost/fp_kinds.h"

#include <stdbool.h>
#include <stdlib.h>

#include "base/fp_mix.h"

struct fp_kinds {
  int32_t *slots; /* id or -1 */
  uint64_t mask;
  uint64_t secret; /* see fp_mix_secret */
  fp_kind *values;
  int32_t count, capacity;
};

/* The table grows when half of the slots are used. */
static fp_status resize(fp_kinds *kinds, int32_t capacity) {
  const uint64_t n_slots = (uint64_t)capacity * 2;
  fp_kind *values = realloc(kinds->values, (size_t)capacity * sizeof *values);
  if (!values) return FP_E_MEMORY;
  kinds->values = values;
  int32_t *slots = malloc(n_slots * sizeof *slots);
  if (!slots) return FP_E_MEMORY;
  free(kinds->slots);
  kinds->slots = slots;
  kinds->mask = n_slots - 1;
  kinds->capacity = capacity;
  for (uint64_t i = 0; i < n_slots; i++) slots[i] = -1;
  return FP_OK;
}

fp_kinds *fp_kinds_new(void) {
  fp_kinds *kinds = calloc(1, sizeof *kinds);
  if (!kinds) return NULL;
  kinds->secret = fp_mix_secret(kinds);
  if (resize(kinds, 1 << 10) == FP_OK) return kinds;
  fp_kinds_free(kinds);
  return NULL;
}

void fp_kinds_free(fp_kinds *kinds) {
  if (!kinds) return;
  free(kinds->slots);
  free(kinds->values);
  free(kinds);
}

static bool are_equal(const fp_kind *a, const fp_kind *b) {
  return a->label == b->label && a->work == b->work && a->helper == b->helper &&
         a->is_backward == b->is_backward && a->is_gradient == b->is_gradient;
}

static uint64_t pair(int32_t high, int32_t low) {
  return (uint64_t)(uint32_t)high << 32 | (uint32_t)low;
}

/* The slot of the kind, or the empty slot to insert it in. */
static int32_t *slot_of(const fp_kinds *kinds, const fp_kind *kind) {
  const int32_t flags = kind->is_backward * 2 + kind->is_gradient;
  uint64_t at =
      fp_mix(pair(kind->label, kind->work) ^ kinds->secret, pair(flags, kind->helper) ^ FP_MIX_1);
  for (at &= kinds->mask;; at = (at + 1) & kinds->mask) {
    const int32_t found = kinds->slots[at];
    if (found < 0 || are_equal(&kinds->values[found], kind)) return &kinds->slots[at];
  }
}

fp_status fp_kinds_intern(fp_kinds *kinds, const fp_kind *kind, int32_t *id) {
  int32_t *slot = slot_of(kinds, kind);
  if (*slot < 0) {
    if (kinds->count == kinds->capacity) {
      if (kinds->capacity > INT32_MAX / 2) return FP_E_TOO_MANY;
      fp_status status = resize(kinds, kinds->capacity * 2);
      if (status != FP_OK) return status;
      for (int32_t i = 0; i < kinds->count; i++) *slot_of(kinds, &kinds->values[i]) = i;
      slot = slot_of(kinds, kind);
    }
    kinds->values[kinds->count] = *kind;
    *slot = kinds->count++;
  }
  *id = *slot;
  return FP_OK;
}

int32_t fp_kinds_count(const fp_kinds *kinds) { return kinds->count; }

fp_kind fp_kinds_at(const fp_kinds *kinds, int32_t id) { return kinds->values[id]; }
