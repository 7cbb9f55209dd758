"""When work of each kind runs, and when none does."""
import numpy as np

from libc.stdint cimport int32_t, int64_t, uint8_t

from fastprof._core._c cimport FP_OK, fp_status
from fastprof._core._status cimport check


cdef extern from "fp_sweep.h":
    enum:
        FP_SWEEP_MASKS

    ctypedef struct fp_sweep_work:
        const int64_t *start
        const int64_t *end
        const uint8_t *kind
        int64_t n

    ctypedef struct fp_sweep_gap:
        int64_t start
        int64_t end
        int32_t before
        int32_t after

    fp_status fp_sweep_until(const fp_sweep_work *work, const int64_t *time, int64_t n_times,
                             int64_t *by_mask) nogil
    fp_status fp_sweep_gaps(const fp_sweep_work *work, fp_sweep_gap *gaps, int64_t room,
                            int64_t *n_gaps) nogil
    fp_status fp_sweep_own(const fp_sweep_work *work, int64_t *own) nogil

    ctypedef struct fp_sweep_idle_part:
        int64_t start
        int64_t end
        int32_t before
        int32_t after
        int32_t window

    fp_status fp_sweep_idle(const fp_sweep_work *work, int64_t first, const int64_t *window_start,
                            const int64_t *window_end, int64_t n_windows, int64_t short_ns,
                            int64_t *short_sum, fp_sweep_idle_part *parts, int64_t room,
                            int64_t *n_parts) nogil

    ctypedef struct fp_sweep_parts:
        int32_t *interval
        int32_t *window
        int64_t *start
        int64_t *end

    fp_status fp_sweep_cut(const fp_sweep_work *work, const int64_t *window_start,
                           const int64_t *window_end, int64_t n_windows,
                           const fp_sweep_parts *parts, int64_t room, int64_t *n_parts) nogil


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
        if not start.shape[0] == end.shape[0] == kind.shape[0]:
            raise ValueError(
                f"lengths differ: {start.shape[0]}, {end.shape[0]}, {kind.shape[0]}")
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
        with nogil:
            status = fp_sweep_gaps(&self.work, NULL, 0, &n)
        check(status, "gaps between work")
        found = np.empty(n + 1, _GAP)
        cdef fp_sweep_gap[::1] gaps = found
        with nogil:
            status = fp_sweep_gaps(&self.work, &gaps[0], n, &n)
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
        cdef int64_t n = 0, room = 0, n_windows = window_start.shape[0]
        cdef fp_status status
        if window_end.shape[0] != n_windows:
            raise ValueError(f"lengths differ: {n_windows}, {window_end.shape[0]}")
        short = np.zeros(n_windows, np.int64)
        cdef int64_t[::1] short_sum = short
        found = np.empty(1, _IDLE)
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


def cut(const int64_t[::1] start, const int64_t[::1] end, const int64_t[::1] window_start,
        const int64_t[::1] window_end):
    """Cut intervals at the bounds of windows.

    Parameters
    ----------
    start, end : int64 [n]
        Starts ascend. An interval without length is in the window that contains its start.
    window_start, window_end : int64 [windows]
        Both ascend.

    Returns
    -------
    interval, window : int32 [parts]
        Rows, in order of interval, then window.
    start, end : int64 [parts]
        Those of the parts.
    """
    cdef int64_t n_windows = window_start.shape[0], room = 0, n = 0
    cdef fp_sweep_work work
    cdef fp_sweep_parts parts
    cdef fp_status status = FP_OK
    cdef int32_t[::1] interval, window
    cdef int64_t[::1] begin, finish
    work.n = start.shape[0]
    if end.shape[0] != work.n or window_end.shape[0] != n_windows:
        raise ValueError(f"lengths differ: {work.n}, {end.shape[0]}; {n_windows}, "
                         f"{window_end.shape[0]}")
    room = work.n + n_windows if work.n and n_windows else 0
    while True:
        intervals, windows = np.empty(room, np.int32), np.empty(room, np.int32)
        begins, ends = np.empty(room, np.int64), np.empty(room, np.int64)
        if room:
            interval, window, begin, finish = intervals, windows, begins, ends
            work.start, work.end = &start[0], &end[0]
            parts.interval, parts.window = &interval[0], &window[0]
            parts.start, parts.end = &begin[0], &finish[0]
            with nogil:
                status = fp_sweep_cut(&work, &window_start[0], &window_end[0], n_windows, &parts,
                                      room, &n)
            check(status, "parts of intervals")
        if n <= room:
            return intervals[:n], windows[:n], begins[:n], ends[:n]
        room = n


_GAP = np.dtype(
    [("start", np.int64), ("end", np.int64), ("before", np.int32), ("after", np.int32)])
_IDLE = np.dtype(
    [("start", np.int64), ("end", np.int64), ("before", np.int32), ("after", np.int32),
     ("window", np.int32)], align=True)
