"""Formats the markers of a call, byte for byte as PyProf does.

{'mod': 'torch', 'op': 'mm', 'args': [{'name': '', 'type': 'tensor', 'shape': (2, 3), ..}, ..]}
{'mod': 'LSTMCell', 'strRepr': '512, 512'}
{'traceMarker': ['train.py:310', 'net.py:12']}

Nothing here reads a tensor's data, copies it or synchronizes a device. Arguments that costs need
and PyProf omitted have marker types of their own: `dtype`, `device`, `slice`, `ellipsis`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import Any

import numpy
import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch._subclasses.functional_tensor import FunctionalTensor

from fastprof.annotate.function_names import function_stack

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
