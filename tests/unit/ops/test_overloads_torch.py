"""Formulas of whole families against torch: every overload is called, with the bytes it moves.

A family has the modules of its formulas, calls of them (CASES) and perhaps the operators that no
CPU runs (NOT_CALLED). Of those in READ_AND_WRITTEN, inputs are read and outputs written. Functions
in PYTHON call operators as programs do; FLOPs and bytes stand beside them. Every call is told
again with less: by the sizes of its tensors alone, and without its plain numbers. The functions in
BACKWARD are differentiated, by OF_BACKWARD among other operators; those of `steps` are named.
"""

import pytest

from fastprof.ops import has_model, work
from fastprof.ops.registry import find

torch = pytest.importorskip("torch", reason="torch is not installed: make test TORCH=2.13.0")
from support.record_calls import aten_calls, python_calls, recorded  # noqa: E402
from unit.ops.images import test_pooling_torch as pooling  # noqa: E402
from unit.ops.indexing import test_indexing_torch as indexing  # noqa: E402
from unit.ops.indexing import test_sorting_torch as sorting  # noqa: E402
from unit.ops.losses import test_losses_torch as losses  # noqa: E402
from unit.ops.movement import test_movement_torch as movement  # noqa: E402
from unit.ops.normalisation import test_normalisation_torch as normalisation  # noqa: E402
from unit.ops.ops_examples import cost  # noqa: E402
from unit.ops.overload_calls import check_bytes, run, served_by  # noqa: E402
from unit.ops.reductions import test_reductions_torch as reductions  # noqa: E402

FAMILIES = (pooling, indexing, sorting, losses, movement, normalisation, reductions)
MOVED = (indexing, sorting, losses, movement, reductions)
COUNTED = (sorting, normalisation)  # none of their calls takes no operation
# Values say how many elements these have, or which dimension they go over.
UNDETERMINED = {
    "arange",
    "cosine_similarity",
    "linspace",
    "logspace",
    "norm_except_dim",
    "renorm",
    "renorm_",
    "unique_dim",
}


@pytest.mark.parametrize(
    "case", [case for family in MOVED for case in family.READ_AND_WRITTEN], ids=lambda case: case[0]
)
def test_bytes_are_those_of_what_goes_in_and_out(case):
    check_bytes(run(case))


@pytest.mark.parametrize(
    ("family", "case"), [(family, case) for family in FAMILIES for case in family.CASES]
)
def test_with_fewer_details_costs_are_equal_estimates_or_unknown(family, case):
    done = run(case)
    typed = cost(done.call)
    sizes, valueless = (work(call, "fprop") for call in (done.sizes_only, done.without_values))
    if family is not pooling:  # in most of its calls, plain numbers say how large the result is
        assert (sizes is None) == (done.call.op in UNDETERMINED)
        assert valueless or sizes is None or "calar" in case[0] or "value" in case[0]
    if family in COUNTED:
        assert typed.flops and (sizes is None or sizes.cost.flops)
    if sizes is not None:
        assert sizes.cost.bytes in (None, 0 if family in (movement, reductions) else None)
        assert sizes.cost.flops == typed.flops or family is not movement
    is_complex = "complex" in str(done.call.args)
    for less in (sizes, valueless):
        if less is not None and less.cost.exact and not (less is sizes and is_complex):
            assert less.cost.flops == typed.flops
            assert less.cost.bytes in (None, typed.bytes)


def in_torch(names: set[str]) -> set[str]:
    """The names that exist in the installed torch."""
    known = {schema.name for schema in torch._C._jit_get_all_schemas()}
    return {name for name in names if f"aten::{name}" in known}


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.__name__.rpartition(".")[2])
def test_every_aten_operator_of_a_family_is_tried(family):
    """Families may share modules."""
    together = [other for other in FAMILIES if {*other.MODULES} & {*family.MODULES}]
    cases = [case for other in together for case in other.CASES]
    not_called = {name for other in together for name in getattr(other, "NOT_CALLED", ())}
    untried = in_torch(served_by(*family.MODULES)) - {case[0].partition(".")[0] for case in cases}
    assert untried == in_torch(not_called)


@pytest.mark.parametrize(
    ("function", "flops", "moved"),
    [row for family in FAMILIES for row in getattr(family, "PYTHON", ())],
)
def test_python_calls_as_they_come_have_the_cost(function, flops, moved):
    calls = [call for call in recorded(python_calls, function) if find(call)]
    result = cost(calls[-1])
    assert (result.flops, result.bytes) == (flops, moved)


@pytest.mark.parametrize("family", [indexing, movement, reductions])
def test_backward_operators_that_autograd_runs_have_a_cost(family):
    def step() -> None:
        leaf = torch.randn(4, 6, requires_grad=True)
        for function in family.BACKWARD:
            function(leaf).sum().backward()

    served = served_by(*family.MODULES)
    calls = [call for call in recorded(aten_calls, step) if call.op in served]
    assert {call.op for call in calls} >= family.OF_BACKWARD
    assert [call for call in calls if work(call, "fprop") is None] == []


@pytest.mark.parametrize(
    ("family", "name"), [(family, name) for family in (pooling, losses) for name in family.steps()]
)
def test_functions_have_a_cost_through_both_doors(family, name):
    """In a forward and backward step of one Python call, it and all its operators."""

    def step() -> None:
        family.steps()[name](family.x().requires_grad_()).sum().backward()

    called = [call for call in recorded(python_calls, step) if call.op == name]
    served = served_by(*family.MODULES)
    dispatched = [call for call in recorded(aten_calls, step) if call.op in served]
    assert len(called) == 1 and find(called[0])
    assert work(called[0], "fprop") is not None and work(called[0], "bprop") is not None
    assert [call for call in dispatched if not has_model(call)] == []
