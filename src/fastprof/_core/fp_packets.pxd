from libc.stdint cimport int32_t, int64_t

from fastprof._core.fp_status cimport fp_status
from fastprof._core.fp_text cimport fp_text, fp_texts


cdef extern from "write/fp_packets.h":
    ctypedef enum fp_proto_kind:
        FP_PROTO_VARINT
        FP_PROTO_NESTED
        FP_PROTO_FIXED64
        FP_PROTO_BYTES

    ctypedef struct fp_proto:
        fp_proto_kind kind
        int is_wide
        const void *values
        const int64_t *offsets
        int64_t n_values
        int64_t none
        fp_text outer
        fp_text tag
        fp_texts texts

    ctypedef struct fp_packet:
        fp_text head
        const int64_t *time
        fp_text event
        const fp_proto *fields
        int64_t n_fields

    fp_status fp_packets_write(
        const fp_packet *packets, int64_t n_packets, int64_t origin, int64_t first, int64_t last,
        char *buffer, int64_t capacity, int64_t *next, int64_t *used) nogil

    ctypedef struct fp_lanes_slices:
        const int64_t *start
        const int64_t *end
        const int32_t *track
        int64_t n
        int64_t n_tracks
        int may_nest

    fp_status fp_lanes(const fp_lanes_slices *slices, int32_t *lane, int32_t *n_lanes) nogil
