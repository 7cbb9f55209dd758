#include "path/fp_link.h"

#include <stdlib.h>
#include <string.h>

#include "base/fp_hash.h"

/* The latest range of each (scope, seq). Numbers are usually dense, and then index an array from
 * the smallest to the largest; otherwise they are in a hash table: 4 * 10^6 ranges take 0.12 s with
 * it, 0.013 s with the array. */
enum { MOST_PLACES_A_RANGE = 8 };

typedef struct {
  int64_t seq;
  int32_t scope, range;
} carrier;

typedef struct {
  int64_t first_seq, last_seq; /* of the ranges to insert */
  int64_t first_scope, last_scope;
  uint64_t n;      /* number of ranges to insert */
  int32_t *places; /* -1 for none; NULL: in the hash table */
  fp_hash hash;
  carrier *carriers; /* [n], of which n_carriers are distinct */
  int32_t n_carriers;
} table;

static void count(table *t, int32_t scope, int64_t seq) {
  if (!t->n || seq < t->first_seq) t->first_seq = seq;
  if (!t->n || seq > t->last_seq) t->last_seq = seq;
  if (!t->n || scope < t->first_scope) t->first_scope = scope;
  if (!t->n || scope > t->last_scope) t->last_scope = scope;
  t->n++;
}

static fp_status allocate(table *t) {
  uint64_t most = (t->n + 64) * MOST_PLACES_A_RANGE;
  uint64_t numbers = (uint64_t)(t->last_seq - t->first_seq); /* minus 1; none is negative */
  uint64_t scopes = (uint64_t)(t->last_scope - t->first_scope);
  if (numbers < most && scopes < most && (numbers + 1) * (scopes + 1) <= most) {
    size_t size = (numbers + 1) * (scopes + 1) * sizeof(int32_t);
    t->places = malloc(size);
    if (t->places) memset(t->places, 0xff, size);
    return t->places ? FP_OK : FP_E_MEMORY;
  }
  t->hash.secret = fp_hash_secret(t);
  t->carriers = malloc(t->n * sizeof *t->carriers);
  return t->carriers ? fp_hash_reserve(&t->hash, t->n) : FP_E_MEMORY;
}

static bool is_carrier(const void *carriers, int32_t i, const void *key) {
  const carrier *own = &((const carrier *)carriers)[i], *wanted = key;
  return own->seq == wanted->seq && own->scope == wanted->scope;
}

/* The number of the carrier of (scope, seq), or -1; its hash and slot. */
static int32_t find(const table *t, const carrier *wanted, uint32_t *hash, size_t *at) {
  *hash = fp_hash_of(&t->hash, (uint64_t)wanted->seq, (uint32_t)wanted->scope);
  return fp_hash_find(&t->hash, *hash, is_carrier, t->carriers, wanted, at);
}

/* The array index of a number within the counted bounds. */
static size_t place_of(const table *t, int32_t scope, int64_t seq) {
  uint64_t in_scope = (uint64_t)(seq - t->first_seq);
  return (uint64_t)(scope - t->first_scope) * (uint64_t)(t->last_seq - t->first_seq + 1) + in_scope;
}

static void put(table *t, carrier new) {
  if (t->places) {
    t->places[place_of(t, new.scope, new.seq)] = new.range;
    return;
  }
  uint32_t hash;
  size_t at;
  int32_t i = find(t, &new, &hash, &at);
  if (i < 0) fp_hash_put(&t->hash, at, hash, i = t->n_carriers++);
  t->carriers[i] = new;
}

static int32_t latest(const table *t, int32_t scope, int64_t seq) {
  bool is_there = t->n && seq >= t->first_seq && seq <= t->last_seq && scope >= t->first_scope &&
                  scope <= t->last_scope;
  if (!is_there) return -1;
  if (t->places) return t->places[place_of(t, scope, seq)];
  uint32_t hash;
  size_t at;
  const int32_t i = find(t, &(carrier){seq, scope, -1}, &hash, &at);
  return i < 0 ? -1 : t->carriers[i].range;
}

static uint8_t role_of(const fp_link_ranges *r, int32_t i) {
  uint8_t bits = r->bits[r->label[i]];
  if (!(bits & FP_LABEL_TORCH) || r->seq[i] < 0) return FP_LINK_NONE;
  int32_t frame = r->frame[i], parent = r->parent[frame];
  if (bits & FP_LABEL_BACKWARD) {
    bool inside = parent >= 0 && r->in_backward[parent];
    return !inside || (bits & FP_LABEL_NODE) ? FP_LINK_BACKWARD : FP_LINK_NONE;
  }
  return r->in_backward[frame] || (bits & FP_LABEL_RECOMPUTE) ? FP_LINK_NONE : FP_LINK_FORWARD;
}

void fp_link_roles(const fp_link_ranges *ranges, uint8_t *counting, int32_t n_threads,
                   uint8_t *role) {
  memset(counting, 0, (size_t)n_threads);
  for (int32_t i = 0; i < ranges->n; i++) {
    role[i] = role_of(ranges, i);
    if (role[i] == FP_LINK_FORWARD && ranges->seq[i] > 0) counting[ranges->thread[i]] = 1;
  }
  for (int32_t i = 0; i < ranges->n; i++)
    if (role[i] == FP_LINK_FORWARD && ranges->seq[i] == 0 && !counting[ranges->thread[i]])
      role[i] = FP_LINK_NONE;
}

