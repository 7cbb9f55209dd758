from libc.stdint cimport int64_t


cdef extern from "fp_scan.h":
    ctypedef bint (*fp_scan_keep)(const void *state, const int64_t *values) noexcept nogil
    ctypedef struct fp_scan_filter:
        fp_scan_keep keep
        const void *state
        int n_columns


cdef class Filter:
    cdef fp_scan_filter filter
