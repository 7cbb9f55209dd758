"""When work of each kind runs, and when none does."""
import numpy as np

from libc.stdint cimport INT32_MAX, int32_t, int64_t, uint8_t

from fastprof._core._arrays cimport require, require_equal
from fastprof._core.fp_status cimport FP_E_TOO_MANY, FP_OK, fp_status
from fastprof._core.fp_sweep cimport (
    FP_SWEEP_MASKS, fp_sweep_gap, fp_sweep_gaps, fp_sweep_idle, fp_sweep_idle_part, fp_sweep_own,
    fp_sweep_own_parts, fp_sweep_parts, fp_sweep_until, fp_sweep_work,
)
from fastprof._core._status cimport check


cdef class Sweep:
    """Intervals of work of up to three kinds, on one GPU or on several: its parts.

    Parameters
    ----------
    start, end : int64 [n]
        Starts of a part ascend. An end before its start counts as the start.
    kind : uint8 [n]
        Masks of the bits 1, 2 and 4.
    bounds : int64 [parts + 1]
        Where the intervals of each part begin, and n; by default, one part.
    """
    cdef fp_sweep_work work
    cdef const int64_t[::1] bounds
    cdef tuple kept

    def __cinit__(self, const int64_t[::1] start, const int64_t[::1] end,
                  const uint8_t[::1] kind, bounds=None):
        require_equal((start.shape[0], end.shape[0], kind.shape[0]))
        self.kept = start, end, kind
        self.work.n = start.shape[0]
        self.bounds = _bounds(bounds, self.work.n, -1)
        if self.work.n:
            self.work.start, self.work.end, self.work.kind = &start[0], &end[0], &kind[0]

    cdef fp_sweep_work part(self, int64_t p) noexcept nogil:
        cdef fp_sweep_work found = self.work
        found.n = self.bounds[p + 1] - self.bounds[p]
        if found.n:
            found.start += self.bounds[p]
            found.end += self.bounds[p]
            found.kind += self.bounds[p]
        return found

    def until(self, const int64_t[::1] time, bounds=None):
        """Measure how long work of exactly these kinds runs before each time, from the first.

        Parameters
        ----------
        time : int64 [times]
            Those of a part ascend.
        bounds : int64 [parts + 1]
            Where the times of each part begin; by default, there is one part.

        Returns
        -------
        int64 [times, 8]
            By the mask of kinds; 0: no work.
        """
        cdef int64_t n = time.shape[0], n_parts = self.bounds.shape[0] - 1, p, first
        cdef const int64_t[::1] of_part = _bounds(bounds, n, n_parts)
        cdef fp_sweep_work work
        found = np.empty((n, FP_SWEEP_MASKS), np.int64)
        cdef int64_t[:, ::1] by_mask = found
        cdef fp_status status = FP_OK
        with nogil:
            for p in range(n_parts):
                first = of_part[p]
                if of_part[p + 1] == first:
                    continue
                work = self.part(p)
                status = fp_sweep_until(&work, &time[first], of_part[p + 1] - first,
                                        &by_mask[first, 0])
                if status != FP_OK:
                    break
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
        cdef int64_t n = 0, more = 0, i, p
        cdef fp_status status = FP_OK
        cdef fp_sweep_work work
        found = np.empty(self.work.n + 1, _GAP)
        cdef fp_sweep_gap[::1] gaps = found
        with nogil:
            for p in range(self.bounds.shape[0] - 1):
                work = self.part(p)
                status = fp_sweep_gaps(&work, &gaps[n], &more)
                if status != FP_OK:
                    break
                for i in range(n, n + more):
                    gaps[i].before += <int32_t>self.bounds[p]
                    gaps[i].after += <int32_t>self.bounds[p]
                n += more
        check(status, "gaps between work")
        return tuple(np.ascontiguousarray(found[name][:n]) for name in _GAP.names)

    def idle(self, first, const int64_t[::1] window_start, const int64_t[::1] window_end,
             int64_t short_ns, bounds=None):
        """Find the gaps within windows.

        Parameters
        ----------
        first : int, or int64 [parts]
            The time from `first` to the first work is a gap too; its `before` is the first work.
        window_start, window_end : int64 [windows]
            Those of a part ascend.
        short_ns : int
            Shorter parts of gaps are only summed.
        bounds : int64 [parts + 1]
            Where the windows of each part begin; by default, there is one part.

        Returns
        -------
        start, end : int64 [gaps]
        before, after, window : int32 [gaps]
            As for `gaps`, and the row of the window.
        short_sum : int64 [windows]
            ns of the short parts.
        """
        cdef int64_t n_windows = window_start.shape[0], n_parts = self.bounds.shape[0] - 1
        cdef const int64_t[::1] of_part = _bounds(bounds, n_windows, n_parts)
        begins = np.broadcast_to(np.asarray(first, np.int64), n_parts)
        cdef const int64_t[::1] firsts = begins.copy()
        cdef int64_t n = 0, more = 0, p, i, w, place
        cdef int64_t room = self.work.n // 8 + 1  # at first, 1 of 8 intervals ends a long gap
        cdef fp_status status = FP_OK
        cdef fp_sweep_work work
        require_equal((n_windows, window_end.shape[0]))
        if n_windows > INT32_MAX:
            status = FP_E_TOO_MANY
        short = np.zeros(n_windows, np.int64)
        cdef int64_t[::1] short_sum = short
        found = np.empty(room + 1, _IDLE)
        cdef fp_sweep_idle_part[::1] gaps = found
        while n_windows and status == FP_OK:
            short_sum[:] = 0
            n = 0
            with nogil:
                for p in range(n_parts):
                    w = of_part[p]
                    if of_part[p + 1] == w:
                        continue
                    work, place = self.part(p), min(n, room)
                    status = fp_sweep_idle(&work, firsts[p], &window_start[w], &window_end[w],
                                           of_part[p + 1] - w, short_ns, &short_sum[w],
                                           &gaps[place], room - place, &more)
                    if status != FP_OK:
                        break
                    n += more
                    for i in range(place, min(n, room)):
                        gaps[i].before += <int32_t>self.bounds[p]
                        gaps[i].after += <int32_t>self.bounds[p]
                        gaps[i].window += <int32_t>w
            if n <= room:
                break
            room, found = n, np.empty(n + 1, _IDLE)
            gaps = found
        check(status, "gaps between work")
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
        cdef int64_t p
        cdef fp_sweep_work work
        cdef fp_status status = FP_OK
        with nogil:
            for p in range(self.bounds.shape[0] - 1):
                work = self.part(p)
                if work.n:
                    status = fp_sweep_own(&work, &own[self.bounds[p]])
                if status != FP_OK:
                    break
        check(status, "times of work")
        return found

    def own_in(self, const int64_t[::1] window_start, const int64_t[::1] window_end):
        """Divide the time with work among the intervals, as `own` does, and among windows.

        There is one part.

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
        require(self.bounds.shape[0] == 2, "there are several parts")
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


def _bounds(bounds, int64_t n, int64_t n_parts):
    """int64 [parts + 1], checked; n_parts : -1 if any number is right."""
    found = np.array([0, n], np.int64) if bounds is None else np.ascontiguousarray(bounds, np.int64)
    if (found.ndim != 1 or len(found) < 1 or n_parts not in (-1, len(found) - 1)
            or found[0] != 0 or found[len(found) - 1] != n or (np.diff(found) < 0).any()):
        raise ValueError(f"no bounds of parts of {n} rows")
    return found


_GAP = np.dtype(
    [("start", np.int64), ("end", np.int64), ("before", np.int32), ("after", np.int32)])
_IDLE = np.dtype(
    [("start", np.int64), ("end", np.int64), ("before", np.int32), ("after", np.int32),
     ("window", np.int32)], align=True)
