"""Counts the calls that end steps, in C, until Python has something to do at one of them."""

from cpython.object cimport PyObject
from time import perf_counter_ns


cdef class Countdown:
    """Counts the calls of one object, and notes when they ended.

    Parameters
    ----------
    append : callable
        (time in ns) -> None, called for each call that is counted.

    Attributes
    ----------
    is_off : bool
        Nobody wants to know of any call.
    n_counted : int
        The calls since `start`.
    """

    def __init__(self, append):
        self._append = append
        self.stop()

    def start(self, owner, long long n_calls, long long due):
        """Count the next `n_calls` calls of an object, which must not be freed before `stop`.

        due : time in ns from which calls are not counted any more
        """
        self._owner, self._n_left, self._due = <PyObject *> owner, n_calls, due
        self.n_counted = 0

    def stop(self):
        """Count nothing; return how many calls were counted."""
        cdef long long n_counted = self.n_counted
        self._owner, self._n_left, self.n_counted = NULL, 0, 0
        return n_counted

    cdef bint counts(self, PyObject *owner) noexcept:
        """Count a call; return False if Python is to be told of it instead."""
        if owner != self._owner or self._n_left <= 0:
            return False
        try:
            now = perf_counter_ns()
            if now >= self._due:
                self._n_left = 0
                return False
            self._append(now)
        except BaseException:  # Python is told of this call
            return False
        self._n_left -= 1
        self.n_counted += 1
        return True
