"""Torch functions held as module attributes: `self.activation = F.gelu`.

A model built before `init` holds the original function. `init` replaces it with the wrapper in all
existing modules; `uninit` restores the original.
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
    return {id(each): each.__wrapped__ for each in replaced.values()}


def _alive() -> Iterable[Any]:
    """All existing modules but torch.jit's, whose attributes cannot be set."""
    kinds = {each for each in subclasses(Module) if not issubclass(each, ScriptModule)}
    return [each for each in gc.get_objects() if type(each) in kinds]


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
