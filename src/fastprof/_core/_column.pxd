# Columns being filled from rows, shared by _scan and _pages.
from libc.stdint cimport int32_t, int64_t

from fastprof._core._c cimport fp_status
from fastprof._core._pools cimport Names, fp_keys, fp_names


cdef extern from "scan/fp_column.h":
    ctypedef enum fp_column_kind:
        FP_COLUMN_I64, FP_COLUMN_I32, FP_COLUMN_KEY, FP_COLUMN_TEXT, FP_COLUMN_LENGTH
        FP_COLUMN_RANGE
    int FP_MAX_COLUMNS
    ctypedef struct fp_column:
        fp_column_kind kind
        int64_t none
        int shift
        bint may_be_null
        fp_keys *keys
        fp_names *names
        bint is_part
        void *out
        int64_t *seq
        int64_t *op_id
    ctypedef struct fp_together:
        fp_names *pool
        const char *values
        size_t length
        int32_t *out
    ctypedef struct fp_columns:
        const fp_column *each
        int n
        fp_together together
    ctypedef bint (*fp_row_keep)(const void *state, const int64_t *values) noexcept nogil
    ctypedef struct fp_row_filter:
        fp_row_keep keep
        const void *state
        int n_columns


cdef class Filter:
    cdef fp_row_filter filter


cdef class Rows:
    cdef fp_status step(self, const fp_columns *columns, fp_row_filter keep, int64_t limit,
                        int64_t capacity, int64_t *kept, int64_t *stepped) noexcept nogil
    cdef int refuse(self, fp_status status, what) except -1


cdef class Room:
    cdef list specs
    cdef dict arrays
    cdef object values
    cdef Names distinct
    cdef int64_t kept, capacity


cdef int fill(Rows rows, Room room, str what, Filter keep, progress) except -1
