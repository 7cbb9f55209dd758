"""Cells of kernels, the time of short kernels, and the time lines of GPUs."""
import numpy as np

from libc.stdint cimport int32_t, int64_t, uint8_t

from fastprof._core._arrays cimport pointer32, require, require_equal
from fastprof._core.fp_groups cimport fp_cells_kernels, fp_cells_refine, fp_cells_short
from fastprof._core.fp_status cimport fp_status
from fastprof._core.fp_sweep cimport fp_busy, fp_busy_lines, fp_busy_overlaps, fp_busy_work
from fastprof._core._status cimport check

from fastprof._core._pools import pairs


cdef enum:
    _DIRECT = 1 << 22  # pairs that are counted in a table rather than hashed


def refine(const int32_t[::1] cell, int32_t n_cells, const int32_t[::1] ids, int32_t n_ids):
    """Number the distinct pairs of a cell and an id.

    Parameters
    ----------
    cell, ids : int32 [n]
        0 .. n_cells - 1, and -1 .. n_ids - 1.

    Returns
    -------
    refined : int32 [n]
        The number of each pair, in order of first appearance.
    first : int32 [distinct pairs]
        The first row with each number.

    Raises
    ------
    InternalError
        A cell or an id is out of bounds.
    """
    cdef int64_t n = cell.shape[0], size = <int64_t>n_cells * (<int64_t>n_ids + 1)
    cdef int32_t n_refined = 0
    cdef int32_t[::1] table, refined, first
    cdef fp_status status
    require_equal((n, ids.shape[0]))
    if n == 0 or size > _DIRECT:
        return pairs(cell, ids)
    # One item more, so that an empty array has an address.
    table = np.zeros(size + 1, np.int32)
    refined, first = np.empty(n, np.int32), np.empty(min(n, size) + 1, np.int32)
    with nogil:
        status = fp_cells_refine(&cell[0], &ids[0], n, n_cells, n_ids, &table[0], &refined[0],
                                 &first[0], &n_refined)
    check(status, "cells")
    return np.asarray(refined), np.asarray(first)[:n_refined].copy()


def busy(const int64_t[::1] start, const int64_t[::1] duration, const int32_t[::1] ids,
         const int32_t[::1] group, int32_t n_groups, const uint8_t[::1] mask=None):
    """The time line of each group of work.

    Parameters
    ----------
    start, duration : int64 [n], ns
        In order of start. A negative duration counts as 0.
    ids : int32 [n]
        Indices into `group`.
    group : int32 [m]
        0 .. n_groups - 1; negative: left out.
    mask : uint8 [n], optional
        0 for work to leave out.

    Returns
    -------
    begin, end : int64 [n_groups], ns
        The start of the first and the end of the last work; begin exceeds end without work.
    busy : int64 [n_groups], ns
        The time during which at least one item runs.

    Raises
    ------
    InternalError
        The starts descend, or an index is out of bounds.
    """
    cdef fp_busy_work work
    cdef fp_busy_lines lines
    cdef int64_t[::1] begin, end, total
    cdef fp_status status
    require_equal((start.shape[0], duration.shape[0], ids.shape[0]))
    require(mask is None or mask.shape[0] == start.shape[0], "lengths differ")
    # One item more, so that an empty array has an address.
    begin, end, total = (np.empty(n_groups + 1, np.int64) for _ in range(3))
    lines.begin, lines.end, lines.busy = &begin[0], &end[0], &total[0]
    work.n, work.n_ids, work.n_groups = start.shape[0], <int32_t>group.shape[0], n_groups
    work.mask = NULL
    if work.n:
        work.start, work.duration, work.id = &start[0], &duration[0], &ids[0]
        work.group = pointer32(group)
        if mask is not None:
            work.mask = &mask[0]
    with nogil:
        status = fp_busy(&work, &lines)
    check(status, "time lines")
    return (np.asarray(begin)[:n_groups], np.asarray(end)[:n_groups],
            np.asarray(total)[:n_groups])


def overlaps(const int64_t[::1] start, const int64_t[::1] duration, const int32_t[::1] ids,
             int32_t n_ids):
    """Work that starts before the preceding work of its id ends.

    Parameters
    ----------
    start, duration : int64 [n], ns
        A negative duration counts as 0.
    ids : int32 [n]
        0 .. n_ids - 1.

    Returns
    -------
    count : int
    longest : int, ns
        The longest overlap, 0 if there is none.

    Raises
    ------
    InternalError
        An index is out of bounds.
    """
    cdef fp_busy_work work
    cdef int64_t[::1] end = np.empty(n_ids + 1, np.int64)
    cdef int64_t count, longest
    cdef fp_status status
    require_equal((start.shape[0], duration.shape[0], ids.shape[0]))
    work.n, work.n_ids = start.shape[0], n_ids
    if work.n:
        work.start, work.duration, work.id = &start[0], &duration[0], &ids[0]
    with nogil:
        status = fp_busy_overlaps(&work, &end[0], &count, &longest)
    check(status, "overlaps")
    return count, longest


def short_time(const int32_t[::1] cell, const int64_t[::1] duration, const int64_t[::1] flops,
               const int64_t[::1] moved, const uint8_t[::1] is_small, const double[::1] per_flop,
               const double[::1] per_byte, int64_t longest, double least):
    """The GPU time of the short kernels of each cell, int64 [cells], ns.

    Kernels are short if they take less than `longest` and do not fill the GPU or have an ideal time
    below `least`. Unknown numbers, -1, count as 0.

    Parameters
    ----------
    cell : int32 [n]
    duration, flops, moved : int64 [n], ns, FLOP, bytes
    is_small : uint8 [cells], whether the kernels of a cell do not fill the GPU
    per_flop, per_byte : float64 [cells], ns of ideal time
    longest, least : ns
    """
    cdef fp_cells_kernels kernels
    cdef int32_t n_cells = <int32_t>is_small.shape[0]
    cdef int64_t[::1] time = np.empty(n_cells + 1, np.int64)
    cdef fp_status status
    require_equal((cell.shape[0], duration.shape[0], flops.shape[0], moved.shape[0]))
    require_equal((n_cells, per_flop.shape[0], per_byte.shape[0]))
    kernels.n, kernels.n_cells = cell.shape[0], n_cells
    if kernels.n:
        kernels.cell, kernels.duration = &cell[0], &duration[0]
        kernels.flops, kernels.bytes = &flops[0], &moved[0]
    if n_cells:
        kernels.is_small = &is_small[0]
        kernels.per_flop, kernels.per_byte = &per_flop[0], &per_byte[0]
    with nogil:
        status = fp_cells_short(&kernels, longest, least, &time[0])
    check(status, "short kernels")
    return np.asarray(time)[:n_cells]
