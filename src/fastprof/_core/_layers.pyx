"""Open layers, and the module hooks that enter and leave them.

Ranges nest within one thread. Layers belong to a context (contextvars), such as an asyncio task or
a generator, that may be suspended inside a layer while another context runs on the same thread.
Therefore the layers that a context has entered and the ranges open in a thread are separate lists.
Whenever a layer is entered or left, and before each annotated call, ranges are closed and reopened
until the thread's ranges match the layers of its context.
"""

from cpython.contextvars cimport PyContextVar_Set, get_value
from cpython.object cimport PyObject_GenericSetAttr
from fastprof._core._ranges cimport Marker, Opened, anybody_listens, open_calls
from contextlib import nullcontext
from contextvars import ContextVar
from threading import get_ident, local
from types import FunctionType

cdef object _innermost = ContextVar("fastprof_layer", default=None)
cdef object _compiling = None
cdef Py_ssize_t _n_entered = 0  # layers entered and not left, over all threads and contexts


class _OfThread(local):
    """The layers whose ranges are open in this thread, outermost first."""

    def __init__(self):
        self.open = []


_of_thread = _OfThread()


cdef class _Entered:
    """A layer that a context has entered, linked to the one around it."""

    cdef object owner
    cdef Marker marker
    cdef _Entered around
    cdef object thread
    cdef bint is_block
    cdef bint is_left
    cdef Opened opened
    cdef int calls  # open in the thread when the range was opened

    cdef void leave(self):
        global _n_entered
        if not self.is_left:
            self.is_left = True
            self.owner = None  # copied contexts keep layers alive, but must not keep models
            _n_entered -= 1


def compiling_is(compiling):
    """Set the callback that detects compilation: () -> the object being compiled, or None."""
    global _compiling
    _compiling = compiling


def enter(owner, Marker marker not None, bint is_block=False):
    """Enter a layer, if a tool listens.

    Parameters
    ----------
    owner : object
        The argument that `leave` will get.
    marker : Marker
        Its range.
    is_block : bool
        Whether `leave` is certain to be called, as for a `with` block. Other layers are left
        together with an enclosing one if an exception skipped their `leave`.
    """
    if not anybody_listens() or (_compiling is not None and _compiling() is not None):
        return
    global _n_entered
    cdef _Entered layer = _Entered()
    layer.owner, layer.marker, layer.is_block = owner, marker, is_block
    layer.around = _entered()
    layer.thread = get_ident()
    _n_entered += 1
    PyContextVar_Set(_innermost, layer)
    _settle()


def leave(owner):
    """Leave the innermost layer of an owner, and the layers inside it that are not blocks."""
    if not _n_entered:
        return
    cdef _Entered innermost = _entered()
    cdef _Entered left = innermost
    while left is not None and left.owner is not owner:
        left = left.around
    if left is None:  # entered in another context of this thread
        for layer in reversed(_of_thread.open):
            if (<_Entered> layer).owner is owner:
                (<_Entered> layer).leave()
                break
        else:
            return
    else:
        while innermost is not left:
            if not innermost.is_block:
                innermost.leave()
            innermost = innermost.around
        left.leave()
    PyContextVar_Set(_innermost, _entered())
    _settle()


cdef _Entered _entered():
    """The innermost layer that this context has entered on this thread."""
    cdef _Entered layer = get_value(_innermost)
    thread = get_ident()
    while layer is not None and (layer.is_left or layer.thread != thread):
        layer = layer.around
    return layer


cdef int _settle() except -1:
    """Close and open ranges until those of the thread match the layers of its context."""
    cdef list opened = _of_thread.open
    cdef list entered = []
    cdef _Entered layer = _entered()
    cdef Py_ssize_t common = 0
    if opened and opened[len(opened) - 1] is layer and not _is_any_left(opened):
        return 0
    while layer is not None:
        if not layer.is_left and (not entered or layer.thread == (<_Entered> entered[0]).thread):
            entered.append(layer)
        layer = layer.around
    entered.reverse()
    while common < min(len(opened), len(entered)) and opened[common] is entered[common]:
        common += 1
    while len(opened) > common:
        layer = opened[len(opened) - 1]
        if layer.calls != open_calls():
            return 0  # ranges of a call are open inside it; retry later
        _close(opened.pop())
    for each in entered[common:]:
        layer = each
        layer.calls = open_calls()
        layer.opened = Opened()
        opened.append(layer)
        try:
            layer.opened.add(layer.marker)
        except Exception:
            continue
    return 0


cdef bint _is_any_left(list layers) noexcept:
    for layer in layers:
        if (<_Entered> layer).is_left:
            return True
    return False


cdef int _close(_Entered layer) except -1:
    layer.opened.close()
    layer.opened = None
    return 0


cdef int follow() except -1:
    """Before the ranges of a call open: match the open layers to the calling context."""
    if _n_entered or _of_thread.open:
        _settle()
    return 0


cdef int uncover() except -1:
    """Before the ranges of a call close: close the layers opened inside them."""
    cdef list opened = _of_thread.open
    while opened and (<_Entered> opened[len(opened) - 1]).calls >= open_calls():
        _close(opened.pop())
    return 0


cdef class _Hook:
    """A module hook that pickles as a no-op of the standard library.

    A model saved with its hooks can therefore be loaded without fastprof.

    Parameters
    ----------
    traced : function
        The function that torch.compile traces instead of the hook.
    """

    cdef dict __dict__
    cdef object __weakref__

    def __init__(self, traced):
        PyObject_GenericSetAttr(self, "_torchdynamo_inline", traced)

    @property
    def __class__(self):
        return FunctionType

    def __reduce__(self):
        return getattr, (nullcontext(), "__exit__")

    def __deepcopy__(self, memo):
        return self


cdef class Enter(_Hook):
    """The forward pre-hook of a module that enters its layer.

    Parameters
    ----------
    traced : function
        The function that torch.compile traces instead of the hook.
    marker : Marker
        The layer's range.
    """

    cdef Marker marker

    def __init__(self, traced, Marker marker not None):
        _Hook.__init__(self, traced)
        self.marker = marker

    def __call__(self, module, args):
        if anybody_listens():
            enter(module, self.marker)


cdef class Leave(_Hook):
    """The forward hook of a module that leaves its layer.

    Parameters
    ----------
    traced : function
        The function that torch.compile traces instead of the hook.
    """

    def __init__(self, traced):
        _Hook.__init__(self, traced)

    def __call__(self, module, args, output):
        if _n_entered:
            leave(module)
