"""Formulas of whole families against torch: every overload is called, with the bytes it moves.

A family has the modules of its formulas, calls of them (CASES) and perhaps the operators that no
CPU runs (NOT_CALLED). Of those in READ_AND_WRITTEN, inputs are read and outputs written. Functions
in PYTHON call operators as programs do; FLOPs and bytes stand beside them. Every call is told
again with less: by the sizes of its tensors alone, and without its plain numbers.
"""

from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: make test TORCH=2.13.0")
from unit.ops.images import test_pooling_torch as pooling  # noqa: E402
from unit.ops.indexing import test_indexing_torch as indexing  # noqa: E402
from unit.ops.indexing import test_sorting_torch as sorting  # noqa: E402
from unit.ops.losses import test_losses_torch as losses  # noqa: E402
from unit.ops.movement import test_movement_torch as movement  # noqa: E402
from unit.ops.normalisation import test_normalisation_torch as normalisation  # noqa: E402
from unit.ops.overload_calls import check_bare, check_bytes, check_python, in_torch, run, untried  # noqa: E402
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
def test_bytes_are_those_of_what_goes_in_and_out(case: tuple[Any, ...]) -> None:
    check_bytes(run(case))


@pytest.mark.parametrize(
    ("family", "case"), [(family, case) for family in FAMILIES for case in family.CASES]
)
def test_sizes_alone_tell_the_flops_or_an_estimate(family: Any, case: tuple[Any, ...]) -> None:
    done = run(case)
    typed, sizes, valueless = check_bare(done)
    if family is not pooling:  # in most of its calls, plain numbers say how large the result is
        assert (sizes is None) == (done.call.op in UNDETERMINED)
        assert valueless or sizes is None or "calar" in case[0] or "value" in case[0]
    assert sizes is None or sizes.cost.bytes is None or family in (movement, reductions)
    if family in COUNTED:
        assert typed.cost.flops and (sizes is None or sizes.cost.flops)
    if family is movement:
        assert sizes is None or sizes.cost.flops == typed.cost.flops


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.__name__.rpartition(".")[2])
def test_every_aten_operator_of_a_family_is_tried(family: Any) -> None:
    """Families may share modules."""
    together = [other for other in FAMILIES if {*other.MODULES} & {*family.MODULES}]
    cases = [case for other in together for case in other.CASES]
    not_called = {name for other in together for name in getattr(other, "NOT_CALLED", ())}
    assert untried(cases, family.MODULES) == in_torch(not_called)


@pytest.mark.parametrize(
    ("function", "flops", "moved"),
    [row for family in FAMILIES for row in getattr(family, "PYTHON", ())],
)
def test_python_calls_as_they_come_have_the_cost(
    function: Any, flops: int | None, moved: int | None
) -> None:
    check_python(function, flops, moved)
