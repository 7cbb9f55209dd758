"""Switches the annotation of torch on and off: `init` and `uninit`."""

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


class Session:
    """What `init` returns; at the end of a `with` block it switches off what it switched on."""

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
    """Enclose every call of torch in ranges that say call stack, module and arguments.

    Call it once, after the imports and before the model is built. Calls cost nearly
    nothing until a profiler listens: Nsight Systems (or any NVTX tool), or torch.profiler.

    Parameters
    ----------
    enable_function_stack : bool
        Also write the names of the functions on the stack (`funcStack`); takes longer a call.

    Returns
    -------
    Session
        A context manager, if the annotation is to end with a block; `uninit` ends it, too. A
        second `init` changes nothing but `enable_function_stack`.

    Raises
    ------
    MissingDependencyError
        torch or nvtx is not installed.

    Notes
    -----
    What is wrapped: annotate/table.py. What the program computes stays the same: nothing is copied,
    read from a device or waited for, and torch.jit, torch.compile, `__torch_function__`, pickling
    and signatures see the functions as they were. What was compiled before is compiled once more.
    A function of torch that the program took before is not `is` the one that torch holds now, but
    equal to it. Calls of it have ranges where it is an attribute of a module, or in a list or dict
    that is one, and none elsewhere: call `init` before the model is built.

    >>> import fastprof           # doctest: +SKIP
    >>> fastprof.init()           # doctest: +SKIP
    """
    global _installed
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
        patches.replace(owner, name, module_attributes.as_before(getattr(owner, name)))
    pickles.install()
    module_attributes.put_in()
    _installed = True
    return Session(owns=True)


def is_on() -> bool:
    """Whether torch is annotated now."""
    return _installed


def uninit() -> None:
    """Undo `init` and `wrap`: all functions are what they were. A second time does nothing."""
    global _installed
    _hooks.annotate(False)
    patches.take_off()
    module_attributes.take_out()
    replaced.clear()
    _installed = False


# These look at functions by identity or read their source: they see torch as it was before.
_SOURCE_READERS = ((jit, "script"), (jit, "trace"), (jit, "trace_module"))
