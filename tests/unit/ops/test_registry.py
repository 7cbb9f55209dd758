"""Look-up of models, and their costs."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastprof.errors import OpError
from fastprof.model.call import UNKNOWN, Arg, Call, Tensor, Unknown
from fastprof.ops import Cost, has_model, registry, work
from fastprof.ops.registry import MODULES, TORCH, find, home_of, op, why_unknown
from support.hypothesis_profiles import examples

SQUARE = Tensor((4, 4), "float32")


def test_a_second_model_for_an_op_is_refused():
    with pytest.raises(
        OpError, match=r"torch\.mm already has a formula, fastprof\.ops\.matrix\.matmul\.mm"
    ):
        op(TORCH, "mm")(lambda x, y: Cost(0, 0))


def test_one_model_serves_every_module_of_torch():
    served = {find(Call(mod, "matmul")) for mod in MODULES}
    assert len(served) == 1 and None not in served


def test_other_modules_and_ops_have_no_model():
    arguments = (Arg("", SQUARE), Arg("", SQUARE))
    assert has_model(Call("torch", "mm", arguments))
    assert not has_model(Call("mine", "mm", arguments))
    assert not has_model(Call("torch", "__getattr__", arguments))
    assert work(Call("torch", "no_such_op", arguments), "fprop") is None


def test_a_direction_that_is_none_is_refused():
    with pytest.raises(ValueError, match="'sideways'"):
        work(Call("torch", "mm", ()), "sideways")


def test_costs_add_and_what_is_unknown_stays_unknown():
    assert Cost(1, 2) + Cost(3, 4) == Cost(4, 6)
    assert Cost(1, None) + Cost(3, 4) == Cost(4, None)
    assert Cost(None, 2) + Cost(0, 0) == Cost(None, 2)
    assert not (Cost(1, 2, exact=False) + Cost(1, 2)).exact


SIZES = st.lists(st.one_of(st.integers(-1, 3), st.none()), max_size=4).map(tuple)
TYPES = st.sampled_from([None, "float32", "c10::Half", "int64", "bool", "nonsense", ""])
VALUES = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-3, 3),
        st.floats(),
        st.text(max_size=2),
        st.builds(Tensor, SIZES, TYPES),
        st.builds(Tensor, st.just((2, 2)), TYPES),
    ),
    lambda values: st.lists(values, max_size=2).map(tuple),
    max_leaves=3,
)
NAMES = st.sampled_from(["", "", "", "input", "other", "mat2", "weight"])


@examples(500)
@given(
    st.sampled_from(["aten", "Tensor", "torch.nn.functional"]),
    st.sampled_from(sorted({name for _, keys in registry.formulas() for _, name in keys})),
    st.lists(st.builds(Arg, NAMES, VALUES), max_size=4).map(tuple),
    st.sampled_from(["fprop", "bprop"]),
)
def test_a_malformed_call_gets_no_cost_and_breaks_no_formula(mod, op, arguments, direction):
    the_call = Call(mod, op, arguments)
    answer = work(the_call, direction)
    costs = [part.cost for part in answer.parts] if answer else []
    assert all((cost.flops or 0) >= 0 and (cost.bytes or 0) >= 0 for cost in costs)
    assert not (why_unknown(the_call, direction) or "").startswith("its formula failed")


def test_a_formula_that_asks_for_the_result_gets_it(monkeypatch):
    registry.formulas()  # no later import registers in the copy
    monkeypatch.setattr(registry, "_entries", dict(registry._entries))
    got = []

    @op("result_demo", "keep", aten=("result_demo::keep",))
    def keep(x: Tensor, *, result: Tensor | Unknown, direction: str) -> Cost:
        got.append(result)
        return Cost(0, 0)

    given_args, kept = (Arg("", SQUARE),), Tensor((2, 4), "float32")
    work(Call("result_demo", "keep", given_args), "fprop")
    work(Call("result_demo", "keep", given_args, kept), "fprop")
    work(Call("result_demo", "keep", given_args, kept), "bprop")
    assert got == [UNKNOWN, kept, kept]
    assert find(Call("result_demo", "keep")).asked == {"result", "direction"}
    # It is not an argument of the call, neither positional nor keyword.
    extra = (*given_args, Arg("", kept))
    assert work(Call("result_demo", "keep", extra), "fprop") is None


def test_an_impossible_result_gives_no_cost(monkeypatch):
    registry.formulas()  # no later import registers in the copy
    monkeypatch.setattr(registry, "_entries", dict(registry._entries))

    @op("result_demo", "keep")
    def keep(x: Tensor, *, result: Tensor | Unknown) -> Cost:
        return Cost(0, 0)

    the_call = Call("result_demo", "keep", (Arg("", SQUARE),), Tensor((-1,), "float32"))
    assert why_unknown(the_call, "fprop") == "invalid shape (-1,)"


def test_the_module_of_a_formula_is_known_before_it_is_imported():
    for space, names in registry._modules().items():
        for name, module in names.items():
            formula = find(Call(space, name))
            assert formula is not None, (space, name)
            home = f"fastprof.ops.{module}"
            assert home_of(Call(space, name)) == formula.function.__module__ == home
    assert home_of(Call("aten", "of_no_module")) is find(Call("aten", "of_no_module")) is None
    assert home_of(Call("aten", "triton_poi_fused_add_0")) == "fastprof.ops.triton"
