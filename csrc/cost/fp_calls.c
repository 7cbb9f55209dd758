#include "cost/fp_calls.h"

#include <string.h>

static bool is_outside(int32_t index, int32_t n) { return index < -1 || index >= n; }

/* The state of a frame in fp_calls_outside; OUTSIDE is the result. LABEL_BITS: FP_FRAME_* bits. */
enum { OUTSIDE = 1, INHERITED = 2, HAS_NODE = 4, LABEL_BITS = 8 };

static bool says_of(uint8_t state, int bits) { return state & LABEL_BITS * bits; }

fp_status fp_calls_outside(const int32_t *parent, const int32_t *label, int32_t n,
                           const uint8_t *bits, int32_t n_labels, uint8_t *outside) {
  for (int32_t i = 0; i < n; i++) {
    if (parent[i] >= i || (uint32_t)label[i] >= (uint32_t)n_labels) return FP_E_INDEX;
    outside[i] = (uint8_t)(LABEL_BITS * bits[label[i]]);
    if (says_of(outside[i], FP_FRAME_NODE) && parent[i] >= 0) outside[parent[i]] |= HAS_NODE;
  }
  for (int32_t i = 0; i < n; i++) {
    const uint8_t own = outside[i], around = parent[i] < 0 ? 0 : outside[parent[i]];
    const bool is_engine = says_of(own, FP_FRAME_ENGINE);
    if (!(is_engine ? own & HAS_NODE : around & INHERITED)) continue;
    if (says_of(own, FP_FRAME_NODE)) continue;
    if (says_of(own, FP_FRAME_FITS) && says_of(around, FP_FRAME_ENGINE)) continue;
    outside[i] |= is_engine ? INHERITED : INHERITED | OUTSIDE;
  }
  for (int32_t i = 0; i < n; i++) outside[i] &= OUTSIDE;
  return FP_OK;
}

fp_status fp_calls_instances(const int32_t *backward, const int32_t *meaning, const int32_t *picked,
                             int32_t n, int32_t *scratch, int32_t *instance) {
  int32_t *seen = scratch, *first_of = scratch + n;
  for (int32_t i = 0; i < n; i++) seen[i] = first_of[i] = -1;
  for (int32_t i = 0; i < n; i++) {
    instance[i] = i;
    if (backward[i] != i) continue;
    int32_t forward = meaning[i];
    if (is_outside(forward, n)) return FP_E_INDEX;
    if (forward < 0 || seen[forward] >= 0) continue;
    seen[forward] = i;
    int32_t call = picked[forward];
    if (is_outside(call, n)) return FP_E_INDEX;
    if (call < 0) continue;
    if (first_of[call] < 0) first_of[call] = i;
    instance[i] = first_of[call];
  }
  return FP_OK;
}

/* The frames that characterize a kernel; -1 for none. */
typedef struct {
  int32_t own, forward; /* its own call, and the forward call whose backward pass it does */
  int32_t backward;     /* the enclosing backward call */
  int32_t instance;     /* represents the call: own, forward, or one of the backward calls */
  int32_t inner;        /* the innermost operator of known cost in the call */
  int32_t restated;     /* the call inside that restates the one of the purpose: rule 3 */
  int32_t ran;          /* the call inside its own that restates that, else its own */
} fp_kernel;

/* Intermediate results. `restated` and `inside` are NULL if no call is restated. */
typedef struct {
  int32_t *restated; /* [n_frames] the innermost enclosing call that restates its call, or -1 */
  int32_t *inside;   /* [ranges] of a call: the frame inside that restates it, NONE or SEVERAL */
  int32_t *number;   /* [ranges] first pass: 0 for operators counted; then number of the group */
  uint8_t *n_taken;  /* [ranges] number of operators inside that have their own cost */
} fp_calls_state;

/* The bits of a frame's label; 0 without a frame. */
static uint16_t said(const fp_calls_frames *t, int32_t frame) {
  return frame < 0 ? 0 : t->says[t->label[frame]];
}

static bool says(const fp_calls_frames *t, int32_t frame, uint16_t bits) {
  return (said(t, frame) & bits) == bits;
}

