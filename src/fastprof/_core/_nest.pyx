"""Find the ranges around each launch by one sweep, and around any instant by an interval tree."""
import numpy as np

from libc.stdint cimport int32_t, int64_t

from fastprof._core.fp_nest cimport (
    fp_frames, fp_intervals, fp_itree, fp_itree_build, fp_itree_nodes, fp_itree_open_at, fp_nest,
    fp_nest_place, fp_order_holds, fp_order_sort, fp_points,
)
from fastprof._core.fp_status cimport FP_MORE, fp_status
from fastprof._core._status cimport check
from fastprof._core._tree cimport Tree as Labels

from fastprof.errors import BadInputError


cdef fp_intervals _intervals(const int64_t[::1] start, const int64_t[::1] end,
                             const int32_t[::1] thread) except *:
    if not start.shape[0] == end.shape[0] == thread.shape[0]:
        raise ValueError(
            f"lengths differ: {start.shape[0]} starts, {end.shape[0]} ends, "
            f"{thread.shape[0]} threads")
    if start.shape[0] > 2147483647:
        raise ValueError(f"expected at most 2147483647 intervals, found {start.shape[0]}")
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
          const int64_t[::1] point_start, const int32_t[::1] point_thread, int32_t n_threads,
          str what="ranges"):
    """Nest ranges into frames and find the frame around each point.

    Parameters
    ----------
    start, end, thread : [ranges], sorted as by `order`
    point_start, point_thread : [points], sorted by start; a point on thread -1 is in no range
    n_threads : threads are 0 .. n_threads - 1
    what : name of the ranges' source in error messages

    Returns
    -------
    parent, range : int32 [frames]
        The parent of each frame (-1 for none) and its range. Parents precede their children. If
        the ranges nest, frame i is range i.
    frame_of_range : int32 [ranges]
    frame_of_point : int32 [points]
        The innermost frame open at the point's start, -1 for none.

    Raises
    ------
    BadInputError
        Ranges cross each other too often.
    """
    cdef fp_intervals ranges = _intervals(start, end, thread)
    cdef fp_points points
    cdef fp_intervals begun = _intervals(point_start, point_start, point_thread)
    points.start, points.thread, points.n = begun.start, begun.thread, begun.n
    of_ranges, of_points = np.empty(ranges.n + 1, np.int32), np.empty(points.n + 1, np.int32)
    cdef int32_t[::1] of_range = of_ranges
    cdef int32_t[::1] of_point = of_points
    cdef int32_t[::1] top = np.full(n_threads + 1, -1, np.int32)
    cdef int32_t[::1] parent, frame_range, first
    cdef fp_frames frames
    cdef fp_nest_place place
    cdef fp_status status = FP_MORE
    # Usually only few ranges cross; reserve frames for these, because growing copies all frames.
    cdef int64_t capacity = ranges.n + ranges.n // 64 + 1024
    parents, frame_ranges, firsts = (np.empty(0, np.int32) for _ in range(3))
    frames.n = place.range = place.point = 0
    while status == FP_MORE:
        if capacity > _MOST_FRAMES_A_RANGE * (<int64_t>ranges.n + 1024) or capacity > 2147483647:
            raise BadInputError(
                f"{what}: ranges of one thread cross each other more than {frames.n} times; use "
                "push/pop ranges, which nest, or end start/end ranges in reverse order")
        for array in (parents, frame_ranges, firsts):
            array.resize(capacity, refcheck=False)
        parent, frame_range, first = parents, frame_ranges, firsts
        frames.parent, frames.range, frames.first = &parent[0], &frame_range[0], &first[0]
        frames.capacity = <int32_t>capacity
        with nogil:
            status = fp_nest(ranges, points, n_threads, &top[0], &frames, &place, &of_range[0],
                             &of_point[0])
        capacity += capacity // 2
    check(status, "nesting ranges")
    for array in (parents, frame_ranges):
        array.resize(frames.n, refcheck=False)
    return parents, frame_ranges, of_ranges[:ranges.n], of_points[:points.n]


# A range that ends below others adds a frame for each of them. Without a bound, a hostile file of
# n ranges creates n * n frames.
cdef int64_t _MOST_FRAMES_A_RANGE = 32


cdef class Tree:
    """An interval tree over ranges, sorted as by `order`, that may overlap in any way."""
    cdef const int64_t[::1] start
    cdef const int64_t[::1] end
    cdef int64_t[::1] max_end
    cdef int32_t[::1] found
    cdef fp_itree tree

    def __init__(self, const int64_t[::1] start, const int64_t[::1] end):
        cdef int32_t n = _intervals(start, end, np.empty(start.shape[0], np.int32)).n
        self.start, self.end = start, end
        self.max_end, self.found = np.empty(n + 1, np.int64), np.empty(n + 1, np.int32)
        self.tree.n = n
        if n:
            self.tree.start, self.tree.end = &self.start[0], &self.end[0]
            self.tree.max_end = &self.max_end[0]
            with nogil:
                fp_itree_build(&self.end[0], n, &self.max_end[0])

    def open_at(self, int64_t t):
        """Indices of the ranges with start <= t < end, ascending, int32."""
        cdef int32_t n = fp_itree_open_at(self.tree, t, &self.found[0])
        return np.array(self.found[:n], np.int32)

    def nodes(self, const int32_t[::1] label, const int64_t[::1] t):
        """The ranges open at each instant, as nodes of a tree of labels.

        Parameters
        ----------
        label : int32 [ranges]
        t : int64 [instants]

        Returns
        -------
        node : int32 [instants], -1 if no range is open
        node_parent, node_label : int32 [nodes], parents first
        """
        if label.shape[0] != self.tree.n:
            raise ValueError(f"expected {self.tree.n} labels, found {label.shape[0]}")
        cdef int32_t n = <int32_t>t.shape[0]
        cdef Labels tree = Labels()
        out = np.full(n, -1, np.int32)
        cdef int32_t[::1] node = out
        cdef fp_status status
        if n and self.tree.n:
            with nogil:
                status = fp_itree_nodes(self.tree, &label[0], &t[0], n, tree.nodes, &self.found[0],
                                        &node[0])
            check(status, "phases")
        return out, *tree.read()
