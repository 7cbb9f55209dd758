/* fp_names.c: see fp_names.h. Open addressing, linear probing, the hash kept beside the id. */
#include "fp_names.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "fp_mix.h"

typedef struct {
  uint32_t hash;
  int32_t id; /* -1: empty */
} slot;

struct fp_names {
  slot *slots;
  size_t n_slots; /* a power of two */
  char *bytes;
  size_t bytes_capacity;
  int64_t *offsets; /* count + 1 */
  int32_t count, capacity;
};

static uint64_t load8(const char *p) {
  uint64_t x;
  memcpy(&x, p, 8);
  return x;
}

static uint32_t hash_of(const char *text, size_t length) {
  uint64_t h = length ^ FP_MIX_0;
  const char *p = text, *end = text + length;
  for (; end - p >= 16; p += 16) h = fp_mix(load8(p) ^ h ^ FP_MIX_1, load8(p + 8) ^ FP_MIX_0);
  uint64_t a = 0, b = 0;
  size_t rest = (size_t)(end - p);
  if (rest >= 8) {
    a = load8(p);
    b = load8(end - 8);
  } else if (rest > 0) {
    memcpy(&a, p, rest);
  }
  h = fp_mix(h ^ a ^ FP_MIX_1, b ^ FP_MIX_0 ^ rest);
  return (uint32_t)(h ^ (h >> 32));
}

fp_names *fp_names_new(void) {
  fp_names *names = calloc(1, sizeof *names);
  if (!names) return NULL;
  names->n_slots = 1024;
  names->capacity = 512;
  names->bytes_capacity = 1 << 16;
  names->slots = malloc(names->n_slots * sizeof(slot));
  names->offsets = malloc(((size_t)names->capacity + 1) * sizeof(int64_t));
  names->bytes = malloc(names->bytes_capacity);
  if (!names->slots || !names->offsets || !names->bytes) {
    fp_names_free(names);
    return NULL;
  }
  for (size_t i = 0; i < names->n_slots; i++) names->slots[i].id = -1;
  names->offsets[0] = 0;
  return names;
}

void fp_names_free(fp_names *names) {
  if (!names) return;
  free(names->slots);
  free(names->offsets);
  free(names->bytes);
  free(names);
}

static fp_status grow_slots(fp_names *names) {
  size_t n_slots = names->n_slots * 2;
  slot *slots = malloc(n_slots * sizeof(slot));
  if (!slots) return FP_E_MEMORY;
  for (size_t i = 0; i < n_slots; i++) slots[i].id = -1;
  for (size_t i = 0; i < names->n_slots; i++) {
    if (names->slots[i].id < 0) continue;
    size_t at = names->slots[i].hash & (n_slots - 1);
    while (slots[at].id >= 0) at = (at + 1) & (n_slots - 1);
    slots[at] = names->slots[i];
  }
  free(names->slots);
  names->slots = slots;
  names->n_slots = n_slots;
  return FP_OK;
}

static fp_status append(fp_names *names, const char *text, size_t length) {
  size_t used = (size_t)names->offsets[names->count];
  if (names->count == INT32_MAX || length > SIZE_MAX / 4 - used) return FP_E_TOO_MANY;
  if (names->count == names->capacity) {
    int32_t capacity = names->capacity < INT32_MAX / 2 ? names->capacity * 2 : INT32_MAX;
    int64_t *offsets = realloc(names->offsets, ((size_t)capacity + 1) * sizeof(int64_t));
    if (!offsets) return FP_E_MEMORY;
    names->offsets = offsets;
    names->capacity = capacity;
  }
  if (used + length > names->bytes_capacity) {
    size_t capacity = (used + length) + (used + length) / 2;
    char *bytes = realloc(names->bytes, capacity);
    if (!bytes) return FP_E_MEMORY;
    names->bytes = bytes;
    names->bytes_capacity = capacity;
  }
  if (length) memcpy(names->bytes + used, text, length);
  names->offsets[++names->count] = (int64_t)(used + length);
  return FP_OK;
}

