from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t

from fastprof._core.fp_status cimport fp_status


cdef extern from "base/fp_take.h":
    fp_status fp_take(const void *values, size_t size, int64_t n_values, const int32_t *index,
                      int64_t n, const void *none, void *out) nogil

    ctypedef struct fp_take_index:
        const int32_t *row
        const int32_t *inner
        const int32_t *outer
        int64_t n
        int64_t n_inner
        int64_t n_outer

    fp_status fp_take_distinct(const fp_take_index *index, int32_t n_values, int32_t *number,
                               int32_t *used, int32_t *n_used, int32_t *place) nogil
    fp_status fp_take_where(const uint8_t *flags, int64_t n_values, const int32_t *index,
                            int64_t n, int64_t *rows, int64_t *n_rows) nogil
    fp_status fp_take_ranks(const int32_t *index, int64_t n, int32_t n_values, uint64_t *used,
                            int32_t *before, int32_t *rank) nogil

    ctypedef struct fp_take_slices:
        const int64_t *low
        const int64_t *high
        const int64_t *wanted
        int64_t n

    fp_status fp_take_place(const int64_t *values, int64_t n_values,
                            const fp_take_slices *slices, bint after, int64_t *place) nogil
    void fp_take_without(char *items, size_t size, int64_t n, const int64_t *gaps,
                         int64_t n_gaps) nogil
    int FP_RADIX_COUNTS
    void fp_radix_sort(uint64_t *items, uint64_t *scratch, int64_t n, int low,
                       int64_t *count) nogil
