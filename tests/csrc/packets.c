/* packets.c: fp_packets into buffers of every size, read back by a plain parser; fp_lanes against
 * the rule that slices of a lane do not cross. */
#include "check.h"
#include "write/fp_packets.h"

#define TEXT(bytes) ((fp_text){bytes, sizeof(bytes) - 1})
enum { N = 4, ROOM = 4096 };

static const int64_t begins[N] = {100, 300, INT64_MAX, INT64_MAX - 1};
static const int64_t wide[N] = {INT64_MIN, -1, INT64_MAX, 128};
static const int32_t narrow[N] = {1, 0, 127, INT32_MIN};
static const int64_t flows[N] = {-1, 0x0102030405060708, 5, 6}, offsets[N + 1] = {0, 2, 2, 2, 4};
static const int32_t ids[N] = {1, -1, 0, 0};
static const int64_t text_offsets[] = {0, 0, 4};

static fp_proto fields[] = {
    {.kind = FP_PROTO_VARINT, .is_wide = 1, .values = wide, .none = -1, .tag = {"\x50", 1}},
    {.kind = FP_PROTO_NESTED,
     .values = narrow,
     .none = 0,
     .outer = {"\x22", 1},
     .tag = {"\x08\x07\x20", 3}},
    {.kind = FP_PROTO_FIXED64, .values = flows, .n_values = N, .none = -1, .tag = {"\xf9\x02", 2}},
    {.kind = FP_PROTO_FIXED64,
     .values = flows,
     .offsets = offsets,
     .n_values = N,
     .none = -1,
     .tag = {"\x81\x03", 2}},
    {.kind = FP_PROTO_BYTES, .values = ids, .texts = {"ab\x01\x02", text_offsets, 2}},
};

static fp_packet packet(void) {
  return (fp_packet){TEXT("\x50\x01"), begins, TEXT("\x48\x01"), fields, LENGTH(fields)};
}

static uint64_t read_varint(const char **at, const char *end) {
  uint64_t value = 0;
  for (int shift = 0;; shift += 7) {
    CHECK(*at < end && shift < 70);
    uint8_t byte = (uint8_t) * (*at)++;
    value |= (uint64_t)(byte & 0x7f) << (shift < 64 ? shift : 63);
    if (byte < 0x80) return value;
  }
}

/* Writes all rows with a buffer of `capacity`, which grows if a row does not fit. */
static int64_t written(int64_t capacity, char *out) {
  fp_packet packets[] = {packet(), packet()};
  int64_t length = 0, next = 0, used;
  fp_status status;
  do {
    char *buffer = ARRAY(char, capacity);
    status = fp_packets_write(packets, 2, 100, next, N, buffer, capacity, &next, &used);
    CHECK(status == FP_OK || status == FP_MORE);
    CHECK(used >= 0 && used <= capacity && length + used < ROOM);
    memcpy(out + length, buffer, (size_t)used);
    length += used;
    free(buffer);
    if (used == 0) capacity++;
  } while (status == FP_MORE);
  CHECK(next == N);
  return length;
}

static void packets_are_whole_in_buffers_of_any_size(void) {
  char *out = ARRAY(char, ROOM), *again = ARRAY(char, ROOM);
  int64_t length = written(ROOM, out), n_packets = 0;
  const char *at, *end = out + length;
  for (at = out; at < end; n_packets++) {
    CHECK(read_varint(&at, end) == (1 << 3 | 2));
    uint64_t size = read_varint(&at, end);
    CHECK(size <= (uint64_t)(end - at));
    const char *inside = at, *last = at + size;
    CHECK(read_varint(&inside, last) == 10 << 3 && read_varint(&inside, last) == 1);
    CHECK(read_varint(&inside, last) == 8 << 3);
    int64_t row = n_packets / 2 < 2 ? n_packets / 2 : 3;
    CHECK(read_varint(&inside, last) == (uint64_t)begins[row] - 100);
    CHECK(read_varint(&inside, last) == (11 << 3 | 2));
    uint64_t event = read_varint(&inside, last);
    CHECK(inside + event == last);
    at = last;
  }
  CHECK(n_packets == 6); /* the third row has no time */
  for (int64_t capacity = 1; capacity < 400; capacity++) {
    CHECK(written(capacity, again) == length);
    CHECK(!memcmp(out, again, (size_t)length));
  }
  free(out);
  free(again);
}

