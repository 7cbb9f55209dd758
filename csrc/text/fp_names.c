#include "text/fp_names.h"

#include "base/fp_hash.h"
#include "base/fp_room.h"
#include "text/fp_text.h"

struct fp_names {
  fp_hash table;
  char *bytes;
  size_t bytes_capacity;
  int64_t *offsets; /* [count + 1] */
  size_t capacity;
  int32_t count;
};

static uint32_t hash_of(uint64_t secret, const char *text, size_t length) {
  const uint64_t other = secret ^ FP_MIX_0;
  uint64_t h = length ^ other;
  const char *p = text; /* NULL if empty */
  size_t rest = length;
  for (; rest >= 16; rest -= 16, p += 16)
    h = fp_mix(fp_load_word(p) ^ h ^ FP_MIX_1, fp_load_word(p + 8) ^ other);
  uint64_t a = 0, b = 0;
  if (rest >= 8) {
    a = fp_load_word(p);
    b = fp_load_word(p + rest - 8);
  } else if (rest > 0) {
    memcpy(&a, p, rest);
  }
  h = fp_mix(h ^ a ^ FP_MIX_1, b ^ other ^ rest);
  return (uint32_t)(h ^ (h >> 32));
}

fp_names *fp_names_new(void) {
  fp_names *names = calloc(1, sizeof *names);
  if (!names) return NULL;
  names->table.secret = fp_hash_secret(names);
  if (fp_hash_reserve(&names->table, 512) == FP_OK &&
      fp_reserve(&names->offsets, &names->capacity, 512, sizeof *names->offsets) == FP_OK &&
      fp_reserve(&names->bytes, &names->bytes_capacity, 1 << 16, 1) == FP_OK) {
    names->offsets[0] = 0;
    return names;
  }
  fp_names_free(names);
  return NULL;
}

void fp_names_free(fp_names *names) {
  if (!names) return;
  free(names->table.slots);
  free(names->offsets);
  free(names->bytes);
  free(names);
}

static fp_status append(fp_names *names, fp_text text) {
  const size_t used = (size_t)names->offsets[names->count], count = (size_t)names->count + 1;
  const size_t length = (size_t)text.length;
  if (count > INT32_MAX || length > SIZE_MAX / 4 - used) return FP_E_TOO_MANY;
  fp_status status =
      fp_reserve(&names->offsets, &names->capacity, count + 1, sizeof *names->offsets);
  if (status == FP_OK) status = fp_reserve(&names->bytes, &names->bytes_capacity, used + length, 1);
  if (status != FP_OK) return status;
  if (length) memcpy(names->bytes + used, text.bytes, length);
  names->offsets[++names->count] = (int64_t)(used + length);
  return FP_OK;
}

static bool is_text(const void *owner, int32_t id, const void *key) {
  const fp_names *names = owner;
  const fp_text *text = key;
  const int64_t start = names->offsets[id];
  return names->offsets[id + 1] - start == text->length &&
         (!text->length || !memcmp(names->bytes + start, text->bytes, (size_t)text->length));
}

fp_status fp_names_intern(fp_names *names, const char *text, size_t length, int32_t *id) {
  const fp_text key = {text, (int64_t)length};
  const uint32_t hash = hash_of(names->table.secret, text, length);
  size_t at;
  *id = fp_hash_find(&names->table, hash, is_text, names, &key, &at);
  if (*id >= 0) return FP_OK;
  fp_status status = append(names, key);
  if (status != FP_OK) return status;
  *id = names->count - 1;
  return fp_hash_add(&names->table, at, hash, *id);
}

int32_t fp_names_count(const fp_names *names) { return names->count; }

const char *fp_names_bytes(const fp_names *names, const int64_t **offsets) {
  *offsets = names->offsets;
  return names->bytes;
}

/* Loads eight characters, the last one in the highest bits. */
static uint64_t load_last_high(const char *p) {
  uint64_t word = fp_load_word(p);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
  word = __builtin_bswap64(word);
#endif
  return word;
}

/* The index of the bracket that the last character of text[0 .. length), a ']', closes; or -1.
 * Scans eight characters at a time for brackets. */
static ptrdiff_t opening_of_last(const char *text, size_t length) {
  size_t at = length - 1;
  int64_t depth = 1;
  for (; at >= 8; at -= 8) {
    uint64_t word = load_last_high(text + at - 8), closing = fp_zeros_in(word ^ FP_ONES * ']');
    uint64_t brackets = closing | fp_zeros_in(word ^ FP_ONES * '[');
    while (brackets) {
      int place = 63 - __builtin_clzll(brackets);
      uint64_t bit = (uint64_t)1 << place;
      depth += closing & bit ? 1 : -1;
      if (depth == 0) return (ptrdiff_t)(at - 8) + place / 8;
      brackets ^= bit;
    }
  }
  while (at-- > 0) {
    depth += (text[at] == ']') - (text[at] == '[');
    if (depth == 0) return (ptrdiff_t)at;
  }
  return -1;
}

/* Cuts `key` and a number from 0 to 2^63 - 1 off the end of text[0 .. *length), if present. Inlined
 * to compare constant keys without a call. */
static inline int64_t cut_number(const char *text, size_t *length, const char *key,
                                 size_t key_length) {
  size_t at = *length;
  uint64_t value = 0, unit = 1;
  for (; at > 0 && *length - at < 20; at--, unit *= 10) {
    unsigned digit = (unsigned)(text[at - 1] - '0');
    if (digit > 9) break;
    value += digit * unit;
  }
  if (at == *length || *length - at > 19 || at < key_length || value > INT64_MAX) return -1;
  if (memcmp(text + at - key_length, key, key_length) != 0) return -1;
  *length = at - key_length;
  return (int64_t)value;
}

/* Cuts `key`, which ends with the opening bracket, and its list off the end of text[0 .. *length),
 * and returns their start; NULL if they are not there. */
static inline const char *cut_list(const char *text, size_t *length, ptrdiff_t bracket,
                                   const char *key, size_t key_length) {
  if (bracket + 1 < (ptrdiff_t)key_length) return NULL;
  const char *cut = text + bracket + 1 - key_length;
  if (memcmp(cut, key, key_length) != 0) return NULL;
  *length = (size_t)(cut - text);
  return cut;
}

static ptrdiff_t list_at_end(const char *text, size_t length) {
  return length && text[length - 1] == ']' ? opening_of_last(text, length) : -1;
}

#define LITERAL(text) text, sizeof(text) - 1

void fp_names_split(const char *text, size_t length, fp_torch_name *parts) {
  ptrdiff_t list = list_at_end(text, length);
  if (cut_list(text, &length, list, LITERAL(", input_op_ids = [")))
    list = list_at_end(text, length);
  size_t before = length;
  parts->sizes = cut_list(text, &length, list, LITERAL(", sizes = ["));
  parts->sizes_length = before - length;
  parts->op_id = cut_number(text, &length, LITERAL(", op_id = "));
  parts->seq = cut_number(text, &length, LITERAL(", seq = "));
  parts->name_length = length;
}
