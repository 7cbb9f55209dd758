"""Times steps, and tells which are longer than a limit, which may follow their median.

No Python code runs between the ends of two steps that are not slow, and no signal handler.
"""

from libc.math cimport ceil, INFINITY
from libc.string cimport memmove

cdef enum:
    WARM_UP = 3  # steps with a known begin that are no part of the median
    FEWEST = 10  # steps with a median
    WINDOW = 101  # steps of the median: the latest


cdef class SlowSteps:
    """Times steps by their ends, in ns of `time.perf_counter_ns`.

    Parameters
    ----------
    ends : list
        Gets the end of each step.
    multiple : float
        The limit, as a multiple of the median; 0 for a fixed one.
    fixed : float
        The fixed limit in ns; infinity for none.
    with_limit : bool
        Steps of the length of the limit are slow too.

    Attributes
    ----------
    length, median : int
        The length of the latest slow step, and the median of those before it, ns.
    longest : tuple of int, or None
        Number, length and median of the longest step that was compared with the limit.
    """

    cdef list _ends
    cdef double _multiple, _fixed, _limit
    cdef bint _with_limit
    cdef long long _last, _n_steps, _median
    cdef long long _window[WINDOW]
    cdef long long _sorted[WINDOW]
    cdef int _n_warm, _n, _at
    cdef long long _longest[3]
    cdef readonly long long length, median

    def __init__(self, list ends, double multiple, double fixed, bint with_limit):
        self._ends, self._multiple, self._fixed = ends, multiple, fixed
        self._with_limit = with_limit
        self.forget()

    def forget(self):
        """Begin with step 0."""
        self._last = self._n_steps = self._median = self.length = self.median = 0
        self._n_warm = self._n = self._at = 0
        self._longest[1] = 0
        self._limit = INFINITY

    def begin(self, long long now):
        """The next step begins at this time; at an unknown one for 0."""
        self._last = now

    @property
    def longest(self):
        return tuple(self._longest) if self._longest[1] else None

    def passed(self, long long now):
        """A step ends: note it, and return None; if it is slow, return True and do nothing."""
        if self._last == 0 or now - self._last > self._limit:
            return True
        self._note(now, True)

    def ended(self, long long now, bint is_watched):
        """A step ends: note it, and return whether it is watched and slow."""
        cdef long long length = now - self._last
        cdef bint is_known = self._last != 0
        cdef bint is_slow = is_watched and is_known and length > self._limit
        if is_slow:
            self.length, self.median = length, self._median
        self._note(now, is_watched and is_known)
        return is_slow

    cdef int _note(self, long long now, bint is_watched) except -1:
        self._ends.append(now)
        if is_watched:
            self._take(now - self._last)
        self._last = now
        self._n_steps += 1
        return 0

    cdef void _take(self, long long length) noexcept:
        """Take a length into the median."""
        if self._n_warm < WARM_UP:
            self._n_warm += 1
            return
        if self._limit < INFINITY and length > self._longest[1]:
            self._longest[0], self._longest[1] = self._n_steps, length
            self._longest[2] = self._median
        if self._n == WINDOW:
            self._remove(self._window[self._at])
        self._window[self._at] = length
        self._at = (self._at + 1) % WINDOW
        self._insert(length)
        if self._n >= FEWEST:
            self._median = self._sorted[self._n // 2]
            self._limit = self._multiple * self._median if self._multiple else self._fixed
            if self._with_limit:
                self._limit = ceil(self._limit) - 1

    cdef int _place(self, long long length) noexcept:
        """The first place in order whose length is not less."""
        cdef int low = 0, high = self._n, middle
        while low < high:
            middle = (low + high) // 2
            if self._sorted[middle] < length:
                low = middle + 1
            else:
                high = middle
        return low

    cdef void _insert(self, long long length) noexcept:
        cdef int at = self._place(length)
        cdef long long *place = self._sorted + at
        memmove(place + 1, place, (self._n - at) * sizeof(long long))
        place[0] = length
        self._n += 1

    cdef void _remove(self, long long length) noexcept:
        cdef int at = self._place(length)
        cdef long long *place = self._sorted + at
        memmove(place, place + 1, (self._n - at - 1) * sizeof(long long))
        self._n -= 1
