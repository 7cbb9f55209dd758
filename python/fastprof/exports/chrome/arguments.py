"""Range names and the arguments of operators as torch.profiler writes them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from fastprof.exports.chrome.rows import quoted
from fastprof.model.call import UNKNOWN, Tensor
from fastprof.model.markers import Kind, Meaning

_LINE: Final = re.compile(r"(.+):(\d+)", re.DOTALL)


def beginning_of(meaning: Meaning, of_events: bool) -> str:
    """The beginning of the event of a range: type, category, name, and arguments, still open.

    of_events : whether the ranges are those of torch.profiler
    """
    category, name = _category(meaning, of_events), meaning.label
    if meaning.kind == Kind.TORCH:
        name = meaning.name
    arguments = "".join(f",{quoted(key)}:{quoted(value)}" for key, value in _arguments(meaning))
    return f'"ph":"X","cat":"{category}","name":{quoted(name)},"args":{{"Ev Idx":0{arguments}'


def _category(meaning: Meaning, of_events: bool) -> str:
    if meaning.kind == Kind.TORCH:
        return "cpu_op"
    is_python = meaning.kind in (Kind.FRAME, Kind.HIDDEN)
    if is_python or (of_events and meaning.label.startswith("nn.Module: ")):
        return "python_function"
    return "user_annotation"


def _arguments(meaning: Meaning) -> Iterator[tuple[str, Any]]:
    if meaning.kind != Kind.TORCH:
        return
    if meaning.call is not None and meaning.has_arguments and meaning.collective is None:
        yield from _inputs([arg.value for arg in meaning.call.args])
    if meaning.collective is not None:
        record = meaning.collective
        yield "Collective name", record.name
        found = {
            "dtype": record.dtype,
            "In msg nelems": record.given,
            "Out msg nelems": record.got,
            "Group size": record.ranks,
            "Process Group Name": record.group,
        }
        yield from ((key, value) for key, value in found.items() if value is not None)
    if meaning.frames:
        yield "Call stack", ";".join(map(_frame, reversed(meaning.frames)))
    if meaning.layers:
        yield "Module Hierarchy", ".".join(f"{name}()::forward" for name in meaning.layers)


def _frame(line: str) -> str:
    """`a.py:7` as torch.profiler writes it; it records functions too, which are unknown here."""
    match = _LINE.fullmatch(line)
    return f"{match[1]}({match[2]}): <unknown>" if match else line


def _inputs(values: list[Any]) -> Iterator[tuple[str, Any]]:
    described = [_input(value) for value in values]
    dims, types, strides, concrete = ([each[i] for each in described] for i in range(4))
    yield "Input Dims", dims
    if any(map(_has_type, values)):
        yield "Input type", types
    if any(strides):
        yield "Input Strides", strides
    if any(concrete):
        yield "Concrete Inputs", concrete


def _input(value: Any) -> tuple[Any, Any, Any, str]:
    """Dims, type, strides and value of an argument."""
    if isinstance(value, Tensor):
        return list(value.shape), _type(value), list(value.strides or ()), ""
    if value is UNKNOWN:
        return [], "GenericList", [], ""
    if value is None:
        return [], "", [], "None"
    if isinstance(value, tuple) and value and all(isinstance(each, Tensor) for each in value):
        return (
            [list(each.shape) for each in value],
            [each.dtype or "" for each in value]
            if any(each.dtype for each in value)
            else "TensorList",
            [list(each.strides or ()) for each in value],
            "",
        )
    if isinstance(value, tuple):
        return [], "ScalarList", [], f"[{', '.join(map(_plain, value))}]"
    return [], "Scalar", [], _plain(value)


def _type(tensor: Tensor) -> str:
    """torch.profiler's type of an input; a tensor without shape and type stands for a number."""
    if tensor.dtype is None and not tensor.shape:
        return "Scalar"
    return tensor.dtype or ""


def _has_type(value: Any) -> bool:
    if isinstance(value, tuple):
        return any(map(_has_type, value))
    return value is not None and not (isinstance(value, Tensor) and value.dtype is None)


def _plain(value: Any) -> str:
    return f"[{', '.join(map(_plain, value))}]" if isinstance(value, tuple) else str(value)
