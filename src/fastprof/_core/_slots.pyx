"""Replace slots and attributes of C types that Python does not allow to change.

Indexing of tensors is annotated by replacing the functions in mp_subscript and mp_ass_subscript.
Setting `Tensor.__getitem__` instead would also fill sq_item, in Tensor and in its subclasses, and
Python never clears that slot again. C code (PySequence_Check) then treats tensors as sequences and
asks for their length.
"""

from cpython.object cimport PyObject
from fastprof._core._hooks cimport Wrapped, begin, end, somebody_hears
from fastprof._core._ranges cimport Opened
from types import WrapperDescriptorType

cdef extern from "Python.h":
    ctypedef PyObject *(*binaryfunc)(PyObject *, PyObject *) noexcept
    ctypedef int (*objobjargproc)(PyObject *, PyObject *, PyObject *) noexcept
    ctypedef struct PyMappingMethods:
        binaryfunc mp_subscript
        objobjargproc mp_ass_subscript
    ctypedef struct PyTypeObject:
        PyMappingMethods *tp_as_mapping
        PyObject *tp_dict
    void PyType_Modified(PyTypeObject *type)
    ctypedef struct PyWrapperDescrObject:
        void *d_wrapped
    void PyErr_SetObject(object kind, object value) noexcept

cdef tuple _NAMES = ("__getitem__", "__setitem__", "__delitem__")

# The original functions, and the wrappers that describe their calls; set by `annotate_indexing`.
cdef binaryfunc _get = NULL
cdef objobjargproc _set = NULL
cdef Wrapped _getting = None
cdef Wrapped _setting = None


cdef PyObject *_get_item(PyObject *self, PyObject *index) noexcept:
    cdef Opened opened
    cdef PyObject *result
    if not somebody_hears():
        return _get(self, index)
    try:
        opened = begin(_getting, (<object> self, <object> index), {})
    except BaseException as error:  # Ctrl-C during the description
        PyErr_SetObject(type(error), error)
        return NULL
    result = _get(self, index)
    end(opened)
    return result


cdef int _set_item(PyObject *self, PyObject *index, PyObject *value) noexcept:
    cdef Opened opened
    cdef int result
    if value is NULL or not somebody_hears():  # NULL: `del x[i]`
        return _set(self, index, value)
    try:
        opened = begin(_setting, (<object> self, <object> index, <object> value), {})
    except BaseException as error:
        PyErr_SetObject(type(error), error)
        return -1
    result = _set(self, index, value)
    end(opened)
    return result


def annotate_indexing(base, Wrapped getting not None, Wrapped setting not None):
    """Open ranges around `x[i]` and `x[i] = y` of a type and its present and future subclasses.

    Parameters
    ----------
    base : type
        The C type that defines the slots: torch._C.TensorBase.
    getting, setting : Wrapped
        Wrappers of `__getitem__` and `__setitem__` that describe the calls; never called.

    Returns
    -------
    bool
        False, without any change, if the type lacks these slots or its attributes call other
        functions.
    """
    global _get, _set, _getting, _setting
    cdef PyMappingMethods *slots = (<PyTypeObject *> base).tp_as_mapping
    if slots is NULL or any([type(vars(base).get(name)) is not WrapperDescriptorType
                             for name in _NAMES]):
        return False
    if slots.mp_subscript is not _get_item:
        if (_called(base, "__getitem__")[0] is not <void *> slots.mp_subscript
                or _called(base, "__setitem__")[0] is not <void *> slots.mp_ass_subscript
                or _called(base, "__delitem__")[0] is not <void *> slots.mp_ass_subscript):
            return False
        _get, _set = slots.mp_subscript, slots.mp_ass_subscript
    _getting, _setting = getting, setting
    _exchange(base, _get, _get_item, _set, _set_item)
    return True


def restore_indexing(base):
    """Undo `annotate_indexing`: restore all slots."""
    if _get is not NULL:
        _exchange(base, _get_item, _get, _set_item, _set)


cdef void **_called(base, str name):
    """The address of the function pointer in an attribute of a type."""
    held = vars(base)[name]  # borrowed: the type keeps it alive
    return &(<PyWrapperDescrObject *> <PyObject *> held).d_wrapped


cdef int _exchange(base, binaryfunc get_old, binaryfunc get_new, objobjargproc set_old,
                   objobjargproc set_new) except -1:
    """Replace the functions of the attributes first: a subclass created meanwhile inherits them."""
    cdef PyMappingMethods *slots
    _called(base, "__getitem__")[0] = <void *> get_new
    _called(base, "__setitem__")[0] = _called(base, "__delitem__")[0] = <void *> set_new
    cdef list waiting = [base]
    while waiting:
        kind = waiting.pop()
        slots = (<PyTypeObject *> kind).tp_as_mapping
        if slots is not NULL and slots.mp_subscript is get_old:
            slots.mp_subscript = get_new
        if slots is not NULL and slots.mp_ass_subscript is set_old:
            slots.mp_ass_subscript = set_new
        waiting += type.__subclasses__(kind)
    return 0


def set_attribute(kind not None, str name not None, value):
    """Set an attribute of an immutable type, such as pickle.Pickler."""
    (<dict> (<PyTypeObject *> kind).tp_dict)[name] = value
    PyType_Modified(<PyTypeObject *> kind)


def delete_attribute(kind not None, str name not None):
    """Delete an attribute that `set_attribute` set."""
    del (<dict> (<PyTypeObject *> kind).tp_dict)[name]
    PyType_Modified(<PyTypeObject *> kind)
