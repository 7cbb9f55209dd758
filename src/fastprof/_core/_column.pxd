# Columns being filled from rows, shared by _scan and _pages.
from libc.stdint cimport int32_t, int64_t

from fastprof._core.fp_column cimport fp_columns, fp_row_filter
from fastprof._core.fp_status cimport fp_status
from fastprof._core._pools cimport Names


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
