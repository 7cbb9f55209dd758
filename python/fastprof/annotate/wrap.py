"""Wraps functions, methods, `x[i]` and `x[i] = y` in ranges: of the table, or passed to `wrap`.

The type slots of `x[i]` are replaced: an attribute `Tensor.__getitem__` set from Python would make
Tensor a sequence type.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Sequence
from types import ClassMethodDescriptorType, FunctionType, MethodType, ModuleType
from typing import Any, Final
from weakref import WeakKeyDictionary

from torch import Tensor, jit
from torch._C import TensorBase
from torch.nn import Module

from fastprof._core._hooks import Binding, Wrapped
from fastprof._core._ranges import Marker
from fastprof._core._slots import annotate_indexing, restore_indexing
from fastprof.annotate import text as channels
from fastprof.annotate.patches import Patches
from fastprof.annotate.table import Method, WrappedFunction
from fastprof.annotate.text import module_text
from fastprof.errors import AnnotateError

patches = Patches()
# id of an original torch function -> its wrapper.
replaced: dict[int, Wrapped] = {}
_module_markers: WeakKeyDictionary[Module, Marker] = WeakKeyDictionary()


def wrap_function(entry: WrappedFunction) -> None:
    """Wrap a function of the table in all its owners."""
    home, name = entry.homes[0]
    path = f"{home.__name__}:{name}" if isinstance(home, ModuleType) else f"torch:Tensor.{name}"
    kind = _kind(entry.function)
    wrapped = kind(
        entry.function, entry.mod, entry.op, path, overloads=entry.overloads, reads=entry.reads
    )
    replaced[id(entry.function)] = wrapped
    for owner, held_as in entry.homes:
        patches.replace(owner, held_as, wrapped)


def wrap_defaults(function: FunctionType) -> None:
    """Replace original torch functions among a function's default arguments by their wrappers.

    torch's transformer layers default to `activation=F.relu` and test `activation is F.relu`.
    """
    before = function.__defaults__ or ()
    after = tuple(replaced.get(id(each), each) for each in before)
    if any(new is not old for new, old in zip(after, before, strict=True)):
        patches.replace(function, "__defaults__", after)


def wrap_method(entry: Method) -> None:
    """Wrap a method of the table, unless it is already wrapped beneath other decorators."""
    held: Any = vars(entry.owner)[entry.name]
    innermost = inspect.unwrap(held, stop=_is_wrapped)
    if not _is_wrapped(innermost):
        how = {"unless": entry.unless, "named": entry.named}
        around = _around(held, entry.owner, entry.mod, entry.op, **how)
        patches.replace(entry.owner, entry.name, around)


def wrap(obj: Any, name: str) -> None:
    """Wrap your own function, or a library's, in ranges like those `init` gives torch functions.

    Parameters
    ----------
    obj : module, class or object
        The owner of the function: a module or extension, a class (`torch.nn.Module`,
        `torch.autograd.Function` or any other), or an instance.
    name : str
        The attribute name, such as "forward" or "backward". Static methods and class methods
        remain so.

    Raises
    ------
    AnnotateError
        The attribute does not exist, is not callable, or cannot be replaced.

    Notes
    -----
    Wrapping a function again has no effect. `fastprof.uninit` unwraps it. The argument marker
    contains the name of the module or class and the function's name. `forward` of a torch module
    also has a module marker with the text of `extra_repr`, read once per module.

    >>> fastprof.wrap(Foo, "forward")   # doctest: +SKIP
    """
    channels.connect()
    owner = obj.__name__ if isinstance(obj, (type, ModuleType)) else type(obj).__name__
    try:
        result = inspect.getattr_static(obj, name)
    except AttributeError:
        raise AnnotateError(f"wrap: {owner} has no attribute {name!r}") from None
    if isinstance(result, ClassMethodDescriptorType):  # Function.apply of torch 2.15
        result = _class_method(result)
    held = result if isinstance(result, (staticmethod, classmethod)) else getattr(obj, name)
    if not callable(getattr(held, "__func__", held)) or isinstance(held, (type, property)):
        raise AnnotateError(
            f"wrap: {owner}.{name} is a {type(result).__name__}, not a function or method"
        )
    if _is_wrapped(held):
        return
    if isinstance(obj, type) and not isinstance(result, (staticmethod, classmethod)):
        held = result
    try:
        patches.replace(obj, name, _around(held, obj, owner, name))
    except (TypeError, AttributeError) as error:
        raise AnnotateError(f"wrap: {owner}.{name} cannot be replaced: {error}") from error


def _class_method(method: ClassMethodDescriptorType) -> classmethod[Any, Any, Any]:
    """A class method in C, as one in Python."""

    @functools.wraps(method)
    def call(cls: type, *args: Any, **keywords: Any) -> Any:
        return method.__get__(None, cls)(*args, **keywords)

    return classmethod(call)


def _around(held: Any, owner: Any, mod: str, op: str, **how: Any) -> Any:
    """The wrapper of a function, with the same binding, name and signature."""
    if isinstance(held, (staticmethod, classmethod)):
        return type(held)(_around(held.__func__, owner, mod, op))
    kind = owner if isinstance(owner, type) else type(owner)
    describe = _module_marker if issubclass(kind, Module) and op == "forward" else None
    path = f"{getattr(held, '__module__', mod)}:{getattr(held, '__qualname__', op)}"
    return _kind(held)(held, mod, op, path, describe, **how)


def _kind(function: Any) -> type[Wrapped]:
    """The wrapper class: Binding for a function that becomes a method as a class attribute."""
    binds = hasattr(type(function), "__get__") and not isinstance(function, MethodType)
    return Binding if binds else Wrapped


def _is_wrapped(held: Any) -> bool:
    return isinstance(getattr(held, "__func__", held), Wrapped)


def _module_marker(args: Sequence[Any]) -> Marker | None:
    return _marker_of(args[0]) if args and isinstance(args[0], Module) else None


def _marker_of(module: Module) -> Marker | None:
    """The marker of a module; None for a torch.jit module, which has no `extra_repr`."""
    if isinstance(module, jit.ScriptModule):
        return None
    marker = _module_markers.get(module)
    if marker is None:
        marker = _module_markers[module] = Marker(module_text(module))
    return marker


def install() -> None:
    """Annotate indexing until the patches are reverted; skip it if the type slots differ."""
    patches.apply(_Indexing())


class _Indexing:
    def apply(self) -> None:
        annotate_indexing(TensorBase, _GETTING, _SETTING)

    reapply = apply

    def revert(self) -> None:
        restore_indexing(TensorBase)

    def detach(self) -> None:
        pass


def _described(name: str) -> Wrapped:
    return Wrapped(getattr(Tensor, name), "Tensor", name, f"torch:Tensor.{name}")


_GETTING: Final = _described("__getitem__")
_SETTING: Final = _described("__setitem__")
