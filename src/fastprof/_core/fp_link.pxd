from libc.stdint cimport int32_t, int64_t, uint8_t

from fastprof._core.fp_status cimport fp_status


cdef extern from "path/fp_link.h":
    int FP_LINK_NONE, FP_LINK_FORWARD, FP_LINK_BACKWARD
    int FP_LABEL_TORCH, FP_LABEL_BACKWARD, FP_LABEL_NODE, FP_LABEL_RECOMPUTE

    ctypedef struct fp_link_ranges:
        const int32_t *label
        const int32_t *thread
        const int32_t *frame
        const int64_t *seq
        int32_t n
        const uint8_t *bits
        const int32_t *parent
        const uint8_t *in_backward

    void fp_link_roles(const fp_link_ranges *ranges, uint8_t *counting, int32_t n_threads,
                       uint8_t *role) nogil
    fp_status fp_link(const uint8_t *role, const int64_t *seq, const int32_t *scope, int32_t n,
                      int32_t *forward) nogil
    fp_status fp_link_calls(const int32_t *parent, const int32_t *range, int32_t n,
                            const uint8_t *role, const int64_t *seq, int32_t *call,
                            uint8_t *links) nogil

    ctypedef struct fp_link_calls_of:
        const int32_t *call
        const int32_t *range
        const uint8_t *in_backward
        int32_t n
        const int32_t *forward

    fp_status fp_link_meanings(const fp_link_calls_of *calls, const int32_t *frame_of_range,
                               int32_t n_ranges, int32_t *meaning) nogil

    ctypedef struct fp_link_frames:
        const int32_t *parent
        const int32_t *range
        const uint8_t *backward
        const int64_t *seq
        const int32_t *label
        const uint8_t *is_torch
        int32_t n_ranges
        int32_t n_labels

    ctypedef struct fp_link_others:
        int64_t *end
        int64_t *number
        int64_t capacity
        int64_t n

    fp_status fp_link_numbers(const fp_link_frames *frames, const int32_t *frame,
                              const uint8_t *inside, int64_t n, int64_t *scratch, int32_t depth,
                              int64_t *seq_of, fp_link_others *others) nogil
    fp_status fp_link_sub(const int32_t *process, const int64_t *seq, const int32_t *operator_id,
                          int64_t n, int64_t *last_seq, int32_t *last_operator, int32_t *last_sub,
                          int32_t n_processes, int32_t *sub) nogil
