"""Divide the cost of a call among the kernels that do its work."""
import numpy as np

from libc.stdint cimport int8_t, int32_t, int64_t, uint64_t

from fastprof._core._c cimport FP_OK, fp_status
from fastprof._core._status cimport check


cdef extern from "fp_share.h":
    ctypedef struct fp_share_rows:
        const int32_t *group
        const int8_t *part
        const int32_t *cell
        const int64_t *weight
        const int64_t *total
        int64_t n
        int32_t n_groups
        int32_t n_cells

    fp_status fp_share_sum(const fp_share_rows *rows, int8_t part, int64_t *sum) nogil
    fp_status fp_share(const fp_share_rows *rows, int8_t part, const int64_t *sum,
                       int64_t *passed, int64_t *share) nogil
    fp_status fp_share_add_up(const fp_share_rows *rows, int8_t part, const int64_t *share,
                              int64_t *of_group, uint64_t *expected, uint64_t *found) nogil
    fp_status fp_share_ordinal(const int32_t *group, int64_t n, int32_t n_groups, int32_t *seen,
                               int32_t *ordinal) nogil


cdef class Parts:
    """Kernels, the part of a call that each does, and the cost of the parts.

    Parameters
    ----------
    group : int32 [n]
        The instance of the call, 0 .. n_groups - 1; -1 for none.
    part : int8 [n]
        The part of the call that the kernel does.
    cell : int32 [n]
        Index of the part's cost in `total`.
    weight : int64 [n]
        Weight of the kernel, its duration in ns. Zero counts as 1.
    total : int64 [cells]
        Costs; -1 for unknown.
    """
    cdef fp_share_rows rows
    cdef tuple kept

    def __cinit__(self, const int32_t[::1] group, int32_t n_groups, const int8_t[::1] part,
                  const int32_t[::1] cell, const int64_t[::1] weight, const int64_t[::1] total):
        lengths = group.shape[0], part.shape[0], cell.shape[0], weight.shape[0]
        if len(set(lengths)) != 1:
            raise ValueError(f"lengths differ: {lengths}")
        self.kept = group, part, cell, weight, total
        self.rows.n, self.rows.n_groups = group.shape[0], n_groups
        self.rows.n_cells = <int32_t>total.shape[0]
        self.rows.total = &total[0] if self.rows.n_cells else NULL
        if self.rows.n:
            self.rows.group, self.rows.part = &group[0], &part[0]
            self.rows.cell, self.rows.weight = &cell[0], &weight[0]

    def share(self, int8_t part, int64_t[::1] out):
        """Write the cost of each row with this part to `out`, int64 [n]; others are unchanged.

        A row gets its group's total in proportion to its weight. The shares of the rows of one
        group and total add up to that total exactly.
        """
        cdef int64_t[::1] sums = np.empty(self.rows.n_groups + 1, np.int64)
        cdef int64_t[::1] passed = np.empty(self.rows.n_groups + 1, np.int64)
        cdef fp_status status
        if out.shape[0] != self.rows.n:
            raise ValueError(f"expected {self.rows.n} shares, found {out.shape[0]}")
        if self.rows.n == 0:
            return
        with nogil:
            status = fp_share_sum(&self.rows, part, &sums[0])
            if status == FP_OK:
                status = fp_share(&self.rows, part, &sums[0], &passed[0], &out[0])
        check(status, "sharing costs")

    def add_up(self, int8_t part, const int64_t[::1] shares):
        """Return two sums modulo 2^64: the totals of all groups, and the shares of the rows with
        this part.

        Negative numbers count as 0. Groups whose rows have different totals are skipped, because
        they have no expected sum.
        """
        cdef int64_t[::1] of_group = np.empty(self.rows.n_groups + 1, np.int64)
        cdef uint64_t expected = 0, found = 0
        cdef fp_status status
        if shares.shape[0] != self.rows.n:
            raise ValueError(f"expected {self.rows.n} shares, found {shares.shape[0]}")
        if self.rows.n:
            with nogil:
                status = fp_share_add_up(&self.rows, part, &shares[0], &of_group[0], &expected,
                                         &found)
            check(status, "adding up shares")
        return expected, found


def ordinal(const int32_t[::1] group, int32_t n_groups):
    """The number of earlier rows of the same group, int32 [n]; -1 where group is -1."""
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
