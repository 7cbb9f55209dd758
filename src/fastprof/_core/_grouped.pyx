"""Events of threads, thread by thread."""
import numpy as np

from libc.stdint cimport int32_t, int64_t, uint8_t

from fastprof._core._arrays cimport pointer32, pointer64, pointer8, require_equal, written64
from fastprof._core.fp_grouped cimport (
    fp_grouped, fp_grouped_choice, fp_grouped_count, fp_grouped_events, fp_grouped_overlapping,
    fp_grouped_scratch, fp_grouped_threads, fp_grouped_unite, fp_grouped_windows,
)
from fastprof._core.fp_status cimport fp_status
from fastprof._core._status cimport check


def by_thread(const int32_t[::1] thread, const int64_t[::1] start, end, int32_t n_threads):
    """Put events in order of thread; those of a thread keep their order.

    Parameters
    ----------
    thread : int32 [n], -1 .. n_threads - 1
        Events of no thread (-1) are left out.
    start : int64 [n], ns
    end : int64 [n], ns, or None
    n_threads : int

    Returns
    -------
    start : int64 [events]
    until : int64 [events]
        The last end of an event and those before it on its thread; without `end`, the starts.
    bounds : int64 [n_threads + 1]
        Where the events of each thread begin.
    order : int64 [events]
        The row of each.

    Raises
    ------
    InternalError
        A thread is out of bounds.
    """
    cdef int64_t n = thread.shape[0]
    cdef const int64_t[::1] ends = start if end is None else end
    cdef fp_grouped_threads found
    cdef fp_status status
    require_equal((n, start.shape[0], ends.shape[0]))
    # One item more, so that an empty array has an address.
    bounds, order = np.empty(n_threads + 1, np.int64), np.empty(n + 1, np.int64)
    starts = np.empty(n + 1, np.int64)
    untils = starts if end is None else np.empty(n + 1, np.int64)
    cdef int64_t[::1] following = np.empty(n_threads + 1, np.int64)
    cdef fp_grouped_events events = fp_grouped_events(
        pointer32(thread), pointer64(start), pointer64(ends), n, n_threads)
    found.bounds, found.order, found.start = written64(bounds), written64(order), written64(starts)
    found.until = NULL
    if end is not None:
        found.until = written64(untils)
    with nogil:
        status = fp_grouped(&events, &following[0], &found)
    check(status, "events of threads")
    n = bounds[n_threads]
    return starts[:n], untils[:n], bounds, order[:n]


def united(const int32_t[::1] thread, const int64_t[::1] start, const int64_t[::1] end,
           const int32_t[::1] group, int32_t n_groups, const int32_t[::1] label=None, wanted=None):
    """The events of groups of threads, group by group, without those within earlier ones.

    Parameters
    ----------
    thread : int32 [n], -1 for none
        Events of no thread are left out.
    start, end : int64 [n], ns
        In order of start.
    group : int32 [threads]
        0 .. n_groups - 1.
    label : int32 [n], -1 for none, optional
    wanted : bool [labels]
        With `label`: whether to include the events of a label.

    Returns
    -------
    start, end : int64 [events]
        Both ascend in a group.
    bounds : int64 [n_groups + 1]
        Where the events of each group begin.

    Raises
    ------
    InternalError
        An index is out of bounds.
    """
    cdef int64_t n = thread.shape[0], n_found
    cdef fp_grouped_choice choice
    cdef fp_grouped_scratch scratch
    cdef fp_status status
    cdef const uint8_t[::1] flags = None
    require_equal((n, start.shape[0], end.shape[0]))
    cdef fp_grouped_events events = fp_grouped_events(
        pointer32(thread), pointer64(start), pointer64(end), n, <int32_t>group.shape[0])
    choice.group, choice.n_groups = pointer32(group), n_groups
    choice.label, choice.wanted, choice.n_labels = NULL, NULL, 0
    if label is not None and n:
        require_equal((n, label.shape[0]))
        flags = wanted.view(np.uint8)
        choice.label, choice.wanted = pointer32(label), pointer8(flags)
        choice.n_labels = <int32_t>flags.shape[0]
    # One item more, so that an empty array has an address.
    bounds, until = np.empty(n_groups + 1, np.int64), np.empty(n_groups + 1, np.int64)
    following, has_any = np.empty(n_groups + 1, np.int64), np.zeros(n_groups + 1, np.uint8)
    cdef int64_t[::1] bound = bounds
    cdef uint8_t[::1] any_of_group = has_any
    scratch.until, scratch.next = written64(until), written64(following)
    scratch.has_any = &any_of_group[0]
    with nogil:
        status = fp_grouped_count(&events, &choice, &scratch, &bound[0])
    check(status, "events of threads")
    n_found = bound[n_groups]
    starts, ends = np.empty(n_found + 1, np.int64), np.empty(n_found + 1, np.int64)
    cdef int64_t[::1] found_start = starts
    cdef int64_t[::1] found_end = ends
    has_any[:] = 0
    with nogil:
        status = fp_grouped_unite(&events, &choice, &scratch, &bound[0], &found_start[0],
                                  &found_end[0])
    check(status, "events of threads")
    return starts[:n_found], ends[:n_found], bounds


def overlapping(const int64_t[::1] start, const int64_t[::1] end, windows,
                const int32_t[::1] label=None, wanted=None):
    """The rows of events that overlap some windows, int64, ascending.

    Parameters
    ----------
    start, end : int64 [n], ns
        In order of start.
    windows : start, end : int64 [windows], ns
        In order; they do not overlap.
    label : int32 [n], -1 for none, optional
    wanted : bool [labels]
        With `label`: whether to include the events of a label.

    Raises
    ------
    InternalError
        Events are not in order, or a label is out of bounds.
    """
    cdef const int64_t[::1] begin, until
    begin, until = windows
    cdef int64_t n = start.shape[0], n_found = 0
    cdef const uint8_t[::1] flags = None
    require_equal((n, end.shape[0]))
    require_equal((begin.shape[0], until.shape[0]))
    cdef fp_grouped_events events = fp_grouped_events(
        NULL, pointer64(start), pointer64(end), n, 0)
    cdef fp_grouped_windows times = fp_grouped_windows(
        pointer64(begin), pointer64(until), begin.shape[0])
    cdef fp_grouped_choice choice = fp_grouped_choice(NULL, NULL, NULL, 0, 0)
    if label is not None and n:
        require_equal((n, label.shape[0]))
        flags = wanted.view(np.uint8)
        choice.label, choice.wanted = pointer32(label), pointer8(flags)
        choice.n_labels = <int32_t>flags.shape[0]
    rows = np.empty(n + 1, np.int64)
    cdef int64_t *found = written64(rows)
    cdef fp_status status
    with nogil:
        status = fp_grouped_overlapping(&events, &choice, &times, found, &n_found)
    check(status, "events in windows")
    return rows[:n_found].copy()
