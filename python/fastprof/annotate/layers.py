"""Layer ranges: for a block, a function, all submodules of a model, and functions that they hold.

A model built before `init` holds the original function. `init` replaces it with the wrapper in all
existing modules; `uninit` restores the original.
"""

from __future__ import annotations

import functools
import gc
import inspect
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, ParamSpec, TypeVar, cast

import torch
from torch._guards import CompileContext
from torch.jit import ScriptModule
from torch.nn import DataParallel, Module
from torch.nn.parallel import DistributedDataParallel
from torch.utils.hooks import RemovableHandle

from fastprof._core._layers import Enter, Leave, compiling_is, enter, leave
from fastprof._core._ranges import Marker
from fastprof.annotate import text as channels
from fastprof.annotate.graphs import GraphLayers
from fastprof.annotate.table import subclasses
from fastprof.annotate.wrap import patches, replaced
from fastprof.errors import AnnotateError

P = ParamSpec("P")
R = TypeVar("R")

# Components of qualified names that wrappers add.
_WRAPPERS = frozenset({"_orig_mod", "_fsdp_wrapped_module", "_checkpoint_wrapped_module"})


class layer:
    """The range of a layer: `with fastprof.layer("Conv1"):` or `@fastprof.layer("encoder")`.

    Parameters
    ----------
    name : str
        The layer's name in reports. Layers nest; reports join nested names with `:`.

    Raises
    ------
    AnnotateError
        The name is empty or not a string.

    Notes
    -----
    Does not require `init`. It has no effect in code traced by torch.compile. There, create the
    object in the `with` statement: torch.compile cannot enter a context manager created outside.

    Each asyncio task and each generator has its own layers. When another task of the thread enters
    or leaves a layer, or calls torch after `init`, the range is closed; it reopens when its task
    resumes. A decorated coroutine is in the layer until it returns.
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

    def __exit__(self, *exception: object) -> None:
        if not torch.compiler.is_compiling():
            leave(self)

    def __call__(self, function: Callable[P, R]) -> Callable[P, R]:
        """Decorate a function: all of its calls run in the layer.

        Raises
        ------
        AnnotateError
            The function is a generator.
        """
        if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
            raise AnnotateError(
                f"layer({self._name!r}): {function.__qualname__} is a generator, whose body runs "
                "after the call; use `with` inside it"
            )
        if inspect.iscoroutinefunction(function):

            @functools.wraps(function)
            async def awaited_inside(*args: P.args, **kwargs: P.kwargs) -> Any:
                with layer(self._name):  # a new object: calls in a thread overlap
                    return await function(*args, **kwargs)

            return cast(Callable[P, R], awaited_inside)

        @functools.wraps(function)
        def inside(*args: P.args, **kwargs: P.kwargs) -> R:
            if torch.compiler.is_compiling():  # it cannot enter an outside object
                return function(*args, **kwargs)
            with self:
                return function(*args, **kwargs)

        return inside


def _checked(name: str) -> str:
    if not isinstance(name, str) or not name.strip():
        raise AnnotateError(f"layer: expected a non-empty name, found {name!r}")
    return name


def _layer_marker(name: str) -> Marker:
    channels.connect()
    compiling_is(CompileContext.try_get)
    return Marker(f"layer:{name}")


def _traced(*_: Any) -> None:
    """Stands in for a hook in torch.compile's trace."""


class Layers:
    """The layer ranges of a model. `remove`, or leaving a `with` block, removes them."""

    def __init__(self, handles: list[RemovableHandle | GraphLayers]) -> None:
        self._handles = handles

    def remove(self) -> None:
        """Remove the ranges from the model."""
        while self._handles:
            self._handles.pop().remove()

    def __enter__(self) -> Layers:
        return self

    def __exit__(self, *exception: object) -> None:
        self.remove()


