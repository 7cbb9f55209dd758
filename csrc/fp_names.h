/* fp_names.h: a pool of texts (bytes -> dense int32 id), and the parts of a torch range name. */
#ifndef FP_NAMES_H
#define FP_NAMES_H

#include <stddef.h>
#include <stdint.h>

#include "fp_status.h"

typedef struct fp_names fp_names;

/* NULL when out of memory. */
fp_names *fp_names_new(void);
void fp_names_free(fp_names *names);

/* id of the text, a new one (0, 1, 2, ...) when it was not there. */
fp_status fp_names_intern(fp_names *names, const char *text, size_t length, int32_t *id);

/* Number of texts; text i is bytes[offsets[i] .. offsets[i + 1]), valid until the next intern. */
int32_t fp_names_count(const fp_names *names);
const char *fp_names_bytes(const fp_names *names, const int64_t **offsets);

/* A range name as torch's emit_nvtx writes it:
 *   NAME[, seq = N][, op_id = M][, sizes = [..]][, input_op_ids = [..]]
 * read from the right, since NAME may hold commas. What is absent is -1 or of length 0. */
typedef struct {
  size_t name_length; /* text[0 .. name_length) is NAME */
  const char *sizes;  /* ", sizes = [..]" including its comma, or NULL */
  size_t sizes_length;
  int64_t seq;
  int64_t op_id;
} fp_torch_name;

void fp_names_split(const char *text, size_t length, fp_torch_name *parts);

#endif
