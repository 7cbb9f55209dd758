"""Operators of serving stacks as tables: one call per line, arguments in schema order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from fastprof.model.call import UNKNOWN, Call, Tensor
from fastprof.ops import why_unknown, work
from unit.ops.ops_examples import Example, aten, tensor

_WORDS = {"_": UNKNOWN, "-": None, "true": True, "false": False}


def fp8(*shape: int) -> Tensor:
    return tensor("float8_e4m3fn", *shape)


def uint8(*shape: int) -> Tensor:
    return tensor("uint8", *shape)


def int8(*shape: int) -> Tensor:
    return tensor("int8", *shape)


def int32(*shape: int) -> Tensor:
    return tensor("int32", *shape)


def calls(table: str, values: Mapping[str, Any]) -> Iterator[Call]:
    """`name argument ...` a line.

    An argument is a key of `values`, a number, true, false, - (none) or _ (unknown).
    """
    for line in table.strip().splitlines():
        name, *words = line.split()
        yield aten(name, *(_value(word, values) for word in words))


def listed(
    table: str, values: Mapping[str, Any], flops: int, moved: int, params: str | None = None
) -> list[Example]:
    """All calls of the table, which have equal costs."""
    return [Example(call, flops, moved, params) for call in calls(table, values)]


def exact(example: Example) -> bool:
    """Whether the cost is no estimate."""
    done = work(example.call, example.direction)
    assert done is not None
    return done.cost.exact


def reason(call: Call) -> str | None:
    return why_unknown(call, "fprop")


def _value(word: str, values: Mapping[str, Any]) -> Any:
    if word in values:
        return values[word]
    if word in _WORDS:
        return _WORDS[word]
    return float(word) if "." in word else int(word)
