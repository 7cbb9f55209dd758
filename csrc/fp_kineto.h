/* fp_kineto.h: traces of torch.profiler (Kineto), JSON text -> tables of events. */
#ifndef FP_KINETO_H
#define FP_KINETO_H

#include "fp_kineto_rows.h"

/* Where in the text reading is, and the distinct texts met so far. */
typedef struct fp_kineto fp_kineto;

/* NULL when out of memory. */
fp_kineto *fp_kineto_new(void);
void fp_kineto_free(fp_kineto *kineto);

/* Reads whole events, and whole keys and values beside them, from bytes that go on where those used
 * so far ended. *used is how many bytes were read; give the rest again, with more behind it. FP_OK:
 * more bytes are needed, or fp_kineto_state says that none are. FP_MORE: a table is full, make room
 * and go on. An event that is malformed is left out and counted (fp_kineto_lost), and reading goes
 * on behind it, or where the next one clearly starts. */
fp_status fp_kineto_read(fp_kineto *kineto, const char *bytes, size_t length,
                         fp_kineto_rows tables[FP_KINETO_TABLES], size_t *used);

typedef enum {
  FP_KINETO_READING,  /* more bytes should come: at the end of a file it was cut off */
  FP_KINETO_WHOLE,    /* all brackets are closed */
  FP_KINETO_NO_TRACE, /* the text starts with neither { nor [ */
} fp_kineto_progress;

/* *has_events: a list of events was met. */
fp_kineto_progress fp_kineto_state(const fp_kineto *kineto, int *has_events);

/* Places where something malformed was left out, and how many bytes that were. */
int64_t fp_kineto_lost(const fp_kineto *kineto, int64_t *bytes);

/* How many events had that phase and category, for i from 0 on: 0 behind the last one. The phase is
 * a letter, or 0 if the event had none; the category -1 if it had none. */
int64_t fp_kineto_count(const fp_kineto *kineto, int32_t i, int32_t *phase, int32_t *category);

const fp_names *fp_kineto_texts_of(const fp_kineto *kineto, int pool);

#endif
