"""Formats the markers of a call and the stack byte for byte as PyProf does, and where they go.

{'mod': 'torch', 'op': 'mm', 'args': [{'name': '', 'type': 'tensor', 'shape': (2, 3), ..}, ..]}
{'mod': 'LSTMCell', 'strRepr': '512, 512'}
{'traceMarker': ['train.py:310', 'net.py:12']}

Nothing here reads a tensor's data, copies it or synchronizes a device. Arguments that costs need
and PyProf omitted have marker types of their own: `dtype`, `device`, `slice`, `ellipsis`.

A stack is `/<module>/main/Net::forward/conv1`: a method is prefixed with the class of its object. A
call of a submodule appears as its attribute name (`conv1`). Frames of torch are omitted.
"""

from __future__ import annotations

import enum
import math
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import numpy
import nvtx
import torch
from torch._C._dynamo import eval_frame
from torch._subclasses.fake_tensor import FakeTensor
from torch._subclasses.functional_tensor import FunctionalTensor
from torch.autograd import profiler
from torch.nn import Module

from fastprof._core import _ranges
from fastprof._core._frames import self_of
from fastprof.annotate.roctx import roctx_domain

_SCALARS = frozenset({int, float, bool, str, type(None)})
_HERE = str(Path(__file__).parent) + "/"


class _NotReal(Exception):
    """The tensor is a placeholder of a compiler's trace."""


