/* fp_names.h: a pool of texts with dense int32 ids, and a parser of torch's range names. */
#pragma once

#include "base/fp_status.h"

typedef struct fp_names fp_names;

/* NULL when out of memory. */
fp_names *fp_names_new(void);
void fp_names_free(fp_names *names);

/* *id is the id of the text; new texts get the next id (0, 1, 2, ...). */
fp_status fp_names_intern(fp_names *names, const char *text, size_t length, int32_t *id);

/* The number of texts; text i is bytes[offsets[i] .. offsets[i + 1]) until the next intern. */
int32_t fp_names_count(const fp_names *names);
const char *fp_names_bytes(const fp_names *names, const int64_t **offsets);

/* A range name of torch's emit_nvtx:
 *   NAME[, seq = N][, op_id = M][, sizes = [..]][, input_op_ids = [..]]
 * It is parsed from the right, because NAME may contain commas. Missing numbers are -1, missing
 * sizes have length 0. */
typedef struct {
  size_t name_length; /* text[0 .. name_length) is NAME */
  const char *sizes;  /* ", sizes = [..]" including its comma, or NULL */
  size_t sizes_length;
  int64_t seq;
  int64_t op_id;
} fp_torch_name;

void fp_names_split(const char *text, size_t length, fp_torch_name *parts);
