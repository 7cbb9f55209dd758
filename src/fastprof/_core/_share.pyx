"""Divide the cost of a call among the kernels that do its work."""
import numpy as np

from libc.stdint cimport int8_t, int32_t, int64_t, uint8_t, uint64_t

from fastprof._core._arrays cimport require_equal
from fastprof._core.fp_share cimport (
    fp_share, fp_share_add_up, fp_share_moves, fp_share_ordinal, fp_share_pairs, fp_share_rows,
    fp_share_sum, fp_share_too_fast,
)
from fastprof._core.fp_status cimport fp_status
from fastprof._core._status cimport check


def pairs(const int32_t[::1] group, int32_t n_groups, const int32_t[::1] cell,
          const int8_t[::1] part, int32_t n_parts):
    """Number the pairs of group and part, the kernels that divide one cost.

    Parameters
    ----------
    group : int32 [n]
        The instance of the call, 0 .. n_groups - 1; -1 for none.
    cell : int32 [n]
        Index into `part`.
    part : int8 [cells]
        The part of the call that the kernel does. Parts from `n_parts` on divide nothing.

    Returns
    -------
    number : int32 [n], in order of appearance; -1 without a group or from `n_parts` on
    n_pairs : int
    """
    cdef int64_t n = group.shape[0]
    cdef int32_t n_pairs = 0, n_cells = <int32_t>part.shape[0]
    require_equal((n, cell.shape[0]))
    out = np.empty(n, np.int32)
    cdef int32_t[::1] number = out
    cdef int32_t[::1] scratch = np.empty(<int64_t>n_groups * n_parts + 1, np.int32)
    cdef const int8_t *parts = &part[0] if n_cells else NULL
    cdef fp_status status
    if n:
        with nogil:
            status = fp_share_pairs(&group[0], &cell[0], n, n_groups, parts, n_cells, n_parts,
                                    &scratch[0], &number[0], &n_pairs)
        check(status, "parts of calls")
    return out, n_pairs


cdef class Groups:
    """Groups of kernels that divide costs in proportion to their weights.

    Parameters
    ----------
    group : int32 [n]
        0 .. n_groups - 1; -1 for none.
    cell : int32 [n]
        Index of the cost in a table of costs.
    weight : int64 [n]
        Weight of the kernel, its duration in ns. Zero counts as 1.
    n_cells : int
        Length of the tables.

    Raises
    ------
    BadInputError
        A sum of weights exceeds 63 bits.
    """
    cdef fp_share_rows rows
    cdef tuple kept
    cdef int64_t[::1] sums
    cdef int64_t[::1] scratch

    def __cinit__(self, const int32_t[::1] group, int32_t n_groups, const int32_t[::1] cell,
                  const int64_t[::1] weight, int32_t n_cells):
        cdef fp_status status
        require_equal((group.shape[0], cell.shape[0], weight.shape[0]))
        self.kept = group, cell, weight
        self.rows.n, self.rows.n_groups, self.rows.n_cells = group.shape[0], n_groups, n_cells
        self.sums, self.scratch = (np.empty(n_groups + 1, np.int64) for _ in range(2))
        if self.rows.n:
            self.rows.group, self.rows.cell, self.rows.weight = &group[0], &cell[0], &weight[0]
            with nogil:
                status = fp_share_sum(&self.rows, &self.sums[0])
            check(status, "sharing costs")

    def share(self, const int64_t[::1] total, int64_t[::1] out):
        """Write the cost of each row to `out`, int64 [n]; rows without a group are unchanged.

        A row gets its group's total in proportion to its weight. The shares of the rows of one
        group and total add up to that total exactly.

        total : int64 [n_cells], costs; -1 for unknown
        """
        cdef fp_status status
        self._begin(total, out.shape[0])
        if self.rows.n == 0:
            return
        with nogil:
            status = fp_share(&self.rows, &self.sums[0], &self.scratch[0], &out[0])
        check(status, "sharing costs")

    def add_up(self, const int64_t[::1] total, const int64_t[::1] shares):
        """Return two sums modulo 2^64: the totals of all groups, and the shares of their rows.

        Negative numbers count as 0. Groups whose rows have different totals are skipped, because
        they have no expected sum.
        """
        cdef uint64_t expected = 0, found = 0
        cdef fp_status status
        self._begin(total, shares.shape[0])
        if self.rows.n:
            with nogil:
                status = fp_share_add_up(&self.rows, &shares[0], &self.scratch[0], &expected,
                                         &found)
            check(status, "adding up shares")
        return expected, found

    cdef int _begin(self, const int64_t[::1] total, int64_t n_shares) except -1:
        if n_shares != self.rows.n or total.shape[0] != self.rows.n_cells:
            raise ValueError(f"expected {self.rows.n} shares of {self.rows.n_cells} totals, found "
                             f"{n_shares} of {total.shape[0]}")
        self.rows.total = &total[0] if self.rows.n_cells else NULL
        return 0


def too_fast(const int64_t[::1] bytes_, const int64_t[::1] duration, const int32_t[::1] group,
             int32_t n_groups, const int32_t[::1] memory, const double[::1] bandwidth, double most):
    """Whether the call of each kernel moves more bytes than `most` times the bandwidth allows.

    Parameters
    ----------
    bytes_, duration : int64 [n]
        The kernel's share of the bytes, and ns; -1 for unknown.
    group : int32 [n]
        The instance of the call, 0 .. n_groups - 1; -1 for a call of one kernel.
    memory : int32 [n]
        Index into `bandwidth`.
    bandwidth : float64 [memories]
        Bytes per second, NaN for unknown.

    Returns
    -------
    bool [n] : False where bytes or bandwidth are unknown, and for calls without measurable time
    """
    cdef fp_share_moves moves
    cdef uint8_t[::1] found
    cdef double[::1] scratch = np.empty(2 * <int64_t>n_groups + 1, np.float64)
    cdef fp_status status
    require_equal((bytes_.shape[0], duration.shape[0], group.shape[0], memory.shape[0]))
    moves.n, moves.n_groups = bytes_.shape[0], n_groups
    moves.n_memories = <int32_t>bandwidth.shape[0]
    out = np.empty(moves.n, np.bool_)
    if moves.n == 0:
        return out
    moves.group, moves.bytes, moves.duration = &group[0], &bytes_[0], &duration[0]
    moves.memory = &memory[0]
    moves.bandwidth = &bandwidth[0] if moves.n_memories else NULL
    found = out.view(np.uint8)
    with nogil:
        status = fp_share_too_fast(&moves, most, &scratch[0], &found[0])
    check(status, "rates of calls")
    return out


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