static int32_t label_of(const fp_calls_frames *t, int32_t frame) {
  return frame < 0 ? -1 : t->label[frame];
}

/* Whether the indices of frames `from` to `to` are in bounds. */
static bool are_sound(const fp_calls_frames *t, int32_t from, int32_t to) {
  const uint32_t n = (uint32_t)t->n_frames; /* -1 + 1 is 0 in unsigned arithmetic */
  bool wrong = false;
  for (int32_t i = from; i < to; i++) { /* without branches, several times as fast */
    wrong |= t->parent[i] >= i;
    wrong |= (uint32_t)t->label[i] >= (uint32_t)t->n_labels;
    wrong |= (uint32_t)t->range[i] >= n;
    wrong |= t->picked[i] > i || t->picked[i] < -1; /* part of a call: of itself or an ancestor */
    wrong |= (uint32_t)t->inner[i] + 1 > n;
    wrong |= (uint32_t)t->backward[i] + 1 > n;
    wrong |= (uint32_t)t->instance[i] + 1 > n;
  }
  return !wrong;
}

enum { BLOCK = 4096 }; /* frames that fit in the cache together */

/* Whether two frames call the same operator, or both one of the family. */
static bool are_alike(const fp_calls_frames *t, int32_t outer, int32_t inner) {
  return t->name[t->label[outer]] == t->name[t->label[inner]] ||
         said(t, outer) & said(t, inner) & FP_CALL_FAMILY;
}

/* Autocast calls the operator, or one that does its work, again inside itself in another type. */
static bool is_retyped(const fp_calls_frames *t, int32_t outer, int32_t frame) {
  const int32_t of = t->dtypes[t->label[outer]], own = t->dtypes[t->label[frame]];
  return of >= 0 && own >= 0 && of != own && are_alike(t, outer, frame);
}

enum { MOST_RANGES_BETWEEN = 4 };

/* DTensor and vmap call the operator again inside itself with other sizes. */
static bool is_resized(const fp_calls_frames *t, int32_t frame) {
  int32_t outer = t->parent[frame];
  for (int i = 0; i < MOST_RANGES_BETWEEN && outer >= 0 && t->name[t->label[outer]] < 0; i++)
    outer = t->parent[outer];
  if (outer < t->picked[frame]) return false;
  const int32_t of = t->label[outer], own = t->label[frame];
  return t->name[own] >= 0 && t->overload[of] == t->overload[own] && t->sizes[of] != t->sizes[own];
}

/* Whether a frame restates all of the call `outer` around it. */
static bool is_again(const fp_calls_frames *t, int32_t outer, int32_t frame) {
  return (says(t, outer, FP_CALL_KNOWN) && is_retyped(t, outer, frame)) || is_resized(t, frame);
}

/* Whether a frame, of known cost, determines the cost of what it runs of the call `outer`. */
static bool is_restated(const fp_calls_frames *t, int32_t outer, int32_t frame) {
  if (outer == frame || outer < 0 || !says(t, frame, FP_CALL_KNOWN)) return false;
  if (is_again(t, outer, frame)) return true;
  const int32_t flops = t->flops[t->label[frame]];
  return says(t, frame, FP_CALL_MATRICES) && says(t, outer, FP_CALL_KNOWN) && flops >= 0 &&
         flops != t->flops[t->label[outer]];
}

/* Checks all frames, a block at a time; `any`: whether one is restated. */
static fp_status check_frames(const fp_calls_frames *t, bool *any) {
  *any = false;
  for (int32_t from = 0; from < t->n_frames; from += BLOCK) {
    const int32_t to = t->n_frames - from < BLOCK ? t->n_frames : from + BLOCK;
    if (!are_sound(t, from, to)) return FP_E_INDEX;
    for (int32_t i = from; i < to && !*any; i++) *any = is_restated(t, t->picked[i], i);
  }
  return FP_OK;
}

