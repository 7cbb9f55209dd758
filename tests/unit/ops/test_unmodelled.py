"""Operators that are known by name and have no formula: the report gives the reason."""

from fastprof.model.call import Call
from fastprof.ops import find, why_unknown
from fastprof.ops.unmodelled import UNMODELLED


def test_no_operator_has_both_a_formula_and_a_reason_for_having_none():
    calls = {name: Call(*name.split("::")) for name in UNMODELLED}
    assert len(calls) > 70
    assert [name for name, call in calls.items() if find(call)] == []


def test_the_reason_is_found_with_and_without_the_overload():
    reason = "it depends on values: the lengths of the sequences and their caches"
    for op in ("attention", "attention.default"):
        assert why_unknown(Call("trtllm", op), "fprop") == reason


def test_other_names_say_only_that_there_is_none():
    assert why_unknown(Call("vllm", "nothing_of_the_kind"), "fprop") == "no formula"
