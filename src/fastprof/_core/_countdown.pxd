"""Declarations of the countdown that `_around` and `_layers` share."""

from cpython.object cimport PyObject


cdef class Countdown:
    cdef public bint is_off
    cdef readonly long long n_counted
    cdef PyObject *_owner
    cdef long long _n_left
    cdef long long _due
    cdef object _append
    cdef bint counts(self, PyObject *owner) noexcept
