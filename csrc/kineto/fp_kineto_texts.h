/* fp_kineto_texts.h: pools of the distinct texts of trace events. */
#pragma once

#include "kineto/fp_kineto_event.h"
#include "text/fp_names.h"

typedef enum {
  FP_KINETO_NAMES,      /* names of GPU work, calls and metadata, and the values of metadata */
  FP_KINETO_LABELS,     /* see fp_kineto_label */
  FP_KINETO_STACKS,     /* call stacks and module hierarchies */
  FP_KINETO_PLACES,     /* pids and tids that are strings */
  FP_KINETO_CATEGORIES, /* categories of all events */
  FP_KINETO_NOTES,      /* see fp_kineto_annotation */
  FP_KINETO_ROOT,       /* raw "key": value pairs of the root object */
  FP_KINETO_POOLS,
} fp_kineto_pool;

/* The pools, and scratch memory for building a text. */
typedef struct {
  fp_names *pools[FP_KINETO_POOLS];
  char *room;
  size_t capacity;
} fp_kineto_texts;

/* Call fp_kineto_texts_free even after FP_E_MEMORY. */
fp_status fp_kineto_texts_make(fp_kineto_texts *texts);
void fp_kineto_texts_free(fp_kineto_texts *texts);

/* Interns a value in a pool: a string decoded to UTF-8, any other value as raw text. */
fp_status fp_kineto_intern(fp_kineto_texts *texts, int pool, const fp_json_value *value,
                           int32_t *id);

/* Interns the label of a range: its name, then six pieces of JSON, each preceded by a byte 0x1f and
 * empty if the event lacks it: the values of Input Dims, Input type, Input Strides and Concrete
 * Inputs, the "key":value pairs of a collective, and those of a Triton kernel. The name may contain
 * 0x1f: split from the right. */
fp_status fp_kineto_label(fp_kineto_texts *texts, const fp_kineto_event *event, int32_t *id);

/* Interns the annotation of a node of a CUDA graph: the JSON object of the args that the profiler
 * itself does not write, in the order of the text, then those of a collective. *id is -1 for an
 * event without a graph node or without such args. torch writes the fields of
 * `torch.cuda._graph_annotations.mark_kernels` there. */
fp_status fp_kineto_annotation(fp_kineto_texts *texts, const fp_kineto_event *event, int32_t *id);
