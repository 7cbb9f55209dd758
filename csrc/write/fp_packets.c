#include "write/fp_packets.h"

#include <stdlib.h>
#include <string.h>

/* Tags of Perfetto's schema: Trace.packet, TracePacket.timestamp and .track_event. */
enum { TAG_PACKET = 1 << 3 | 2, TAG_TIMESTAMP = 8 << 3, TAG_TRACK_EVENT = 11 << 3 | 2 };
enum { VARINT = 10, LENGTH = 5 }; /* longest encodings: of a number, of a length */

static inline int size_of(uint64_t value) {
  int size = 1;
  while (value >>= 7) size++;
  return size;
}

static inline char *varint(char *at, uint64_t value) {
  for (; value >= 0x80; value >>= 7) *at++ = (char)(value | 0x80);
  *at++ = (char)value;
  return at;
}

static inline fp_status put(fp_room *out, fp_text text) {
  if (out->end - out->at < text.length) return FP_MORE;
  if (text.length) memcpy(out->at, text.bytes, (size_t)text.length);
  out->at += text.length;
  return FP_OK;
}

static inline fp_status put_varint(fp_room *out, uint64_t value) {
  if (out->end - out->at < VARINT) return FP_MORE;
  out->at = varint(out->at, value);
  return FP_OK;
}

static inline fp_status put_fixed64(fp_room *out, uint64_t value) {
  if (out->end - out->at < 8) return FP_MORE;
  for (int i = 0; i < 8; i++) *out->at++ = (char)(value >> 8 * i);
  return FP_OK;
}

static inline int64_t value_at(const fp_proto *field, int64_t row) {
  return field->is_wide ? ((const int64_t *)field->values)[row]
                        : ((const int32_t *)field->values)[row];
}

static fp_status write_number(const fp_proto *field, int64_t row, fp_room *out) {
  int64_t value = value_at(field, row);
  if (value == field->none) return FP_OK;
  fp_status status = FP_OK;
  if (field->kind == FP_PROTO_NESTED) {
    status = put(out, field->outer);
    if (status == FP_OK)
      status = put_varint(out, (uint64_t)(field->tag.length + size_of((uint64_t)value)));
  }
  if (status == FP_OK) status = put(out, field->tag);
  return status == FP_OK ? put_varint(out, (uint64_t)value) : status;
}

static fp_status write_fixed64(const fp_proto *field, int64_t row, fp_room *out) {
  int64_t first = field->offsets ? field->offsets[row] : row;
  int64_t last = field->offsets ? field->offsets[row + 1] : row + 1;
  if (first < 0 || last < first || last > field->n_values) return FP_E_INDEX;
  const int64_t *values = field->values;
  fp_status status = FP_OK;
  for (int64_t i = first; i < last && status == FP_OK; i++) {
    if (values[i] == field->none) continue;
    status = put(out, field->tag);
    if (status == FP_OK) status = put_fixed64(out, (uint64_t)values[i]);
  }
  return status;
}

static fp_status write_bytes(const fp_proto *field, int64_t row, fp_room *out) {
  int32_t id = ((const int32_t *)field->values)[row];
  if (id == -1) return FP_OK;
  if (id < 0 || id >= field->texts.count) return FP_E_INDEX;
  return put(out, fp_texts_at(&field->texts, id));
}

static fp_status write_field(const fp_proto *field, int64_t row, fp_room *out) {
  switch (field->kind) {
    case FP_PROTO_VARINT:
    case FP_PROTO_NESTED:
      return write_number(field, row, out);
    case FP_PROTO_FIXED64:
      return write_fixed64(field, row, out);
    case FP_PROTO_BYTES:
      return write_bytes(field, row, out);
  }
  return FP_E_INDEX;
}

