"""Ranges, for the modules that open them."""


cdef class Marker:
    cdef readonly str text
    cdef bint passing
    cdef str recorded
    cdef object event
    cdef object kept
    cdef dict variants


cdef class Opened:
    cdef int pushed
    cdef object end
    cdef list entered
    cdef bint is_asked  # whether `is_recorded` is set: a profiler is asked once per call
    cdef bint is_recorded
    cdef int add(self, Marker marker) except -1


cdef bint anybody_listens() noexcept
cdef int open_calls() noexcept
cdef void call_begins() noexcept
cdef void call_ends() noexcept
