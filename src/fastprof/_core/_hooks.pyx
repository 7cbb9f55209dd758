"""A function of torch that opens ranges around its calls.

What a range says is worked out once for a call site and once for a signature; a further call looks
both up and pushes them. While nobody listens a call is passed on after one look at a flag. Python
objects only: no torch here, `annotate` connects the parts.
"""

from cpython.dict cimport PyDict_GetItem
from cpython.object cimport (
    PyObject, PyObject_CallObject, PyObject_GenericGetAttr, PyObject_GenericSetAttr,
)
from fastprof._core._layers cimport follow, uncover
from fastprof._core._ranges cimport Marker, Opened, anybody_listens, call_begins, call_ends
from fastprof._core._stacks cimport call_site
from copy import deepcopy
from pkgutil import resolve_name
from types import MethodType

cdef extern from "Python.h":
    ctypedef PyObject *(*ternaryfunc)(PyObject *self, PyObject *args, PyObject *kwargs) noexcept
    ctypedef struct PyTypeObject:
        unsigned long tp_flags
        ternaryfunc tp_call
    unsigned long Py_TPFLAGS_METHOD_DESCRIPTOR
    void PyType_Modified(PyTypeObject *type)
    # NULL is handed on as it is: what a function raises passes without a frame of ours.
    PyObject *call "PyObject_Call"(PyObject *function, PyObject *args, PyObject *kwargs) noexcept
    void PyErr_Fetch(PyObject **kind, PyObject **value, PyObject **traceback) noexcept
    void PyErr_Restore(PyObject *kind, PyObject *value, PyObject *traceback) noexcept
    void PyErr_SetObject(object kind, object value) noexcept


# Of one function more signatures (a learning rate that changes) are described but not kept.
cdef enum:
    MOST_SIGNATURES = 1024
    DEEPEST_LIST = 16


# How calls are described; set by `describe_with`.
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
    """An argument whose text is worked out at each call."""


def describe_with(argument_text, compiling, overloaded, hand_over, in_mode, aside, tensor,
                  parameter, tuple named):
    """Say how calls are described.

    Parameters
    ----------
    argument_text : callable
        (mod, op, args, kwargs) -> text of the argument marker, or None for a call without ranges.
    compiling : callable
        () -> what a compiler is compiling now in this thread: calls have no ranges then; or None.
    overloaded : callable
        torch's has_torch_function_variadic.
    hand_over : callable
        (wrapped, args, kwargs) -> result of a call of which an argument is overloaded.
    in_mode : callable
        () -> bool, whether a mode of `__torch_function__` is on.
    aside : callable
        () -> a context in which none sees what is called.
    tensor, parameter : type
        torch.Tensor and torch.nn.Parameter.
    named : tuple of type
        Types whose values are told by their names: torch.dtype, torch.device.
    """
    global _argument_text, _compiling, _overloaded, _hand_over, _in_mode, _aside
    global _tensor, _parameter, _named
    _argument_text, _compiling = argument_text, compiling
    _overloaded, _hand_over, _in_mode, _aside = overloaded, hand_over, in_mode, aside
    _tensor, _parameter, _named = tensor, parameter, named


def annotate(bint on):
    """Let wrapped functions open ranges, or pass all calls on."""
    global _annotating
    _annotating = on


cdef object _key(value, int depth=0):
    """What tells an argument from another in the text of a marker: shape and type, or the value."""
    kind = type(value)
    if kind is _tensor or kind is _parameter:
        return value.shape, value.dtype
    if kind is float:
        # nan is unlike itself and 0.0 like -0.0: their texts tell.
        return kind, value if value and value == value else repr(value)
    if kind is int or kind is bool or kind is str or value is None:
        return kind, value
    if kind is tuple or kind is list:
        if depth == DEEPEST_LIST:  # it may hold itself
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
    """Whether a list is no list of tensors, but data or sizes: these may be long."""
    return len(sequence) > 0 and type(sequence[0]) in (int, float, bool)


cdef bint _is_overloaded(PyObject *args, PyObject *kwargs) except -1:
    """Whether an argument, an item of one, or a mode has `__torch_function__`."""
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
    """A function with ranges around its calls, that otherwise passes for the function.

    Equal to the function and with its hash, so that tables keyed by functions (those of
    `__torch_function__`, of FX, of lazy modules) find either under the other. Attributes are the
    function's.

    Parameters
    ----------
    function : callable
        What is called.
    mod, op : str
        The names in its argument marker.
    path : str
        Where the function is found, `torch.nn.functional:relu`; pickles hold this path.
    describe : callable, optional
        args -> the `Marker` of the module that is called, or None.
    overloads : bool
        Whether the function, called with a type that has `__torch_function__`, hands itself to it;
        then the wrapped one is handed over, as it is what the module now holds.
    unless : callable, optional
        (args, kwargs) -> whether this call gets no ranges.
    reads : bool
        Whether it only reads a tensor's values: a tensor of the CPU gets no ranges then.
    named : callable, optional
        Of a method: object -> (mod, op) in the marker of its call, which leaves the object itself
        out; or None for a call without ranges.
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
        # What torch.compile traces in the place of this object.
        PyObject_GenericSetAttr(self, "_torchdynamo_inline", function)

    cdef int _open(self, Opened opened, tuple args, dict kwargs) except -1:
        """Open the ranges of a call. What cannot be described is left out: the call goes on."""
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
        """The argument marker; None where a compiler only traces the call."""
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
        # The function's, not this object's: functools.wraps copies it, and what is wrapped further
        # must not say that torch.compile may trace the function in its place.
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
        # A method that was wrapped in its object: the copy of the object has a method of its own.
        return Wrapped(deepcopy(self.__wrapped__, memo), self.mod, self.op, self._path,
                       self._describe)


cdef class Binding(Wrapped):
    """A wrapped function that a class binds to its instances, as functions in Python and methods in
    C are bound and other functions in C are not.
    """

    @property
    def __doc__(self):
        return self.__wrapped__.__doc__

    def __get__(self, instance, owner):
        return self if instance is None else MethodType(self, instance)


cdef PyObject *_call(PyObject *self, PyObject *args, PyObject *kwargs) noexcept:
    """Call what is wrapped, between ranges if anybody listens."""
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
    except BaseException as error:  # the user's Ctrl-C, while a text was made
        PyErr_SetObject(type(error), error)
        return NULL
    result = call(<PyObject *> wrapped.__wrapped__, args, kwargs)
    end(opened)
    return result


cdef bint somebody_hears() noexcept:
    """Whether calls are to be announced."""
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
    """Close the ranges of a call; what the call raised stays raised."""
    cdef PyObject *kind
    cdef PyObject *value
    cdef PyObject *traceback
    PyErr_Fetch(&kind, &value, &traceback)
    try:
        uncover()
    except Exception:  # a tool that fails is no matter of the program's
        pass
    call_ends()
    opened.close()
    PyErr_Restore(kind, value, traceback)


cdef inline dict _dict(PyObject *kwargs):
    return {} if kwargs is NULL else <dict> kwargs


(<PyTypeObject *> Wrapped).tp_call = _call
(<PyTypeObject *> Binding).tp_call = _call
# Binding(self, ..) is what calling it on an instance comes to, as with functions: the interpreter
# may do so and spare a bound method at each call.
(<PyTypeObject *> Binding).tp_flags |= Py_TPFLAGS_METHOD_DESCRIPTOR
PyType_Modified(<PyTypeObject *> Wrapped)
