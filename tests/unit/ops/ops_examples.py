"""Worked examples of op models: what the tests of this folder list and check.

An `EXAMPLES` list in such a module has calls with the expected FLOPs and bytes, written as explicit
arithmetic. `test_complete.py` fails for registered operators without an example.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from fastprof.model.call import Arg, Call, Tensor
from fastprof.ops import work


class Example(NamedTuple):
    """A call and its expected cost. `params` is compared if given."""

    call: Call
    flops: int | None
    bytes: int | None
    params: str | None = None
    direction: str = "fprop"


def python(mod: str, op: str, *values: Any, **named: Any) -> Call:
    """A Python call as in an argument marker."""
    args = [Arg("", value) for value in values]
    return Call(mod, op, (*args, *(Arg(name, value) for name, value in named.items())))


def aten(name: str, *values: Any) -> Call:
    """An operator of torch with all details of a trace; "aten::" is optional."""
    space, _, op = name.rpartition("::")
    return Call(space or "aten", op, tuple(Arg("", value) for value in values))


def sizes(name: str, *shapes: tuple[int, ...]) -> Call:
    """An operator of torch as in emit_nvtx: shapes only, () for non-tensors."""
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
    """Check that the model gives the FLOPs and bytes (and params) of the example."""
    done = work(example.call, example.direction)
    assert done is not None, example.call
    assert (done.cost.flops, done.cost.bytes) == (example.flops, example.bytes)
    if example.params is not None:
        assert done.parts[0].params == example.params
