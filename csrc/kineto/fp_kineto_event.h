/* fp_kineto_event.h: parse one trace event into the raw text of its known fields. */
#pragma once

#include <stddef.h>

#include "text/fp_json.h"

/* Fields of an event, followed by fields of its "args". */
typedef enum {
  FP_FIELD_PH,
  FP_FIELD_CATEGORY,
  FP_FIELD_NAME,
  FP_FIELD_PID,
  FP_FIELD_TID,
  FP_FIELD_TS,
  FP_FIELD_DUR,
  FP_FIELD_ID,
  FP_FIELD_ARGS,
  FP_FIELD_EXTERNAL_ID,
  FP_FIELD_CORRELATION,
  FP_FIELD_DEVICE,
  FP_FIELD_CONTEXT,
  FP_FIELD_STREAM,
  FP_FIELD_GRID,
  FP_FIELD_BLOCK,
  FP_FIELD_REGISTERS,
  FP_FIELD_SHARED_MEMORY,
  FP_FIELD_GRAPH_ID,
  FP_FIELD_GRAPH_NODE,
  FP_FIELD_BYTES,
  FP_FIELD_OCCUPANCY,
  FP_FIELD_KERNEL,
  FP_FIELD_SEQ,
  FP_FIELD_FORWARD_THREAD,
  FP_FIELD_RECORD_FUNCTION,
  FP_FIELD_PYTHON_ID,
  FP_FIELD_PYTHON_PARENT,
  FP_FIELD_PYTHON_MODULE,
  FP_FIELD_STACK,
  FP_FIELD_HIERARCHY,
  FP_FIELD_ADDRESS,
  FP_FIELD_DEVICE_TYPE,
  FP_FIELD_DEVICE_ID,
  FP_FIELD_ALLOCATED,
  FP_FIELD_RESERVED,
  FP_FIELD_META_NAME,
  FP_FIELD_META_LABELS,
  FP_FIELD_META_SORT_INDEX,
  /* The parts of a label, in label order. */
  FP_FIELD_DIMS,
  FP_FIELD_TYPE,
  FP_FIELD_STRIDES,
  FP_FIELD_CONCRETE,
  FP_FIELD_COLLECTIVE, /* first field of the collective part */
  FP_FIELD_COLLECTIVE_LAST = FP_FIELD_COLLECTIVE + 11,
  FP_FIELD_TRITON, /* first field of the Triton part, which also has the grid */
  FP_FIELD_TRITON_LAST = FP_FIELD_TRITON + 6,
  FP_FIELDS
} fp_kineto_field;

typedef struct {
  uint64_t seen; /* bit f: values[f] is present and not null */
  uint8_t first; /* the first field in the text, or FP_FIELDS */
  fp_json_value values[FP_FIELDS];
} fp_kineto_event;

/* A hash table from keys to fields. */
typedef struct {
  uint8_t slots[2][256];
} fp_kineto_keys;

void fp_kineto_keys_make(fp_kineto_keys *keys);

/* The usual JSON key of a field. */
const char *fp_kineto_field_key(int field);

/* Reads the event whose '{' is at the cursor. FP_MORE: the text ends inside. FP_E_SYNTAX: malformed
 * at the cursor. The last value of a repeated key counts. Unescaped quotes in the event's name are
 * read as part of the name if that is unambiguous. */
fp_status fp_kineto_event_read(const fp_kineto_keys *keys, fp_json *json, fp_kineto_event *event);

/* Whether the cursor is at the end of an event: the next event starts, or the list ends. `is_list`:
 * the root of the text is the list itself. */
int fp_kineto_is_behind_event(fp_json json, int is_list);

static inline const fp_json_value *fp_kineto_value(const fp_kineto_event *event, int field) {
  return event->seen >> field & 1 ? &event->values[field] : NULL;
}
