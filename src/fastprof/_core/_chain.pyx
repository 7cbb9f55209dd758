"""What a rank does between the events of its chain."""
import numpy as np

from libc.stdint cimport INT32_MAX, int32_t, int64_t, uint64_t

from fastprof._core._arrays cimport pointer32, pointer64, require_equal, written32, written64
from fastprof._core.fp_chain cimport (
    fp_chain, fp_chain_entries, fp_chain_idle, fp_chain_scratch, fp_chain_work,
)
from fastprof._core.fp_status cimport FP_E_TOO_MANY, fp_status
from fastprof._core._status cimport check


def entries(tuple work, tuple idle, int64_t begin, const int64_t[::1] time, int32_t n_labels):
    """Divide the work and the idle time of a rank among pieces of its time, by label.

    Parameters
    ----------
    work : start, end : int64 [work], ns; label : int32 [work]
        In order of start. Of work that overlaps, each moment is that of the first to start.
    idle : piece, label : int32 [parts]; ns : int64 [parts]
        In order of piece.
    begin : int
        The start of the first piece, ns.
    time : int64 [pieces]
        The end of each piece, ns, ascending.
    n_labels : int

    Returns
    -------
    offsets : int64 [pieces + 1]
        The first entry of each piece.
    label : int32 [entries]
        Ascending within a piece, each once.
    ns : int64 [entries]
    count : int32 [entries]
        Work that begins in the piece and has time of its own.

    Raises
    ------
    InternalError
        Work, idle time or pieces are not in order, or an index is out of bounds.
    """
    cdef const int64_t[::1] start = work[0], end = work[1], idle_ns = idle[2]
    cdef const int32_t[::1] label = work[2], piece = idle[0], idle_label = idle[1]
    cdef int64_t n_pieces = time.shape[0]
    cdef int64_t room = start.shape[0] + n_pieces + piece.shape[0]
    cdef fp_status status
    require_equal((start.shape[0], end.shape[0], label.shape[0]))
    require_equal((piece.shape[0], idle_label.shape[0], idle_ns.shape[0]))
    if n_pieces > INT32_MAX:
        check(FP_E_TOO_MANY, "pieces of time")
    cdef fp_chain_work all_work = fp_chain_work(
        pointer64(start), pointer64(end), pointer32(label), start.shape[0])
    cdef fp_chain_idle all_idle = fp_chain_idle(
        pointer32(piece), pointer32(idle_label), pointer64(idle_ns), piece.shape[0])
    # One item more, so that an empty array has an address.
    offsets, labels = np.empty(n_pieces + 1, np.int64), np.empty(room + 1, np.int32)
    ns, count = np.empty(room + 1, np.int64), np.empty(room + 1, np.int32)
    cdef fp_chain_entries found = fp_chain_entries(
        written64(offsets), written32(labels), written64(ns), written32(count))
    sums, counts = np.empty(n_labels + 1, np.int64), np.empty(n_labels + 1, np.int32)
    used = np.empty(n_labels + 1, np.int32)
    cdef uint64_t[::1] is_used = np.zeros(n_labels // 64 + 1, np.uint64)
    cdef fp_chain_scratch scratch = fp_chain_scratch(
        written64(sums), written32(counts), written32(used), &is_used[0])
    with nogil:
        status = fp_chain(&all_work, &all_idle, begin, pointer64(time), <int32_t>n_pieces,
                          n_labels, &scratch, &found)
    check(status, "pieces of time")
    for column in (labels, ns, count):
        column.resize(int(offsets[n_pieces]), refcheck=False)
    return offsets, labels, ns, count
