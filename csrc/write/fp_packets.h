/* fp_packets.h: write columns as protobuf messages: Perfetto's TracePacket with a TrackEvent. */
#pragma once

#include "base/fp_status.h"
#include "text/fp_text.h"

typedef enum {
  FP_PROTO_VARINT,  /* values [n]: `tag` and the number */
  FP_PROTO_NESTED,  /* values [n]: `outer` and the length of a message of `tag` and the number */
  FP_PROTO_FIXED64, /* values[offsets[row] .. offsets[row + 1]): `tag` and 8 bytes, each */
  FP_PROTO_BYTES,   /* values int32 [n]: ids of `texts`, encoded fields; -1: none */
} fp_proto_kind;

/* Field of an event. Members not listed for its kind are ignored. Everything is borrowed. */
typedef struct {
  fp_proto_kind kind;
  int is_wide;            /* VARINT, NESTED: values are int64, else int32 */
  const void *values;     /* FIXED64: int64 [n_values] */
  const int64_t *offsets; /* FIXED64 [n + 1], NULL: one number per row */
  int64_t n_values;       /* FIXED64 */
  int64_t none;           /* VARINT, NESTED, FIXED64: the number that means "no field" */
  fp_text outer, tag;     /* encoded tags; fp_text tag may include fields before the number */
  fp_texts texts;         /* BYTES */
} fp_proto;

/* The packet of each row: head, timestamp, and an event of the fields. */
typedef struct {
  fp_text head;        /* encoded fields of the packet */
  const int64_t *time; /* [n], INT64_MAX: the row has no such packet */
  fp_text event;       /* encoded fields of the event */
  const fp_proto *fields;
  int64_t n_fields;
} fp_packet;

/* Writes the packets of rows first .. last - 1 in turn into `buffer`, until those of the next row
 * do not fit. `origin` is subtracted from times, which must not precede it. *next is the next row,
 * *used the number of bytes written. FP_OK: all rows are written. FP_MORE: the buffer is full; if
 * *used is 0, the row needs a larger buffer. FP_E_INDEX: an id or offset is out of bounds.
 * FP_E_ORDER: a time precedes the origin. */
fp_status fp_packets_write(const fp_packet *packets, int64_t n_packets, int64_t origin,
                           int64_t first, int64_t last, char *buffer, int64_t capacity,
                           int64_t *next, int64_t *used);

/* Lanes of a track that are searched for room; slices that fit none get a lane of their own. */
enum { FP_LANES_SEARCHED = 64 };

/* Slices in order of (start, -end); an end before its start counts as the start. */
typedef struct {
  const int64_t *start, *end; /* [n] */
  const int32_t *track;       /* [n], 0 .. n_tracks - 1 */
  int64_t n, n_tracks;
  int may_nest; /* a slice may lie within another of its lane */
} fp_lanes_slices;

/* lane [n]: the lane of each slice in its track, from 0: the first in which it crosses no other.
 * n_lanes [n_tracks]: the number of lanes. FP_E_ORDER: starts descend. FP_E_INDEX: a track is out
 * of bounds. FP_E_TOO_MANY: over 2^31 - 1 slices. FP_E_MEMORY. */
fp_status fp_lanes(const fp_lanes_slices *slices, int32_t *lane, int32_t *n_lanes);
