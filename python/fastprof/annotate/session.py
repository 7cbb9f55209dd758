"""Enables and disables the annotation of torch, `init` and `uninit`, also in picklers.

Pickle rejects a function that is not the attribute its name refers to; cloudpickle and dill copy
its code. `reducer_override`, which a pickler calls first, pickles such a function by reference.

`__torch_function__` gets the wrapper where torch would pass the original function. C functions
determine which `__torch_function__` handlers to call, in which order and with which types. A mode
around the call leaves that to them and substitutes the wrapper.
"""

from __future__ import annotations

import functools
import pickle
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

import torch
from torch import jit, overrides
from torch._guards import CompileContext
from torch.overrides import TorchFunctionMode

from fastprof._core import _hooks, _stacks
from fastprof._core._hooks import Wrapped
from fastprof.annotate import layers as module_attributes
from fastprof.annotate import table
from fastprof.annotate import text as channels
from fastprof.annotate import wrap as indexing
from fastprof.annotate.table import subclasses
from fastprof.annotate.text import argument_text, stack_text, with_functions
from fastprof.annotate.wrap import patches, replaced, wrap_defaults, wrap_function, wrap_method

_installed = False
_n_inits = 0
_n_added = 0  # patches of classes that were defined after `init`, as by an import of torch's


class Session:
    """Returned by `init`; a `with` block calls `uninit` at its end if that `init` was the first."""

    def __init__(self, owns: bool) -> None:
        self._owns = owns

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *exception: object) -> None:
        if self._owns:
            uninit()


def init(enable_function_stack: bool = False) -> Session:
    """Enclose every torch call in ranges that record its call stack, module and arguments.

    Call it once, after the imports and before the model is built. The overhead is negligible
    until a profiler is active: Nsight Systems (or another NVTX tool), or torch.profiler.

    Parameters
    ----------
    enable_function_stack : bool
        Also record the function names on the stack (`funcStack`). Adds overhead to each call.

    Returns
    -------
    Session
        An optional context manager that calls `uninit` on exit. A second `init` only updates
        `enable_function_stack`.

    Raises
    ------
    MissingDependencyError
        torch or nvtx is not installed.

    Notes
    -----
    annotate/table.py lists the wrapped functions. Results do not change: no tensor is copied, no
    device is read or synchronized, and torch.jit, torch.compile, `__torch_function__`, pickling and
    signatures see the original functions. Code compiled before `init` is compiled again.
    A reference to a torch function taken before `init` compares equal to the wrapped function but
    is not identical to it. Its calls have ranges only if a module holds the reference as an
    attribute, or in a list or dict attribute. Call `init` before the model is built.

    >>> import fastprof           # doctest: +SKIP
    >>> fastprof.init()           # doctest: +SKIP
    """
    global _installed, _n_inits
    _n_inits += 1
    channels.connect()
    _stacks.describe_stacks_with(stack_text, with_functions if enable_function_stack else None)
    _hooks.describe_with(
        argument_text,
        CompileContext.try_get,
        torch._C._has_torch_function_variadic,
        hand_over,
        torch._C._is_torch_function_mode_enabled,
        torch._C.DisableTorchFunction,
        torch.Tensor,
        torch.nn.Parameter,
        (torch.dtype, torch.device),
    )
    _hooks.annotate(True)
    if _installed:
        return Session(owns=False)
    for function in list(table.functions()):
        wrap_function(function)
    for method in list(table.methods()):
        wrap_method(method)
    indexing.install()
    for with_defaults in table.with_defaults():
        wrap_defaults(with_defaults)
    for owner, name in _SOURCE_READERS:
        patches.replace(owner, name, module_attributes.with_originals(getattr(owner, name)))
    install()
    module_attributes.install()
    _installed = True
    return Session(owns=True)


def is_on() -> bool:
    """Whether torch is annotated."""
    return _installed


