"""Optimizer steps and operators over lists against torch's actual calls."""

import random
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from fastprof.model.call import Arg, Call, Tensor
from fastprof.ops import Cost, work
from fastprof.ops.registry import find
from support.record_calls import aten_calls, call, recorded

torch = pytest.importorskip("torch", reason="torch is not installed: make test TORCH=2.13.0")

CHOICE = random.Random(53)


def shapes(count: int) -> list[tuple[int, ...]]:
    """Shapes with at least one dimension: sizes of 0-dim tensors are ambiguous."""
    return [tuple(CHOICE.randint(1, 4) for _ in range(CHOICE.randint(1, 3))) for _ in range(count)]


def known(one: Call) -> Cost:
    done = work(one, "fprop")
    assert done is not None, one
    assert None not in (done.cost.flops, done.cost.bytes), one
    return done.cost


def flat(one: Call) -> Call:
    """The call as recorded by emit_nvtx: sizes, with flattened lists."""
    args: list[Arg] = []
    for arg in one.args:
        value = arg.value if isinstance(arg.value, tuple) else (arg.value,)
        tensors = [item for item in value if isinstance(item, Tensor)]
        args += [Arg("", Tensor(item.shape)) for item in tensors or [Tensor(())]]
    return Call(one.mod, one.op, tuple(args))


NAMES = sorted(
    {
        schema.name.removeprefix("aten::")
        for schema in torch._C._jit_get_all_schemas()
        if schema.name.startswith("aten::_foreach_")
    }
)
OVERLOADS = [
    (name, overload)
    for name in NAMES
    for overload in getattr(torch.ops.aten, name).overloads()
    if "out" not in overload
]


def arguments(schema: Any, sizes: list[tuple[int, ...]]) -> list[Any]:
    """Positive operands for all required arguments, lists and numbers."""
    made: list[Any] = []
    for argument in schema.arguments:
        kind = str(argument.type)
        if kind == "List[Tensor]":
            made.append([torch.rand(size) + 0.1 for size in sizes])
        elif kind == "Tensor":
            alike = schema.name.startswith(("aten::_foreach_addc",))
            made.append(torch.rand(len(sizes)) if alike else torch.tensor(0.5))
        elif kind == "List[number]":
            made.append([0.5] * len(sizes))
        elif argument.has_default_value():
            break
        else:
            made.append(0.5)
    return made


@pytest.mark.parametrize(("name", "overload"), OVERLOADS, ids=lambda text: text)
def test_every_operator_on_lists_costs_what_torchs_call_shows(name, overload):
    operator = getattr(getattr(torch.ops.aten, name), overload)
    square = name == "_foreach_mm"
    for count in (1, 2, 3, 4):
        sizes = [(3, 3)] * count if square else shapes(count)
        given = arguments(operator._schema, sizes)
        calls = recorded(aten_calls, lambda: operator(*given))  # noqa: B023
        one = calls[0]
        assert one.op == name
        cost = known(one)
        bare = work(flat(one), "fprop")
        assert bare is not None
        assert bare.cost.flops == cost.flops or not bare.cost.exact


@pytest.mark.parametrize("name", ["add", "mul", "sqrt", "sigmoid", "addcmul", "lerp", "exp", "pow"])
def test_lists_cost_what_their_tensors_cost_one_by_one(name):
    operands = {"add": 2, "mul": 2, "addcmul": 3, "lerp": 3, "pow": 2}.get(name, 1)
    sizes = shapes(5)
    lists = [[torch.rand(size) for size in sizes] for _ in range(operands)]
    total = Cost(0, 0)
    for tensors in zip(*lists, strict=True):
        total += known(call("torch", name, tensors, {}))
    assert known(call("torch", f"_foreach_{name}", lists, {})) == total


@contextmanager
def python_calls() -> Iterator[list[Call]]:
    """The calls of functions that torch's modes do not intercept: `torch._foreach_add_`, .."""
    calls: list[Call] = []
    with pytest.MonkeyPatch.context() as patch:
        for name in dir(torch):
            if name.startswith(("_foreach_", "_fused_", "_amp_")):
                patch.setattr(torch, name, _recording(name, getattr(torch, name), calls))
        yield calls


