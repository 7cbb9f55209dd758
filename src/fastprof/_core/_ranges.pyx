"""Ranges that are opened where anybody listens: an NVTX tool that is attached, torch.profiler.

Python objects only: no torch here, `annotate` connects the parts.
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
    """How many calls have their ranges open in this thread."""
    return fastprof_open_calls


cdef void call_begins() noexcept:
    global fastprof_open_calls
    fastprof_open_calls += 1


cdef void call_ends() noexcept:
    global fastprof_open_calls
    fastprof_open_calls -= 1


cdef class Marker:
    """A range to open: its text, and its event of the nvtx package once it is needed.

    A `passing` one is opened once: its text need not be registered with the tool. `kept` holds the
    objects whose addresses are the marker's key, so that no other takes them.
    """

    def __init__(self, str text not None, bint passing=False):
        self.text, self.passing = text, passing


# Where ranges go, and what tells whether anybody listens; set by `connect`.
cdef object _domain = None
cdef object _push = None
cdef object _pop = None
cdef dict _profiler = None
cdef object _records = None
cdef object _recorder = None
cdef object _recordable = None
cdef object _push_plain = None

cdef str _FLAG = "_is_profiler_enabled"


def connect(domain, dict profiler, records, recorder, recordable, push_plain=None):
    """Say where ranges go.

    Parameters
    ----------
    domain : nvtx.Domain or None
        None where no tool is attached.
    profiler : dict
        A namespace whose `_is_profiler_enabled` is true while torch.profiler may be recording.
    records : callable
        () -> bool, whether it does record now; asked only if the flag is up.
    recorder : callable
        text -> a range with `__enter__` and `__exit__` that the profiler records.
    recordable : callable
        text -> the text as the profiler can record it.
    push_plain : callable, optional
        text -> None, pushes a range whose text is not registered; for texts that are not kept.
    """
    global _domain, _push, _pop, _profiler, _records, _recorder, _recordable, _push_plain
    _domain = domain
    _push = None if domain is None else domain.push_range
    _pop = None if domain is None else domain.pop_range
    _profiler, _records, _recorder, _recordable = profiler, records, recorder, recordable
    _push_plain = push_plain


cdef inline bint _flag_is_up() noexcept:
    if _profiler is None:
        return False
    cdef PyObject *flag = PyDict_GetItem(_profiler, _FLAG)
    return flag is not NULL and <object> flag is True


cdef bint anybody_listens() noexcept:
    """Whether a tool may take ranges: one is attached, or torch.profiler's flag is up."""
    return _push is not None or _flag_is_up()


cdef class Opened:
    """Ranges that are open; `close` closes those that opened, innermost first."""

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
        """Close the ranges. A tool that fails is no matter of the program's."""
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
