/* fp_kineto.h: parse traces of torch.profiler (Kineto), as JSON text, into tables of events. */
#pragma once

#include "kineto/fp_kineto_rows.h"

/* Parser state and the distinct texts so far. */
typedef struct fp_kineto fp_kineto;

/* NULL when out of memory. */
fp_kineto *fp_kineto_new(void);
void fp_kineto_free(fp_kineto *kineto);

/* Parses complete events, and complete keys and values of the root object. `bytes` continue where
 * the bytes consumed so far ended. *used is the number of bytes consumed; pass the rest again in
 * front of the next bytes. FP_OK: more bytes are needed, unless fp_kineto_state has FP_KINETO_WHOLE
 * or FP_KINETO_NO_TRACE. FP_MORE: a table is full; grow it and call again. Malformed events are
 * skipped and counted (fp_kineto_lost); parsing resumes after the event, or where the next one
 * clearly starts. */
fp_status fp_kineto_read(fp_kineto *kineto, const char *bytes, size_t length,
                         fp_kineto_rows tables[FP_KINETO_TABLES], size_t *used);

typedef enum {
  FP_KINETO_READING,  /* incomplete; at the end of a file, the trace is truncated */
  FP_KINETO_WHOLE,    /* all brackets are closed */
  FP_KINETO_NO_TRACE, /* the text starts with neither { nor [ */
} fp_kineto_progress;

/* Sets *has_events if a list of events was found. */
fp_kineto_progress fp_kineto_state(const fp_kineto *kineto, int *has_events);

/* The number of places where malformed text was skipped, and the bytes skipped. */
int64_t fp_kineto_lost(const fp_kineto *kineto, int64_t *bytes);

/* The number of events of the i-th combination of phase and category; 0 past the last. *phase is a
 * letter, or 0 if missing; *category is an id, or -1 if missing. */
int64_t fp_kineto_count(const fp_kineto *kineto, int32_t i, int32_t *phase, int32_t *category);

const fp_names *fp_kineto_texts_of(const fp_kineto *kineto, int pool);