def argument_text(mod: str, op: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> str | None:
    """The argument marker of a call.

    Returns
    -------
    str or None
        None if the tensors are placeholders, because a compiler traces the call.
    """
    described: list[dict[str, Any]] = []
    try:
        for name, value in _named(args, kwargs):
            described.extend(_described(name, value))
    except _NotReal:
        return None
    return str({"mod": mod, "op": op, "args": described})


def _named(args: Sequence[Any], kwargs: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for value in args:
        yield "", value
    yield from kwargs.items()


def _described(name: str, value: Any) -> Iterator[dict[str, Any]]:
    """Entries of one argument: one, one per tensor of a sequence, or none for any other object."""
    if isinstance(value, torch.Tensor):
        yield {"name": name, "type": "tensor", **_tensor(value)}
    elif isinstance(value, numpy.ndarray):
        yield {"name": name, "type": "ndarray", "shape": value.shape, "dtype": str(value.dtype)}
    elif type(value) in _SCALARS:
        yield {"name": name, "type": type(value).__name__, "value": _scalar(value)}
    elif isinstance(value, (list, tuple)):
        if _is_plain(value):
            kind, copy = ("list", list) if isinstance(value, list) else ("tuple", tuple)
            yield {"name": name, "type": kind, "value": copy(value)}
        else:
            for item in value:
                yield from _described(name, item)
    elif isinstance(value, (torch.dtype, torch.device)):
        text = str(value).removeprefix("torch.")
        yield {"name": name, "type": type(value).__name__, "value": text}
    elif isinstance(value, slice) and _is_plain((value.start, value.stop, value.step)):
        yield {"name": name, "type": "slice", "value": str(value)}
    elif value is ...:
        yield {"name": name, "type": "ellipsis", "value": "Ellipsis"}


def _tensor(value: torch.Tensor) -> dict[str, Any]:
    """Shape and dtype; only dtype if an extent is no integer (nested or symbolic shapes)."""
    if isinstance(value, (FakeTensor, FunctionalTensor)):
        raise _NotReal
    with torch._C.DisableTorchFunctionSubclass():
        dtype = str(value.dtype).rpartition(".")[2]
        try:
            shape = tuple(value.shape)
        except RuntimeError:
            shape = (None,)
    if any(type(extent) is not int for extent in shape):
        return {"dtype": dtype}
    return {"shape": shape, "dtype": dtype}


def _scalar(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)  # inf, -inf, nan
    return value


def _is_plain(value: Sequence[Any]) -> bool:
    """Whether a sequence contains only scalars and sequences of scalars."""
    return all(
        type(item) in _SCALARS or (type(item) in (list, tuple) and _is_plain(item))
        for item in value
    )


def module_text(module: torch.nn.Module) -> str:
    """The module marker: class name and `extra_repr` of the module."""
    return str({"mod": type(module).__name__, "strRepr": module.extra_repr()})


def stack_text(frame: FrameType) -> str:
    """The trace marker of a frame: the source lines of its stack, outermost first."""
    return str({"traceMarker": _lines(frame)})


def with_functions(trace_marker: str, frame: FrameType) -> str:
    """Add the function names of a frame's stack to its trace marker."""
    return f"{trace_marker[:-1]}, 'funcStack': {function_stack(frame)!r}}}"


def _lines(frame: FrameType | None) -> list[str]:
    """Source lines, outermost first; consecutive duplicates (recursion) once, as in PyProf."""
    lines: list[str] = []
    while frame is not None:
        if not frame.f_code.co_filename.startswith(_HERE):
            line = f"{frame.f_code.co_filename}:{frame.f_lineno}"
            if not lines or lines[-1] != line:
                lines.append(line)
        frame = frame.f_back
    return lines[::-1]


_TORCH = str(Path(torch.__file__).parent) + "/"
_OWN_FOLDER = str(Path(__file__).parent) + "/"


class _Kind(enum.Enum):
    FUNCTION = 0
    METHOD = 1
    MODULE_CALL = 2  # runs a module's hooks and forward
    LIBRARY = 3


# Keyed by id, because hashing code is slow; the value keeps the code object alive.
_kinds: dict[int, tuple[_Kind, CodeType]] = {}


def _kind(code: CodeType) -> _Kind:
    known = _kinds.get(id(code))
    if known is None:
        known = _kinds[id(code)] = _found_kind(code), code
    return known[0]


def _found_kind(code: CodeType) -> _Kind:
    calls = (getattr(Module, name, None) for name in ("_call_impl", "__call__"))
    if any(getattr(call, "__code__", None) is code for call in calls):
        return _Kind.MODULE_CALL
    if code.co_filename.startswith((_TORCH, _OWN_FOLDER)):
        return _Kind.LIBRARY
    has_self = code.co_argcount and code.co_varnames[0] == "self"
    return _Kind.METHOD if has_self else _Kind.FUNCTION


def function_stack(frame: FrameType) -> str:
    """Names of the functions on a frame's stack, outermost first."""
    frames = []
    outer: FrameType | None = frame
    while outer is not None:
        kind = _kind(outer.f_code)
        if kind is not _Kind.LIBRARY:
            frames.append((kind, outer))
        outer = outer.f_back
    names: list[str] = []
    around: list[Module] = []  # modules whose forward is running, outermost first
    for kind, frame_type in reversed(frames):
        name = _name(kind, frame_type, around)
        if name and names[-1:] != [name]:  # recursion appears once
            names.append(name)
    return "".join(f"/{name}" for name in names)


def _name(kind: _Kind, frame: FrameType, around: list[Module]) -> str | None:
    if kind is _Kind.FUNCTION:
        return frame.f_code.co_name
    owner = self_of(frame)
    if kind is _Kind.METHOD:
        return f"{type(owner).__name__}::{frame.f_code.co_name}"
    if not isinstance(owner, Module) or (around and around[-1] is owner):
        return None
    name = _attribute(around, owner)
    around.append(owner)
    return name


def _attribute(around: list[Module], module: Any) -> str | None:
    """The attribute name of a module in the innermost enclosing module that has it."""
    for parent in reversed(around):
        for name, child in parent._modules.items():
            if child is module:
                return str(name)
    return None


_connected = False


def connect() -> None:
    """Detect a tool: NVTX's, which attaches once, at the first call, or else that of roctx."""
    global _connected
    if _connected:
        return
    domain = tool_domain()
    _ranges.connect(
        roctx_domain() if domain is None else domain,
        vars(profiler),
        _is_recording,
        _recorder(),
        recordable,
        None if domain is None else _plain(),
    )
    _connected = True


def tool_domain(name: str | None = None) -> nvtx.Domain | None:
    """A domain of the attached NVTX tool, the default one without a name; None without a tool."""
    domain = nvtx.get_domain(name)
    if type(domain).__name__ != "DummyDomain":
        return domain
    if not os.environ.get("NVTX_INJECTION64_PATH"):
        return None
    # Nsight Systems 2022.4 and 2023.4 report every domain as disabled, but record its ranges.
    compiled = nvtx._lib.lib
    domain = object.__new__(compiled.Domain)
    domain.handle = compiled.DomainHandle(name)
    domain.__init__(name)
    return domain


def _is_recording() -> bool:
    """Whether torch.profiler records ranges itself; under emit_nvtx they go to NVTX directly."""
    return int(torch._C._autograd._profiler_type()) not in _ELSEWHERE


_KINDS = torch._C._profiler.ActiveProfilerType
_ELSEWHERE = {int(_KINDS.NONE), int(_KINDS.NVTX), int(_KINDS.ITT)}  # enums hash slowly


def _recorder() -> Callable[[str], object]:
    """The fast form of record_function if torch has it: 3 instead of 14 us per range."""
    fast = getattr(torch._C._profiler, "_RecordFunctionFast", None)
    recorder: Callable[[str], object] = profiler.record_function if fast is None else fast
    return recorder


def recordable(text: str) -> str:
    """Make a range's text safe for torch.profiler, which does not escape its JSON.

    In a double-quoted string, apostrophes become ` and the quotes become apostrophes: the text
    stays a Python literal. Other double quotes and backslashes become ` and /.
    """
    if '"' not in text and "\\" not in text:
        return text
    text = _DOUBLE_QUOTED.sub(lambda match: "'" + match[1].replace("'", "`") + "'", text)
    return text.replace('"', "`").replace("\\", "/")


_DOUBLE_QUOTED = re.compile(r'"([^"\\]*)"')


if hasattr(eval_frame, "skip_code"):  # torch 2.3 compiles what it meets in compiled code
    for _function in (_is_recording, recordable):
        eval_frame.skip_code(_function.__code__)


def _plain() -> Callable[[str], object] | None:
    """torch's NVTX push, which does not register the string; None in builds without CUDA."""
    if torch.version.cuda is None:
        return None
    from torch.cuda import nvtx as of_torch

    push: Callable[[str], object] = of_torch.range_push
    return push
