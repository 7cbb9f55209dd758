"""Calls with out tensors, by torch's schemas: the same cost as without."""

from typing import Any

import pytest

from fastprof.model.call import Arg, Call, Tensor
from fastprof.ops import has_model, out_forms, work
from support.hypothesis_profiles import IS_FULL
from unit.ops.ops_calls import aten, bf16, fp32, sizes

torch = pytest.importorskip("torch", reason="torch is not installed: make test TORCH=2.13.0")
from unit.ops.ops_examples import all_examples  # noqa: E402
from unit.ops.out_calls import Pair, out_overloads, pairs_of, sampled_pairs  # noqa: E402
from unit.ops.overload_calls import Ran  # noqa: E402

N_SAMPLES = 4 if IS_FULL else 1  # of each operator
# Two tensors may also be two operands, and max(x, y) is the likelier call; three trailing tensors
# may also be the buffers of an older version.
AMBIGUOUS = {"max.unary_out", "min.unary_out", "_slow_conv2d_backward.output_mask_out"}
# Without types, the second result, a number in a tensor, may be anything.
AMBIGUOUS_SIZES = {"nll_loss_forward.output", "nll_loss2d_forward.output"}


@pytest.fixture(scope="module")
def sampled() -> list[Pair]:
    return [pair for pair in sampled_pairs(N_SAMPLES) if pair.overload not in AMBIGUOUS]


def costs(call: Call) -> tuple[int | None, int | None]:
    done = work(call, "fprop")
    return (None, None) if done is None else (done.cost.flops, done.cost.bytes)


def test_results_among_the_arguments_change_no_cost(sampled: list[Pair]) -> None:
    known = [pair for pair in sampled if has_model(pair.plain)]
    assert len({pair.overload for pair in known}) > 350
    assert [pair.out for pair in known if costs(pair.out) != costs(pair.plain)] == []


@pytest.mark.parametrize("form", ["sizes_only", "without_values"])
def test_without_types_or_values_nothing_known_is_lost(sampled: list[Pair], form: str) -> None:
    lost = []
    for pair in sampled:
        plain, out = (getattr(Ran(call, 0, 0), form) for call in (pair.plain, pair.out))
        if form == "sizes_only" and pair.overload in AMBIGUOUS_SIZES:
            continue
        result = work(plain, "fprop")
        if result is not None and result.cost.exact:
            more = zip(costs(plain), costs(out), strict=True)
            lost += [out] if any(was not in (None, now) for was, now in more) else []
        elif result is not None and work(out, "fprop") is None:
            lost.append(out)
    assert lost == []


def test_worked_examples_cost_the_same_with_tensors_for_their_results() -> None:
    calls = [example.call for example in all_examples() if example.direction == "fprop"]
    pairs = pairs_of(call for call in calls if call.result is None)
    assert len({pair.overload for pair in pairs}) > 400
    for pair in pairs:
        if pair.overload not in AMBIGUOUS:
            both = zip(costs(pair.plain), costs(pair.out), strict=True)
            assert all(plain in (None, out) for plain, out in both), pair.out


def test_nearly_every_out_overload_of_a_modelled_operator_is_tried(sampled: list[Pair]) -> None:
    modelled = {example.call.op for example in all_examples() if example.call.mod == "aten"}
    all_of_them = {
        f"{name}.{schema.overload_name}"
        for name, schemas in out_overloads().items()
        for schema in schemas
        if name in modelled
    }
    worked = pairs_of(example.call for example in all_examples())
    tried = {pair.overload for pair in (*sampled, *worked)}
    assert len(all_of_them) > 800
    assert len(all_of_them & tried) > 0.75 * len(all_of_them)


def test_operators_without_such_overloads_and_with_tensors_to_leave_out_are_known() -> None:
    with_out, optional = set(out_overloads()), set()
    for schema in torch._C._jit_get_all_schemas():
        name = schema.name.removeprefix("aten::")
        if any("Optional[Tensor]" in str(argument.type) for argument in schema.arguments):
            optional.add(name)
    modelled = {example.call.op for example in all_examples() if example.call.mod == "aten"}
    result = {name for name in modelled & optional - with_out if not name.endswith("_")}
    assert result == out_forms._WITHOUT


def test_how_many_results_an_operator_has_is_that_of_torch() -> None:
    most = {
        name: max(sum(_is_result(argument) for argument in schema.arguments) for schema in schemas)
        for name, schemas in out_overloads().items()
    }
    modelled = {example.call.op for example in all_examples() if example.call.mod == "aten"}
    assert {name: n for name, n in most.items() if n > 1 and name in modelled} == out_forms._MOST


def _is_result(argument: Any) -> bool:
    return argument.kwarg_only and argument.alias_info is not None


def test_more_tensors_than_results_are_not_left_out() -> None:
    # The stack of TorchScript's interpreter does not contain leftovers of a linear.
    stack = [fp32(8, 6), fp32(8, 6), fp32(8, 4), fp32(6, 4), fp32(6)]
    assert has_model(aten("linear", *stack[2:]))
    assert not has_model(aten("linear", *stack))


def test_products_as_inductor_calls_them() -> None:
    a, b, bias, out = bf16(8, 16), bf16(16, 4), bf16(4), bf16(8, 4)
    assert costs(aten("mm", a, b, out)) == costs(aten("mm", a, b)) == (1024, 2 * (128 + 64 + 32))
    assert costs(aten("addmm", bias, a, b, 1, 1, out)) == costs(aten("addmm", bias, a, b, 1, 1))
    assert costs(aten("bmm", fp32(2, 8, 16), fp32(2, 16, 4), fp32(2, 8, 4))) == (
        2 * 1024,
        4 * 2 * (128 + 64 + 32),
    )
    # Inductor omits alpha and beta if they are 1.
    assert costs(aten("addmm", bias, a, b, out)) == costs(aten("addmm", bias, a, b))
    assert costs(sizes("mm", (8, 16), (16, 4), (8, 4))) == (1024, None)


def test_what_is_no_result_is_not_taken_for_one() -> None:
    a, b = fp32(8, 16), fp32(16, 4)
    assert not has_model(aten("zero_", a, a))
    assert not has_model(Call("torch", "mm", tuple(Arg("", each) for each in (a, b, fp32(8, 4)))))
    assert not has_model(aten("mm", a, b, Tensor((), None), fp32(8, 4), "text"))
