"""Which launches hold up the pieces of a rank's chain."""
import numpy as np

from libc.stdint cimport int32_t, int64_t

from fastprof._core._arrays cimport pointer32, pointer64, require_equal, written32, written64
from fastprof._core.fp_held cimport (
    fp_held, fp_held_arrivals, fp_held_find, fp_held_launches, fp_held_pieces, fp_held_sums,
    fp_held_waiting, fp_held_work,
)
from fastprof._core.fp_status cimport fp_status
from fastprof._core._status cimport check


cdef class Launched:
    """Work of a rank, the calls that arrive, and how both are launched.

    Of work that overlaps, each moment is that of the first to start; work without a moment of its
    own counts for nothing.

    Parameters
    ----------
    work : start, end : int64 [work], ns; row : int32 [work], kernels
        In order of start.
    begin : int
        The start of the chain, ns.
    arrivals : piece, start : int64 [arrivals], ns; row : int32 [arrivals], kernels
        In order of piece.
    launches : time : int64 [kernels], ns, -2^63 if unknown; call : int32 [kernels], -1 for none;
        thread : int32 [calls]; end : int64 [calls], ns
    """
    cdef fp_held_work work
    cdef fp_held_arrivals arrivals
    cdef fp_held_launches launches
    cdef object arrays

    def __init__(self, work, int64_t begin, arrivals, launches):
        cdef const int64_t[::1] start, end, piece, arrived, time, end_of_call
        cdef const int32_t[::1] row, row_of_call, call, thread
        start, end, row = work
        piece, arrived, row_of_call = arrivals
        time, call, thread, end_of_call = launches
        require_equal((start.shape[0], end.shape[0], row.shape[0]))
        require_equal((piece.shape[0], arrived.shape[0], row_of_call.shape[0]))
        require_equal((time.shape[0], call.shape[0]))
        require_equal((thread.shape[0], end_of_call.shape[0]))
        self.arrays = work, arrivals, launches  # whose addresses follow
        self.work = fp_held_work(
            pointer64(start), pointer64(end), pointer32(row), start.shape[0], begin)
        self.arrivals = fp_held_arrivals(
            pointer64(piece), pointer64(arrived), pointer32(row_of_call), piece.shape[0])
        self.launches = fp_held_launches(
            pointer64(time), pointer32(call), pointer32(thread), pointer64(end_of_call),
            time.shape[0], thread.shape[0])

    def sums(self, const int64_t[::1] time):
        """The work of each piece of time, int64 [pieces], ns.

        time : int64 [pieces], ns, ascending: the end of each piece

        Raises
        ------
        InternalError
            Work or pieces are not in order, or work ends after the last piece.
        """
        sums = np.empty(time.shape[0] + 1, np.int64)
        cdef int64_t *of_pieces = written64(sums)
        cdef fp_status status
        with nogil:
            status = fp_held_sums(&self.work, pointer64(time), time.shape[0], of_pieces)
        check(status, "work of pieces")
        return sums[:time.shape[0]]

    def find(self, const int64_t[::1] time, const int64_t[::1] sums, const double[::1] stretched,
             int64_t latency_ns, int64_t slow_ns):
        """Find the launches that hold up pieces.

        Parameters
        ----------
        time, sums : int64 [pieces], ns; see `sums`
        stretched : float64 [pieces]
            What the work of a piece is multiplied by.
        latency_ns : int
            Work could begin so long after its launch, and no later than it does.
        slow_ns : int
            A launch whose call takes so long is slow.

        Returns
        -------
        launch : int64 [pieces], ns
            The latest launch of work that begins in the piece, or of a call that arrives at its
            end; -2^63 without any.
        thread : int32 [pieces]
            That makes it, -1 if unknown.
        allowed : int64 [pieces], ns
            When the piece could end, did it only follow its launches; -2^63 without any.
        rest : int64 [pieces], ns
            Stretched work from the one that allows it to the end of the piece.
        slow_launch, slow_end : int64 [slow launches], ns
            When these begin, and when their calls return.

        Raises
        ------
        InternalError
            Work, arrivals or pieces are not in order, or an index is out of bounds.
        """
        cdef int64_t n = time.shape[0], room = self.work.n + self.arrivals.n + 1
        require_equal((n, sums.shape[0], stretched.shape[0]))
        # One item more, so that an empty array has an address.
        launch, allowed, rest = (np.empty(n + 1, np.int64) for _ in range(3))
        thread = np.empty(n + 1, np.int32)
        slow_launch, slow_end = np.empty(room, np.int64), np.empty(room, np.int64)
        cdef fp_held held = fp_held(
            written64(launch), written32(thread), written64(allowed), written64(rest),
            written64(slow_launch), written64(slow_end), 0)
        cdef fp_held_pieces pieces = fp_held_pieces(
            pointer64(time), pointer64(sums), NULL, n)
        if n:
            pieces.stretched = &stretched[0]
        cdef fp_status status
        with nogil:
            status = fp_held_find(&self.work, &self.arrivals, &self.launches, &pieces, latency_ns,
                                  slow_ns, &held)
        check(status, "launches of pieces")
        slow = slow_launch[:held.n_slow].copy(), slow_end[:held.n_slow].copy()
        return launch[:n], thread[:n], allowed[:n], rest[:n], *slow

    def waiting(self, const int64_t[::1] time):
        """How much work, and how many arrivals, are launched before each time and begin at it or
        later, int64 [times].

        time : int64 [times], ns, ascending
        """
        waiting = np.empty(time.shape[0] + 1, np.int64)
        cdef int64_t *counts = written64(waiting)
        cdef fp_status status
        with nogil:
            status = fp_held_waiting(&self.work, &self.arrivals, &self.launches, pointer64(time),
                                     time.shape[0], counts)
        check(status, "waiting work")
        return waiting[:time.shape[0]]
