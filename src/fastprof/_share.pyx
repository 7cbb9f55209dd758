"""A cost that belongs to a group of kernels to each kernel's share."""
import numpy as np

from libc.stdint cimport int32_t, int64_t, uint64_t

from fastprof._c cimport FP_OK, fp_status
from fastprof._status cimport check


cdef extern from "fp_share.h":
    fp_status fp_share_sum(const int32_t *group, const int64_t *weight, int64_t n,
                           int32_t n_groups, int64_t *sum) nogil
    fp_status fp_share(const int32_t *group, const int64_t *weight, const int64_t *total,
                       int64_t n, const int64_t *sum, int32_t n_groups, int64_t none,
                       int64_t *passed, int64_t *share) nogil
    fp_status fp_share_add_up(const int32_t *group, const int64_t *total, const int64_t *share,
                              int64_t n, int32_t n_groups, int64_t *of_group,
                              uint64_t *expected, uint64_t *found) nogil
    fp_status fp_share_ordinal(const int32_t *group, int64_t n, int32_t n_groups, int32_t *seen,
                               int32_t *ordinal) nogil


def share(const int32_t[::1] group, const int64_t[::1] weight, const int64_t[::1] total,
          int32_t n_groups, int64_t[::1] out):
    """Put each row's part of its group's total, in proportion to its weight, into `out`.

    The parts of a group whose rows carry the same total add up to it exactly. Zero weights count
    as 1.

    Parameters
    ----------
    group : int32 [n]
        0 .. n_groups - 1, or -1: the row of `out` stays as it is.
    weight : int64 [n]
    total : int64 [n]
        A group's total, repeated on each of its rows; -1 (unknown) stays -1.
    out : int64 [n]
    """
    cdef int64_t n = _rows(group, weight, total, out)
    cdef int64_t[::1] sums = np.empty(n_groups + 1, np.int64)
    cdef int64_t[::1] passed = np.empty(n_groups + 1, np.int64)
    cdef fp_status status
    if n == 0:
        return
    with nogil:
        status = fp_share_sum(&group[0], &weight[0], n, n_groups, &sums[0])
        if status == FP_OK:
            status = fp_share(&group[0], &weight[0], &total[0], n, &sums[0], n_groups, -1,
                              &passed[0], &out[0])
    check(status, "sharing costs")


def add_up(const int32_t[::1] group, const int64_t[::1] total, const int64_t[::1] shares,
           int32_t n_groups):
    """What the totals of all groups add up to, and what their rows' shares do, modulo 2^64.

    Rows of group -1 are left out, and groups whose rows have different totals: there is no sum that
    theirs could be. The columns are those of `share`; negative numbers are none.
    """
    cdef int64_t n = _rows(group, total, shares, shares)
    cdef int64_t[::1] of_group = np.empty(n_groups + 1, np.int64)
    cdef uint64_t expected = 0, found = 0
    cdef fp_status status
    if n:
        with nogil:
            status = fp_share_add_up(&group[0], &total[0], &shares[0], n, n_groups, &of_group[0],
                                     &expected, &found)
        check(status, "adding up shares")
    return expected, found


cdef int64_t _rows(const int32_t[::1] group, const int64_t[::1] first, const int64_t[::1] second,
                   const int64_t[::1] third) except -1:
    """How many rows all have."""
    cdef int64_t n = group.shape[0]
    lengths = n, first.shape[0], second.shape[0], third.shape[0]
    if len(set(lengths)) != 1:
        raise ValueError(f"lengths differ: {lengths}")
    return n


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
