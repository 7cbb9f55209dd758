"""Calls of one ATen overload with real tensors: run, as a `Call`, and as ranges would show it."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch

from fastprof.model.call import UNKNOWN, Arg, Call, Tensor
from fastprof.ops.out_forms import ATEN
from fastprof.ops.registry import formulas
from support.record_calls import _in_order, value
from unit.ops.ops_examples import cost


class Ran(NamedTuple):
    """A call accepted by torch, with and without types, and the bytes of its inputs and outputs."""

    call: Call
    read: int
    written: int

    @property
    def sizes_only(self) -> Call:
        """The call as in emit_nvtx: shapes only, lists expanded."""
        shapes = []
        for arg in self.call.args:
            nested = isinstance(arg.value, tuple) and any(map(_is_tensor, arg.value))
            shapes.extend(arg.value if nested else [arg.value])
        bare = [Tensor(shape.shape if isinstance(shape, Tensor) else ()) for shape in shapes]
        return Call(self.call.mod, self.call.op, tuple(Arg("", each) for each in bare))

    @property
    def without_values(self) -> Call:
        """The call as in a trace without concrete inputs: types, but no plain values."""
        args = [arg if _is_kept(arg.value) else Arg("", UNKNOWN) for arg in self.call.args]
        return Call(self.call.mod, self.call.op, tuple(args))


def _is_tensor(found: Any) -> bool:
    return isinstance(found, Tensor)


def _is_kept(found: Any) -> bool:
    return (
        found is None
        or _is_tensor(found)
        or (isinstance(found, tuple) and any(map(_is_tensor, found)))
    )


def _bytes(found: Any) -> int:
    if isinstance(found, torch.Tensor):
        return found.numel() * found.element_size()
    return sum(map(_bytes, found)) if isinstance(found, (list, tuple)) else 0


def ran(overload: str, *args: Any, **kwargs: Any) -> Ran:
    """Run an overload ("sum.dim_IntList", or "sum" for the default one) of torch.ops.aten."""
    name, _, variant = overload.partition(".")
    function = getattr(getattr(torch.ops.aten, name), variant or "default")
    filled = list(_in_order(function._schema, args, kwargs))
    the_call = Call(ATEN, name, tuple(Arg("", value(each)) for each in filled))
    read = sum(map(_bytes, filled))
    return Ran(the_call, read, _bytes(function(*args, **kwargs)))


def run(case: Sequence[Any]) -> Ran:
    """Run a case of a table: an overload, its arguments, and perhaps those by name."""
    overload, arguments, *named = case
    return ran(overload, *arguments, **(named[0] if named else {}))


def served_by(*modules: str) -> set[str]:
    """Names of the ATen operators with formulas in these parts of fastprof.ops."""
    homes = tuple(f"fastprof.ops.{module}." for module in modules)
    return {
        name
        for formula, served in formulas()
        if f"{formula.function.__module__}.".startswith(homes)
        for space, name in served
        if space == ATEN
    }


def check_bytes(done: Ran) -> None:
    """The bytes of a call are those of its inputs and outputs."""
    assert cost(done.call).bytes == done.read + done.written
