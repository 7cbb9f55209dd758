"""Puts ranges around functions and methods: those of the table, and those that a user names."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from types import FunctionType, MethodType, ModuleType
from typing import Any
from weakref import WeakKeyDictionary

from torch import jit
from torch.nn import Module

from fastprof._core._hooks import Binding, Wrapped
from fastprof._core._ranges import Marker
from fastprof.annotate import channels
from fastprof.annotate.patches import Patches
from fastprof.annotate.table import Function, Method
from fastprof.annotate.text import module_text
from fastprof.errors import AnnotateError

patches = Patches()
# By the id of a function of torch: what stands in its place.
replaced: dict[int, Wrapped] = {}
_module_markers: WeakKeyDictionary[Module, Marker] = WeakKeyDictionary()


def wrap_function(entry: Function) -> None:
    """Wrap a function of the table at all its homes."""
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
    """Put what `wrap_function` put in functions' places in those of a function's defaults, too.

    `activation is F.relu` is asked of the default F.relu of torch's transformer layers.
    """
    before = function.__defaults__ or ()
    after = tuple(replaced.get(id(each), each) for each in before)
    if any(new is not old for new, old in zip(after, before, strict=True)):
        patches.replace(function, "__defaults__", after)


def wrap_method(entry: Method) -> None:
    """Wrap a method of the table, unless it is wrapped already below what others put on it."""
    held: Any = vars(entry.owner)[entry.name]
    innermost = inspect.unwrap(held, stop=_is_wrapped)
    if not _is_wrapped(innermost):
        how = {"unless": entry.unless, "named": entry.named}
        around = _around(held, entry.owner, entry.mod, entry.op, **how)
        patches.replace(entry.owner, entry.name, around)


def wrap(obj: Any, name: str) -> None:
    """Put ranges around a function of your own, or of a library, as `init` does for torch's.

    Parameters
    ----------
    obj : module, class or object
        What holds the function: a module or extension, a class (`torch.nn.Module`,
        `torch.autograd.Function`, any other), or one object.
    name : str
        The attribute: "forward", "backward", a function's name. Static methods and class methods
        stay what they are.

    Raises
    ------
    AnnotateError
        There is no such attribute, it cannot be called, or it cannot be replaced.

    Notes
    -----
    Wrapped twice is wrapped once. `fastprof.uninit` takes it off. The argument marker says the
    name of the module or class and the function's name; `forward` of a module has a module marker
    with what `extra_repr` says, asked once a module.

    >>> fastprof.wrap(Foo, "forward")   # doctest: +SKIP
    """
    channels.connect()
    owner = obj.__name__ if isinstance(obj, (type, ModuleType)) else type(obj).__name__
    try:
        found = inspect.getattr_static(obj, name)
    except AttributeError:
        raise AnnotateError(f"wrap: {owner} has no attribute {name!r}") from None
    held = found if isinstance(found, (staticmethod, classmethod)) else getattr(obj, name)
    if not callable(getattr(held, "__func__", held)) or isinstance(held, (type, property)):
        raise AnnotateError(
            f"wrap: {owner}.{name} is a {type(found).__name__}, not a function or method"
        )
    if _is_wrapped(held):
        return
    if isinstance(obj, type) and not isinstance(found, (staticmethod, classmethod)):
        held = found
    try:
        patches.replace(obj, name, _around(held, obj, owner, name))
    except (TypeError, AttributeError) as error:
        raise AnnotateError(f"wrap: {owner}.{name} cannot be replaced: {error}") from error


def _around(held: Any, owner: Any, mod: str, op: str, **how: Any) -> Any:
    """What stands in a function's place, of the same kind: binding, name, signature."""
    if isinstance(held, (staticmethod, classmethod)):
        return type(held)(_around(held.__func__, owner, mod, op))
    kind = owner if isinstance(owner, type) else type(owner)
    describe = _module_marker if issubclass(kind, Module) and op == "forward" else None
    path = f"{getattr(held, '__module__', mod)}:{getattr(held, '__qualname__', op)}"
    return _kind(held)(held, mod, op, path, describe, **how)


def _kind(function: Any) -> type[Wrapped]:
    """Whether a function is bound where a class holds it."""
    binds = hasattr(type(function), "__get__") and not isinstance(function, MethodType)
    return Binding if binds else Wrapped


def _is_wrapped(held: Any) -> bool:
    return isinstance(getattr(held, "__func__", held), Wrapped)


def _module_marker(args: Sequence[Any]) -> Marker | None:
    return _marker_of(args[0]) if args and isinstance(args[0], Module) else None


def _marker_of(module: Module) -> Marker | None:
    """The marker of a module; None for what torch.jit made, which cannot tell."""
    if isinstance(module, jit.ScriptModule):
        return None
    marker = _module_markers.get(module)
    if marker is None:
        marker = _module_markers[module] = Marker(module_text(module))
    return marker
