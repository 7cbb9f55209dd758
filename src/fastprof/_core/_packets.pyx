"""Write columns as Perfetto packets; divide slices among lanes."""
from cpython.bytes cimport PyBytes_AS_STRING
from libc.stdint cimport int32_t, int64_t, uint8_t
from libc.stdlib cimport free, realloc
from libc.string cimport memset

from fastprof._core._arrays cimport pointer32, pointer64, require, require_equal
from fastprof._core.fp_packets cimport (
    FP_PROTO_BYTES, FP_PROTO_FIXED64, FP_PROTO_NESTED, FP_PROTO_VARINT, fp_lanes, fp_lanes_slices,
    fp_packet, fp_packets_write, fp_proto, fp_proto_kind,
)
from fastprof._core.fp_status cimport FP_MORE, fp_status
from fastprof._core.fp_text cimport fp_text
from fastprof._core._status cimport check

import numpy as np


# Just below 4 MiB, as blocks of rows.
cdef int64_t BLOCK_SIZE = (1 << 22) - 4096


cdef class Fields:
    """The fields of an event, [n_rows], in the order in which they are added.

    Arrays are borrowed, not copied: do not modify them before the last block is filled. Tags are
    encoded, and may include fields before the number.
    """
    cdef fp_proto *fields
    cdef int64_t n_fields
    cdef readonly int64_t n_rows
    cdef list kept

    def __cinit__(self, int64_t n_rows):
        self.n_rows = n_rows
        self.kept = []

    def __dealloc__(self):
        free(self.fields)

    cdef fp_text text(self, bytes text):
        self.kept.append(text)
        return fp_text(PyBytes_AS_STRING(text), len(text))

    cdef fp_proto *new_field(self, fp_proto_kind kind, bytes tag) except NULL:
        cdef fp_proto *fields = <fp_proto *>realloc(
            self.fields, (self.n_fields + 1) * sizeof(fp_proto))
        if fields == NULL:
            raise MemoryError
        self.fields = fields
        cdef fp_proto *field = &fields[self.n_fields]
        memset(field, 0, sizeof(fp_proto))
        field.kind = kind
        field.tag = self.text(tag)
        return field

    cdef int set_values(self, fp_proto *field, values) except -1:
        field.is_wide = values.dtype == np.int64
        if field.is_wide:
            field.values = pointer64(values)
        else:
            field.values = pointer32(values)
        field.n_values = len(values)
        self.kept.append(values)
        return 0

    def add_numbers(self, bytes tag, values, *, int64_t none, bytes outer=b""):
        """Add a number as varint, int32 or int64 [n_rows]; rows with `none` lack the field.

        outer : tag of a message around the tag and the number
        """
        require(values.shape == (self.n_rows,), "values are not [n_rows]")
        cdef fp_proto *field = self.new_field(FP_PROTO_NESTED if outer else FP_PROTO_VARINT, tag)
        self.set_values(field, values)
        field.none = none
        field.outer = self.text(outer)
        self.n_fields += 1

    def add_fixed(self, bytes tag, values, *, int64_t none=-1, offsets=None):
        """Add numbers of 8 bytes, int64: [n_rows], or values[offsets[row]:offsets[row + 1]]."""
        require(values.dtype == np.int64, "values are not int64")
        cdef fp_proto *field
        if offsets is None:
            require(values.shape == (self.n_rows,), "values are not [n_rows]")
        else:
            require(offsets.shape == (self.n_rows + 1,), "offsets are not [n_rows + 1]")
        field = self.new_field(FP_PROTO_FIXED64, tag)
        self.set_values(field, values)
        field.none = none
        if offsets is not None:
            field.offsets = pointer64(offsets)
            self.kept.append(offsets)
        self.n_fields += 1

    def add_texts(self, ids, texts):
        """Add encoded fields: row i has `texts[ids[i]]`, none if the id is -1; ids: int32."""
        require(ids.shape == (self.n_rows,), "ids are not [n_rows]")
        cdef fp_proto *field = self.new_field(FP_PROTO_BYTES, b"")
        cdef bytes joined = b"".join(texts)
        offsets = np.zeros(len(texts) + 1, np.int64)
        np.cumsum(np.fromiter(map(len, texts), np.int64, len(texts)), out=offsets[1:])
        self.kept += [joined, offsets, ids]
        field.values = pointer32(ids)
        field.texts.bytes = PyBytes_AS_STRING(joined)
        field.texts.offsets = pointer64(offsets)
        field.texts.count = len(texts)
        self.n_fields += 1