fp_status fp_link(const uint8_t *role, const int64_t *seq, const int32_t *scope, int32_t n,
                  int32_t *forward) {
  table carriers = {0};
  for (int32_t i = 0; i < n; i++)
    if (role[i] == FP_LINK_FORWARD) count(&carriers, scope[i], seq[i]);
  fp_status status = allocate(&carriers);
  for (int32_t i = 0; status == FP_OK && i < n; i++) {
    forward[i] = role[i] == FP_LINK_BACKWARD ? latest(&carriers, scope[i], seq[i]) : -1;
    if (role[i] == FP_LINK_FORWARD) put(&carriers, (carrier){seq[i], scope[i], i});
  }
  free(carriers.places);
  free(carriers.carriers);
  free(carriers.hash.slots);
  return status;
}

fp_status fp_link_calls(const int32_t *parent, const int32_t *range, int32_t n, const uint8_t *role,
                        const int64_t *seq, int32_t *call, uint8_t *links) {
  for (int32_t i = 0; i < n; i++) {
    if (parent[i] >= i) return FP_E_INDEX;
    int32_t around = parent[i] < 0 ? -1 : call[parent[i]];
    links[i] = role[range[i]] == FP_LINK_BACKWARD;
    bool goes_on = !links[i] || (around >= 0 && seq[range[around]] == seq[range[i]]);
    call[i] = goes_on ? around : i;
  }
  return FP_OK;
}

fp_status fp_link_meanings(const fp_link_calls_of *c, const int32_t *frame_of_range,
                           int32_t n_ranges, int32_t *meaning) {
  for (int32_t i = 0; i < c->n; i++) {
    int32_t call = c->in_backward[i] ? c->call[i] : -1;
    meaning[i] = i;
    if (call < 0) continue;
    if (call >= c->n || (uint32_t)c->range[call] >= (uint32_t)n_ranges) return FP_E_INDEX;
    int32_t forward = c->forward[c->range[call]];
    if (forward >= n_ranges) return FP_E_INDEX;
    if (forward >= 0) meaning[i] = frame_of_range[forward];
  }
  return FP_OK;
}

static int compare(const void *a, const void *b) {
  int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
  return (x > y) - (x < y);
}

/* Sorts the chain's numbers and removes duplicates, the linking one, and 0 if others exist. */
static int32_t other_numbers(int64_t *numbers, int32_t n, int64_t linking) {
  int32_t kept = 0;
  if (n > 1) qsort(numbers, (size_t)n, sizeof *numbers, compare);
  for (int32_t i = 0; i < n; i++) {
    if (numbers[i] == linking || (numbers[i] == 0 && (linking > 0 || numbers[n - 1] > 0))) continue;
    if (kept && numbers[kept - 1] == numbers[i]) continue;
    numbers[kept++] = numbers[i];
  }
  return kept;
}

/* Collects the numbers of a frame's chain. *n_found of them: adjacent equal ones count once. */
static fp_status numbers_of(const fp_link_frames *t, int32_t frame, bool inside, int64_t *numbers,
                            int32_t depth, int32_t *n_found, int64_t *linking) {
  *n_found = 0;
  *linking = -1;
  for (int32_t f = frame; f >= 0; f = t->parent[f]) {
    int32_t range = t->range[f];
    if ((uint32_t)range >= (uint32_t)t->n_ranges) return FP_E_INDEX;
    int64_t seq = t->seq[range];
    if (seq < 0) continue;
    if ((uint32_t)t->label[range] >= (uint32_t)t->n_labels) return FP_E_INDEX;
    if (!t->is_torch[t->label[range]]) continue;
    /* The innermost number that counts; an outer number replaces 0. */
    if ((!inside || t->backward[f]) && (*linking < 0 || (*linking == 0 && seq > 0))) *linking = seq;
    if (*n_found && numbers[*n_found - 1] == seq) continue;
    if (*n_found == depth) return FP_E_INDEX;
    numbers[(*n_found)++] = seq;
  }
  return FP_OK;
}

fp_status fp_link_numbers(const fp_link_frames *t, const int32_t *frame, const uint8_t *inside,
                          int64_t n, int64_t *scratch, int32_t depth, int64_t *seq_of,
                          fp_link_others *others) {
  int32_t kept = 0;
  for (int64_t i = others->n; i < n; i++) {
    int64_t begin = i ? others->end[i - 1] : 0;
    bool again = i > others->n && frame[i] == frame[i - 1] && inside[i] == inside[i - 1];
    if (again) {
      seq_of[i] = seq_of[i - 1];
    } else {
      fp_status status = numbers_of(t, frame[i], inside[i], scratch, depth, &kept, &seq_of[i]);
      if (status != FP_OK) return status;
      kept = other_numbers(scratch, kept, seq_of[i]);
    }
    if (kept > others->capacity - begin) {
      others->n = i;
      return FP_MORE;
    }
    for (int32_t k = 0; k < kept; k++) others->number[begin + k] = scratch[k];
    others->end[i] = begin + kept;
  }
  return FP_OK;
}

fp_status fp_link_sub(const int32_t *process, const int64_t *seq, const int32_t *operator_id,
                      int64_t n, int64_t *last_seq, int32_t *last_operator, int32_t *last_sub,
                      int32_t n_processes, int32_t *sub) {
  for (int32_t p = 0; p < n_processes; p++) last_seq[p] = -1;
  for (int64_t i = 0; i < n; i++) {
    int32_t p = process[i];
    sub[i] = 0;
    if (seq[i] < 0) continue;
    if ((uint32_t)p >= (uint32_t)n_processes) return FP_E_INDEX;
    if (last_seq[p] == seq[i] && last_operator[p] == operator_id[i]) sub[i] = last_sub[p] + 1;
    last_seq[p] = seq[i];
    last_operator[p] = operator_id[i];
    last_sub[p] = sub[i];
  }
  return FP_OK;
}
