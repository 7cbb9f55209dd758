"""When work of each kind runs, and when none does."""
import numpy as np

from libc.stdint cimport int32_t, int64_t, uint8_t

from fastprof._core._arrays cimport require_equal
from fastprof._core.fp_status cimport fp_status
from fastprof._core.fp_sweep cimport (
    FP_SWEEP_MASKS, fp_sweep_gap, fp_sweep_gaps, fp_sweep_idle, fp_sweep_idle_part, fp_sweep_own,
    fp_sweep_own_parts, fp_sweep_parts, fp_sweep_until, fp_sweep_work,
)
from fastprof._core._status cimport check


cdef class Sweep:
    """Intervals of work of up to three kinds.

    Parameters
    ----------
    start, end : int64 [n]
        Starts ascend. An end before its start counts as the start.
    kind : uint8 [n]
        Masks of the bits 1, 2 and 4.
    """
    cdef fp_sweep_work work
    cdef tuple kept

    def __cinit__(self, const int64_t[::1] start, const int64_t[::1] end,
                  const uint8_t[::1] kind):
        require_equal((start.shape[0], end.shape[0], kind.shape[0]))
        self.kept = start, end, kind
        self.work.n = start.shape[0]
        if self.work.n:
            self.work.start, self.work.end, self.work.kind = &start[0], &end[0], &kind[0]

    def until(self, const int64_t[::1] time):
        """Measure how long work of exactly these kinds runs before each time, from the first.

        Parameters
        ----------
        time : int64 [times]
            Ascending.

        Returns
        -------
        int64 [times, 8]
            By the mask of kinds; 0: no work.
        """
        cdef int64_t n = time.shape[0]
        found = np.empty((n, FP_SWEEP_MASKS), np.int64)
        cdef int64_t[:, ::1] by_mask = found
        cdef fp_status status
        if n == 0:
            return found
        with nogil:
            status = fp_sweep_until(&self.work, &time[0], n, &by_mask[0, 0])
        check(status, "times of work")
        return found

    def gaps(self):
        """Find the gaps without work, between the first and the last work.

        Returns
        -------
        start, end : int64 [gaps]
        before, after : int32 [gaps]
            The interval that ends last before the gap, and the first that begins at its end.
        """
        cdef int64_t n = 0
        cdef fp_status status
        found = np.empty(self.work.n + 1, _GAP)
        cdef fp_sweep_gap[::1] gaps = found
        with nogil:
            status = fp_sweep_gaps(&self.work, &gaps[0], &n)
        check(status, "gaps between work")
        return tuple(np.ascontiguousarray(found[name][:n]) for name in _GAP.names)

    def idle(self, int64_t first, const int64_t[::1] window_start, const int64_t[::1] window_end,
             int64_t short_ns):
        """Find the gaps within windows.

        Parameters
        ----------
        first : int
            The time from `first` to the first work is a gap too; its `before` is the first work.
        window_start, window_end : int64 [windows]
            Both ascend.
        short_ns : int
            Shorter parts of gaps are only summed.

        Returns
        -------
        start, end : int64 [parts]
        before, after, window : int32 [parts]
            As for `gaps`, and the row of the window.
        short_sum : int64 [windows]
            ns of the short parts.
        """
        cdef int64_t n = 0, n_windows = window_start.shape[0]
        cdef int64_t room = self.work.n // 8 + 1  # at first, 1 of 8 intervals ends a long gap
        cdef fp_status status
        require_equal((n_windows, window_end.shape[0]))
        short = np.zeros(n_windows, np.int64)
        cdef int64_t[::1] short_sum = short
        found = np.empty(room, _IDLE)
        cdef fp_sweep_idle_part[::1] parts = found
        while n_windows:
            short_sum[:] = 0
            with nogil:
                status = fp_sweep_idle(&self.work, first, &window_start[0], &window_end[0],
                                       n_windows, short_ns, &short_sum[0], &parts[0], room, &n)
            check(status, "gaps between work")
            if n <= room:
                break
            room, found = n, np.empty(n, _IDLE)
            parts = found
        columns = (np.ascontiguousarray(found[name][:n]) for name in _IDLE.names)
        return (*columns, short)

    def own(self):
        """Divide the time with work among the intervals.

        Each moment belongs to one interval: one of the lowest kind, of these the first to start.

        Returns
        -------
        int64 [n]
            The sum is the length of the union.
        """
        found = np.zeros(self.work.n, np.int64)
        cdef int64_t[::1] own = found
        cdef fp_status status
        if self.work.n == 0:
            return found
        with nogil:
            status = fp_sweep_own(&self.work, &own[0])
        check(status, "times of work")
        return found

    def own_in(self, const int64_t[::1] window_start, const int64_t[::1] window_end):
        """Divide the time with work among the intervals, as `own` does, and among windows.

        Parameters
        ----------
        window_start, window_end : int64 [windows]
            Both ascend; windows do not overlap.

        Returns
        -------
        interval, window : int32 [parts]
            Rows, in order of interval, then window. An interval without length is in the window
            that contains its start.
        ns : int64 [parts]
            The own time of the interval in the window.
        """
        cdef int64_t n_windows = window_start.shape[0], n = 0, room
        cdef fp_sweep_parts parts
        cdef fp_status status
        cdef int32_t[::1] interval, window
        cdef int64_t[::1] own
        require_equal((n_windows, window_end.shape[0]))
        room = self.work.n + 8 * n_windows + 1  # at first, 8 intervals cross a bound
        while True:
            intervals, windows = np.empty(room, np.int32), np.empty(room, np.int32)
            times = np.empty(room, np.int64)
            if self.work.n == 0 or n_windows == 0:
                break
            interval, window, own = intervals, windows, times
            parts.interval, parts.window, parts.ns = &interval[0], &window[0], &own[0]
            with nogil:
                status = fp_sweep_own_parts(&self.work, &window_start[0], &window_end[0],
                                            n_windows, &parts, room, &n)
            check(status, "times of work in windows")
            if n <= room:
                break
            room = n
        return intervals[:n], windows[:n], times[:n]


_GAP = np.dtype(
    [("start", np.int64), ("end", np.int64), ("before", np.int32), ("after", np.int32)])
_IDLE = np.dtype(
    [("start", np.int64), ("end", np.int64), ("before", np.int32), ("after", np.int32),
     ("window", np.int32)], align=True)
