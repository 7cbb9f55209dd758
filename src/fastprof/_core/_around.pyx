"""Functions with calls of others around them, which leave no frame in tracebacks.

`fastprof run` counts steps with them.
"""

from cpython.object cimport PyObject
from cpython.ref cimport Py_XDECREF
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
    before, after : callable
        (first argument) -> None; `after` also runs when the function raises. Exceptions that they
        raise replace the result.
    set_eval_frame : callable
        torch's function of this name: turns off torch.compile within `before` and `after`.
    """

    cdef object before
    cdef object after
    cdef object set_eval_frame

    def __init__(self, function, str path not None, before, after, set_eval_frame):
        Wrapped.__init__(self, function, "", "", path)
        self.before, self.after, self.set_eval_frame = before, after, set_eval_frame

    def __get__(self, instance, owner):
        return self if instance is None else MethodType(self, instance)

    @property
    def __doc__(self):
        return self.__wrapped__.__doc__


cdef int _call_aside(Around around, function, first) except -1:
    """Call `before` or `after`, which torch.compile must not compile as part of the program."""
    cdef object callback = around.set_eval_frame(None)
    try:
        function(first)
    finally:
        around.set_eval_frame(callback)
    return 0


cdef PyObject *_call_between(PyObject *self, PyObject *args, PyObject *kwargs) noexcept:
    """Call the function of an `Around`, with what is around it."""
    cdef Around around = <Around> self
    cdef object first = (<tuple> args)[0] if <tuple> args else None
    cdef PyObject *kind
    cdef PyObject *value
    cdef PyObject *traceback
    cdef PyObject *result
    try:
        _call_aside(around, around.before, first)
    except BaseException as error:
        PyErr_SetObject(type(error), error)
        return NULL
    result = call(<PyObject *> around.__wrapped__, args, kwargs)
    PyErr_Fetch(&kind, &value, &traceback)
    try:
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
