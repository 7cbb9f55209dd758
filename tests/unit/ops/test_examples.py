"""The worked examples of this folder, with the FLOPs and bytes that are worked out there."""

from __future__ import annotations

import pytest

from fastprof.ops.registry import MODULES, TORCH, formulas
from unit.ops.ops_examples import Example, all_examples, check

EXAMPLES = all_examples()


@pytest.mark.parametrize(
    "example", EXAMPLES, ids=lambda each: f"{each.call.mod}.{each.call.op}-{each.direction}"
)
def test_a_call_costs_what_is_worked_out(example: Example) -> None:
    check(example)


def test_every_registered_operator_has_a_worked_example() -> None:
    worked = {
        (TORCH if example.call.mod in MODULES else example.call.mod, example.call.op)
        for example in EXAMPLES
    }
    registered = {key for _, served in formulas() for key in served}
    assert len(registered) > 300
    assert sorted(registered - worked) == []
