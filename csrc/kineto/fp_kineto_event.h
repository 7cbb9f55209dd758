/* fp_kineto_event.h: parse one trace event into the raw text of its known fields. */
#pragma once

#include "text/fp_json.h"

/* Fields of an event and of its "args", with their usual keys in JSON. From DIMS on, they are the
 * parts of a label, in its order; COLLECTIVE and TRITON begin the parts of a collective and of a
 * Triton kernel, which also has the grid. */
#define FP_KINETO_FIELDS(KEY, ARG)                    \
  KEY(PH, "ph")                                       \
  KEY(CATEGORY, "cat")                                \
  KEY(NAME, "name")                                   \
  KEY(PID, "pid")                                     \
  KEY(TID, "tid")                                     \
  KEY(TS, "ts")                                       \
  KEY(DUR, "dur")                                     \
  KEY(ID, "id")                                       \
  KEY(ARGS, "args")                                   \
  ARG(EXTERNAL_ID, "External id")                     \
  ARG(CORRELATION, "correlation")                     \
  ARG(DEVICE, "device")                               \
  ARG(CONTEXT, "context")                             \
  ARG(STREAM, "stream")                               \
  ARG(GRID, "grid")                                   \
  ARG(BLOCK, "block")                                 \
  ARG(REGISTERS, "registers per thread")              \
  ARG(SHARED_MEMORY, "shared memory")                 \
  ARG(GRAPH_ID, "graph id")                           \
  ARG(GRAPH_NODE, "graph node id")                    \
  ARG(BYTES, "bytes")                                 \
  ARG(OCCUPANCY, "est. achieved occupancy %")         \
  ARG(KERNEL, "kernel")                               \
  ARG(SEQ, "Sequence number")                         \
  ARG(FORWARD_THREAD, "Fwd thread id")                \
  ARG(COLLECTIVE_SEQ, "Seq")                          \
  ARG(RECORD_FUNCTION, "Record function id")          \
  ARG(PYTHON_ID, "Python id")                         \
  ARG(PYTHON_PARENT, "Python parent id")              \
  ARG(PYTHON_MODULE, "Python module id")              \
  ARG(STACK, "Call stack")                            \
  ARG(HIERARCHY, "Module Hierarchy")                  \
  ARG(ADDRESS, "Addr")                                \
  ARG(DEVICE_TYPE, "Device Type")                     \
  ARG(DEVICE_ID, "Device Id")                         \
  ARG(ALLOCATED, "Total Allocated")                   \
  ARG(RESERVED, "Total Reserved")                     \
  ARG(META_NAME, "name")                              \
  ARG(META_LABELS, "labels")                          \
  ARG(META_SORT_INDEX, "sort_index")                  \
  ARG(DIMS, "Input Dims")                             \
  ARG(TYPE, "Input type")                             \
  ARG(STRIDES, "Input Strides")                       \
  ARG(CONCRETE, "Concrete Inputs")                    \
  ARG(COLLECTIVE, "Collective name")                  \
  ARG(COLLECTIVE_DTYPE, "dtype")                      \
  ARG(IN_ELEMENTS, "In msg nelems")                   \
  ARG(OUT_ELEMENTS, "Out msg nelems")                 \
  ARG(GROUP_SIZE, "Group size")                       \
  ARG(RANK, "Rank")                                   \
  ARG(IN_SPLIT, "In split size")                      \
  ARG(OUT_SPLIT, "Out split size")                    \
  ARG(GROUP_NAME, "Process Group Name")               \
  ARG(SOURCE_RANK, "Src Rank")                        \
  ARG(TARGET_RANK, "Dst Rank")                        \
  ARG(GROUP_DESCRIPTION, "Process Group Description") \
  ARG(GROUP_RANKS, "Process Group Ranks")             \
  ARG(TRITON, "kernel_file")                          \
  ARG(TRITON_HASH, "kernel_hash")                     \
  ARG(TRITON_BACKEND, "kernel_backend")               \
  ARG(TRITON_NAME, "kernel_name")                     \
  ARG(TRITON_ARGUMENTS, "kernel_kwargs")              \
  ARG(TRITON_WARPS, "num_warps")                      \
  ARG(TRITON_STAGES, "num_stages")

#define FP_KINETO_FIELD(name, key) FP_FIELD_##name,
typedef enum {
  FP_KINETO_FIELDS(FP_KINETO_FIELD, FP_KINETO_FIELD) FP_FIELDS,
  FP_FIELD_COLLECTIVE_LAST = FP_FIELD_GROUP_RANKS,
  FP_FIELD_TRITON_LAST = FP_FIELD_TRITON_STAGES,
} fp_kineto_field;

enum { FP_KINETO_LONGEST_KEY = 31 }; /* bytes; longer keys are unknown */
enum { FP_KINETO_OTHERS = 16 };      /* unknown keys of "args" that are kept, the first ones */

typedef struct {
  uint64_t seen;    /* bit f: values[f] is present and not null */
  uint8_t first;    /* the first field in the text, or FP_FIELDS */
  uint8_t n_others; /* of unknown keys of "args" */
  fp_json_value values[FP_FIELDS];
  fp_json_value other_keys[FP_KINETO_OTHERS], others[FP_KINETO_OTHERS];
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
fp_status fp_kineto_event_read(const fp_kineto_keys *keys, fp_cursor *json, fp_kineto_event *event);

/* Whether the cursor is at the end of an event: the next event starts, or the list ends. `is_list`:
 * the root of the text is the list itself. */
int fp_kineto_is_behind_event(fp_cursor json, int is_list);

static inline const fp_json_value *fp_kineto_value(const fp_kineto_event *event, int field) {
  return event->seen >> field & 1 ? &event->values[field] : NULL;
}
