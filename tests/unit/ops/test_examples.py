"""The worked examples of this folder, with the FLOPs and bytes that are worked out there."""

import itertools

import pytest

from fastprof.ops import has_model, work
from fastprof.ops.registry import MODULES, TORCH, formulas, why_unknown
from unit.ops.ops_examples import difference, tables_of

TABLES = tables_of("EXAMPLES")
MALFORMED = tables_of("MALFORMED")
# The gradients of these need nothing of what is malformed.
ONLY_FORWARD = {"sort", "vecdot", "renorm"}


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


@pytest.mark.parametrize("name", MALFORMED)
def test_a_malformed_call_has_no_work_and_fails_in_no_formula(name: str) -> None:
    for call in MALFORMED[name]:
        assert not has_model(call), call
        assert work(call, "fprop") is None, call
        assert call.op in ONLY_FORWARD or work(call, "bprop") is None, call
        for direction in ("fprop", "bprop"):
            assert not (why_unknown(call, direction) or "").startswith("its formula failed"), call
