"""Worked examples of op models: what `test_ops_*` modules list and check.

An `EXAMPLES` list in such a module holds calls with the FLOPs and bytes that the formula must give,
written as arithmetic that a reader can follow. `test_ops_complete` fails for a registered operator
that no list has.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from fastprof.model.call import Arg, Call, Tensor
from fastprof.ops import work


class Example(NamedTuple):
    """A call and what it must cost. `params` is compared where it is given."""

    call: Call
    flops: int | None
    bytes: int | None
    params: str | None = None
    direction: str = "fprop"


def python(mod: str, op: str, *values: Any, **named: Any) -> Call:
    """A Python call, as an argument marker has it."""
    args = [Arg("", value) for value in values]
    return Call(mod, op, (*args, *(Arg(name, value) for name, value in named.items())))


def aten(name: str, *values: Any) -> Call:
    """An operator of torch with all that a trace may hold; "aten::" may be left out."""
    space, _, op = name.rpartition("::")
    return Call(space or "aten", op, tuple(Arg("", value) for value in values))


def sizes(name: str, *shapes: tuple[int, ...]) -> Call:
    """An operator of torch as emit_nvtx writes it: shapes and nothing else, () for no tensor."""
    return aten(name, *map(Tensor, shapes))


def tensor(dtype: str, *shape: int) -> Tensor:
    return Tensor(shape, dtype)


def fp32(*shape: int) -> Tensor:
    return Tensor(shape, "float32")


def fp16(*shape: int) -> Tensor:
    return Tensor(shape, "float16")


def bf16(*shape: int) -> Tensor:
    return Tensor(shape, "bfloat16")


def int64(*shape: int) -> Tensor:
    return Tensor(shape, "int64")


def check(example: Example) -> None:
    """The model answers with the FLOPs and bytes (and params) of the example."""
    done = work(example.call, example.direction)
    assert done is not None, example.call
    assert (done.cost.flops, done.cost.bytes) == (example.flops, example.bytes)
    if example.params is not None:
        assert done.parts[0].params == example.params
