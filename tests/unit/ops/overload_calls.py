"""Calls of one ATen overload with real tensors: run, as a `Call`, and as ranges would show it.

The `check_` functions assert properties common to all families.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import torch

from fastprof.model.call import UNKNOWN, Arg, Call, Tensor
from fastprof.ops import has_model, work
from fastprof.ops.cost import Work
from fastprof.ops.out_forms import ATEN
from fastprof.ops.registry import find, formulas
from support.record_calls import _in_order, aten_calls, python_calls, recorded, value


class Ran(NamedTuple):
    """A call accepted by torch, with and without types, and the bytes of its inputs and outputs."""

    call: Call
    read: int
    written: int

    @property
    def sizes_only(self) -> Call:
        """The call as in emit_nvtx: shapes only, lists expanded."""
        shapes = []
        for each in self.call.args:
            nested = isinstance(each.value, tuple) and any(map(_is_tensor, each.value))
            shapes.extend(each.value if nested else [each.value])
        bare = [Tensor(each.shape if isinstance(each, Tensor) else ()) for each in shapes]
        return Call(self.call.mod, self.call.op, tuple(Arg("", each) for each in bare))

    @property
    def without_values(self) -> Call:
        """The call as in a trace without concrete inputs: types, but no plain values."""
        args = [each if _is_kept(each.value) else Arg("", UNKNOWN) for each in self.call.args]
        return Call(self.call.mod, self.call.op, tuple(args))

    @property
    def is_complex(self) -> bool:
        return "complex" in str(self.call.args)


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


def in_torch(names: set[str]) -> set[str]:
    """The names that exist in the installed torch."""
    known = {schema.name for schema in torch._C._jit_get_all_schemas()}
    return {name for name in names if f"aten::{name}" in known}


def untried(cases: Iterable[tuple[Any, ...]], modules: Iterable[str]) -> set[str]:
    """ATen operators with formulas in these parts that no case calls."""
    return in_torch(served_by(*modules)) - {case[0].partition(".")[0] for case in cases}


def check_bytes(done: Ran) -> None:
    """The bytes of a call are those of its inputs and outputs."""
    found = work(done.call, "fprop")
    assert found is not None, done.call
    assert found.cost.bytes == done.read + done.written


def check_bare(done: Ran) -> tuple[Work, Work | None, Work | None]:
    """With fewer details of a call, its cost is equal, an estimate, or unknown.

    Returns its work, and that from sizes alone and without values.
    """
    typed = work(done.call, "fprop")
    assert typed is not None, done.call
    sizes, valueless = (work(call, "fprop") for call in (done.sizes_only, done.without_values))
    assert sizes is None or sizes.cost.bytes in (None, 0)
    for less in (sizes, valueless):
        if less is not None and less.cost.exact and not (less is sizes and done.is_complex):
            assert less.cost.flops == typed.cost.flops
            assert less.cost.bytes in (None, typed.cost.bytes)
    return typed, sizes, valueless


def check_python(function: Callable[[], Any], flops: int | None, moved: int | None) -> None:
    """The last call of Python in a function that has a formula costs this."""
    calls = [call for call in recorded(python_calls, function) if find(call)]
    found = work(calls[-1], "fprop")
    assert found is not None, calls
    assert (found.cost.flops, found.cost.bytes) == (flops, moved)


def check_backward(
    functions: Iterable[Callable[[Any], Any]], modules: Iterable[str], names: set[str]
) -> None:
    """What autograd runs for functions of a tensor [4, 6] has a cost; `names` are among it."""

    def step() -> None:
        leaf = torch.randn(4, 6, requires_grad=True)
        for function in functions:
            function(leaf).sum().backward()

    served = served_by(*modules)
    calls = [call for call in recorded(aten_calls, step) if call.op in served]
    assert names <= {call.op for call in calls}
    assert [call for call in calls if work(call, "fprop") is None] == []


def check_both_doors(name: str, function: Callable[[], Any], modules: Iterable[str]) -> None:
    """In a forward and backward step of one Python call, it and all its operators have costs.

    function : computes the value to sum and differentiate
    """

    def step() -> None:
        function().sum().backward()

    called = [call for call in recorded(python_calls, step) if call.op == name]
    served = served_by(*modules)
    dispatched = [call for call in recorded(aten_calls, step) if call.op in served]
    assert len(called) == 1 and find(called[0])
    assert work(called[0], "fprop") is not None and work(called[0], "bprop") is not None
    assert [call for call in dispatched if not has_model(call)] == []
