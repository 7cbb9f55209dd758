/* fp_kinds.c: see fp_kinds.h. Two pools of pairs: (label, work), and (that pair, helper and flags).
 */
#include "fp_kinds.h"

#include <stdlib.h>

#include "fp_keys.h"

struct fp_kinds {
  fp_keys *works, *kinds;
};

fp_kinds *fp_kinds_new(void) {
  fp_kinds *kinds = calloc(1, sizeof *kinds);
  if (!kinds) return NULL;
  kinds->works = fp_keys_new();
  kinds->kinds = fp_keys_new();
  if (kinds->works && kinds->kinds) return kinds;
  fp_kinds_free(kinds);
  return NULL;
}

void fp_kinds_free(fp_kinds *kinds) {
  if (!kinds) return;
  fp_keys_free(kinds->works);
  fp_keys_free(kinds->kinds);
  free(kinds);
}

fp_status fp_kinds_intern(fp_kinds *kinds, const fp_kind *kind, int32_t *id) {
  int32_t work, rest = kind->helper * 4 + kind->is_backward * 2 + kind->is_gradient;
  fp_status status = fp_keys_intern_pairs(kinds->works, &kind->label, &kind->work, 1, &work);
  return status == FP_OK ? fp_keys_intern_pairs(kinds->kinds, &work, &rest, 1, id) : status;
}

int32_t fp_kinds_count(const fp_kinds *kinds) { return fp_keys_count(kinds->kinds); }

fp_kind fp_kinds_at(const fp_kinds *kinds, int32_t id) {
  const uint64_t pair = (uint64_t)fp_keys_values(kinds->kinds)[id];
  const int32_t rest = (int32_t)(uint32_t)pair;
  const uint64_t work = (uint64_t)fp_keys_values(kinds->works)[pair >> 32];
  const uint8_t is_backward = rest >> 1 & 1, is_gradient = rest & 1;
  return (fp_kind){(int32_t)(work >> 32), (int32_t)(uint32_t)work,
                   (rest - is_backward * 2 - is_gradient) / 4, is_backward, is_gradient};
}
