"""Join kernels to launches by (process, correlation id)."""
import numpy as np

from libc.stdint cimport int32_t, int64_t

from fastprof._core.fp_join cimport (
    fp_join, fp_join_free, fp_join_has, fp_join_new, fp_join_offer, fp_join_rows,
)
from fastprof._core.fp_keys cimport fp_keys, fp_keys_find
from fastprof._core._pools cimport Keys
from fastprof._core._column cimport Filter


cdef class Join:
    """A table from (process, correlation id) pairs to the first row offered with each pair.

    Parameters
    ----------
    process : int32 [n]
        Dense process numbers; -1 for none.
    number : int64 [n]
        Correlation ids; negative for none.
    """
    cdef fp_join *table

    def __cinit__(self, const int32_t[::1] process, const int64_t[::1] number):
        cdef int64_t n = _same_length(process, number)
        if n:
            with nogil:
                self.table = fp_join_new(&process[0], &number[0], n)
        else:
            self.table = fp_join_new(NULL, NULL, 0)
        if self.table is NULL:
            raise MemoryError(f"out of memory for a table of {n} correlation ids")

    def __dealloc__(self):
        fp_join_free(self.table)

    def offer(self, const int32_t[::1] process, const int64_t[::1] number):
        """Record rows 0 .. n - 1 for these pairs; the first row of a pair is kept."""
        cdef int64_t n = _same_length(process, number)
        if n:
            with nogil:
                fp_join_offer(self.table, &process[0], &number[0], n)

    def rows(self, const int32_t[::1] process, const int64_t[::1] number):
        """The row recorded for each pair, int32 [n]; -1 for none."""
        cdef int64_t n = _same_length(process, number)
        out = np.empty(n, np.int32)
        cdef int32_t[::1] row = out
        if n:
            with nogil:
                fp_join_rows(self.table, &process[0], &number[0], n, &row[0])
        return out

    def matching(self, const int32_t[::1] process, const int64_t[::1] number):
        """The places of the pairs that are in the table, int64, ascending."""
        cdef int64_t n = _same_length(process, number), i, n_found = 0
        found = np.empty(n, np.int64)
        cdef int64_t[::1] place = found
        with nogil:
            for i in range(n):
                if fp_join_has(self.table, process[i], number[i]):
                    place[n_found] = i
                    n_found += 1
        return found[:n_found].copy()


cdef int64_t _same_length(const int32_t[::1] process, const int64_t[::1] number) except -1:
    if process.shape[0] != number.shape[0]:
        raise ValueError(f"expected {process.shape[0]} ids, found {number.shape[0]}")
    return number.shape[0]


cdef struct _launch_state:
    const fp_join *table
    const fp_keys *processes
    int shift
    int64_t last_thread  # cached, because calls of one thread come in runs
    int32_t last_process
    const int64_t *names  # of calls that are kept in any case
    int n_names
    int64_t n_unmatched  # calls of these names without a row in the table


cdef bint _keep_launch(const void *state, const int64_t *values) noexcept nogil:
    cdef _launch_state *s = <_launch_state *>state
    cdef int i
    if values[0] != s.last_thread:
        s.last_thread = values[0]
        s.last_process = fp_keys_find(s.processes, values[0] >> s.shift)
    if s.last_process >= 0 and fp_join_has(s.table, s.last_process, values[1]):
        return True
    for i in range(s.n_names):
        if values[2] == s.names[i]:
            s.n_unmatched += 1
            return True
    return False


cdef class LaunchFilter(Filter):
    """Keeps API calls whose (process, correlation id) is in a Join, and calls of some names.

    The first scanned column must be the global thread id, whose bits from `shift` on identify the
    process; the second must be the correlation id, and the third the name if `names` are given.

    Parameters
    ----------
    names : int64 [names], few; their calls are kept in any case
    """
    cdef Join join
    cdef Keys processes
    cdef const int64_t[::1] names
    cdef _launch_state launch_state

    def __cinit__(self, Join join, Keys processes, int shift, const int64_t[::1] names=None):
        self.join = join
        self.processes = processes
        self.names = names
        self.launch_state.n_names = 0 if names is None else <int>names.shape[0]
        self.launch_state.names = &self.names[0] if self.launch_state.n_names else NULL
        self.launch_state.table = join.table
        self.launch_state.processes = processes.pool
        self.launch_state.shift = shift
        self.launch_state.last_thread = 0
        self.launch_state.last_process = fp_keys_find(processes.pool, 0)
        self.filter.state = &self.launch_state
        self.filter.keep = _keep_launch
        self.launch_state.n_unmatched = 0
        self.filter.n_columns = 3 if self.launch_state.n_names else 2

    @property
    def n_unmatched(self):
        """Number of calls kept so far for their name only."""
        return self.launch_state.n_unmatched
