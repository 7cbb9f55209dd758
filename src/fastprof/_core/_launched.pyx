"""Sums over API calls that launch kernels, and over the kernels, by group."""
import numpy as np

from libc.stdint cimport int32_t, int64_t, uint8_t

from fastprof._core._arrays cimport require_equal
from fastprof._core.fp_groups cimport (
    FP_LAUNCHED_NO_GROUP, FP_LAUNCHED_OTHER, fp_launched, fp_launched_calls, fp_launched_kernels,
    fp_launched_sums,
)
from fastprof._core.fp_status cimport fp_status
from fastprof._core._status cimport check


NO_GROUP = FP_LAUNCHED_NO_GROUP
OTHER = FP_LAUNCHED_OTHER


def launched(kernels, calls, int32_t n_groups, int64_t starved_ns):
    """Sum the calls that launch kernels, and the kernels, by group.

    The first kernel of a call determines the group of the call.

    Parameters
    ----------
    kernels : (group, call, start)
        [kernels] int32, NO_GROUP, or OTHER for rows that are no kernels; int32, -1 for none;
        int64, ns.
    calls : (start, end)
        int64 [calls], ns; an end of 2^63 - 1 means that the call is not recorded.
    starved_ns : int
        A kernel that starts less than this after the end of its call is starved.

    Returns
    -------
    launches, host, on_time, starved : int64 [n_groups]
        Calls; their host time, ns; kernels that do not start before their call; of these, the
        starved ones.

    Raises
    ------
    InternalError
        A group or call is out of bounds.
    """
    cdef const int32_t[::1] group, call
    cdef const int64_t[::1] start, begin, end
    group, call, start = kernels
    begin, end = calls
    cdef fp_launched_kernels of_kernels
    cdef fp_launched_calls of_calls
    cdef fp_launched_sums sums
    cdef fp_status status
    require_equal((group.shape[0], call.shape[0], start.shape[0]))
    require_equal((begin.shape[0], end.shape[0]))
    cdef uint8_t[::1] seen = np.zeros(begin.shape[0] // 8 + 1, np.uint8)
    found = np.zeros((4, n_groups + 1), np.int64)  # one more, so that there is an address
    cdef int64_t[:, ::1] sum_of = found
    of_kernels.n, of_calls.n = group.shape[0], begin.shape[0]
    if of_kernels.n:
        of_kernels.group, of_kernels.call, of_kernels.start = &group[0], &call[0], &start[0]
    if of_calls.n:
        of_calls.start, of_calls.end = &begin[0], &end[0]
    sums.launches, sums.host = &sum_of[0, 0], &sum_of[1, 0]
    sums.on_time, sums.starved = &sum_of[2, 0], &sum_of[3, 0]
    with nogil:
        status = fp_launched(&of_kernels, &of_calls, n_groups, starved_ns, &seen[0], &sums)
    check(status, "launches")
    return tuple(each[:n_groups] for each in found)
