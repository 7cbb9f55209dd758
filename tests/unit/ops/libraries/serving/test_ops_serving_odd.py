"""For unusual traces, formulas of serving stacks return a cost or a reason."""

from dataclasses import replace

import pytest
import test_ops_serving_attention as attention
import test_ops_serving_cache as cache
import test_ops_serving_collectives as collectives
import test_ops_serving_experts as experts
import test_ops_serving_gates as gates
import test_ops_serving_norms as norms
import test_ops_serving_products as products
import test_ops_serving_quantisation as quantisation
import test_ops_serving_rotation as rotation

from fastprof.model.call import UNKNOWN, Arg, Tensor
from fastprof.ops import why_unknown

FAMILIES = (
    attention, cache, collectives, experts, gates, norms, products, quantisation, rotation,
)  # fmt: skip
ODD = (
    None, UNKNOWN, 0, -3, 1.5, True, "text", (), (Tensor((2,), "float32"), None),
    Tensor(()), Tensor((0,), "float32"), Tensor((0, 0, 0), None), Tensor((3,), "c10::Half"),
    Tensor((1, 1), "no type"), Tensor((2, 3, 5, 7), "int8"), Tensor((1, 2, 3, 4, 5), "c10::Half"),
)  # fmt: skip


@pytest.mark.parametrize("family", FAMILIES, ids=lambda each: each.__name__)
def test_odd_arguments_never_make_a_formula_fail(family):
    for example in family.EXAMPLES:
        args = example.call.args
        changed = [args[:place] for place in range(len(args))]
        for place, arg in enumerate(args):
            changed += [(*args[:place], Arg(arg.name, odd), *args[place + 1 :]) for odd in ODD]
        for each in changed:
            told = why_unknown(replace(example.call, args=tuple(each)), "fprop") or ""
            assert not told.startswith("its formula failed"), (example.call.op, each, told)
