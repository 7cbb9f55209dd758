"""Sums over the kernels of counted steps, by group."""
import numpy as np

from libc.stdint cimport int32_t, int64_t, uint8_t

from fastprof._core._arrays cimport require_equal
from fastprof._core.fp_groups cimport (
    fp_counted_kernels, fp_counted_merge, fp_counted_merged, fp_counted_pieces, fp_counted_sum,
    fp_counted_sums,
)
from fastprof._core.fp_status cimport fp_status
from fastprof._core._status cimport check


def counted(kernels, pieces, const uint8_t[::1] is_counted, int32_t n_groups):
    """Sum the kernels of counted steps, and those outside of steps that have a piece.

    Parameters
    ----------
    kernels : (group, step, call, duration)
        [kernels] int32, -1 for none; int32, -1 outside of steps; int32, -1 for none; int64, ns, -1
        if unknown.
    pieces : (row, window, ns)
        [pieces] int32, a kernel; int32; int64: the parts of kernels within windows.
    is_counted : uint8 [steps]
    n_groups : int

    Returns
    -------
    sums : kernels, calls, ns, first
        int64 [n_groups], calls: a call is in the group of its first kernel, and a kernel without a
        call counts as one; first: int32, the first kernel, undefined without kernels.
    merged : group, window, ns
        Consecutive pieces of a group in the same window are one.

    Raises
    ------
    InternalError
        A group, step, call or row is out of bounds.
    """
    cdef const int32_t[::1] group, step, call, row, window
    cdef const int64_t[::1] duration, ns
    group, step, call, duration = kernels
    row, window, ns = pieces
    cdef int64_t n = group.shape[0], n_pieces = row.shape[0], n_merged = 0
    cdef fp_counted_kernels of_kernels
    cdef fp_counted_pieces of_pieces
    cdef fp_counted_merged of_merged
    cdef fp_counted_sums sums
    cdef fp_status status
    require_equal((n, step.shape[0], call.shape[0], duration.shape[0]))
    require_equal((n_pieces, window.shape[0], ns.shape[0]))
    of_kernels.n, of_kernels.n_groups = n, n_groups
    of_kernels.n_steps = <int32_t> is_counted.shape[0]
    of_kernels.n_calls = <int32_t> (np.asarray(call).max(initial=-1) + 1)
    if n:
        of_kernels.group, of_kernels.step = &group[0], &step[0]
        of_kernels.call, of_kernels.duration = &call[0], &duration[0]
    if n_pieces:
        of_pieces.row, of_pieces.window, of_pieces.ns = &row[0], &window[0], &ns[0]
    # One item more, so that an empty array has an address.
    cdef uint8_t[::1] runs = np.zeros(n // 8 + 1, np.uint8)
    cdef uint8_t[::1] seen = np.zeros(of_kernels.n_calls // 8 + 1, np.uint8)
    cdef uint8_t[::1] flags = np.append(is_counted, np.uint8(0))
    cdef int64_t[::1] last = np.empty(n_groups + 1, np.int64)
    cdef int32_t[::1] group_of = np.empty(n_pieces + 1, np.int32)
    cdef int32_t[::1] window_of = np.empty(n_pieces + 1, np.int32)
    cdef int64_t[::1] ns_of = np.empty(n_pieces + 1, np.int64)
    cdef int64_t[:, ::1] found = np.zeros((3, n_groups + 1), np.int64)
    cdef int32_t[::1] first = np.zeros(n_groups + 1, np.int32)
    of_merged.group, of_merged.window, of_merged.ns = &group_of[0], &window_of[0], &ns_of[0]
    sums.kernels, sums.calls, sums.ns = &found[0, 0], &found[1, 0], &found[2, 0]
    sums.first = &first[0]
    with nogil:
        status = fp_counted_merge(&of_kernels, &of_pieces, n_pieces, &of_merged, &n_merged,
                                  &last[0], &runs[0])
    check(status, "pieces of kernels")
    with nogil:
        status = fp_counted_sum(&of_kernels, &flags[0], &runs[0], &seen[0], &sums)
    check(status, "kernels of counted steps")
    merged = [group_of, window_of, ns_of]
    sums_of = np.asarray(found)[:, :n_groups]
    return (
        (*sums_of, np.asarray(first)[:n_groups]),
        tuple(np.asarray(each)[:n_merged].copy() for each in merged),
    )