/* The event is written behind room for all that precedes it, then moved to its place. */
static fp_status write_packet(const fp_packet *packet, uint64_t time, int64_t row, fp_room *out) {
  int64_t before = 1 + LENGTH + packet->head.length + 1 + VARINT + 1 + LENGTH;
  if (out->end - out->at < before) return FP_MORE;
  char *event = out->at + before, *at = out->at;
  fp_room inside = {event, out->end};
  fp_status status = put(&inside, packet->event);
  for (int64_t i = 0; i < packet->n_fields && status == FP_OK; i++)
    status = write_field(&packet->fields[i], row, &inside);
  if (status != FP_OK) return status;
  size_t length = (size_t)(inside.at - event);
  *at++ = TAG_PACKET;
  at = varint(at, (uint64_t)packet->head.length + 1 + (uint64_t)size_of(time) + 1 +
                      (uint64_t)size_of(length) + length);
  if (packet->head.length) memcpy(at, packet->head.bytes, (size_t)packet->head.length);
  at += packet->head.length;
  *at++ = TAG_TIMESTAMP;
  at = varint(at, time);
  *at++ = TAG_TRACK_EVENT;
  at = varint(at, length);
  memmove(at, event, length);
  out->at = at + length;
  return FP_OK;
}

fp_status fp_packets_write(const fp_packet *packets, int64_t n_packets, int64_t origin,
                           int64_t first, int64_t last, char *buffer, int64_t capacity,
                           int64_t *next, int64_t *used) {
  fp_room out = {buffer, buffer + capacity};
  *next = first;
  *used = 0;
  for (int64_t row = first; row < last; row++) {
    for (int64_t i = 0; i < n_packets; i++) {
      int64_t time = packets[i].time[row];
      if (time == INT64_MAX) continue;
      if (time < origin) return FP_E_ORDER;
      fp_status status = write_packet(&packets[i], (uint64_t)time - (uint64_t)origin, row, &out);
      if (status != FP_OK) return status;
    }
    *next = row + 1;
    *used = out.at - buffer;
  }
  return FP_OK;
}

typedef struct {
  const fp_lanes_slices *slices;
  int32_t *open;   /* [n_tracks, FP_LANES_SEARCHED]: the innermost open slice of each lane, -1 */
  int32_t *around; /* [n]: the open slice around each slice, -1 */
} lanes;

static int64_t end_of(const lanes *l, int32_t slice) {
  int64_t start = l->slices->start[slice], end = l->slices->end[slice];
  return end < start ? start : end;
}

/* Whether a slice fits in a lane, whose slices that have ended are closed. */
static int fits(const lanes *l, int32_t *open, int32_t slice) {
  while (*open >= 0 && end_of(l, *open) <= l->slices->start[slice]) *open = l->around[*open];
  if (*open < 0) return 1;
  return l->slices->may_nest && end_of(l, slice) <= end_of(l, *open);
}

static int32_t lane_of(lanes *l, int32_t slice, int32_t n_lanes) {
  int32_t *open = l->open + (int64_t)l->slices->track[slice] * FP_LANES_SEARCHED;
  for (int32_t i = 0; i < n_lanes && i < FP_LANES_SEARCHED; i++) {
    if (!fits(l, &open[i], slice)) continue;
    l->around[slice] = open[i];
    open[i] = slice;
    return i;
  }
  l->around[slice] = -1;
  if (n_lanes < FP_LANES_SEARCHED) open[n_lanes] = slice;
  return n_lanes;
}

fp_status fp_lanes(const fp_lanes_slices *slices, int32_t *lane, int32_t *n_lanes) {
  if (slices->n > INT32_MAX) return FP_E_TOO_MANY;
  size_t n_open = (size_t)slices->n_tracks * FP_LANES_SEARCHED;
  lanes l = {slices, malloc((n_open + 1) * sizeof *l.open),
             malloc(((size_t)slices->n + 1) * sizeof *l.around)};
  fp_status status = l.open && l.around ? FP_OK : FP_E_MEMORY;
  if (status == FP_OK) memset(l.open, -1, n_open * sizeof *l.open);
  for (int64_t i = 0; i < slices->n_tracks; i++) n_lanes[i] = 0;
  for (int64_t i = 0; i < slices->n && status == FP_OK; i++) {
    int32_t track = slices->track[i];
    if (track < 0 || track >= slices->n_tracks) {
      status = FP_E_INDEX;
    } else if (i && slices->start[i] < slices->start[i - 1]) {
      status = FP_E_ORDER;
    } else {
      lane[i] = lane_of(&l, (int32_t)i, n_lanes[track]);
      if (lane[i] == n_lanes[track]) n_lanes[track]++;
    }
  }
  free(l.around);
  free(l.open);
  return status;
}
