"""Launches to the ranges around them: the sweep where ranges nest, the interval tree elsewhere."""
import numpy as np

from libc.stdint cimport int32_t, int64_t, uint8_t

from fastprof._c cimport FP_CROSSING, fp_status
from fastprof._pools cimport Keys, fp_keys
from fastprof._status cimport check


cdef extern from "fp_order.h":
    bint fp_order_holds(const int64_t *start, const int64_t *end, int32_t n) nogil
    void fp_order_sort(const int64_t *start, const int64_t *end, int32_t n, int32_t *order,
                       int32_t *scratch) nogil


cdef extern from "fp_nest.h":
    ctypedef struct fp_intervals:
        const int64_t *start
        const int64_t *end
        const int32_t *thread
        int32_t n
    fp_status fp_nest(fp_intervals ranges, fp_intervals points, int32_t n_threads, int32_t *top,
                      uint8_t *crossing, int32_t *parent, int32_t *innermost) nogil


cdef extern from "fp_itree.h":
    void fp_itree_build(const int64_t *end, int32_t n, int64_t *max_end) nogil
    fp_status fp_itree_frames(fp_intervals ranges, const int64_t *max_end,
                              const int32_t *name_of_range, fp_intervals points, fp_keys *frames,
                              int32_t *found, int32_t *frame_of_range,
                              int32_t *frame_of_point) nogil
    int32_t fp_itree_enclosing(const int64_t *start, const int64_t *end, const int64_t *max_end,
                               int32_t n, int64_t a, int64_t b, int32_t *found,
                               int32_t limit) nogil


cdef fp_intervals _intervals(const int64_t[::1] start, const int64_t[::1] end,
                             const int32_t[::1] thread) except *:
    if not start.shape[0] == end.shape[0] == thread.shape[0]:
        raise ValueError(
            f"lengths differ: {start.shape[0]} starts, {end.shape[0]} ends, "
            f"{thread.shape[0]} threads")
    if start.shape[0] > 2147483647:
        raise ValueError(f"{start.shape[0]} intervals, at most 2147483647")
    cdef fp_intervals out
    out.n = <int32_t>start.shape[0]
    out.start = out.end = NULL
    out.thread = NULL
    if out.n:
        out.start = &start[0]
        out.end = &end[0]
        out.thread = &thread[0]
    return out


def order(const int64_t[::1] start, const int64_t[::1] end):
    """Indices sorted by (start ascending, end descending), stable; None if already in order."""
    cdef int32_t n = _intervals(start, end, np.empty(start.shape[0], np.int32)).n
    if n == 0 or fp_order_holds(&start[0], &end[0], n):
        return None
    out = np.empty(n, np.int32)
    cdef int32_t[::1] indices = out
    cdef int32_t[::1] scratch = np.empty(n, np.int32)
    with nogil:
        fp_order_sort(&start[0], &end[0], n, &indices[0], &scratch[0])
    return out


def sweep(const int64_t[::1] start, const int64_t[::1] end, const int32_t[::1] thread,
          const int64_t[::1] point_start, const int64_t[::1] point_end,
          const int32_t[::1] point_thread, int32_t n_threads):
    """One sweep over ranges and points, both in `order`.

    Returns
    -------
    parent : int32 [ranges], the innermost range around each range, -1 for none
    innermost : int32 [points], the innermost range around each point, -1 for none
    crossing : uint8 [n_threads], 1 for a thread whose ranges cross: there the other two do not hold
    """
    cdef fp_intervals ranges = _intervals(start, end, thread)
    cdef fp_intervals points = _intervals(point_start, point_end, point_thread)
    parents, innermosts = np.empty(ranges.n + 1, np.int32), np.empty(points.n + 1, np.int32)
    crossings = np.zeros(n_threads + 1, np.uint8)
    cdef int32_t[::1] parent = parents
    cdef int32_t[::1] innermost = innermosts
    cdef int32_t[::1] top = np.empty(n_threads + 1, np.int32)
    cdef uint8_t[::1] crossing = crossings
    cdef fp_status status
    with nogil:
        status = fp_nest(ranges, points, n_threads, &top[0], &crossing[0], &parent[0],
                         &innermost[0])
    check(status, "nesting ranges")
    return parents[:ranges.n], innermosts[:points.n], crossings[:n_threads]


def tree_frames(const int64_t[::1] start, const int64_t[::1] end, const int32_t[::1] name,
                const int64_t[::1] point_start, const int64_t[::1] point_end, Keys frames):
    """Frames of the ranges and points of one thread whose ranges may cross, both in `order`.

    `name` is what identifies each range in a frame. New frames go to the pool `frames` with the
    key (parent frame + 1) << 32 | name.

    Returns
    -------
    frame_of_range : int32 [ranges]
    frame_of_point : int32 [points], -1 for none
    """
    cdef fp_intervals ranges = _intervals(start, end, name)
    cdef fp_intervals points = _intervals(
        point_start, point_end, np.empty(point_start.shape[0], np.int32))
    of_ranges, of_points = np.empty(ranges.n, np.int32), np.full(points.n, -1, np.int32)
    cdef int32_t[::1] of_range = of_ranges
    cdef int32_t[::1] of_point = of_points
    cdef int32_t[::1] found = np.empty(ranges.n, np.int32)
    cdef int64_t[::1] max_end = np.empty(ranges.n, np.int64)
    cdef int32_t nothing = -1
    cdef fp_status status
    if ranges.n == 0:
        return of_ranges, of_points
    with nogil:
        fp_itree_build(&end[0], ranges.n, &max_end[0])
        status = fp_itree_frames(ranges, &max_end[0], &name[0], points, frames.pool, &found[0],
                                 &of_range[0], &of_point[0] if points.n else &nothing)
    check(status, "frames of crossing ranges")
    return of_ranges, of_points


def enclosing(const int64_t[::1] start, const int64_t[::1] end, int64_t a, int64_t b):
    """Indices of the ranges (in `order`) with start <= a and end >= b, int32, ascending."""
    cdef fp_intervals ranges = _intervals(start, end, np.empty(start.shape[0], np.int32))
    out = np.empty(ranges.n + 1, np.int32)
    cdef int32_t[::1] found = out
    cdef int64_t[::1] max_end = np.empty(ranges.n + 1, np.int64)
    cdef int32_t n
    if ranges.n == 0:
        return out[:0]
    with nogil:
        fp_itree_build(&end[0], ranges.n, &max_end[0])
        n = fp_itree_enclosing(&start[0], &end[0], &max_end[0], ranges.n, a, b, &found[0], ranges.n)
    return out[:n]
