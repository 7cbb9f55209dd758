from libc.stdint cimport int64_t


cdef extern from "fp_scan.h":
    ctypedef bint (*fp_scan_keep)(const void *state, const int64_t *values) noexcept nogil


cdef class Filter:
    cdef fp_scan_keep keep
    cdef const void *state
