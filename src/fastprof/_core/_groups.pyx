"""Statistics of numbers by group."""
import numpy as np

from libc.stdint cimport int32_t, int64_t, uint8_t

from fastprof._core._arrays cimport require_equal
from fastprof._core.fp_groups cimport (
    fp_groups_distinct, fp_groups_median, fp_groups_reduce, fp_groups_rows, fp_groups_stats,
    fp_groups_sum_where,
)
from fastprof._core.fp_status cimport fp_status
from fastprof._core._status cimport check


cdef class GroupStats:
    """Statistics of the known numbers of each group; arrays of length `n_groups`.

    Parameters
    ----------
    group : int32 [n]
        0 .. n_groups - 1; negative: in no group.
    value : int64 [n]
    n_groups : int
    none : int
        The unknown value.

    Attributes
    ----------
    count, sum, min, max : int64 [n_groups]
        min and max are `none` if count is 0. A sum that exceeds 64 bits is the largest int64.
    squares : float64 [n_groups]
        Sum of the squared distances from the mean.
    """
    cdef fp_groups_rows rows
    cdef tuple kept
    cdef readonly object count, sum, min, max, squares

    def __cinit__(self, const int32_t[::1] group, const int64_t[::1] value, int32_t n_groups,
                  int64_t none=-1):
        cdef int64_t[::1] count, total, least, most
        cdef double[::1] squares
        cdef fp_groups_stats stats
        cdef fp_status status
        require_equal((group.shape[0], value.shape[0]))
        self.kept = group, value
        self.rows.n, self.rows.n_groups, self.rows.none = group.shape[0], n_groups, none
        if self.rows.n:
            self.rows.group, self.rows.value = &group[0], &value[0]
        # One item more, so that an empty array has an address.
        count, total, least, most = (np.empty(n_groups + 1, np.int64) for _ in range(4))
        squares = np.empty(n_groups + 1, np.float64)
        stats.count, stats.sum, stats.min, stats.max = &count[0], &total[0], &least[0], &most[0]
        stats.squares = &squares[0]
        with nogil:
            status = fp_groups_reduce(&self.rows, &stats)
        check(status, "statistics of groups")
        self.count, self.sum = np.asarray(count)[:n_groups], np.asarray(total)[:n_groups]
        self.min, self.max = np.asarray(least)[:n_groups], np.asarray(most)[:n_groups]
        self.squares = np.asarray(squares)[:n_groups]

    def median(self):
        """The median of each group, float64 [n_groups]; NaN if it has no known number."""
        cdef int32_t n_groups = self.rows.n_groups
        cdef const int64_t[::1] count = np.append(self.count, 0)
        cdef int64_t[::1] scratch = np.empty(self.rows.n + 1, np.int64)
        cdef int64_t[::1] ends = np.empty(n_groups + 1, np.int64)
        cdef double[::1] median = np.empty(n_groups + 1, np.float64)
        cdef fp_status status
        with nogil:
            status = fp_groups_median(&self.rows, &count[0], &scratch[0], &ends[0], &median[0])
        check(status, "medians of groups")
        return np.asarray(median)[:n_groups]


def sum_where(const int32_t[::1] group, const int64_t[::1] value, const uint8_t[::1] mask,
              int32_t n_groups):
    """The sum of the positive numbers of each group where the mask is not 0, int64 [n_groups].

    A sum that exceeds 64 bits is the largest int64. Without a mask, all numbers count.
    """
    cdef fp_groups_rows rows
    cdef const uint8_t *mask_address = NULL
    cdef int64_t[::1] total = np.zeros(n_groups + 1, np.int64)
    cdef fp_status status
    n_masked = group.shape[0] if mask is None else mask.shape[0]
    require_equal((group.shape[0], value.shape[0], n_masked))
    if group.shape[0]:
        if mask is not None:
            mask_address = &mask[0]
        rows.group, rows.value, rows.n = &group[0], &value[0], group.shape[0]
        rows.none, rows.n_groups = -1, n_groups
        with nogil:
            status = fp_groups_sum_where(&rows, mask_address, &total[0])
        check(status, "sums of groups")
    return np.asarray(total)[:n_groups]


def distinct_ids(const int32_t[::1] group, const int32_t[::1] ids, int32_t n_groups,
                 int32_t n_ids):
    """Count the distinct ids of each group.

    Parameters
    ----------
    group, ids : int32 [n]
        Negative: in no group, no id. Ids are below `n_ids`.

    Returns
    -------
    count : int64 [n_groups]
        The ids that occur in this group only.
    home : int32 [n_ids]
        The group of each id; -1: none, -2: several.
    """
    cdef fp_groups_rows rows
    cdef int64_t[::1] count = np.zeros(n_groups + 1, np.int64)
    cdef int32_t[::1] home = np.full(n_ids + 1, -1, np.int32)
    cdef fp_status status
    require_equal((group.shape[0], ids.shape[0]))
    if group.shape[0]:
        rows.group, rows.value, rows.n = &group[0], NULL, group.shape[0]
        rows.none, rows.n_groups = -1, n_groups
        with nogil:
            status = fp_groups_distinct(&rows, &ids[0], n_ids, &home[0], &count[0])
        check(status, "distinct ids of groups")
    return np.asarray(count)[:n_groups], np.asarray(home)[:n_ids]
