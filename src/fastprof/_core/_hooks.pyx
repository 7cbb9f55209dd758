"""Wrappers of torch's functions that open ranges around the calls.

The text of a range is computed once per call site and once per signature; later calls look both up.
Without a listener, a call is forwarded after one test of a flag. This module does not import torch;
`annotate` connects the two.
"""

from cpython.dict cimport PyDict_GetItem
from cpython.object cimport (
    PyObject, PyObject_CallObject, PyObject_GenericGetAttr, PyObject_GenericSetAttr,
)
from fastprof._core._layers cimport follow, uncover
from fastprof._core._python cimport (
    call, Py_TPFLAGS_METHOD_DESCRIPTOR, PyErr_Fetch, PyErr_Restore, PyErr_SetObject,
    PyType_Modified, PyTypeObject,
)
from fastprof._core._ranges cimport Marker, Opened, anybody_listens, call_begins, call_ends
from fastprof._core._stacks cimport call_site
from copy import deepcopy
from pkgutil import resolve_name
from types import MethodType


# Further signatures of a function (a changing learning rate) are described but not cached.
cdef enum:
    MOST_SIGNATURES = 1024
    DEEPEST_LIST = 16


# Callbacks that describe calls; set by `describe_with`.
cdef bint _annotating = False
cdef object _argument_text = None
cdef object _compiling = None
cdef object _overloaded = None
cdef object _hand_over = None
cdef object _in_mode = None
cdef object _aside = None
cdef object _tensor = None
cdef object _parameter = None
cdef tuple _named = ()


class _NoKey(Exception):
    """An argument whose text must be computed for each call."""


def describe_with(argument_text, compiling, overloaded, hand_over, in_mode, aside, tensor,
                  parameter, tuple named):
    """Set the callbacks that describe calls.

    Parameters
    ----------
    argument_text : callable
        (mod, op, args, kwargs) -> text of the argument marker, or None for a call without ranges.
    compiling : callable
        () -> the object that a compiler is compiling in this thread, or None. Calls get no ranges
        while it is not None.
    overloaded : callable
        torch's has_torch_function_variadic.
    hand_over : callable
        (wrapped, args, kwargs) -> result of a call with an overloaded argument.
    in_mode : callable
        () -> bool, whether a `__torch_function__` mode is active.
    aside : callable
        () -> a context in which `__torch_function__` modes are disabled.
    tensor, parameter : type
        torch.Tensor and torch.nn.Parameter.
    named : tuple of type
        Types whose values are identified by name: torch.dtype, torch.device.
    """
    global _argument_text, _compiling, _overloaded, _hand_over, _in_mode, _aside
    global _tensor, _parameter, _named
    _argument_text, _compiling = argument_text, compiling
    _overloaded, _hand_over, _in_mode, _aside = overloaded, hand_over, in_mode, aside
    _tensor, _parameter, _named = tensor, parameter, named


def annotate(bint on):
    """Switch on or off the ranges of all wrapped functions; return whether they were on."""
    global _annotating
    before, _annotating = _annotating, on
    return bool(before)


cdef object _key(value, int depth=0):
    """A hashable key that determines the text of an argument: shape and type, or the value."""
    kind = type(value)
    if kind is _tensor or kind is _parameter:
        return value.shape, value.dtype
    if kind is float:
        # nan != nan and 0.0 == -0.0, but their texts differ correctly.
        return kind, value if value and value == value else repr(value)
    if kind is int or kind is bool or kind is str or value is None:
        return kind, value
    if kind is tuple or kind is list:
        if depth == DEEPEST_LIST:  # it may contain itself
            raise _NoKey
        return kind, tuple([_key(item, depth + 1) for item in value])
    if kind is slice:
        return kind, _key(value.start), _key(value.stop), _key(value.step)
    if kind in _named:
        return value
    if isinstance(value, (_tensor, tuple, list)) or hasattr(kind, "__array_interface__"):
        raise _NoKey
    return kind, None


cdef bint _starts_with_number(sequence) except -1:
    """Whether a list holds numbers, not tensors: such lists may be long."""
    return len(sequence) > 0 and type(sequence[0]) in (int, float, bool)


