"""Einsum against FlopCounterMode's count of the same equation."""

import random
from math import prod

import pytest

from fastprof.ops import work
from fastprof.ops.matrix.einsum import contract

torch = pytest.importorskip("torch", reason="torch is not installed: make test TORCH=2.13.0")
from torch.utils.flop_counter import FlopCounterMode  # noqa: E402

from support.record_calls import python_calls, recorded  # noqa: E402

LABELS = "abcde"
DOTS = (2, 3, 1)  # sizes of an ellipsis's dimensions


def drawn(draw: random.Random) -> tuple[str, list[tuple[int, ...]]]:
    """An equation of one to four operands, with diagonals, ellipses and sizes of 1."""
    size = {label: draw.choice([1, 2, 3, 4]) for label in LABELS}
    operands = draw.choice([1, 2, 2, 2, 3, 3, 4])
    dotted = draw.random() < 0.3
    terms, shapes = [], []
    for _ in range(operands):
        letters = [draw.choice(LABELS) for _ in range(draw.randint(1, 3))]
        shape = [
            1 if letters.count(letter) == 1 and draw.random() < 0.1 else size[letter]
            for letter in letters
        ]
        if dotted:
            place, dots = draw.randint(0, len(letters)), draw.randint(0, 2)
            letters[place:place] = ["..."]
            shape[place:place] = DOTS[len(DOTS) - dots :]
        terms.append("".join(letters))
        shapes.append(tuple(shape))
    equation = ",".join(terms)
    if draw.random() < 0.7:
        used = sorted({label for term in terms for label in term if label != "."})
        kept = draw.sample(used, draw.randint(0, len(used)))
        equation += "->" + ("..." if dotted and draw.random() < 0.9 else "") + "".join(kept)
    return equation, shapes


@pytest.mark.parametrize("seed", range(300))
def test_products_are_those_that_torch_makes(seed: int) -> None:
    equation, shapes = drawn(random.Random(seed))
    tensors = [torch.randn(shape, requires_grad=True) for shape in shapes]
    with FlopCounterMode(display=False) as forward:
        out = torch.einsum(equation, *tensors)
    with FlopCounterMode(display=False) as backward:
        out.sum().backward()
    done = contract(equation, shapes)
    flops = 2 * sum(map(prod, done.products))
    assert done.shape == tuple(out.shape)
    assert (forward.get_total_flops(), backward.get_total_flops()) == (flops, 2 * flops)
    (call,) = recorded(python_calls, lambda: torch.einsum(equation, *tensors))
    elementwise = done.multiplications + done.additions
    assert work(call, "fprop").cost.flops == flops + elementwise


@pytest.mark.parametrize("equation", ["ab,bc->z", "ab,bc->aa", "a b c,bc", "ab,bc,cd"])
def test_torch_refuses_what_has_no_products(equation: str) -> None:
    with pytest.raises(RuntimeError):
        torch.einsum(equation, torch.ones(2, 3), torch.ones(3, 2))
    with pytest.raises(ValueError):
        contract(equation, [(2, 3), (3, 2)])
