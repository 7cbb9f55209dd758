"""Functions of torch that modules hold: `self.activation = F.gelu`.

A model that was built before `init` holds the function itself, one built after it what stands in
its place. `init` puts the latter into all modules that there are, `uninit` the former.
"""

from __future__ import annotations

import functools
import gc
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from torch.jit import ScriptModule
from torch.nn import Module

from fastprof.annotate.table import subclasses
from fastprof.annotate.wrap import patches, replaced


def put_in() -> None:
    """Let all modules that there are hold what has ranges."""
    _exchange(_alive(), replaced)


def take_out() -> None:
    """Let all modules that there are hold torch's own functions."""
    _exchange(_alive(), _originals())


def as_before(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that sees torch, and the modules that it is given, as they were before `init`."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        given = [each for each in (*args, *kwargs.values()) if isinstance(each, Module)]
        modules = [part for model in given for part in model.modules()]
        with patches.aside():
            _exchange(modules, _originals())
            try:
                return function(*args, **kwargs)
            finally:
                _exchange(modules, replaced)

    return call


def _originals() -> dict[int, Any]:
    return {id(each): each.__wrapped__ for each in replaced.values()}


def _alive() -> Iterable[Any]:
    """All modules; what torch.jit made takes no attributes."""
    kinds = {each for each in subclasses(Module) if not issubclass(each, ScriptModule)}
    return [each for each in gc.get_objects() if type(each) in kinds]


def _exchange(modules: Iterable[Any], by_id: Mapping[int, Any]) -> None:
    """Put other functions for some, by their ids: attributes, and items of lists and dicts."""
    for module in modules:
        attributes = vars(module)
        for name, value in [*attributes.items()]:
            if id(value) in by_id:
                attributes[name] = by_id[id(value)]
            elif type(value) is list or type(value) is dict:
                for key in range(len(value)) if type(value) is list else [*value]:
                    if id(value[key]) in by_id:
                        value[key] = by_id[id(value[key])]