/* The call around a frame that determines the cost unless the frame restates it. */
static int32_t outer_of(const fp_calls_frames *t, const int32_t *restated, int32_t frame) {
  const int32_t parent = t->parent[frame], call = t->picked[frame];
  const bool inherits = parent >= 0 && restated[parent] >= 0 && t->picked[parent] == call;
  return inherits ? restated[parent] : call;
}

static void find_restated(const fp_calls_frames *t, int32_t *restated) {
  for (int32_t i = 0; i < t->n_frames; i++) {
    const int32_t outer = outer_of(t, restated, i);
    restated[i] = is_restated(t, outer, i) ? i : outer == t->picked[i] ? -1 : outer;
  }
}

/* Values of `inside` without a frame; SEVERAL restate a part of the call each. */
enum { NONE = -1, SEVERAL = -2 };

static bool has_inside(const fp_calls_frames *t, const int32_t *inside, int32_t call) {
  return inside && inside[t->range[call]] != NONE;
}

/* The label of the call inside a call that restates all of it, -1 for none. */
static int32_t label_inside(const fp_calls_frames *t, const int32_t *inside, int32_t call) {
  return inside && inside[t->range[call]] >= 0 ? t->label[inside[t->range[call]]] : -1;
}

static fp_kernel kernel_of(const fp_calls_frames *t, const fp_calls_state *s, int32_t frame,
                           int32_t meaning) {
  fp_kernel k = {-1, -1, -1, -1, -1, -1, -1};
  if (t->outside && frame >= 0 && t->outside[frame]) meaning = frame;
  if (meaning >= 0 && meaning != frame) k.forward = t->picked[meaning];
  if (frame >= 0) k.own = t->picked[frame];
  k.instance = k.forward >= 0 ? k.forward : k.own;
  const int32_t purpose = k.forward >= 0 ? meaning : frame;
  if (purpose >= 0 && s->restated) k.restated = s->restated[purpose];
  k.ran = frame >= 0 && s->restated && s->restated[frame] >= 0 ? s->restated[frame] : k.own;
  if (frame < 0) return k;
  if (k.forward >= 0) k.backward = t->backward[frame];
  if (k.backward >= 0 && t->instance[k.backward] >= 0) k.instance = t->instance[k.backward];
  /* Parents precede children: frames before the outermost frame of the call enclose it. */
  int32_t outermost = k.forward >= 0 ? k.backward : k.own;
  if (t->inner[frame] >= outermost) k.inner = t->inner[frame];
  return k;
}

static bool does_product(const fp_calls_frames *t, const fp_kernel *k) {
  if (k->forward < 0 || !says(t, k->forward, FP_CALL_FAMILY)) return false;
  if (!says(t, k->inner, FP_CALL_KNOWN | FP_CALL_FAMILY)) return false;
  return says(t, k->inner, FP_CALL_MATRICES) || says(t, k->forward, FP_CALL_UNKNOWN_BACKWARD);
}

/* Counts a main part of a frame's call that an operator inside does. */
static void take_one(const fp_calls_frames *t, int32_t frame, const fp_calls_state *s) {
  uint8_t *taken = &s->n_taken[t->range[frame]];
  if (*taken < FP_SOME_TAKEN - 1) ++*taken;
}

/* Whether a backward kernel has the cost of its own operator: rule 2. */
static bool does_own(const fp_calls_frames *t, const fp_kernel *k) {
  if (k->forward < 0) return false;
  const bool is_other =
      says(t, k->inner, FP_CALL_KNOWN | FP_CALL_FAMILY) && !says(t, k->forward, FP_CALL_FAMILY);
  if (says(t, k->own, FP_CALL_KNOWN) && (is_other || says(t, k->forward, FP_CALL_UNKNOWN_BACKWARD)))
    return true;
  return says(t, k->own, FP_CALL_FORMULA) && !says(t, k->forward, FP_CALL_FORMULA);
}

/* Records a frame that restates a call; all of it: the innermost of the last of its like. */
static void set_inside(const fp_calls_frames *t, int32_t call, int32_t frame, bool is_all,
                       int32_t *inside) {
  int32_t *at = &inside[t->range[call]];
  if (is_all && are_alike(t, call, frame)) {
    if (*at < frame) *at = frame;
  } else if (*at == NONE) {
    *at = is_all ? frame : SEVERAL;
  } else if (is_all && *at >= 0 && t->range[*at] != t->range[frame] && !are_alike(t, call, *at)) {
    *at = SEVERAL;
  }
}