static fp_status status_of(const fp_proto *field, int64_t origin) {
  static const int64_t time[N] = {100, 100, 100, 100};
  char buffer[512];
  int64_t next, used;
  fp_packet one = {TEXT(""), time, TEXT(""), field, field != NULL};
  return fp_packets_write(&one, 1, origin, 0, N, buffer, sizeof buffer, &next, &used);
}

static void bad_columns_are_found(void) {
  static const int32_t high[N] = {2, 0, 0, 0}, low[N] = {-2, 0, 0, 0};
  static const int64_t backwards[N + 1] = {2, 1, 1, 1, 1}, behind[N + 1] = {0, 5, 5, 5, 5},
                                     before[N + 1] = {-1, 0, 0, 0, 0};
  const int64_t *const wrong[] = {backwards, behind, before};
  fp_proto bytes = fields[4], list = fields[3];
  CHECK(status_of(&bytes, 100) == FP_OK && status_of(NULL, 100) == FP_OK);
  CHECK(status_of(NULL, 101) == FP_E_ORDER);
  bytes.values = high;
  CHECK(status_of(&bytes, 0) == FP_E_INDEX);
  bytes.values = low;
  CHECK(status_of(&bytes, 0) == FP_E_INDEX);
  for (int i = 0; i < LENGTH(wrong); i++) {
    list.offsets = wrong[i];
    CHECK(status_of(&list, 0) == FP_E_INDEX);
  }
}

enum { TRACKS = 3, LAST = 30 };

static int64_t last_of(const fp_lanes_slices *slices, int64_t i) {
  return slices->end[i] < slices->start[i] ? slices->start[i] : slices->end[i];
}

static int compare(const void *left, const void *right) {
  int64_t a = *(const int64_t *)left, b = *(const int64_t *)right;
  return (a > b) - (a < b);
}

/* Whether slice j, which begins with or after slice i, lies behind it or within it. */
static int agree(const fp_lanes_slices *slices, int64_t i, int64_t j) {
  if (last_of(slices, i) <= slices->start[j]) return 1;
  return slices->may_nest && last_of(slices, j) <= last_of(slices, i);
}

static void slices_of_a_lane_do_not_cross(int64_t n, int may_nest) {
  int64_t *start = ARRAY(int64_t, n), *end = ARRAY(int64_t, n);
  int32_t *track = ARRAY(int32_t, n), *lane = ARRAY(int32_t, n), *counts = ARRAY(int32_t, TRACKS);
  for (int64_t i = 0; i < n; i++) start[i] = random_below(LAST);
  qsort(start, (size_t)n, sizeof *start, compare);
  for (int64_t i = 0; i < n; i++) {
    end[i] = start[i] + random_below(LAST) - 2;
    track[i] = random_below(TRACKS);
  }
  fp_lanes_slices slices = {start, end, track, n, TRACKS, may_nest};
  CHECK(fp_lanes(&slices, lane, counts) == FP_OK);
  for (int64_t j = 0; j < n; j++) {
    CHECK(lane[j] >= 0 && lane[j] < counts[track[j]]);
    for (int64_t i = 0; i < j; i++)
      if (track[i] == track[j] && lane[i] == lane[j]) CHECK(agree(&slices, i, j));
    for (int32_t other = 0; other < lane[j] && other < FP_LANES_SEARCHED; other++) {
      int crosses = 0;
      for (int64_t i = 0; i < j; i++)
        crosses |= track[i] == track[j] && lane[i] == other && !agree(&slices, i, j);
      CHECK(crosses); /* no earlier lane has room */
    }
  }
  if (n) {
    track[n - 1] = TRACKS;
    CHECK(fp_lanes(&slices, lane, counts) == FP_E_INDEX);
    track[n - 1] = 0;
    if (n > 1) {
      start[n - 1] = -1;
      CHECK(fp_lanes(&slices, lane, counts) == FP_E_ORDER);
    }
  }
  free(start);
  free(end);
  free(track);
  free(lane);
  free(counts);
}

int main(void) {
  packets_are_whole_in_buffers_of_any_size();
  bad_columns_are_found();
  for (int32_t i = 0; i < rounds(500); i++)
    slices_of_a_lane_do_not_cross(random_below(i < 20 ? 400 : 40), i % 2);
  return 0;
}