def annotate_layers(model: Module, name: str = "") -> Layers:
    """Give every submodule of a model a layer range with its qualified name.

    Parameters
    ----------
    model : torch.nn.Module
        The model. It may be compiled, sharded or in DistributedDataParallel; names omit these
        wrappers.
    name : str
        A name for the model itself and the prefix of its submodules' names. Without a name, the
        model has no range of its own, except that a compiled model is named after its class.

    Returns
    -------
    Layers
        Its `remove` removes the ranges.

    Raises
    ------
    AnnotateError
        The model is not a torch.nn.Module.

    Notes
    -----
    Does not require `init`. Implemented as forward hooks, which also run when the forward pass
    raises. They have no effect in code traced by torch.compile: a compiled module has one range and
    its submodules none, because one kernel may do the work of several. torch.jit modules have no
    ranges. A copy of the model keeps the ranges; a pickled or saved model does not.

    Modules that run while `torch.cuda.graph` captures annotate the nodes of the graph, so that its
    replays have layers, where torch (2.12) and cuda-bindings (13.1) can.

    >>> fastprof.annotate_layers(model)   # doctest: +SKIP
    """
    if not isinstance(model, Module):
        raise AnnotateError(f"annotate_layers: expected a torch.nn.Module, found {type(model)!r}")
    names = layer_names(model, name)
    handles: list[RemovableHandle | GraphLayers] = []
    for full, module in names:
        handles.append(module.register_forward_pre_hook(Enter(_traced, _layer_marker(full))))
        handles.append(module.register_forward_hook(Leave(_traced), always_call=True))
    references = [(full, weakref.ref(module)) for full, module in names]
    graphs = GraphLayers(lambda: _alive_of(references))
    _, itself = next(model.named_modules())  # the model may be a weak reference
    weakref.finalize(itself, graphs.remove).atexit = False
    return Layers([*handles, graphs])


def _alive_of(
    references: Iterable[tuple[str, weakref.ref[Module]]],
) -> Iterator[tuple[str, Module]]:
    for name, reference in references:
        module = reference()
        if module is not None:
            yield name, module


def layer_names(model: Module, name: str = "") -> list[tuple[str, Module]]:
    """The modules of a model with the names of their layers, see `annotate_layers`."""
    if isinstance(model, (DataParallel, DistributedDataParallel)):
        model = model.module
    result: list[tuple[str, Module]] = []
    named: set[str] = set()
    for path, module in model.named_modules():
        parts = [part for part in path.split(".") if part and part not in _WRAPPERS]
        full = ".".join([name, *parts] if name else parts)
        if full in named or isinstance(module, ScriptModule):  # takes no hooks
            continue  # or the module inside a wrapper
        named.add(full)
        full = full or (_name_of_compiled(model) if module is model else "")
        if full:
            result.append((full, module))
    return result


def _name_of_compiled(model: Any) -> str:
    """Class name of a module compiled by torch.compile or `Module.compile`; "" if it is not."""
    inner = getattr(model, "_orig_mod", None)
    if inner is None and vars(model).get("_compiled_call_impl") is not None:
        inner = model
    return "" if inner is None else type(inner).__name__


def install() -> None:
    """Replace original functions by their wrappers in all existing modules."""
    _exchange(_alive(), replaced)


def uninstall() -> None:
    """Replace wrappers by the original functions in all existing modules."""
    _exchange(_alive(), _originals())


def with_originals(function: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a function to run with the original torch and with unwrapped module arguments."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        given = [each for each in (*args, *kwargs.values()) if isinstance(each, Module)]
        modules = [part for model in given for part in model.modules()]
        with patches.suspended():
            _exchange(modules, _originals())
            try:
                return function(*args, **kwargs)
            finally:
                _exchange(modules, replaced)

    return call


def _originals() -> dict[int, Any]:
    return {id(wrapped): wrapped.__wrapped__ for wrapped in replaced.values()}


def _alive() -> Iterable[Any]:
    """All existing modules but torch.jit's, whose attributes cannot be set."""
    kinds = {subclass for subclass in subclasses(Module) if not issubclass(subclass, ScriptModule)}
    return [get_object for get_object in gc.get_objects() if type(get_object) in kinds]


def _exchange(modules: Iterable[Any], by_id: Mapping[int, Any]) -> None:
    """Replace values by id: attributes, and items of list and dict attributes."""
    for module in modules:
        attributes = vars(module)
        for name, value in [*attributes.items()]:
            if id(value) in by_id:
                attributes[name] = by_id[id(value)]
            elif type(value) is list or type(value) is dict:
                for key in range(len(value)) if type(value) is list else [*value]:
                    if id(value[key]) in by_id:
                        value[key] = by_id[id(value[key])]