cdef bint _is_overloaded(PyObject *args, PyObject *kwargs) except -1:
    """Whether an argument or an item of one has `__torch_function__`, or a mode is active."""
    cdef object found = PyObject_CallObject(_overloaded, <tuple> args)
    if found is True:
        return True
    for value in <tuple> args:
        if (type(value) is list or type(value) is tuple) and not _starts_with_number(value):
            if _overloaded(*value):
                return True
    if kwargs is NULL or not <dict> kwargs:
        return False
    cdef tuple values = tuple((<dict> kwargs).values())
    return _is_overloaded(<PyObject *> values, NULL)


cdef class Wrapped:
    """A function with ranges around its calls that is otherwise indistinguishable from it.

    It compares equal to the function and has the same hash, because tables of
    `__torch_function__`, FX and lazy modules use functions as keys. It has the function's
    attributes.

    Parameters
    ----------
    function : callable
        The function to call.
    mod, op : str
        Names in the argument marker.
    path : str
        Import path of the function, `torch.nn.functional:relu`, for pickling.
    describe : callable, optional
        args -> the `Marker` of the called module, or None.
    overloads : bool
        Whether the function passes itself to `__torch_function__` of its arguments. If so, the
        wrapper passes itself instead, because it is now the module's attribute.
    unless : callable, optional
        (args, kwargs) -> True for calls without ranges.
    reads : bool
        Whether the function only reads a tensor's values; calls on CPU tensors then get no ranges.
    named : callable, optional
        For methods: object -> (mod, op) in the marker, which then omits the object itself; None for
        a call without ranges.
    """

    def __init__(self, function, str mod not None, str op not None, str path="", describe=None,
                 bint overloads=False, unless=None, bint reads=False, named=None):
        self.__wrapped__ = function
        self._path = path
        self._unless = unless
        self.mod, self.op = mod, op
        self._describe = describe
        self._overloads = overloads
        self._reads = reads
        self._named = named
        self._known = {}
        # torch.compile traces this attribute instead of the wrapper.
        PyObject_GenericSetAttr(self, "_torchdynamo_inline", function)

    cdef int _open(self, Opened opened, tuple args, dict kwargs) except -1:
        """Open the ranges of a call; a failure to describe the call is ignored."""
        try:
            if _compiling() is not None:
                return 0
            if self._unless is not None and self._unless(args, kwargs):
                return 0
            if not _in_mode():
                self._describe_and_open(opened, args, kwargs)
            else:
                with _aside():
                    self._describe_and_open(opened, args, kwargs)
        except Exception:
            return 0
        return 0

    cdef int _describe_and_open(self, Opened opened, tuple args, dict kwargs) except -1:
        if self._reads and args and type(args[0]) is _tensor and args[0].is_cpu:
            return 0
        cdef Marker arguments = self._arguments(args, kwargs)
        if arguments is None:
            return 0
        site = call_site()
        if site is not None:
            opened.add(site)
        if self._describe is not None:
            if type(self.__wrapped__) is MethodType:
                args = (self.__wrapped__.__self__, *args)
            module = self._describe(args)
            if module is not None:
                opened.add(module)
        opened.add(arguments)
        return 0

    cdef Marker _arguments(self, tuple args, dict kwargs):
        """The argument marker, or None for a call without ranges."""
        cdef list parts
        cdef dict all_known = self._known
        mod, op = self.mod, self.op
        if self._named is not None:
            name = self._named(args[0])
            if name is None:
                return None
            mod, op = name
            args = args[1:]
            all_known = self._known.setdefault(name, {})
        try:
            parts = [_key(value) for value in args]
            for name in kwargs:
                parts.append((name, _key(kwargs[name])))
        except _NoKey:
            text = _argument_text(mod, op, args, kwargs)
            return None if text is None else Marker(text, passing=True)
        key = tuple(parts)
        cdef PyObject *known = PyDict_GetItem(all_known, key)
        if known is not NULL:
            return <Marker> known
        cdef Marker marker = Marker(_argument_text(mod, op, args, kwargs))
        if len(all_known) < MOST_SIGNATURES:
            all_known[key] = marker
        else:
            marker.passing = True
        return marker

    def __eq__(self, other):
        if isinstance(other, Wrapped):
            other = (<Wrapped> other).__wrapped__
        return self.__wrapped__ == other

    def __hash__(self):
        return hash(self.__wrapped__)

    def __getattribute__(self, str name not None):
        # functools.wraps copies __dict__; a further wrapper must not inherit `_torchdynamo_inline`.
        if name == "__dict__":
            return self.__wrapped__.__dict__
        return PyObject_GenericGetAttr(self, name)

    def __getattr__(self, name):
        return getattr(self.__wrapped__, name)

    def __setattr__(self, name, value):
        setattr(self.__wrapped__, name, value)

    def __delattr__(self, name):
        delattr(self.__wrapped__, name)

    @property
    def __class__(self):
        return type(self.__wrapped__)

    @property
    def __doc__(self):
        return self.__wrapped__.__doc__

    def __repr__(self):
        return repr(self.__wrapped__)

    def __reduce__(self):
        if type(self.__wrapped__) is MethodType:
            return self.__wrapped__.__reduce__()
        return resolve_name, (self._path,)

    def __copy__(self):
        return self

    def __deepcopy__(self, memo):
        if type(self.__wrapped__) is not MethodType:
            return self
        # A method wrapped in its object: the copied object needs its own method.
        return Wrapped(deepcopy(self.__wrapped__, memo), self.mod, self.op, self._path,
                       self._describe)


