"""Find `self` of the method that a frame runs.

f_locals has it, too, but up to Python 3.12 it copies all local variables into a dict that lives as
long as the frame, which would keep tensors alive that the function has already released.
"""

from cpython.object cimport PyObject

cdef extern from *:
    """
    #include <frameobject.h>

    #if PY_VERSION_HEX >= 0x030C0000
    static PyObject *fastprof_first_local(PyObject *object, const char *name) {
        PyObject *value = PyFrame_GetVarString((PyFrameObject *)object, name);
        PyErr_Clear();
        return value;
    }
    #elif PY_VERSION_HEX >= 0x030B0000
    #ifndef Py_BUILD_CORE
    #define Py_BUILD_CORE 1
    #endif
    #include "internal/pycore_frame.h"
    /* The first local variable; it is in a cell if inner functions use it. */
    static PyObject *fastprof_first_local(PyObject *object, const char *name) {
        PyObject *value = ((PyFrameObject *)object)->f_frame->localsplus[0];
        (void)name;
        if (value != NULL && PyCell_Check(value)) {
            value = PyCell_GET(value);
        }
        Py_XINCREF(value);
        return value;
    }
    #else
    /* As above, but cells follow the variables, and co_cell2arg maps cells to arguments. */
    static PyObject *fastprof_first_local(PyObject *object, const char *name) {
        PyFrameObject *frame = (PyFrameObject *)object;
        PyCodeObject *code = frame->f_code;
        PyObject *value = frame->f_localsplus[0];
        Py_ssize_t n_cells = code->co_cell2arg == NULL ? 0 : PyTuple_GET_SIZE(code->co_cellvars);
        (void)name;
        for (Py_ssize_t i = 0; i < n_cells && value == NULL; i++) {
            if (code->co_cell2arg[i] == 0) {
                value = PyCell_GET(frame->f_localsplus[code->co_nlocals + i]);
            }
        }
        Py_XINCREF(value);
        return value;
    }
    #endif
    """
    PyObject *fastprof_first_local(PyObject *frame, const char *name) noexcept
    void Py_DECREF(PyObject *object) noexcept


def self_of(frame):
    """The `self` of a method's frame; None for other functions, and if `self` was deleted."""
    code = frame.f_code
    if not code.co_argcount or code.co_varnames[0] != "self":
        return None
    cdef PyObject *found = fastprof_first_local(<PyObject *> frame, b"self")
    if found is NULL:
        return None
    value = <object> found
    Py_DECREF(found)
    return value
