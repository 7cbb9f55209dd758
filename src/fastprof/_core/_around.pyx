"""Functions with calls of others around them, which leave no frame in tracebacks.

`fastprof run` counts steps with them.
"""

from cpython.object cimport PyObject, PyObject_GenericSetAttr
from cpython.ref cimport Py_XDECREF
from fastprof._core._countdown cimport Countdown
from fastprof._core._hooks cimport Wrapped
from fastprof._core._python cimport (
    call, Py_TPFLAGS_METHOD_DESCRIPTOR, PyErr_Fetch, PyErr_Restore, PyErr_SetObject,
    PyType_Modified, PyTypeObject,
)
from contextlib import nullcontext
from types import FunctionType, MethodType
from weakref import ref

cdef class _ReportedCall

cdef str _COMPILED = "_compiled_call_impl"  # what torch.nn.Module calls, if it is not None


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


cdef int _call_aside(function, set_eval_frame, first) except -1:
    """Call `before` or `after`, which torch.compile must not compile as part of the program."""
    if function is None:
        return 0
    cdef object callback = set_eval_frame(None)
    try:
        function(first)
    finally:
        set_eval_frame(callback)
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
    return _ended(around.after, around.set_eval_frame, countdown, <object> first, result)


cdef PyObject *_with_both(Around around, PyObject *args, PyObject *kwargs, first) noexcept:
    try:
        _call_aside(around.before, around.set_eval_frame, first)
    except BaseException as error:
        PyErr_SetObject(type(error), error)
        return NULL
    cdef PyObject *result = call(<PyObject *> around.__wrapped__, args, kwargs)
    return _ended(around.after, around.set_eval_frame, None, first, result)


cdef PyObject *_ended(after, set_eval_frame, Countdown countdown, first,
                      PyObject *result) noexcept:
    """Count a call that has ended, or call `after`; return its result with its exception."""
    cdef PyObject *kind
    cdef PyObject *value
    cdef PyObject *traceback
    PyErr_Fetch(&kind, &value, &traceback)
    try:
        if countdown is None or not countdown.counts(<PyObject *> first):
            _call_aside(after, set_eval_frame, first)
    except BaseException as error:
        Py_XDECREF(result)
        Py_XDECREF(kind)
        Py_XDECREF(value)
        Py_XDECREF(traceback)
        PyErr_SetObject(type(error), error)
        return NULL
    PyErr_Restore(kind, value, traceback)
    return result


cdef class ReportedCalls:
    """Reports the calls of a few modules, without the hooks that make torch's calls slow.

    Stands for the attribute `_compiled_call_impl` of the modules' classes. torch calls it in place
    of `_call_impl` if it is not None; for other modules it is what it was. Modules have nothing of
    it.

    Parameters
    ----------
    traced : function
        The function that torch.compile traces instead.
    report : callable
        (module) -> None, called after each call, also when it raises.
    countdown : Countdown
        Counts calls instead of `report`, while it can.
    set_eval_frame : callable
        torch's function of this name: turns off torch.compile within `report`.
    """

    cdef object report
    cdef Countdown countdown
    cdef object set_eval_frame
    cdef dict _modules  # id: weak reference
    cdef _ReportedCall _call
    cdef object __weakref__

    def __init__(self, traced, report, Countdown countdown not None, set_eval_frame):
        self.report, self.countdown, self.set_eval_frame = report, countdown, set_eval_frame
        self._modules = {}
        self._call = _ReportedCall(self, traced)

    def add(self, module):
        """Report the calls of a module from now on."""
        key, modules = id(module), self._modules
        modules[key] = ref(module, lambda _: modules.pop(key, None))

    def clear(self):
        """Report no calls."""
        self._modules.clear()

    def __get__(self, instance, owner):
        if instance is None:
            return None
        if self._modules and not self.countdown.is_off and id(instance) in self._modules:
            return MethodType(self._call, instance)
        return instance.__dict__.get(_COMPILED)

    def __set__(self, instance, value):
        instance.__dict__[_COMPILED] = value

    def __reduce__(self):
        return getattr, (nullcontext(), "enter_result")  # None, as in torch.nn.Module


cdef class _ReportedCall:
    """Calls a module and reports it. torch.compile takes it for a function, and traces another."""

    cdef ReportedCalls calls
    cdef dict __dict__
    cdef object __weakref__

    def __init__(self, ReportedCalls calls, traced):
        self.calls = calls
        PyObject_GenericSetAttr(self, "_torchdynamo_inline", traced)

    @property
    def __class__(self):
        return FunctionType


cdef PyObject *_call_reported(PyObject *self, PyObject *args, PyObject *kwargs) noexcept:
    """Call a module, the first argument, as torch does."""
    cdef ReportedCalls calls = (<_ReportedCall> self).calls
    cdef object module = (<tuple> args)[0]
    cdef object function, rest
    try:
        function = module.__dict__.get(_COMPILED)
        if function is None:
            function = module._call_impl
        rest = (<tuple> args)[1:]
    except BaseException as error:
        PyErr_SetObject(type(error), error)
        return NULL
    cdef PyObject *result = call(<PyObject *> function, <PyObject *> rest, kwargs)
    return _ended(calls.report, calls.set_eval_frame, calls.countdown, module, result)


(<PyTypeObject *> _ReportedCall).tp_call = _call_reported
PyType_Modified(<PyTypeObject *> _ReportedCall)
(<PyTypeObject *> Around).tp_call = _call_between
(<PyTypeObject *> Around).tp_flags |= Py_TPFLAGS_METHOD_DESCRIPTOR
PyType_Modified(<PyTypeObject *> Around)