cdef class Binding(Wrapped):
    """A wrapped function that binds to instances, for Python functions and C method descriptors."""

    @property
    def __doc__(self):
        return self.__wrapped__.__doc__

    def __get__(self, instance, owner):
        return self if instance is None else MethodType(self, instance)


cdef PyObject *_call(PyObject *self, PyObject *args, PyObject *kwargs) noexcept:
    """Call the wrapped function, with ranges if a tool listens."""
    cdef Wrapped wrapped = <Wrapped> self
    cdef tuple handed
    if wrapped._overloads and _is_overloaded(args, kwargs):
        handed = wrapped, <tuple> args, _dict(kwargs)
        return call(<PyObject *> _hand_over, <PyObject *> handed, NULL)
    if not somebody_hears():
        return call(<PyObject *> wrapped.__wrapped__, args, kwargs)
    return _announced(wrapped, args, kwargs)


cdef PyObject *_announced(Wrapped wrapped, PyObject *args, PyObject *kwargs) noexcept:
    cdef Opened opened
    cdef PyObject *result
    try:
        opened = begin(wrapped, <tuple> args, _dict(kwargs))
    except BaseException as error:  # Ctrl-C during the description
        PyErr_SetObject(type(error), error)
        return NULL
    result = call(<PyObject *> wrapped.__wrapped__, args, kwargs)
    end(opened)
    return result


cdef bint somebody_hears() noexcept:
    """Whether annotation is on and a tool listens."""
    return _annotating and anybody_listens()


cdef Opened begin(Wrapped wrapped, tuple args, dict kwargs):
    """Open the ranges of a call."""
    cdef Opened opened = Opened()
    try:
        follow()
        wrapped._open(opened, args, kwargs)
    except BaseException:
        opened.close()
        raise
    call_begins()
    return opened


cdef void end(Opened opened) noexcept:
    """Close the ranges of a call; an exception raised by the call stays set."""
    cdef PyObject *kind
    cdef PyObject *value
    cdef PyObject *traceback
    PyErr_Fetch(&kind, &value, &traceback)
    try:
        uncover()
    except Exception:  # errors of tools must not reach the program
        pass
    call_ends()
    opened.close()
    PyErr_Restore(kind, value, traceback)


cdef inline dict _dict(PyObject *kwargs):
    return {} if kwargs is NULL else <dict> kwargs


(<PyTypeObject *> Wrapped).tp_call = _call
(<PyTypeObject *> Binding).tp_call = _call
# The interpreter may call Binding(instance, ..) directly, without creating a bound method.
(<PyTypeObject *> Binding).tp_flags |= Py_TPFLAGS_METHOD_DESCRIPTOR
PyType_Modified(<PyTypeObject *> Wrapped)
