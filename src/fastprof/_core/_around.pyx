"""Functions with calls of others around them, which leave no frame in tracebacks.

`fastprof run` counts steps with them.
"""

from cpython.object cimport PyObject
from cpython.ref cimport Py_XDECREF
from fastprof._core._countdown cimport Countdown
from fastprof._core._hooks cimport Wrapped
from fastprof._core._python cimport (
    call, Py_TPFLAGS_METHOD_DESCRIPTOR, PyErr_Fetch, PyErr_Restore, PyErr_SetObject,
    PyType_Modified, PyTypeObject,
)
from types import MethodType


cdef class Around(Wrapped):
    """A function with calls of others before and after it; see `Wrapped` and `Binding`.

    Its calls add no frame to tracebacks.

    Parameters
    ----------
    function : callable
        The function to call.
    path : str
        Import path of the function.
    before, after : callable or None
        (first argument) -> None; `after` also runs when the function raises. Exceptions that they
        raise replace the result.
    set_eval_frame : callable
        torch's function of this name: turns off torch.compile within `before` and `after`.
    countdown : Countdown, optional
        Counts calls instead of `after`, while it can. Calls within a call of a function with a
        countdown, in the same thread, are part of it: nothing is called for them.
    """

    cdef object before
    cdef object after
    cdef object set_eval_frame
    cdef Countdown countdown

    def __init__(self, function, str path not None, before, after, set_eval_frame,
                 Countdown countdown=None):
        Wrapped.__init__(self, function, "", "", path)
        self.before, self.after, self.set_eval_frame = before, after, set_eval_frame
        self.countdown = countdown

    def __get__(self, instance, owner):
        return self if instance is None else MethodType(self, instance)

    @property
    def __doc__(self):
        return self.__wrapped__.__doc__


cdef extern from *:
    """
    static _Thread_local int fp_is_inside;  /* a call of a function with a countdown */
    """
    int fp_is_inside


cdef int _call_aside(Around around, function, first) except -1:
    """Call `before` or `after`, which torch.compile must not compile as part of the program."""
    if function is None:
        return 0
    cdef object callback = around.set_eval_frame(None)
    try:
        function(first)
    finally:
        around.set_eval_frame(callback)
    return 0


cdef PyObject *_call_between(PyObject *self, PyObject *args, PyObject *kwargs) noexcept:
    """Call the function of an `Around`, with what is around it."""
    cdef Around around = <Around> self
    cdef Countdown countdown = around.countdown
    cdef PyObject *first = <PyObject *> None
    cdef PyObject *result
    if len(<tuple> args):
        first = <PyObject *> (<tuple> args)[0]
    if countdown is None:
        return _with_both(around, args, kwargs, <object> first)
    if countdown.is_off or fp_is_inside:
        return call(<PyObject *> around.__wrapped__, args, kwargs)
    global fp_is_inside
    fp_is_inside = 1
    result = call(<PyObject *> around.__wrapped__, args, kwargs)
    fp_is_inside = 0
    return _ended(around, countdown, <object> first, result)


cdef PyObject *_with_both(Around around, PyObject *args, PyObject *kwargs, first) noexcept:
    try:
        _call_aside(around, around.before, first)
    except BaseException as error:
        PyErr_SetObject(type(error), error)
        return NULL
    return _ended(around, None, first, call(<PyObject *> around.__wrapped__, args, kwargs))


cdef PyObject *_ended(Around around, Countdown countdown, first, PyObject *result) noexcept:
    """Count a call that has ended, or call `after`; return its result with its exception."""
    cdef PyObject *kind
    cdef PyObject *value
    cdef PyObject *traceback
    PyErr_Fetch(&kind, &value, &traceback)
    try:
        if countdown is None or not countdown.counts(<PyObject *> first):
            _call_aside(around, around.after, first)
    except BaseException as error:
        Py_XDECREF(result)
        Py_XDECREF(kind)
        Py_XDECREF(value)
        Py_XDECREF(traceback)
        PyErr_SetObject(type(error), error)
        return NULL
    PyErr_Restore(kind, value, traceback)
    return result


(<PyTypeObject *> Around).tp_call = _call_between
(<PyTypeObject *> Around).tp_flags |= Py_TPFLAGS_METHOD_DESCRIPTOR
PyType_Modified(<PyTypeObject *> Around)
