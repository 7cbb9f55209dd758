"""FLOPs of the matmul family against what torch itself counts, with torch's FlopCounterMode."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from fastprof import ops
from fastprof.call import Arg, Call, Tensor

torch = pytest.importorskip("torch", reason="torch is not installed: make test TORCH=2.13.0")
from torch.utils.flop_counter import FlopCounterMode  # noqa: E402


def random(*shape: int) -> Any:
    return torch.randn(*shape, requires_grad=True)


CASES = [
    ("torch.nn.functional", "linear", torch.nn.functional.linear, [(35, 20, 200), (64, 200)]),
    ("torch.nn.functional", "linear", torch.nn.functional.linear, [(7, 32), (5, 32), (5,)]),
    ("torch", "mm", torch.mm, [(3, 4), (4, 5)]),
    ("torch", "addmm", torch.addmm, [(3, 5), (3, 4), (4, 5)]),
    ("torch", "bmm", torch.bmm, [(6, 3, 4), (6, 4, 5)]),
    ("torch", "baddbmm", torch.baddbmm, [(6, 3, 5), (6, 3, 4), (6, 4, 5)]),
    ("torch", "matmul", torch.matmul, [(2, 3, 4), (2, 4, 5)]),
    ("torch", "matmul", torch.matmul, [(2, 6, 3, 4), (4, 5)]),
    ("Tensor", "__matmul__", torch.matmul, [(8, 4), (4, 9)]),
]


def counted(function: Callable[..., Any], shapes: list[tuple[int, ...]]) -> tuple[int, int]:
    """FLOPs of the forward and of the backward pass, as torch counts them."""
    tensors = [random(*shape) for shape in shapes]
    with FlopCounterMode(display=False) as forward:
        out = function(*tensors)
    with FlopCounterMode(display=False) as backward:
        out.sum().backward()
    return forward.get_total_flops(), backward.get_total_flops()


def modelled(call: Call, direction: str) -> int:
    work = ops.work(call, direction)
    assert work is not None
    return sum(part.cost.flops or 0 for part in work.parts if part.role != "bias")


@pytest.mark.parametrize(("mod", "op", "function", "shapes"), CASES)
def test_flops_are_those_that_torch_counts(
    mod: str, op: str, function: Callable[..., Any], shapes: list[tuple[int, ...]]
) -> None:
    call = Call(mod, op, tuple(Arg("", Tensor(shape, "float32")) for shape in shapes))
    assert (modelled(call, "fprop"), modelled(call, "bprop")) == counted(function, shapes)
