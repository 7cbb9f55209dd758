"""Known operators without a formula have a reason, in the report and in docs/ops.md."""

import pytest

from fastprof.model.call import Call
from fastprof.ops import find, why_unknown
from fastprof.ops.document import operators_page
from fastprof.ops.unmodelled import UNMODELLED


@pytest.mark.parametrize("name", UNMODELLED)
def test_a_name_without_a_formula_has_a_reason(name):
    space, _, op = name.partition("::")
    assert find(Call(space, op)) is None
    for each in (op, f"{op}.default"):
        assert why_unknown(Call(space, each), "fprop") == UNMODELLED[name]
    row = next(line for line in operators_page().splitlines() if f"`{name}`" in line)
    assert row.endswith(f"| {UNMODELLED[name]} |")


def test_other_names_say_only_that_there_is_none():
    assert why_unknown(Call("vllm", "nothing_of_the_kind"), "fprop") == "no formula"
