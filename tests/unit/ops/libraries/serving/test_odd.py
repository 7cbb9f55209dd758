"""Which costs of serving stacks are estimates; for unusual traces, a cost or a reason."""

import pytest

from fastprof.model.call import UNKNOWN, Tensor
from unit.ops.libraries.serving import test_attention as attention
from unit.ops.libraries.serving import test_cache as cache
from unit.ops.libraries.serving import test_collectives as collectives
from unit.ops.libraries.serving import test_experts as experts
from unit.ops.libraries.serving import test_gates as gates
from unit.ops.libraries.serving import test_norms as norms
from unit.ops.libraries.serving import test_products as products
from unit.ops.libraries.serving import test_quantisation as quantisation
from unit.ops.libraries.serving import test_rotation as rotation
from unit.ops.libraries.serving.serving_calls import exact
from unit.ops.ops_examples import failures

FAMILIES = (
    attention, cache, collectives, experts, gates, norms, products, quantisation, rotation,
)  # fmt: skip
ODD = (
    None, UNKNOWN, 0, -3, 1.5, True, "text", (), (Tensor((2,), "float32"), None),
    Tensor(()), Tensor((0,), "float32"), Tensor((0, 0, 0), None), Tensor((3,), "c10::Half"),
    Tensor((1, 1), "no type"), Tensor((2, 3, 5, 7), "int8"), Tensor((1, 2, 3, 4, 5), "c10::Half"),
)  # fmt: skip


every_family = pytest.mark.parametrize("family", FAMILIES, ids=lambda each: each.__name__)


@every_family
def test_costs_are_estimates_where_the_family_says_so(family):
    estimates = getattr(family, "ESTIMATES", ())
    assert [
        example for example in family.EXAMPLES if exact(example) is (example in estimates)
    ] == []


@every_family
def test_odd_arguments_never_make_a_formula_fail(family):
    assert [*failures(family.EXAMPLES, ODD)] == []
