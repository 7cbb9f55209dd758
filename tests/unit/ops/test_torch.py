"""FLOPs of the matmul family against torch's FlopCounterMode."""

import random
from collections.abc import Callable
from typing import Any

import pytest

from fastprof.model.call import Call
from fastprof.ops import work

torch = pytest.importorskip("torch", reason="torch is not installed: make test TORCH=2.13.0")
from torch.utils.flop_counter import FlopCounterMode  # noqa: E402

from support.record_calls import aten_calls, python_calls, recorded  # noqa: E402

functional = torch.nn.functional
REAL = [torch.float32, torch.float64, torch.bfloat16]
NAMES = {
    "linear",
    "mm",
    "spmm",
    "addmm",
    "bmm",
    "baddbmm",
    "addbmm",
    "matmul",
    "inner",
    "tensordot",
}
NAMES |= {"__matmul__", "multi_dot", "chain_matmul", "addmm_", "baddbmm_"}


def modelled(call: Call, direction: str) -> int:
    done = work(call, direction)
    assert done is not None, call
    assert done.cost.bytes, call
    return sum(part.cost.flops or 0 for part in done.parts if part.role != "bias")


def counted(function: Callable[..., Any], tensors: list[Any]) -> tuple[int, int]:
    """FLOPs of the forward and of the backward pass, as torch counts them."""
    with FlopCounterMode(display=False) as forward:
        out = function(*tensors)
    with FlopCounterMode(display=False) as backward:
        out.abs().sum().backward()
    return forward.get_total_flops(), backward.get_total_flops()


def sizes(draw: random.Random) -> tuple[int, int, int, int]:
    b, m, n, k = (draw.randint(2, 9) for _ in range(4))
    return b, m, n, k


# A function, and the shapes of its operands by batch, rows, columns and inner size.
CASES: dict[str, tuple[Callable[..., Any], Callable[..., list[tuple[int, ...]]]]] = {
    "linear": (functional.linear, lambda b, m, n, k: [(b, m, k), (n, k)]),
    "linear with bias": (functional.linear, lambda b, m, n, k: [(m, k), (n, k), (n,)]),
    "linear by keyword": (
        lambda x, w, bias: functional.linear(input=x, weight=w, bias=bias),
        lambda b, m, n, k: [(b, m, k), (n, k), (n,)],
    ),
    "mm": (torch.mm, lambda b, m, n, k: [(m, k), (k, n)]),
    "mm of a transposed view": (
        lambda x, y: torch.mm(x.t(), y),
        lambda b, m, n, k: [(k, m), (k, n)],
    ),
    "addmm": (torch.addmm, lambda b, m, n, k: [(n,), (m, k), (k, n)]),
    "addmm scaled": (
        lambda c, x, y: torch.addmm(c, x, y, beta=0.5, alpha=2),
        lambda b, m, n, k: [(m, n), (m, k), (k, n)],
    ),
    "bmm": (torch.bmm, lambda b, m, n, k: [(b, m, k), (b, k, n)]),
    "bmm of an expanded operand": (
        lambda x, y: torch.bmm(x, y.expand(x.shape[0], -1, -1)),
        lambda b, m, n, k: [(b, m, k), (1, k, n)],
    ),
    "baddbmm": (
        lambda c, x, y: torch.baddbmm(c, x, y, beta=0.5),
        lambda b, m, n, k: [(b, m, n), (b, m, k), (b, k, n)],
    ),
    "matmul": (torch.matmul, lambda b, m, n, k: [(m, k), (k, n)]),
    "a row": (torch.matmul, lambda b, m, n, k: [(k,), (k, n)]),
    "folded": (torch.matmul, lambda b, m, n, k: [(b, 2, m, k), (k, n)]),
    "folded on the left": (torch.matmul, lambda b, m, n, k: [(m, k), (b, k, n)]),
    "broadcast": (torch.matmul, lambda b, m, n, k: [(b, 1, m, k), (3, k, n)]),
    "@": (lambda x, y: x @ y, lambda b, m, n, k: [(b, m, k), (b, k, n)]),
    "inner": (torch.inner, lambda b, m, n, k: [(b, m, k), (n, k)]),
    "tensordot": (
        lambda x, y: torch.tensordot(x, y, dims=([1, 2], [0, 1])),
        lambda b, m, n, k: [(m, b, k), (b, k, n)],
    ),
    "multi_dot": (
        lambda *matrices: torch.linalg.multi_dot(matrices),
        lambda b, m, n, k: [(m, k), (k, n), (n, b), (b, m)],
    ),
    "chain_matmul": (torch.chain_matmul, lambda b, m, n, k: [(m, k), (k, b), (b, n)]),
}


@pytest.mark.filterwarnings("ignore:torch.chain_matmul")
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("seed", range(4))
def test_flops_are_those_that_torch_counts(case, seed):
    draw = random.Random(f"{case} {seed}")
    function, shapes = CASES[case]
    dtype = draw.choice(REAL)
    tensors = [
        torch.randn(shape, dtype=dtype, requires_grad=True) for shape in shapes(*sizes(draw))
    ]
    expected = counted(function, tensors)
    assert expected[0] > 0
    (call,) = [
        call for call in recorded(python_calls, lambda: function(*tensors)) if call.op in NAMES
    ]
    assert (modelled(call, "fprop"), modelled(call, "bprop")) == expected
    # torch's operators for it count the same, individually and backward.
    with aten_calls() as calls:
        function(*tensors).abs().sum().backward()
    done = [modelled(call, "fprop") for call in calls if call.op in NAMES]
    assert sum(done) == sum(expected)


def test_torch_takes_a_complex_multiply_add_for_a_real_one():
    tensors = [torch.randn(4, 4, dtype=torch.complex64, requires_grad=True) for _ in range(2)]
    (call,) = recorded(python_calls, lambda: torch.mm(*tensors))
    forward, backward = counted(torch.mm, tensors)
    assert (modelled(call, "fprop"), modelled(call, "bprop")) == (4 * forward, 4 * backward)


@pytest.mark.parametrize(
    ("function", "shapes", "flops"),
    [
        (torch.mv, [(3, 4), (4,)], 2 * 12),
        (torch.dot, [(4,), (4,)], 2 * 4),
        (torch.matmul, [(2, 3, 4), (4,)], 2 * 24),
        (torch.matmul, [(4,), (2, 4, 5)], 2 * 40),
        (torch.outer, [(3,), (4,)], 12),
        (torch.kron, [(2, 3), (4,)], 24),
        (torch.linalg.vecdot, [(3, 4), (3, 4)], 2 * 12),
        (functional.bilinear, [(7, 3), (7, 5), (2, 3, 5)], 2 * 7 * 2 * 5 * (3 + 1)),
    ],
)
def test_torch_does_not_count_products_with_vectors(function, shapes, flops):
    tensors = [torch.randn(shape, requires_grad=True) for shape in shapes]
    calls = recorded(python_calls, lambda: function(*tensors))
    assert counted(function, tensors)[0] == 0
    assert modelled(calls[-1], "fprop") == flops


@pytest.mark.filterwarnings("ignore:.*addmm.* is deprecated:UserWarning")  # once a process
def test_the_older_order_of_addmm_counts_the_same():
    tensors = torch.ones(2, 5), torch.ones(2, 3), torch.ones(3, 5)
    calls = recorded(python_calls, lambda: torch.addmm(2, tensors[0], 3, *tensors[1:]))
    assert modelled(calls[0], "fprop") == 60
