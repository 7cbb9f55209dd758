"""The worked examples of this folder, with the FLOPs and bytes that are worked out there."""

from __future__ import annotations

import itertools

import pytest

from fastprof.ops.registry import MODULES, TORCH, formulas
from unit.ops.ops_examples import difference, tables_of_examples

TABLES = tables_of_examples()


@pytest.mark.parametrize("name", TABLES)
def test_calls_cost_what_is_worked_out(name: str) -> None:
    wrong = [each for each in map(difference, TABLES[name]) if each]
    assert wrong == []


def test_every_registered_operator_has_a_worked_example() -> None:
    worked = {
        (TORCH if example.call.mod in MODULES else example.call.mod, example.call.op)
        for example in itertools.chain(*TABLES.values())
    }
    registered = {key for _, served in formulas() for key in served}
    assert len(registered) > 300
    assert sorted(registered - worked) == []
