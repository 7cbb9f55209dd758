from libc.stdint cimport int32_t, int64_t

from fastprof._core.fp_status cimport fp_status


cdef extern from "analysis/fp_held.h":
    ctypedef struct fp_held_work:
        const int64_t *start
        const int64_t *end
        const int32_t *row
        int64_t n
        int64_t begin

    ctypedef struct fp_held_arrivals:
        const int64_t *piece
        const int64_t *start
        const int32_t *row
        int64_t n

    ctypedef struct fp_held_launches:
        const int64_t *time
        const int32_t *call
        const int32_t *thread
        const int64_t *end
        int64_t n_kernels
        int64_t n_calls

    ctypedef struct fp_held_pieces:
        const int64_t *time
        const int64_t *work
        const double *stretched
        int64_t n

    ctypedef struct fp_held:
        int64_t *launch
        int32_t *thread
        int64_t *allowed
        int64_t *rest
        int64_t *slow_launch
        int64_t *slow_end
        int64_t n_slow

    fp_status fp_held_sums(const fp_held_work *work, const int64_t *time, int64_t n_pieces,
                           int64_t *sums) nogil

    fp_status fp_held_find(const fp_held_work *work, const fp_held_arrivals *arrivals,
                           const fp_held_launches *launches, const fp_held_pieces *pieces,
                           int64_t latency_ns, int64_t slow_ns, fp_held *held) nogil

    fp_status fp_held_waiting(const fp_held_work *work, const fp_held_arrivals *arrivals,
                              const fp_held_launches *launches, const int64_t *time, int64_t n,
                              int64_t *waiting) nogil
