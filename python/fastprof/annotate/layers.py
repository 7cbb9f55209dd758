"""Layer ranges: by hand round a block of code, and for all submodules of a model."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from contextlib import nullcontext
from types import TracebackType
from typing import Any, ParamSpec, TypeVar

import torch
from torch.jit import ScriptModule
from torch.nn import DataParallel, Module
from torch.nn.parallel import DistributedDataParallel
from torch.utils.hooks import RemovableHandle

from fastprof._ranges import Marker, open_range
from fastprof.annotate import channels
from fastprof.errors import AnnotateError

P = ParamSpec("P")
R = TypeVar("R")

# Parts of qualified names that come from what stands round a module, not from the model.
_WRAPPERS = frozenset({"_orig_mod", "_fsdp_wrapped_module", "_checkpoint_wrapped_module"})


class _Open(threading.local):
    """The ranges that are open in this thread, outermost first, each with who opened it."""

    def __init__(self) -> None:
        self.ranges: list[tuple[Any, Any]] = []

    def enter(self, owner: Any, marker: Marker) -> None:
        self.ranges.append((owner, open_range(marker)))

    def leave(self, owner: Any) -> None:
        """Close the innermost range of an owner, and what is still open within it."""
        if not any(each is owner for each, _ in self.ranges):
            return
        closed = None
        while closed is not owner:
            closed, opened = self.ranges.pop()
            if opened is not None:
                opened.close()


open_ranges = _Open()


class layer:
    """A layer's range: `with fastprof.layer("Conv1"):` or `@fastprof.layer("encoder")`.

    Parameters
    ----------
    name : str
        The layer's name in reports. Layers nest; the names of nested ones are joined by `:`.

    Raises
    ------
    AnnotateError
        The name is empty or no text.

    Notes
    -----
    It works without `init`. In code that torch.compile traces it does nothing; there, make it where
    it is entered: torch.compile cannot enter any context manager of Python that was made outside.
    """

    def __init__(self, name: str) -> None:
        self._name = _checked(name)
        self._marker: Marker | None = None

    def __enter__(self) -> layer:
        if not torch.compiler.is_compiling():
            if self._marker is None:
                self._marker = _layer_marker(self._name)
            open_ranges.enter(self, self._marker)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if not torch.compiler.is_compiling():
            open_ranges.leave(self)

    def __call__(self, function: Callable[P, R]) -> Callable[P, R]:
        @functools.wraps(function)
        def inside(*args: P.args, **kwargs: P.kwargs) -> R:
            if torch.compiler.is_compiling():  # it cannot enter what was made outside
                return function(*args, **kwargs)
            with self:
                return function(*args, **kwargs)

        return inside


def _checked(name: str) -> str:
    if not isinstance(name, str) or not name.strip():
        raise AnnotateError(f"a layer's name was expected, found {name!r}")
    return name


def _layer_marker(name: str) -> Marker:
    channels.connect()
    return Marker(f"layer:{name}")


class _Hook:
    """A hook of a module; pickled, it is one of Python's own that does nothing.

    So a model that is saved with its ranges can be loaded where fastprof is not installed.
    """

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return getattr, (nullcontext(), "__exit__")

    def __deepcopy__(self, memo: Any) -> _Hook:
        return self


class _Enter(_Hook):
    """The forward pre-hook of a module that opens its range."""

    def __init__(self, name: str) -> None:
        self._marker = _layer_marker(_checked(name))

    def __call__(self, module: Module, args: Any) -> None:
        if not torch.compiler.is_compiling():
            open_ranges.enter(module, self._marker)


class _Leave(_Hook):
    """The forward hook of a module that closes its range."""

    def __call__(self, module: Module, args: Any, output: Any) -> None:
        if not torch.compiler.is_compiling():
            open_ranges.leave(module)


class Layers:
    """The layer ranges of a model; `remove` takes them off, as does the end of a `with` block."""

    def __init__(self, handles: list[RemovableHandle]) -> None:
        self._handles = handles

    def remove(self) -> None:
        """Take the ranges off the model."""
        while self._handles:
            self._handles.pop().remove()

    def __enter__(self) -> Layers:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.remove()


def annotate_layers(model: Module, name: str = "") -> Layers:
    """Give every submodule of a model a layer range with its qualified name.

    Parameters
    ----------
    model : torch.nn.Module
        The model, also one that is compiled, in DistributedDataParallel or sharded: what stands
        round a module does not count in its name.
    name : str
        A name for the model itself, which its submodules' names then begin with. Without one the
        model has no range of its own.

    Returns
    -------
    Layers
        Whose `remove` ends it.

    Raises
    ------
    AnnotateError
        The model is no module.

    Notes
    -----
    Forward hooks that are also called when a forward pass raises. In what torch.compile traces they
    do nothing: a compiled module has one range, its parts have none; what torch.jit.script or trace
    made has none. It works without `init`. A copy of the model has the ranges, too, a pickled or
    saved one has not.

    >>> fastprof.annotate_layers(model)   # doctest: +SKIP
    """
    if not isinstance(model, Module):
        raise AnnotateError(f"annotate_layers: expected a torch.nn.Module, found {type(model)!r}")
    if isinstance(model, (DataParallel, DistributedDataParallel)):
        model = model.module
    handles: list[RemovableHandle] = []
    named: set[str] = set()
    for path, module in model.named_modules():
        parts = [part for part in path.split(".") if part and part not in _WRAPPERS]
        full = ".".join([name, *parts] if name else parts)
        if not full or full in named:  # the model itself, or what stands within its wrapper
            continue
        if isinstance(module, ScriptModule):  # takes no hooks
            continue
        named.add(full)
        handles.append(module.register_forward_pre_hook(_Enter(full)))
        handles.append(module.register_forward_hook(_Leave(), always_call=True))
    return Layers(handles)
