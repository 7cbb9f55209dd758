"""Describe the Python stack around a call as a marker, computed once per call site."""

from cpython.bytes cimport PyBytes_FromStringAndSize
from cpython.dict cimport PyDict_GetItem
from cpython.object cimport PyObject
from fastprof._core._ranges cimport Marker

cdef extern from *:
    """
    #include <frameobject.h>

    /* The current instruction of a frame; together with the code, it determines the line. */
    static int fastprof_instruction(PyFrameObject *frame) {
    #if PY_VERSION_HEX >= 0x030B0000
        return PyFrame_GetLasti(frame);
    #else
        return frame->f_lasti;
    #endif
    }
    """
    ctypedef struct PyFrameObject:
        pass
    int fastprof_instruction(PyFrameObject *frame)
    PyFrameObject *PyEval_GetFrame()
    PyFrameObject *PyFrame_GetBack(PyFrameObject *frame)
    # Declared with PyObject: Cython does not know PyCodeObject.
    PyObject *PyFrame_GetCode "(PyObject *) PyFrame_GetCode"(PyFrameObject *frame)

cdef extern from "Python.h":
    void Py_XDECREF(PyObject *object)
    void Py_INCREF(PyObject *object)

# Limits: innermost frames that identify a stack; cached stacks; cached variants of function names
# per stack. Markers beyond these are created but not cached.
cdef enum:
    DEEPEST = 256
    MOST_STACKS = 16384
    MOST_VARIANTS = 1024


cdef struct Place:
    PyObject *code
    Py_ssize_t instruction


cdef object _stack_text = None
cdef object _functions_text = None
cdef dict _stacks = {}


def describe_stacks_with(stack_text, functions_text):
    """Set the callbacks that describe stacks.

    Parameters
    ----------
    stack_text : callable
        frame -> text of the trace marker: the source lines.
    functions_text : callable or None
        (text of the trace marker, frame) -> the text with function names, which depend on more than
        the lines. None omits the names.
    """
    global _stack_text, _functions_text
    _stack_text, _functions_text = stack_text, functions_text
    _stacks.clear()


cdef Marker call_site():
    """The marker of the current Python stack."""
    cdef Place places[DEEPEST]
    cdef PyFrameObject *frame = PyEval_GetFrame()
    cdef PyFrameObject *outer
    cdef PyObject *code
    cdef int depth = 0
    if frame is NULL:
        return None
    innermost = <object> frame
    Py_INCREF(<PyObject *> frame)
    while frame is not NULL and depth < DEEPEST:
        code = PyFrame_GetCode(frame)
        places[depth].code = code
        places[depth].instruction = fastprof_instruction(frame)
        Py_XDECREF(code)  # the frame keeps it alive, and later the cached marker
        depth += 1
        outer = PyFrame_GetBack(frame)
        Py_XDECREF(<PyObject *> frame)
        frame = outer
    Py_XDECREF(<PyObject *> frame)
    cdef bytes key = PyBytes_FromStringAndSize(<char *> places, depth * sizeof(Place))
    cdef PyObject *known = PyDict_GetItem(_stacks, key)
    cdef Marker marker
    if known is not NULL:
        marker = <Marker> known
    else:
        marker = Marker(_stack_text(innermost))
        if len(_stacks) < MOST_STACKS:
            marker.kept = [<object> places[i].code for i in range(depth)]
            _stacks[key] = marker
        else:
            marker.passing = True
    return marker if _functions_text is None else _with_functions(marker, innermost)


cdef Marker _with_functions(Marker lines, frame):
    """The marker of a stack with function names, cached by text."""
    text = _functions_text(lines.text, frame)
    if lines.variants is None:
        lines.variants = {}
    marker = lines.variants.get(text)
    if marker is None:
        passing = lines.passing or len(lines.variants) >= MOST_VARIANTS
        marker = Marker(text, passing)
        if not passing:
            lines.variants[text] = marker
    return marker
