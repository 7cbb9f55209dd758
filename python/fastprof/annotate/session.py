"""Enables and disables the annotation of torch: `init` and `uninit`."""

from __future__ import annotations

from types import TracebackType

import torch
from torch import jit
from torch._guards import CompileContext

from fastprof._core import _hooks, _stacks
from fastprof.annotate import channels, indexing, module_attributes, pickles, table
from fastprof.annotate.overloads import hand_over
from fastprof.annotate.text import argument_text, stack_text, with_functions
from fastprof.annotate.wrap import patches, replaced, wrap_defaults, wrap_function, wrap_method

_installed = False
_n_inits = 0


class Session:
    """Returned by `init`; a `with` block calls `uninit` at its end if that `init` was the first."""

    def __init__(self, owns: bool) -> None:
        self._owns = owns

    def __enter__(self) -> Session:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
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
    pickles.install()
    module_attributes.install()
    _installed = True
    return Session(owns=True)


def is_on() -> bool:
    """Whether torch is annotated."""
    return _installed


def uses() -> tuple[int, int]:
    """Changes when `init` or `wrap` is called."""
    return _n_inits, len(patches)


def uninit() -> None:
    """Undo `init` and `wrap`: restore all functions. Calling it again has no effect."""
    global _installed
    _hooks.annotate(False)
    patches.revert()
    module_attributes.uninstall()
    replaced.clear()
    _installed = False


# These compare functions by identity or read their source, and so need the original torch.
_SOURCE_READERS = ((jit, "script"), (jit, "trace"), (jit, "trace_module"))