cdef class PacketWriter:
    """Writes the packets of each row, one for each pair of times and fields.

    Parameters
    ----------
    head : bytes
        Encoded fields of every packet.
    origin : int
        Subtracted from times; no time precedes it.
    packets : list of (time, event, fields)
        time: int64 [n_rows], 2^63 - 1 where the row has no such packet; event: encoded fields;
        fields: Fields.
    """
    cdef fp_packet packets[4]
    cdef int64_t n_packets
    cdef int64_t origin
    cdef readonly int64_t n_rows
    cdef list kept

    def __cinit__(self, bytes head, int64_t origin, list packets):
        cdef Fields fields
        cdef bytes event
        require(0 < len(packets) <= 4, "expected 1 to 4 packets a row")
        self.kept = [head, packets]
        self.origin = origin
        for i, (time, event, fields) in enumerate(packets):
            require(i == 0 or fields.n_rows == self.n_rows, "packets differ in rows")
            self.n_rows = fields.n_rows
            require(time.shape == (self.n_rows,), "times are not [n_rows]")
            self.packets[i].head = fp_text(PyBytes_AS_STRING(head), len(head))
            self.packets[i].time = pointer64(time)
            self.packets[i].event = fp_text(PyBytes_AS_STRING(event), len(event))
            self.packets[i].fields = fields.fields
            self.packets[i].n_fields = fields.n_fields
        self.n_packets = len(packets)

    def block(self):
        """Return a new block; use each block on one thread."""
        return PacketBlock(self)


cdef class PacketBlock:
    """A reusable buffer of packets, for one thread."""
    cdef PacketWriter rows
    cdef object bytes
    cdef int64_t used

    def __cinit__(self, PacketWriter rows):
        self.rows = rows
        self.bytes = np.empty(BLOCK_SIZE, np.uint8)

    def fill(self, int64_t first, int64_t end):
        """Fill the block with rows from `first`, at most to `end - 1`; return the next row.

        Raises
        ------
        InternalError
            An id or offset is out of bounds, or a time precedes the origin.
        """
        require(0 <= first <= end <= self.rows.n_rows, "rows are out of bounds")
        cdef fp_status status
        cdef int64_t used
        cdef uint8_t[::1] view = self.bytes
        while True:
            with nogil:
                status = fp_packets_write(
                    self.rows.packets, self.rows.n_packets, self.rows.origin, first, end,
                    <char *>&view[0], view.shape[0], &first, &used)
            self.used = used
            if status != FP_MORE or used:
                check(status, "writing packets")
                return first
            self.bytes = view = np.empty(2 * view.shape[0], np.uint8)  # the row exceeds the block

    def filled(self):
        """The bytes of the packets in the block, valid until the next `fill`."""
        return memoryview(self.bytes)[:self.used]


def lanes(const int64_t[::1] start, const int64_t[::1] end, const int32_t[::1] track,
          int64_t n_tracks, bint may_nest):
    """Divide slices among lanes in which they nest or follow each other.

    Parameters
    ----------
    start, end : int64 [n]
        In order of (start, -end). An end before its start counts as the start.
    track : int32 [n]
        0 to n_tracks - 1.
    may_nest : bool
        Whether a slice may lie within another of its lane.

    Returns
    -------
    lane : int32 [n]
        The first lane of the track in which the slice crosses no other, from 0.
    n_lanes : int32 [n_tracks]

    Raises
    ------
    InternalError
        Starts descend, or a track is out of bounds.
    """
    cdef fp_lanes_slices slices
    cdef int64_t n = start.shape[0]
    require_equal((n, end.shape[0], track.shape[0]))
    lane, n_lanes = np.zeros(n, np.int32), np.zeros(n_tracks, np.int32)
    cdef int32_t[::1] found = lane
    cdef int32_t[::1] counts = n_lanes
    cdef fp_status status
    if n == 0:
        return lane, n_lanes
    require(n_tracks > 0, "no tracks")
    slices.start, slices.end, slices.track = &start[0], &end[0], &track[0]
    slices.n, slices.n_tracks, slices.may_nest = n, n_tracks, may_nest
    with nogil:
        status = fp_lanes(&slices, &found[0], &counts[0])
    check(status, "lanes of slices")
    return lane, n_lanes