def uses() -> tuple[int, int]:
    """Changes when `init` or `wrap` is called."""
    return _n_inits, len(patches) - _n_added


def uninit() -> None:
    """Undo `init` and `wrap`: restore all functions. Calling it again has no effect."""
    global _installed, _n_added
    _hooks.annotate(False)
    patches.revert()
    _n_added = 0
    module_attributes.uninstall()
    replaced.clear()
    _installed = False


# These compare functions by identity or read their source, and so need the original torch.
_SOURCE_READERS = ((jit, "script"), (jit, "trace"), (jit, "trace_module"))


def install() -> None:
    """Patch Python's picklers (C and Python) and all their subclasses."""
    patches.add(pickle.Pickler, "reducer_override", _reduced)
    patches.add(pickle.Pickler, "__init_subclass__", _INIT_SUBCLASS)
    patches.replace(pickle._Pickler, "reducer_override", _reduced)
    for kind in (*subclasses(pickle.Pickler), *subclasses(pickle._Pickler)):
        _patch(kind)


def _patch(kind: type) -> None:
    own = vars(kind).get("reducer_override")
    if own is not None:
        patches.replace(kind, "reducer_override", _before(own))


def _init_subclass(kind: Any, /, **keywords: Any) -> None:
    """Patch a new subclass of pickle.Pickler, such as cloudpickle's when it is imported."""
    global _n_added
    super(pickle.Pickler, kind).__init_subclass__(**keywords)
    n_before = len(patches)
    _patch(kind)
    _n_added += len(patches) - n_before


_INIT_SUBCLASS: Final = classmethod(_init_subclass)


def _reduced(_: Any, value: Any) -> Any:
    wrapped = replaced.get(id(value))
    return NotImplemented if wrapped is None else wrapped.__reduce__()


def _before(own: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    @functools.wraps(own)
    def reducer_override(pickler: Any, value: Any) -> Any:
        wrapped = replaced.get(id(value))
        return own(pickler, value) if wrapped is None else wrapped.__reduce__()

    return reducer_override


def hand_over(wrapped: Wrapped, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """Call a wrapped function when an argument or a mode defines `__torch_function__`."""
    with _HandOver(wrapped):
        return wrapped.__wrapped__(*args, **kwargs)


class _HandOver(TorchFunctionMode):  # type: ignore[misc]  # torch has no types here
    def __init__(self, wrapped: Wrapped) -> None:
        self._wrapped = wrapped

    def __torch_function__(
        self,
        func: Any,
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        kwargs = kwargs or {}
        handed = self._wrapped if self._wrapped == func else func
        asked = []
        if torch._C._is_torch_function_mode_enabled():
            with overrides._pop_mode_temporarily() as mode:
                result = mode.__torch_function__(handed, types, args, kwargs)
            if result is not NotImplemented:
                return result
            asked.append(f"mode object {mode!r}")
        for owner in _one_of_each(types, args, kwargs):
            result = owner.__torch_function__(handed, types, args, kwargs)
            if result is not NotImplemented:
                return result
            asked.append(f"tensor subclass {type(owner)!r}")
        if not asked:
            return func(*args, **kwargs)
        raise TypeError(_REFUSED.format(func.__name__, "\n".join(f"  - {text}" for text in asked)))


# Same text as in torch/csrc/utils/python_arg_parser.cpp.
_REFUSED = (
    "Multiple dispatch failed for 'torch.{}'; all __torch_function__ handlers returned "
    "NotImplemented:\n\n{}\n\nFor more information, try re-running with TORCH_LOGS=not_implemented"
)


def _one_of_each(
    types: Sequence[type], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> Iterator[Any]:
    """An argument of each type, also from within lists; the type itself if there is none."""
    given = [*args, *kwargs.values()]
    given += [item for each in given if isinstance(each, (list, tuple)) for item in each]
    for kind in types:
        yield next((each for each in given if type(each) is kind), kind)
