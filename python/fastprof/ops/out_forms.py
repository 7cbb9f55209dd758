"""Calls of ATen operators that are given the tensors for their results: `mm(a, b, out)`.

Source: torch's schemas, in which every `out` overload has its results behind all other arguments.
A trace writes them there, under the name of the plain operator.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

from fastprof.call import Call, Tensor

__all__ = ["ATEN", "without_results"]

ATEN: Final = "aten"


def without_results(call: Call) -> Iterator[tuple[Call, Tensor | None]]:
    """The call without the last of its tensors, without the last two, and so on.

    Yields
    ------
    call, given : Call, Tensor or None
        What is left of the call, and the first tensor taken from it (None where that is a list): if
        the rest is all that the operator needs, the tensor is its result, and has its type. Its
        size is `Call.result` of the rest, but where it has no elements: torch makes it larger.
        Nothing for a call that cannot have its results among its arguments: one in place, or of no
        operator of ATen.
    """
    if call.mod != ATEN or (call.op.endswith("_") and not call.op.endswith("__")):
        return
    for n in range(len(call.args) - 1, 0, -1):
        last = call.args[n]
        if last.name or not _may_be_result(last.value):
            return
        given = last.value if isinstance(last.value, Tensor) else None
        sized = given is not None and 0 not in given.shape
        yield replace(call, args=call.args[:n], result=given if sized else call.result), given


def _may_be_result(value: Any) -> bool:
    if isinstance(value, tuple):
        return bool(value) and all(map(_may_be_result, value))
    return isinstance(value, Tensor) and bool(value.shape or value.dtype)
