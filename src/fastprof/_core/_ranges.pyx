"""Open ranges in an attached NVTX tool and in torch.profiler.

This module does not import torch or nvtx; `annotate` connects them.
"""

from cpython.dict cimport PyDict_GetItem
from cpython.object cimport PyObject


cdef extern from *:
    """
    #if defined(_MSC_VER)
    #define FASTPROF_OF_THREAD __declspec(thread)
    #else
    #define FASTPROF_OF_THREAD _Thread_local
    #endif
    static FASTPROF_OF_THREAD int fastprof_open_calls = 0;
    """
    int fastprof_open_calls


cdef int open_calls() noexcept:
    """The number of calls whose ranges are open in this thread."""
    return fastprof_open_calls


cdef void call_begins() noexcept:
    global fastprof_open_calls
    fastprof_open_calls += 1


cdef void call_ends() noexcept:
    global fastprof_open_calls
    fastprof_open_calls -= 1


cdef class Marker:
    """The text of a range and, once needed, its event attributes of the nvtx package.

    The text of a `passing` marker is not registered with the tool, because it is opened only once.
    `kept` keeps objects alive whose addresses are part of the marker's key.
    """

    def __init__(self, str text not None, bint passing=False):
        self.text, self.passing = text, passing


# The listeners; set by `connect`.
cdef object _domain = None
cdef object _push = None
cdef object _pop = None
cdef dict _profiler = None
cdef object _records = None
cdef object _recorder = None
cdef object _recordable = None
cdef object _push_plain = None

cdef str _FLAG = "_is_profiler_enabled"
cdef bint _rehearsing = False


def connect(domain, dict profiler, records, recorder, recordable, push_plain=None):
    """Connect the listeners.

    Parameters
    ----------
    domain : nvtx.Domain or None
        None where no tool is attached.
    profiler : dict
        A namespace whose `_is_profiler_enabled` is true while torch.profiler may be recording.
    records : callable
        () -> bool, whether the profiler records now; called only if the flag is set.
    recorder : callable
        text -> a context manager that records a range in the profiler.
    recordable : callable
        text -> the text in a form that the profiler can record.
    push_plain : callable, optional
        text -> None, pushes a range without registering its text.
    """
    global _domain, _push, _pop, _profiler, _records, _recorder, _recordable, _push_plain
    _domain = domain
    _push = None if domain is None else domain.push_range
    _pop = None if domain is None else domain.pop_range
    _profiler, _records, _recorder, _recordable = profiler, records, recorder, recordable
    _push_plain = push_plain


def rehearse(bint on):
    """Switch rehearsal on or off: calls compute the texts of their ranges, and open none.

    A step that is rehearsed before it is recorded makes the first recorded one as long as others.
    """
    global _rehearsing
    _rehearsing = on


cdef inline bint _flag_is_up() noexcept:
    if _profiler is None:
        return False
    cdef PyObject *flag = PyDict_GetItem(_profiler, _FLAG)
    return flag is not NULL and <object> flag is True


cdef bint anybody_listens() noexcept:
    """Whether an NVTX tool is attached, torch.profiler's flag is set, or a rehearsal is on."""
    return _push is not None or _rehearsing or _flag_is_up()


cdef class Opened:
    """Open ranges; `close` closes them, innermost first."""

    cdef int add(self, Marker marker) except -1:
        if _push is not None:
            if marker.event is not None:
                _push(marker.event)
            elif marker.passing and _push_plain is not None:
                _push_plain(marker.text)
            else:
                marker.event = _domain.get_event_attributes(message=marker.text)
                _push(marker.event)
            self.pushed += 1
            self.end = _pop
        if _rehearsing and marker.recorded is None and _recordable is not None:
            marker.recorded = _recordable(marker.text)
        if _flag_is_up():
            if not self.is_asked:
                self.is_asked, self.is_recorded = True, _records()
            if self.is_recorded:
                if marker.recorded is None:
                    marker.recorded = _recordable(marker.text)
                record = _recorder(marker.recorded)
                record.__enter__()
                if self.entered is None:
                    self.entered = []
                self.entered.append(record)
        return 0

    def close(self):
        """Close the ranges; errors of tools are ignored."""
        if self.entered is not None:
            while self.entered:
                try:
                    self.entered.pop().__exit__(None, None, None)
                except Exception:
                    continue
        while self.pushed:
            self.pushed -= 1
            try:
                self.end()
            except Exception:
                continue
