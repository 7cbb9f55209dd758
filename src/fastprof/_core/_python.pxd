"""Calls of Python's C API without a traceback frame, for `_hooks` and `_around`."""

from cpython.object cimport PyObject

cdef extern from "Python.h":
    ctypedef PyObject *(*ternaryfunc)(PyObject *self, PyObject *args, PyObject *kwargs) noexcept
    ctypedef struct PyTypeObject:
        unsigned long tp_flags
        ternaryfunc tp_call
    unsigned long Py_TPFLAGS_METHOD_DESCRIPTOR
    void PyType_Modified(PyTypeObject *type)
    # noexcept, so NULL is returned unchanged and exceptions pass without a frame of this module.
    PyObject *call "PyObject_Call"(PyObject *function, PyObject *args, PyObject *kwargs) noexcept
    void PyErr_Fetch(PyObject **kind, PyObject **value, PyObject **traceback) noexcept
    void PyErr_Restore(PyObject *kind, PyObject *value, PyObject *traceback) noexcept
    void PyErr_SetObject(object kind, object value) noexcept