/* Takes the cost of the calls that restated ones inside of them determine. */
static void take_restated(const fp_calls_frames *t, const fp_kernel *k, const fp_calls_state *s) {
  for (int32_t at = k->ran; at != k->own;) {
    const int32_t outer = outer_of(t, s->restated, at);
    const bool is_all = is_again(t, outer, at);
    uint8_t *taken = &s->n_taken[t->range[outer]];
    if (is_all || *taken != FP_ALL_TAKEN) *taken = is_all ? FP_ALL_TAKEN : FP_SOME_TAKEN;
    if (k->forward < 0) set_inside(t, k->own, at, is_all, s->inside);
    at = outer;
  }
}

/* Records main parts that kernels of a call inside the instance do. */
static void take_parts(const fp_calls_frames *t, const fp_kernel *k, const fp_calls_state *s) {
  if (k->forward < 0 || (does_own(t, k) && !does_product(t, k))) take_restated(t, k, s);
  if (!does_product(t, k) || k->backward < 0) return;
  int32_t product = t->range[k->inner];
  if (s->number[product] == 0) return; /* counted for an earlier kernel */
  s->number[product] = 0;
  bool reaches_instance = product == t->range[k->instance];
  for (int32_t at = k->inner; at > k->backward && t->parent[at] >= 0;) {
    at = t->parent[at];
    if (t->range[at] == product) continue;
    take_one(t, at, s);
    reaches_instance |= t->range[at] == t->range[k->instance];
  }
  if (!reaches_instance) take_one(t, k->instance, s);
}

/* The label of the call that determines the cost, ignoring rules 1, 2 and 4. */
static int32_t base_of(const fp_calls_frames *t, const fp_kernel *k, const int32_t *inside) {
  int32_t call = k->forward >= 0 ? k->forward : k->own;
  if (k->restated >= 0) return t->label[k->restated];
  if (call < 0) return -1;
  /* A cast before the call in another type is outside that call, but has its cost. */
  int32_t restated = label_inside(t, inside, call);
  return restated >= 0 && says(t, call, FP_CALL_KNOWN) ? restated : t->label[call];
}

/* Whether the kernel's own operator is a helper of its call's products, or of the call in another
 * type: rule 4. */
static bool helps(const fp_calls_frames *t, const fp_kernel *k, const int32_t *inside) {
  int32_t call = k->forward >= 0 ? k->forward : k->own;
  uint16_t bias = k->forward >= 0 ? FP_CALL_BIAS_BACKWARD : FP_CALL_BIAS, inner = said(t, k->inner);
  if (!says(t, call, FP_CALL_KNOWN) || !(inner & FP_CALL_KNOWN)) return false;
  if (k->restated < 0 && has_inside(t, inside, call)) {
    const bool is_other = t->range[k->inner] != t->range[call] && !(inner & FP_CALL_FAMILY);
    if ((k->forward < 0 && is_other) || inner & FP_CALL_MOVES) return true;
  }
  if (!says(t, call, FP_CALL_FAMILY) || inner & FP_CALL_FAMILY) return false;
  return inner & FP_CALL_MOVES || !(said(t, call) & bias);
}

_Static_assert(sizeof(fp_kind) == 16, "no padding");

/* A kernel's call, and the frames that represent the instances of `work` and of `label`. */
typedef struct {
  fp_kind kind;
  int32_t of_work, of_label;
} fp_result;

