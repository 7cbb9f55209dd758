from libc.stdint cimport int32_t, int64_t, uint8_t

from fastprof._core.fp_status cimport fp_status


cdef extern from "analysis/fp_grouped.h":
    ctypedef struct fp_grouped_events:
        const int32_t *thread
        const int64_t *start
        const int64_t *end
        int64_t n
        int32_t n_threads

    ctypedef struct fp_grouped_threads:
        int64_t *bounds
        int64_t *order
        int64_t *start
        int64_t *until

    fp_status fp_grouped(const fp_grouped_events *events, int64_t *next,
                         const fp_grouped_threads *threads) nogil

    ctypedef struct fp_grouped_choice:
        const int32_t *group
        const int32_t *label
        const uint8_t *wanted
        int32_t n_groups
        int32_t n_labels

    ctypedef struct fp_grouped_scratch:
        int64_t *until
        int64_t *next
        uint8_t *has_any

    fp_status fp_grouped_count(const fp_grouped_events *events, const fp_grouped_choice *choice,
                               const fp_grouped_scratch *scratch, int64_t *bounds) nogil
    fp_status fp_grouped_unite(const fp_grouped_events *events, const fp_grouped_choice *choice,
                               const fp_grouped_scratch *scratch, const int64_t *bounds,
                               int64_t *start, int64_t *end) nogil

    ctypedef struct fp_grouped_windows:
        const int64_t *start
        const int64_t *end
        int64_t n

    fp_status fp_grouped_overlapping(const fp_grouped_events *events,
                                     const fp_grouped_choice *choice,
                                     const fp_grouped_windows *windows, int64_t *rows,
                                     int64_t *n_rows) nogil
