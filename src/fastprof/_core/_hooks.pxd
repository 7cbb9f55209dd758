"""Declarations that the hooks share with the other modules that intercept calls of torch."""

from cpython.object cimport PyObject
from fastprof._core._ranges cimport Marker, Opened


cdef class Wrapped:
    cdef readonly object __wrapped__
    cdef readonly str mod
    cdef readonly str op
    cdef str _path
    cdef object _describe
    cdef object _unless
    cdef bint _overloads
    cdef bint _reads
    cdef object _named
    cdef dict _known
    cdef dict __dict__
    cdef object __weakref__
    cdef int _open(self, Opened opened, tuple args, dict kwargs) except -1
    cdef int _describe_and_open(self, Opened opened, tuple args, dict kwargs) except -1
    cdef Marker _arguments(self, tuple args, dict kwargs)


cdef bint somebody_hears() noexcept
cdef Opened begin(Wrapped wrapped, tuple args, dict kwargs)
cdef void end(Opened opened) noexcept