def _recording(name: str, function: Any, calls: list[Call]) -> Any:
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        calls.append(call("torch", name, args, kwargs))
        return function(*args, **kwargs)

    return wrapper


def parameters(dtype: Any = None) -> list[Any]:
    made = [torch.rand(size, dtype=dtype) for size in shapes(CHOICE.randint(1, 6))]
    for each in made:
        each.grad = torch.rand_like(each)
    return made


OPTIMIZERS = {
    "adam": lambda p, **options: torch.optim.Adam(p, **options),
    "adamw": lambda p, **options: torch.optim.AdamW(p, **options),
    "sgd": lambda p, **options: torch.optim.SGD(p, lr=0.1, **options),
    "adagrad": lambda p, **options: torch.optim.Adagrad(p, **options),
}
OPTIONS = [
    ("adam", {}, 32),
    ("adam", {"amsgrad": True}, 33),
    ("adam", {"weight_decay": 0.1, "maximize": True}, 35),
    ("adamw", {}, 34),
    ("adamw", {"weight_decay": 0.0, "amsgrad": True}, 33),
    ("sgd", {}, 2),
    ("sgd", {"weight_decay": 0.1}, 4),
    ("sgd", {"momentum": 0.9}, 5),
    ("sgd", {"momentum": 0.9, "nesterov": True}, 7),
    ("adagrad", {}, 26),
]


@pytest.mark.parametrize(("name", "options", "flops"), OPTIONS)
def test_the_fused_step_of_an_optimizer_is_one_call_with_a_cost(name, options, flops):
    optimizer = OPTIMIZERS[name](parameters(), fused=True, **options)
    optimizer.step()
    elements = sum(param.numel() for param in optimizer.param_groups[0]["params"])
    calls = recorded(aten_calls, optimizer.step)
    (one,) = (each for each in calls if each.op == f"_fused_{name}_")
    cost = known(one)
    assert (cost.flops, cost.exact) == (flops * elements, True)
    bare = work(flat(one), "fprop")
    assert bare is not None
    assert not bare.cost.exact or bare.cost.flops == cost.flops
    (same,) = (
        each for each in recorded(python_calls, optimizer.step) if each.op == f"_fused_{name}_"
    )
    assert known(same) == cost


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_every_call_on_lists_of_an_optimizer_has_a_cost(name):
    optimizer = OPTIMIZERS[name](parameters(), foreach=True, weight_decay=0.1)
    optimizer.step()
    for manager in (aten_calls, python_calls):
        calls = [each for each in recorded(manager, optimizer.step) if "_foreach_" in each.op]
        assert calls
        for one in calls:
            assert known(one)


def test_the_scaler_of_gradients_checks_and_updates_with_costs():
    gradients = [torch.rand(size) for size in shapes(4)]
    result, scale, growth = torch.zeros(()), torch.ones(()), torch.zeros((), dtype=torch.int32)

    def scaler() -> None:
        torch._amp_foreach_non_finite_check_and_unscale_(gradients, result, scale)
        torch._amp_update_scale_(scale, growth, result, 2.0, 0.5, 2000)

    for manager in (aten_calls, python_calls):
        first, second = recorded(manager, scaler)
        count = sum(gradient.numel() for gradient in gradients)
        assert known(first) == Cost(2 * count, 2 * 4 * count)
        assert known(second) == Cost(3, 3 * 4 + 2 * 4)


def test_every_fused_operator_of_torch_has_a_formula():
    words = ("aten::_foreach_", "aten::_fused_adam", "aten::_fused_sgd", "aten::_fused_adagrad")
    names = {
        schema.name.removeprefix("aten::")
        for schema in torch._C._jit_get_all_schemas()
        if schema.name.startswith((*words, "aten::_amp_"))
    }
    assert len(names) > 100
    assert {name for name in names if find(Call("aten", name)) is None} == set()