fp_status fp_names_intern(fp_names *names, const char *text, size_t length, int32_t *id) {
  uint32_t hash = hash_of(text, length);
  size_t at = hash & (names->n_slots - 1);
  for (; names->slots[at].id >= 0; at = (at + 1) & (names->n_slots - 1)) {
    if (names->slots[at].hash != hash) continue;
    int32_t found = names->slots[at].id;
    int64_t start = names->offsets[found];
    if ((size_t)(names->offsets[found + 1] - start) == length &&
        (length == 0 || memcmp(names->bytes + start, text, length) == 0)) {
      *id = found;
      return FP_OK;
    }
  }
  fp_status status = append(names, text, length);
  if (status != FP_OK) return status;
  *id = names->count - 1;
  names->slots[at].hash = hash;
  names->slots[at].id = *id;
  return (size_t)names->count * 2 > names->n_slots ? grow_slots(names) : FP_OK;
}

int32_t fp_names_count(const fp_names *names) { return names->count; }

const char *fp_names_bytes(const fp_names *names, const int64_t **offsets) {
  *offsets = names->offsets;
  return names->bytes;
}

/* One more than the last place in text[0 .. length) that has this byte, or 0. Eight bytes without
 * it are passed at a time: a byte of x is 0 where the text has it, and x - ones borrows only then.
 */
static size_t after_last(const char *text, size_t length, char byte) {
  const uint64_t ones = 0x0101010101010101u;
  for (; length >= 8; length -= 8) {
    uint64_t x = load8(text + length - 8) ^ (ones * (uint8_t)byte);
    uint64_t found = (x - ones) & ~x & (ones << 7);
    if (found) break;
  }
  while (length > 0 && text[length - 1] != byte) length--;
  return length;
}

/* Last place in text[0 .. length) where `key` starts, or -1. The key has one '=', from which fewer
 * places are looked at than from its first character, a comma. */
static ptrdiff_t find_last(const char *text, size_t length, const char *key, size_t key_length) {
  size_t before = (size_t)((const char *)memchr(key, '=', key_length) - key);
  size_t behind = key_length - before, at = length;
  while ((at = after_last(text, at, '=')) > 0) {
    at--;
    if (at >= before && behind <= length - at && memcmp(text + at - before, key, key_length) == 0)
      return (ptrdiff_t)(at - before);
  }
  return -1;
}

/* If text[0 .. *length) ends with `key` and a number from 0 to 2^63 - 1, cut it off. */
static int64_t cut_number(const char *text, size_t *length, const char *key, size_t key_length) {
  size_t at = *length;
  while (at > 0 && text[at - 1] >= '0' && text[at - 1] <= '9') at--;
  if (at == *length || *length - at > 19 || at < key_length) return -1;
  if (memcmp(text + at - key_length, key, key_length) != 0) return -1;
  uint64_t value = 0;
  for (size_t i = at; i < *length; i++) value = value * 10 + (uint64_t)(text[i] - '0');
  if (value > INT64_MAX) return -1;
  *length = at - key_length;
  return (int64_t)value;
}

/* Whether the bracket that is open before text[0] closes at its last character, and not before. */
static bool closes_at_end(const char *text, size_t length) {
  int64_t depth = 1;
  for (size_t i = 0; i < length; i++) {
    depth += (text[i] == '[') - (text[i] == ']');
    if (depth == 0) return i == length - 1;
  }
  return false;
}

/* If text[0 .. *length) ends with `key`, whose last character opens a list, and the rest of that
 * list, cut it off and tell where. */
static const char *cut_list(const char *text, size_t *length, const char *key, size_t key_length,
                            size_t *cut_length) {
  if (*length == 0 || text[*length - 1] != ']') return NULL;
  ptrdiff_t at = find_last(text, *length, key, key_length);
  if (at < 0) return NULL;
  size_t inside = (size_t)at + key_length;
  if (!closes_at_end(text + inside, *length - inside)) return NULL;
  *cut_length = *length - (size_t)at;
  *length = (size_t)at;
  return text + at;
}

#define LITERAL(text) text, sizeof(text) - 1

void fp_names_split(const char *text, size_t length, fp_torch_name *parts) {
  size_t ignored;
  parts->sizes_length = 0;
  parts->sizes = NULL;
  if (length && text[length - 1] == ']') {
    cut_list(text, &length, LITERAL(", input_op_ids = ["), &ignored);
    parts->sizes = cut_list(text, &length, LITERAL(", sizes = ["), &parts->sizes_length);
  }
  parts->op_id = cut_number(text, &length, LITERAL(", op_id = "));
  parts->seq = cut_number(text, &length, LITERAL(", seq = "));
  parts->name_length = length;
}
