"""Which costs of serving stacks are estimates; for unusual traces, a cost or a reason."""

from dataclasses import replace

import pytest

from fastprof.model.call import UNKNOWN, Arg, Tensor
from fastprof.ops import why_unknown
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
    assert [each for each in family.EXAMPLES if exact(each) is (each in estimates)] == []


@every_family
def test_odd_arguments_never_make_a_formula_fail(family):
    for example in family.EXAMPLES:
        args = example.call.args
        changed = [args[:place] for place in range(len(args))]
        for place, arg in enumerate(args):
            changed += [(*args[:place], Arg(arg.name, odd), *args[place + 1 :]) for odd in ODD]
        for each in changed:
            told = why_unknown(replace(example.call, args=tuple(each)), "fprop") or ""
            assert not told.startswith("its formula failed"), (example.call.op, each, told)
