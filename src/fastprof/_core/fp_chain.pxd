from libc.stdint cimport int32_t, int64_t, uint64_t

from fastprof._core.fp_status cimport fp_status


cdef extern from "analysis/fp_chain.h":
    ctypedef struct fp_chain_work:
        const int64_t *start
        const int64_t *end
        const int32_t *label
        int64_t n

    ctypedef struct fp_chain_idle:
        const int32_t *piece
        const int32_t *label
        const int64_t *ns
        int64_t n

    ctypedef struct fp_chain_entries:
        int64_t *offsets
        int32_t *label
        int64_t *ns
        int32_t *count

    ctypedef struct fp_chain_scratch:
        int64_t *ns
        int32_t *count
        int32_t *used
        uint64_t *is_used

    fp_status fp_chain(const fp_chain_work *work, const fp_chain_idle *idle, int64_t begin,
                       const int64_t *time, int32_t n_pieces, int32_t n_labels,
                       const fp_chain_scratch *scratch, const fp_chain_entries *entries) nogil
