"""Embeddings and bags in torch's actual calls, forward and backward."""

from typing import Any

import pytest

from fastprof.ops import work

torch = pytest.importorskip("torch", reason="torch is not installed: make test TORCH=2.13.0")
from support.record_calls import aten_calls, python_calls, recorded  # noqa: E402
from unit.ops.ops_examples import cost  # noqa: E402

functional = torch.nn.functional
PICKS = torch.tensor([1, 2, 3, 4])
OFFSETS = torch.tensor([0, 3])


def table() -> Any:
    return torch.randn(10, 4, requires_grad=True)


CASES = {
    "embedding": lambda w: functional.embedding(PICKS, w),
    "embedding of a square": lambda w: functional.embedding(PICKS.view(2, 2), w, 0),
    "renormed": lambda w: functional.embedding(PICKS, w, max_norm=1.0),
    "frequent": lambda w: functional.embedding(PICKS, w, scale_grad_by_freq=True),
    "sum": lambda w: functional.embedding_bag(PICKS, w, OFFSETS, mode="sum"),
    "mean": lambda w: functional.embedding_bag(PICKS, w, OFFSETS),
    "max": lambda w: functional.embedding_bag(PICKS, w, OFFSETS, mode="max"),
    "rows": lambda w: functional.embedding_bag(PICKS.view(2, 2), w),
    "weighted": lambda w: functional.embedding_bag(
        PICKS, w, OFFSETS, mode="sum", per_sample_weights=torch.ones(4, requires_grad=True)
    ),
    "to the end": lambda w: functional.embedding_bag(PICKS, w, OFFSETS, include_last_offset=True),
    "one hot": lambda w: functional.one_hot(PICKS, 5).float() @ w[:5],
    "module": lambda w: torch.nn.EmbeddingBag(10, 4, _weight=w)(PICKS, OFFSETS),
}


@pytest.mark.parametrize("case", CASES)
def test_every_call_has_a_cost(case: str) -> None:
    weight = table()
    with aten_calls() as operators:
        CASES[case](weight).sum().backward()
    functions = recorded(python_calls, lambda: CASES[case](weight))
    calls = [call for call in (*operators, *functions) if "embedding" in call.op]
    calls += [function for function in functions if function.op == "one_hot"]
    assert calls
    for call in calls:
        done = cost(call)
        assert done.flops is not None and done.bytes


@pytest.mark.parametrize("case", ["sum", "mean", "max", "weighted"])
def test_both_doors_give_the_same(case: str) -> None:
    weight = table()
    (function,) = [
        call
        for call in recorded(python_calls, lambda: CASES[case](weight))
        if call.op == "embedding_bag"
    ]
    (operator,) = [
        call
        for call in recorded(aten_calls, lambda: CASES[case](weight))
        if call.op == "_embedding_bag"
    ]
    for direction in ("fprop", "bprop"):
        assert work(function, direction) == work(operator, direction)
