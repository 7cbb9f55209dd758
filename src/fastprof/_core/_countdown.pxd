"""Declarations of the countdown that `_around` and `_layers` share."""

from cpython.object cimport PyObject


cdef class Countdown:
    cdef public bint is_off
    cdef long long _n_ended
    cdef int _n_objects
    cdef PyObject *_objects[8]
    cdef long long _n_calls[8]
    cdef long long _n_left
    cdef long long _due
    cdef object _append
    cdef bint counts(self, PyObject *called) noexcept
