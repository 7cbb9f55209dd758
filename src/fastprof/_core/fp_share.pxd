from libc.stdint cimport int8_t, int32_t, int64_t, uint8_t, uint64_t

from fastprof._core.fp_status cimport fp_status


cdef extern from "cost/fp_share.h":
    ctypedef struct fp_share_rows:
        const int32_t *group
        const int32_t *cell
        const int64_t *weight
        const int64_t *total
        int64_t n
        int32_t n_groups
        int32_t n_cells

    fp_status fp_share_pairs(const int32_t *group, const int32_t *cell, int64_t n,
                             int32_t n_groups, const int8_t *part, int32_t n_cells,
                             int32_t n_parts, int32_t *scratch, int32_t *number,
                             int32_t *n_pairs) nogil
    fp_status fp_share_sum(const fp_share_rows *rows, int64_t *sum) nogil
    fp_status fp_share(const fp_share_rows *rows, const int64_t *sum, int64_t *passed,
                       int64_t *share) nogil
    fp_status fp_share_add_up(const fp_share_rows *rows, const int64_t *share, int64_t *of_group,
                              uint64_t *expected, uint64_t *found) nogil

    ctypedef struct fp_share_moves:
        const int32_t *group
        const int64_t *bytes
        const int64_t *duration
        const int32_t *memory
        const double *bandwidth
        int64_t n
        int32_t n_groups
        int32_t n_memories

    fp_status fp_share_too_fast(const fp_share_moves *moves, double most, double *scratch,
                                uint8_t *too_fast) nogil
    fp_status fp_share_ordinal(const int32_t *group, int64_t n, int32_t n_groups, int32_t *seen,
                               int32_t *ordinal) nogil
