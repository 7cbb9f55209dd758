"""Pointwise operators in torch's actual calls: costs, and the types and sizes of outputs."""

from typing import Any

import pytest

from fastprof.model.call import Call
from fastprof.ops import work
from fastprof.ops.registry import TORCH, formulas

torch = pytest.importorskip("torch", reason="torch is not installed: make test TORCH=2.13.0")
from support.record_calls import call as record_call  # noqa: E402
from support.record_calls import python_calls, recorded, value  # noqa: E402
from unit.ops.ops_examples import cost  # noqa: E402

FAMILIES = ("matrix", "pointwise", "recurrent", "indexing.embedding")


def names(space: str, families: tuple[str, ...]) -> list[str]:
    """Operators with formulas in these parts of fastprof.ops."""
    homes = tuple(f"fastprof.ops.{family}." for family in families)
    return sorted(
        name
        for formula, served in formulas()
        for mod, name in served
        if mod == space and f"{formula.function.__module__}.".startswith(homes)
    )


def places() -> list[Any]:
    import operator

    homes = (torch, torch.Tensor, torch.nn.functional, torch.linalg, torch.special, operator)
    return [*homes, torch._C._nn, torch._C._VariableFunctions]


def test_torch_has_every_name_that_has_a_formula() -> None:
    missing = [name for name in names("aten", FAMILIES) if not hasattr(torch.ops.aten, name)]
    assert missing == []
    # Python 2's division, which tensors of torch 1 also define.
    missing = [
        name
        for name in names(TORCH, FAMILIES)
        if not any(hasattr(place, name) for place in places())
    ]
    assert missing == []


def called(name: str) -> tuple[Call, Any] | None:
    """A call of the operator with random operands, by the first overload that accepts them."""
    packet = getattr(torch.ops.aten, name)
    for overload in packet.overloads():
        for draw in (lambda: torch.rand(2, 3), lambda: torch.randint(1, 4, (2, 3))):
            arguments = [
                argument(each, draw) for each in getattr(packet, overload)._schema.arguments
            ]
            try:
                out = getattr(packet, overload)(*positional(packet, overload, arguments))
            except (RuntimeError, NotImplementedError, TypeError):
                continue
            return record_call("aten", name, arguments, {}), out
    return None


def argument(schema: Any, draw: Any) -> Any:
    if str(schema.type) == "Tensor":
        return draw() > 2 if schema.name == "condition" else draw()
    if schema.has_default_value():
        return schema.default_value
    return {"number": 1, "int": 1, "bool": False}.get(str(schema.type), 0.5)


def positional(packet: Any, overload: str, arguments: list[Any]) -> list[Any]:
    schema = getattr(packet, overload)._schema
    return [
        value
        for value, each in zip(arguments, schema.arguments, strict=True)
        if not each.kwarg_only
    ]


# Random operands of equal shape do not fit these; they have separate examples.
UNTRIED = {"glu", "glu_backward", "prelu", "clamp", "clamp_", "clip", "clip_"}
UNTRIED |= {"float_power_"}  # in place of float64 only
TRIED = [
    (name, *found)
    for name in names("aten", ("pointwise",))
    if name not in UNTRIED and (found := called(name)) is not None
]


def test_every_other_operator_runs_on_random_numbers() -> None:
    registered = set(names("aten", ("pointwise",))) - UNTRIED
    assert registered - {name for name, _, _ in TRIED} == set()


@pytest.mark.parametrize(("name", "call", "out"), TRIED, ids=[name for name, _, _ in TRIED])
def test_an_operator_as_torch_calls_it_has_a_cost(name: str, call: Call, out: Any) -> None:
    done = cost(call)
    assert done.flops is not None
    written = [out] if isinstance(out, torch.Tensor) else list(out)
    at_least = sum(each.numel() * each.element_size() for each in written[:1])
    assert done.bytes >= (0 if name == "positive" else at_least)


ARITHMETIC = ["add", "mul", "sub", "div", "maximum", "pow", "fmod", "eq", "lt", "atan2", "hypot"]
TYPES = [torch.float32, torch.float16, torch.bfloat16, torch.float64, torch.int64, torch.int32]


@pytest.mark.parametrize("name", ARITHMETIC)
@pytest.mark.parametrize("left", TYPES)
@pytest.mark.parametrize("right", TYPES)
def test_bytes_are_those_of_what_torch_reads_and_writes(name: str, left: Any, right: Any) -> None:
    first = torch.ones(4, 1, 3, dtype=left)
    second = torch.ones(5, 3, dtype=right)
    try:
        out = getattr(torch, name)(first, second)
    except (RuntimeError, NotImplementedError):
        pytest.skip("torch does not do it for these types on a CPU")
    (call,) = recorded(python_calls, lambda: getattr(torch, name)(first, second))
    moved = sum(each.numel() * each.element_size() for each in (first, second, out))
    assert work(call, "fprop").cost.bytes == moved
    assert value(out).shape == (4, 5, 3)
