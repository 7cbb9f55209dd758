"""Layer ranges: by hand round a block of code, and for all submodules of a model."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from types import TracebackType
from typing import Any, ParamSpec, TypeVar, cast

import torch
from torch._guards import CompileContext
from torch.jit import ScriptModule
from torch.nn import DataParallel, Module
from torch.nn.parallel import DistributedDataParallel
from torch.utils.hooks import RemovableHandle

from fastprof._core._layers import Enter, Leave, compiling_is, enter, leave
from fastprof._core._ranges import Marker
from fastprof.annotate import channels
from fastprof.errors import AnnotateError

P = ParamSpec("P")
R = TypeVar("R")

# Parts of qualified names that come from what stands round a module, not from the model.
_WRAPPERS = frozenset({"_orig_mod", "_fsdp_wrapped_module", "_checkpoint_wrapped_module"})


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

    Tasks of asyncio and generators that take turns in a thread have layers of their own: a range
    ends where another task's layer begins or ends, or where another task calls torch after `init`,
    and begins again when its own task goes on. A decorated coroutine is in the layer until it
    returns.
    """

    def __init__(self, name: str) -> None:
        self._name = _checked(name)
        self._marker: Marker | None = None

    def __enter__(self) -> layer:
        if not torch.compiler.is_compiling():
            if self._marker is None:
                self._marker = _layer_marker(self._name)
            enter(self, self._marker, is_block=True)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if not torch.compiler.is_compiling():
            leave(self)

    def __call__(self, function: Callable[P, R]) -> Callable[P, R]:
        """The function, all of which is in the layer.

        Raises
        ------
        AnnotateError
            It is a generator.
        """
        if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
            raise AnnotateError(
                f"layer({self._name!r}): {function.__qualname__} is a generator, which runs after "
                "its call; put `with` around what is in the layer"
            )
        if inspect.iscoroutinefunction(function):

            @functools.wraps(function)
            async def awaited_inside(*args: P.args, **kwargs: P.kwargs) -> Any:
                with layer(self._name):  # one of its own: calls of a thread overlap
                    return await function(*args, **kwargs)

            return cast(Callable[P, R], awaited_inside)

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
    compiling_is(CompileContext.try_get)
    return Marker(f"layer:{name}")


def _traced(*_: Any) -> None:
    """What torch.compile traces in the place of a hook."""


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
        model has no range of its own; a compiled one has the name of its class.

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
    do nothing: a compiled module has one range, its parts have none, as one kernel may do the work
    of several; run without the compiler they have. What torch.jit.script or trace made has none.
    It works without `init`. A copy of the model has the ranges, too; one that was pickled or saved
    has none.

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
        if full in named or isinstance(module, ScriptModule):  # which takes no hooks
            continue  # or it is what stands within a wrapper
        named.add(full)
        full = full or (_name_of_compiled(model) if module is model else "")
        if not full:
            continue
        handles.append(module.register_forward_pre_hook(Enter(_traced, _layer_marker(full))))
        handles.append(module.register_forward_hook(Leave(_traced), always_call=True))
    return Layers(handles)


def _name_of_compiled(model: Any) -> str:
    """The class of a module that is compiled as a whole, by torch.compile or its own method."""
    inner = getattr(model, "_orig_mod", None)
    if inner is None and getattr(model, "_compiled_call_impl", None) is not None:
        inner = model
    return "" if inner is None else type(inner).__name__