static fp_result result_of(const fp_calls_frames *t, const fp_kernel *k, const int32_t *inside) {
  const uint16_t is_backward = k->forward >= 0;
  const int32_t label = label_of(t, is_backward ? k->forward : k->own);
  if (does_product(t, k)) {
    const fp_kind product = {label, label_of(t, k->inner), -1, is_backward, 0};
    return (fp_result){product, k->inner, k->instance};
  }
  if (does_own(t, k)) {
    const int32_t ran = label_of(t, k->ran);
    if (says(t, k->own, FP_CALL_GRADIENT))
      return (fp_result){{label, ran, -1, is_backward, 0}, k->ran, k->instance};
    return (fp_result){{label_of(t, k->own), ran, -1, 0, 0}, k->ran, k->own};
  }
  fp_result r = {{label, base_of(t, k, inside), -1, is_backward, is_backward}, -1, k->instance};
  if (helps(t, k, inside)) {
    r.kind.helper = label_of(t, k->inner);
    r.of_work = k->inner;
  } else {
    r.of_work = !is_backward && k->restated >= 0 ? k->restated : k->instance;
  }
  return r;
}

/* Whether kernel i has the frames of the one before: its results are the same. */
static bool is_repeated(const int32_t *frame, const int32_t *meaning, int64_t i) {
  return i > 0 && frame[i] == frame[i - 1] && meaning[i] == meaning[i - 1];
}

/* Writes the results; numbers the groups and sets the parts taken of each. */
static fp_status write_results(const fp_calls_frames *t, const fp_calls_state *s,
                               const int32_t *frame, const int32_t *meaning, int64_t n,
                               const fp_calls_of *of, uint8_t *taken, int32_t *n_groups) {
  int32_t known = 0;
  for (int64_t i = 0; i < n; i++) {
    if (is_repeated(frame, meaning, i)) {
      of->kind[i] = of->kind[i - 1];
      of->group[i] = of->group[i - 1];
      of->instance[i] = of->instance[i - 1];
      continue;
    }
    const fp_kernel k = kernel_of(t, s, frame[i], meaning[i]);
    const fp_result r = result_of(t, &k, s->inside);
    fp_status status =
        fp_names_intern(of->kinds, (const char *)&r.kind, sizeof r.kind, &of->kind[i]);
    if (status != FP_OK) return status;
    of->instance[i] = r.of_label < 0 ? -1 : t->range[r.of_label] * 2 + r.kind.is_backward;
    of->group[i] = -1;
    if (r.of_work < 0) continue;
    int32_t instance = t->range[r.of_work];
    if (s->number[instance] < 0) {
      taken[known] = s->n_taken[instance];
      s->number[instance] = known++;
    }
    of->group[i] = s->number[instance];
  }
  *n_groups = known;
  return FP_OK;
}

fp_status fp_calls_find(const fp_calls_frames *t, const int32_t *frame, const int32_t *meaning,
                        int64_t n, const fp_calls_of *of, uint8_t *taken, int32_t *scratch,
                        int32_t *n_groups) {
  const size_t n_frames = (size_t)t->n_frames; /* at least the number of ranges */
  fp_calls_state s = {NULL, NULL, scratch, (uint8_t *)(scratch + n_frames)};
  if (t->n_frames > FP_CALLS_MOST_FRAMES) return FP_E_TOO_MANY;
  bool restated;
  const fp_status status = check_frames(t, &restated);
  if (status != FP_OK) return status;
  if (restated) { /* otherwise, most of the scratch stays untouched: no page of it is used */
    s.inside = scratch + n_frames + n_frames / 4 + 1;
    s.restated = s.inside + n_frames;
    find_restated(t, s.restated);
    memset(s.inside, -1, n_frames * sizeof *s.inside);
  }
  memset(s.n_taken, 0, n_frames * sizeof *s.n_taken);
  memset(s.number, -1, n_frames * sizeof *s.number);
  for (int64_t i = 0; i < n; i++) {
    if (is_outside(frame[i], t->n_frames) || is_outside(meaning[i], t->n_frames)) return FP_E_INDEX;
    const bool is_forward = frame[i] == meaning[i]; /* runs no gradient */
    if (is_repeated(frame, meaning, i) || (is_forward && !s.restated)) continue;
    const fp_kernel k = kernel_of(t, &s, frame[i], meaning[i]);
    take_parts(t, &k, &s);
  }
  memset(s.number, -1, n_frames * sizeof *s.number);
  return write_results(t, &s, frame, meaning, n, of, taken, n_groups);
}
