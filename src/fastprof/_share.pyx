"""A cost that belongs to a group of kernels to each kernel's share."""
import numpy as np

from libc.stdint cimport int32_t, int64_t

from fastprof._c cimport fp_status
from fastprof._status cimport check


cdef extern from "fp_share.h":
    fp_status fp_share_sum(const int32_t *group, const int64_t *weight, int64_t n,
                           int32_t n_groups, int64_t *sum) nogil
    fp_status fp_share(const int32_t *group, const int64_t *weight, const int64_t *total,
                       int64_t n, const int64_t *sum, int32_t n_groups, int64_t none,
                       int64_t *passed, int64_t *share) nogil
    fp_status fp_share_ordinal(const int32_t *group, int64_t n, int32_t n_groups, int32_t *seen,
                               int32_t *ordinal) nogil


def shares(const int32_t[::1] group, const int64_t[::1] weight, totals, int32_t n_groups):
    """Each row's part of its group's totals, in proportion to its weight.

    The parts of a group whose rows carry the same total add up to it exactly. Zero weights count
    as 1.

    Parameters
    ----------
    group : int32 [n] 0 .. n_groups - 1, or -1: the row gets -1
    weight : int64 [n]
    totals : list of int64 [n], a group's total repeated on each of its rows; -1 (unknown) stays -1

    Returns
    -------
    list of int64 [n]
    """
    cdef int64_t n = group.shape[0]
    cdef int64_t[::1] part
    cdef const int64_t[::1] total
    cdef int64_t[::1] sums = np.empty(n_groups + 1, np.int64)
    cdef int64_t[::1] passed = np.empty(n_groups + 1, np.int64)
    cdef fp_status status
    if n != weight.shape[0] or any(len(values) != n for values in totals):
        raise ValueError(f"lengths differ: {n}, {weight.shape[0]}, {[len(t) for t in totals]}")
    outs = [np.empty(n, np.int64) for _ in totals]
    if n == 0:
        return outs
    with nogil:
        status = fp_share_sum(&group[0], &weight[0], n, n_groups, &sums[0])
    check(status, "sharing costs")
    for out, values in zip(outs, totals):
        part, total = out, values
        with nogil:
            status = fp_share(&group[0], &weight[0], &total[0], n, &sums[0], n_groups, -1,
                              &passed[0], &part[0])
        check(status, "sharing costs")
    return outs


def ordinal(const int32_t[::1] group, int32_t n_groups):
    """How many rows of the same group came before each row, int32 [n]; -1 where group is -1."""
    cdef int64_t n = group.shape[0]
    out = np.empty(n, np.int32)
    cdef int32_t[::1] value = out
    cdef int32_t[::1] seen = np.empty(n_groups + 1, np.int32)
    cdef fp_status status
    if n:
        with nogil:
            status = fp_share_ordinal(&group[0], n, n_groups, &seen[0], &value[0])
        check(status, "ordinals")
    return out
