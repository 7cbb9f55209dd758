#include "cost/fp_parts.h"

#include <string.h>

#include "cost/fp_calls.h"

/* The state of the kernels of one call together. */
enum {
  RECOGNISED = 1, /* a kernel does a main part */
  UNKNOWN = 2,    /* a kernel is unrecognised */
  CLAIMED = 4,    /* a kernel matches the first gradient; the next bit: the second */
  SETTLED = 16,   /* a kernel matches its gradient unambiguously */
  UNSURE = 32,    /* a kernel matches ambiguously */
  SEVERAL = 64,   /* two or more do */
  MET = 128,      /* an ambiguous kernel has been resolved */
};

/* Flags of a claim. */
enum {
  IS_MAIN = 1,     /* the part is one of the products */
  MAY_MOVE = 2,    /* one of two gradients, by an ambiguous name */
  IS_COSTED = 4,   /* the cost of the call is known */
  WHOLE_ALWAYS = 8 /* unrecognised kernels do the entire call */
};

static fp_claim claim_of(const fp_parts_tables *t, int32_t form, int32_t info) {
  const int64_t place = (int64_t)form * t->n_infos + info;
  const uint8_t *is_main = &t->main[form * FP_PARTS];
  const int part = t->part_of[place];
  const bool is_gradient = is_main[1] && (part == 0 || part == 1), is_sure = t->sure[place];
  int added = 0, flags = 0;
  if (part >= 0 && is_main[part]) added |= RECOGNISED, flags |= IS_MAIN;
  if (t->costed[form] && t->other[info]) added |= UNKNOWN;
  if (is_gradient) added |= CLAIMED << part | (is_sure ? SETTLED : UNSURE);
  if (is_gradient && !is_sure) flags |= MAY_MOVE;
  if (t->costed[form]) flags |= IS_COSTED;
  if (t->whole_always[form]) flags |= WHOLE_ALWAYS;
  const int n_main = is_main[0] + is_main[1] + is_main[2];
  return (fp_claim){(int8_t)part, t->variant[place], (uint8_t)added, (uint8_t)flags,
                    (uint8_t)n_main};
}

/* The part of a kernel, given the complete state of its group; sets MET in *group_state. */
static int resolved(const fp_claim *c, bool has_group, int n_taken, uint8_t *group_state) {
  const int state = *group_state;
  const bool all_taken = n_taken >= c->n_main && n_taken != FP_SOME_TAKEN;
  if (n_taken && (c->part < 0 || (c->flags & IS_MAIN && all_taken))) return FP_BESIDE;
  if (c->part < 0) {
    bool whole = c->flags & IS_COSTED && !(state & RECOGNISED);
    return whole && (c->flags & WHOLE_ALWAYS || state & UNKNOWN) ? FP_WHOLE : FP_BESIDE;
  }
  bool one_claimed = !(state & CLAIMED) != !(state & CLAIMED << 1);
  if (!(c->flags & MAY_MOVE) || !one_claimed) return c->part;
  if (has_group) *group_state |= MET;
  bool is_second = has_group && state & MET;
  bool several = has_group && state & SEVERAL;
  bool moved = state & SETTLED ? true : several && is_second == (c->part == 0);
  return moved ? 1 - c->part : c->part;
}

static bool are_sound(const fp_parts_tables *t, const fp_parts_kernels *k) {
  bool wrong = false;
  for (int32_t i = 0; i < t->n_rows; i++) wrong |= (uint32_t)t->form[i] >= (uint32_t)t->n_forms;
  for (int64_t i = 0; i < (int64_t)t->n_forms * t->n_infos; i++)
    wrong |= t->part_of[i] < -1 || t->part_of[i] >= FP_PARTS || t->variant[i] >= FP_VARIANTS;
  for (int32_t i = 0; i < k->n_kinds; i++) wrong |= (uint32_t)k->row[i] >= (uint32_t)t->n_rows;
  for (int32_t i = 0; i <= k->n_names; i++) wrong |= (uint32_t)k->info[i] >= (uint32_t)t->n_infos;
  for (int64_t i = 0; i < k->n; i++) {
    wrong |= (uint32_t)k->kind[i] >= (uint32_t)k->n_kinds;
    wrong |= k->name[i] < -1 || k->name[i] >= k->n_names;
    wrong |= k->group[i] < -1 || k->group[i] >= k->n_groups;
  }
  return !wrong;
}

static int32_t row_of(const fp_parts_kernels *k, int64_t i) { return k->row[k->kind[i]]; }

/* Place of a kernel's claim. */
static int64_t place_of(const fp_parts_tables *t, const fp_parts_kernels *k, int64_t i) {
  const int32_t info = k->info[k->name[i] < 0 ? k->n_names : k->name[i]];
  return (int64_t)t->form[row_of(k, i)] * t->n_infos + info;
}

fp_status fp_parts_find(const fp_parts_tables *t, const fp_parts_kernels *k, int32_t *cell,
                        fp_claim *claims, uint8_t *state) {
  if (!are_sound(t, k)) return FP_E_INDEX;
  if (t->n_rows > INT32_MAX / (FP_ALL_PARTS * FP_VARIANTS)) return FP_E_TOO_MANY;
  for (int32_t form = 0; form < t->n_forms; form++)
    for (int32_t info = 0; info < t->n_infos; info++)
      claims[(int64_t)form * t->n_infos + info] = claim_of(t, form, info);
  memset(state, 0, (size_t)k->n_groups + 1);
  for (int64_t i = 0; i < k->n; i++) {
    const fp_claim *claim = &claims[place_of(t, k, i)];
    uint8_t *all = &state[k->group[i] < 0 ? k->n_groups : k->group[i]];
    *all |= claim->added & *all & UNSURE ? claim->added | SEVERAL : claim->added;
  }
  for (int64_t i = 0; i < k->n; i++) {
    const fp_claim *claim = &claims[place_of(t, k, i)];
    const int32_t group = k->group[i];
    int n_taken = group < 0 ? 0 : k->taken[group];
    int part = resolved(claim, group >= 0, n_taken, &state[group < 0 ? k->n_groups : group]);
    cell[i] = (row_of(k, i) * FP_ALL_PARTS + part) * FP_VARIANTS + claim->variant;
  }
  return FP_OK;
}
