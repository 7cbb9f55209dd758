"""Counts the calls that end steps, in C, until Python has something to do at one of them."""

from cpython.object cimport PyObject
from time import perf_counter_ns


cdef class Countdown:
    """Counts the calls of a few objects; of those with the fewest calls, the last ends a step.

    Parameters
    ----------
    append : callable
        (time in ns) -> bool or None, called for each step that ends. If it returns True, the step
        is not counted, and Python is told of it.

    Attributes
    ----------
    is_off : bool
        Nobody wants to know of any call.
    """

    def __init__(self, append):
        self._append = append
        self.stop()

    def start(self, list objects, list n_calls, long long n_steps, long long due):
        """Count the calls of objects until `n_steps` steps have ended.

        Python is told of the step that ends after these.

        Parameters
        ----------
        objects : list
            At most 8, in the order of their first calls. None may be freed before `stop`.
        n_calls : list of int
            Their calls until now.
        n_steps : int
        due : int
            Time in ns from which no step is counted.
        """
        cdef int i
        self.stop()
        if len(objects) > 8 or len(objects) != len(n_calls):
            return
        for i in range(len(objects)):
            self._objects[i], self._n_calls[i] = <PyObject *> objects[i], n_calls[i]
        self._n_objects, self._n_left, self._due = len(objects), n_steps, due

    def stop(self):
        """Count nothing; return the steps that were counted, and the calls of each object."""
        cdef int n_objects = self._n_objects
        cdef long long n_ended = self._n_ended
        self._n_objects = self._n_ended = 0
        return n_ended, [self._n_calls[i] for i in range(n_objects)]

    cdef bint counts(self, PyObject *called) noexcept:
        """Count a call; return False if Python is to be told of it instead."""
        cdef int i, which = -1
        cdef long long n_calls
        for i in range(self._n_objects):
            if self._objects[i] == called:
                which = i
        if which < 0:
            return False
        n_calls = self._n_calls[which] + 1
        for i in range(self._n_objects):
            if i != which and (self._n_calls[i] < n_calls
                               or (i > which and self._n_calls[i] == n_calls)):
                self._n_calls[which] = n_calls
                return True  # not the end of a step
        if self._n_left <= 0:
            return False
        try:
            now = perf_counter_ns()
            if now >= self._due:
                self._n_left = 0
                return False
            if self._append(now):
                return False
        except BaseException:  # Python is told of this call
            return False
        self._n_calls[which] = n_calls
        self._n_left -= 1
        self._n_ended += 1
        return True
