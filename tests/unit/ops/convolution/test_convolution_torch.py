"""Convolutions against torch: FlopCounterMode's counts, schemas and output sizes."""

from math import prod
from random import Random
from typing import Any, NamedTuple

import pytest

from fastprof.model.call import UNKNOWN, Arg, Call, Tensor
from fastprof.ops import has_model, work
from fastprof.ops.registry import find, formulas

torch = pytest.importorskip("torch", reason="torch is not installed: make test TORCH=2.13.0")
from torch.utils.flop_counter import FlopCounterMode  # noqa: E402

from support.record_calls import aten_calls, python_calls, recorded  # noqa: E402

functional = torch.nn.functional
BACKWARD = "convolution_backward"


class Case(NamedTuple):
    """A random convolution: its function, tensors, and arguments by keyword."""

    function: Any
    x: Any
    weight: Any
    bias: Any
    named: dict[str, Any]

    def __call__(self) -> Any:
        return self.function(self.x, self.weight, self.bias, **self.named)

    @property
    def transposed(self) -> bool:
        return "transpose" in self.function.__name__

    @property
    def groups(self) -> int:
        return self.named["groups"]

    @property
    def dense(self) -> dict[str, Any]:
        """Strides without padding."""
        return {key: self.named[key] for key in ("stride", "dilation", "groups")}


def random_case(seed: int, dtype: Any = torch.float64) -> Case:
    choose = Random(seed)
    rank, transposed = choose.choice((1, 2, 2, 3)), choose.random() < 0.4
    groups = choose.choice((1, 1, 2, 3))
    each_in, each_out = choose.randint(1, 3), choose.randint(1, 3)
    kernel = tuple(choose.randint(1, 3) for _ in range(rank))
    stride = tuple(choose.randint(1, 3) for _ in range(rank))
    dilation = tuple(choose.randint(1, 2) for _ in range(rank))
    image = tuple(choose.randint(5, 7) for _ in range(rank))
    batch = choose.choice(((), (1,), (3,)))
    first, second = groups * each_in, groups * each_out
    named: dict[str, Any] = {"groups": groups}
    named["dilation"] = choose.choice((dilation, dilation[0]))
    if transposed:
        weight, filters = (first, each_out, *kernel), second
        named["stride"], named["padding"] = stride, choose.choice((0, (1,) * rank))
        named["output_padding"] = tuple(choose.randint(0, n - 1) for n in stride)
    else:
        weight, filters = (second, each_in, *kernel), second
        padding = choose.choice((0, 1, (2,) * rank, "same", "valid"))
        named["padding"] = padding
        named["stride"] = 1 if padding == "same" else choose.choice((stride, stride[0]))
    name = f"conv{'_transpose' if transposed else ''}{rank}d"

    def tensor(*shape: int) -> Any:
        return torch.ones(shape, dtype=dtype, requires_grad=True)

    bias = choose.choice((None, tensor(filters)))
    return Case(
        getattr(functional, name), tensor(*batch, first, *image), tensor(*weight), bias, named
    )


def run(case: Case) -> None:
    case().sum().backward()


def multiply_adds(case: Case) -> int:
    """Reference by definition: with all ones, each product of the forward pass adds 1 to the
    output.

    Padding counts: the image is padded beforehand.
    """
    x, weight = case.x.detach(), case.weight.detach()
    if not case.transposed:
        window = case.named["padding"]
        rank = weight.dim() - 2
        if window == "same":
            spread = case.named["dilation"]
            spread = (spread,) * rank if isinstance(spread, int) else spread
            total = [d * (k - 1) for d, k in zip(spread, weight.shape[2:], strict=True)]
            sides = [side for n in reversed(total) for side in (n // 2, n - n // 2)]
        else:
            window = 0 if window == "valid" else window
            each = (window,) * rank if isinstance(window, int) else window
            sides = [side for n in reversed(each) for side in (n, n)]
        x = functional.pad(x, sides, value=1)
    return round(case.function(x, weight, **case.dense).sum().item())


def counted(function: Any) -> int:
    with FlopCounterMode(display=False) as counter:
        function()
    return counter.get_total_flops()


def flops(call: Call, direction: str = "fprop") -> dict[str, int]:
    """FLOPs by role."""
    done = work(call, direction)
    assert done is not None, call
    return {part.role: part.cost.flops for part in done.parts}


def only_call(calls: list[Call], *names: str) -> Call:
    (call,) = (call for call in calls if call.op in names)
    return call


SEEDS = range(60)
pytestmark = pytest.mark.filterwarnings("ignore:Using padding='same' with even kernel")


@pytest.mark.parametrize("seed", SEEDS)
def test_forward_counts_every_multiply_add_as_torch_does(seed: int) -> None:
    case = random_case(seed)
    expected = 2 * multiply_adds(case)
    assert counted(case) == expected
    below = only_call(recorded(aten_calls, case), "convolution")
    above = only_call(recorded(python_calls, case), case.function.__name__)
    assert flops(below)["main"] == flops(above)["main"] == expected


@pytest.mark.parametrize("seed", SEEDS)
def test_each_gradient_counts_as_many_by_both_doors(seed: int) -> None:
    case = random_case(seed)
    expected = 2 * multiply_adds(case)
    below = only_call(recorded(aten_calls, lambda: run(case)), BACKWARD)
    above = only_call(recorded(python_calls, case), case.function.__name__)
    outputs = case().numel()
    gradients = {"dgrad": expected, "wgrad": expected}
    gradients |= {} if case.bias is None else {"bias": outputs}
    assert flops(below) == flops(above, "bprop") == gradients


@pytest.mark.parametrize("seed", SEEDS)
def test_backward_is_what_torch_counts_but_for_the_weights_of_groups(seed: int) -> None:
    # FlopCounterMode counts the weight gradient as a dense convolution over all channels: with g
    # groups, g times the actual products.
    case = random_case(seed)
    output = case()
    expected = 2 * multiply_adds(case)
    assert counted(lambda: output.sum().backward()) == expected * (1 + case.groups)


@pytest.mark.parametrize("seed", range(12))
def test_weight_gradient_of_groups_has_the_products_that_its_definition_has(seed: int) -> None:
    # With inputs of one, each product of the weight gradient adds 1 to it. Without padding.
    case = random_case(seed)
    case.function(case.x, case.weight, None, **case.dense).sum().backward()
    assert round(case.weight.grad.sum().item()) == multiply_adds(
        case._replace(named=case.named | {"padding": 0})
    )


@pytest.mark.parametrize("seed", range(30))
def test_sizes_and_bytes_of_the_output_are_those_of_torch(seed: int) -> None:
    case = random_case(seed, torch.float32)
    call = only_call(recorded(python_calls, case), case.function.__name__)
    done = work(call, "fprop")
    assert done is not None
    output = case()
    spatial = ("Z", "P", "Q")[3 - (case.weight.dim() - 2) :]
    fields = dict(part.split("=") for part in done.parts[0].params.split(",") if "=" in part)
    assert tuple(int(fields[key]) for key in spatial) == tuple(
        output.shape[2 - case.weight.dim() :]
    )
    tensors = [case.weight, output, *([] if case.bias is None else [case.bias])]
    expected = 4 * (elements_met(case) + sum(tensor.numel() for tensor in tensors))
    assert done.parts[0].cost.bytes == expected


@pytest.mark.parametrize("seed", range(30))
def test_the_result_tells_what_stride_and_padding_would(seed: int) -> None:
    case = random_case(seed, torch.float32)
    call = only_call(recorded(python_calls, case), case.function.__name__)
    numbers = 5 if case.transposed else 4
    silent = tuple(Arg("", each) for each in (*tensors_of(case), *[UNKNOWN] * numbers))
    result = Tensor(tuple(case().shape), "float32")
    known = work(Call("torch", call.op, silent, result), "fprop")
    whole = work(call, "fprop")
    assert known is not None and whole is not None
    assert known.parts[0].cost.flops == whole.parts[0].cost.flops
    written = 4 * (case.weight.numel() + case().numel())
    written += 0 if case.bias is None else 4 * case.bias.numel()
    assert 4 * elements_met(case) <= known.parts[0].cost.bytes - written <= 4 * case.x.numel()


def tensors_of(case: Case) -> list[Tensor | None]:
    given = (case.x, case.weight, case.bias)
    return [None if each is None else Tensor(tuple(each.shape), "float32") for each in given]


def elements_met(case: Case) -> int:
    """Elements of x on which the output depends."""
    if case.transposed:
        return case.x.numel()
    x = torch.ones_like(case.x, requires_grad=True)
    case._replace(x=x, weight=torch.ones_like(case.weight))().sum().backward()
    return int((x.grad != 0).sum())


@pytest.mark.parametrize(
    "masked", [(True, False, False), (False, True, False), (False, True, True)]
)
def test_a_gradient_that_nothing_requires_is_not_counted(masked: tuple[bool, ...]) -> None:
    tensors = [torch.ones(2, 2, 6, 6), torch.ones(4, 2, 3, 3), torch.ones(4)]
    for each, flag in zip(tensors, masked, strict=True):
        each.requires_grad_(flag)
    case = Case(functional.conv2d, *tensors, {"padding": 1})
    call = only_call(recorded(aten_calls, lambda: run(case)), BACKWARD)
    roles = [role for role, flag in zip(("dgrad", "wgrad", "bias"), masked, strict=True) if flag]
    assert list(flops(call)) == roles
    output = case()
    without_bias = {role: count for role, count in flops(call).items() if role != "bias"}
    assert sum(without_bias.values()) == counted(lambda: output.sum().backward())


def test_complex_numbers_count_four_real_products_where_torch_computes_three() -> None:
    # torch splits a complex convolution into three real ones (Gauss's trick): 6 FLOPs for a
    # multiply-add. By definition it is 8.
    x = torch.ones(2, 4, 6, 6, dtype=torch.complex64)
    weight = torch.ones(6, 4, 3, 3, dtype=torch.complex64)
    case = Case(functional.conv2d, x, weight, None, {})
    products = 2 * 6 * 4 * 4 * (4 * 3 * 3)
    assert counted(case) == 6 * products
    call = only_call(recorded(python_calls, case), "conv2d")
    assert flops(call) == {"main": 8 * products}


def test_conv_tbc_is_the_convolution_of_permuted_tensors() -> None:
    x, weight, bias = torch.ones(9, 2, 4), torch.ones(3, 4, 6), torch.ones(6)
    (call,) = recorded(python_calls, lambda: torch.conv_tbc(x, weight, bias, 1))
    (below,) = recorded(aten_calls, lambda: torch.conv_tbc(x, weight, bias, 1))
    assert call.op == below.op == "conv_tbc"
    same = Case(
        functional.conv1d, x.permute(1, 2, 0), weight.permute(2, 1, 0), None, {"padding": 1}
    )
    assert torch.conv_tbc(x, weight, bias, 1).shape == (9, 2, 6)
    assert flops(call)["main"] == flops(below)["main"] == counted(same)


class Sample(NamedTuple):
    """Values by argument name in torch's schemas."""

    x: tuple[int, ...]
    weight: tuple[int, ...]
    y: tuple[int, ...]
    stride: int
    groups: int

    def value(self, argument: Any, name: str) -> Any:
        rank, transposed = len(self.weight) - 2, "transpose" in name
        tensors = {
            "input": self.x,
            # conv_tbc's gradient is named self, its input is named input.
            "self": self.y if name == "conv_tbc_backward" else self.x,
            "weight": self.weight,
            "bias": self.y[-1:] if "tbc" in name else self.y[1:2],
            "grad_output": self.y,
            "z": self.y,
        }
        if argument.name in tensors:
            return Tensor(tensors[argument.name], "float32")
        plain = {
            "bias_sizes": self.y[1:2],
            "kernel_size": self.weight[2:],
            "stride": (self.stride,) * rank,
            "padding": "valid" if str(argument.type) == "str" else (0,) * rank,
            "dilation": (1,) * rank,
            "output_padding": (0,) * rank,
            "groups": self.groups,
            "transposed": transposed,
            "output_mask": (True, True, True)[: 2 if "[2]" in str(argument.type) else 3],
            "pad": 0,
            "alpha": 1.0,
        }
        return plain.get(argument.name, False)  # flags of libraries


SAMPLES = {
    1: Sample((2, 4, 9), (6, 4, 3), (2, 6, 4), 2, 1),
    2: Sample((2, 4, 9, 9), (6, 4, 3, 3), (2, 6, 4, 4), 2, 1),
    3: Sample((2, 4, 9, 9, 9), (6, 4, 3, 3, 3), (2, 6, 4, 4, 4), 2, 1),
}
DEPTHWISE = {
    2: Sample((2, 4, 9, 9), (4, 1, 3, 3), (2, 4, 4, 4), 2, 4),
    3: Sample((2, 4, 9, 9, 9), (4, 1, 3, 3, 3), (2, 4, 4, 4, 4), 2, 4),
}
TBC = Sample((9, 2, 4), (3, 4, 6), (7, 2, 6), 1, 1)


def sample_of(name: str) -> Sample:
    rank = next((n for n in (1, 3) if f"{n}d" in name), 2)
    if "tbc" in name:
        return TBC
    sample = (DEPTHWISE if "depthwise" in name else SAMPLES)[rank]
    return sample._replace(x=sample.y, y=sample.x) if "transpose" in name else sample


def products_of(name: str, sample: Sample) -> int:
    positions = sample.x[2:] if "transpose" in name else sample.y[2:]
    if "tbc" in name:
        return sample.y[0] * sample.x[1] * prod(sample.weight)
    return sample.x[0] * prod(positions) * prod(sample.weight)


SERVED = sorted(
    name
    for formula, served in formulas()
    if formula.function.__module__.startswith("fastprof.ops.convolution.")
    for module, name in served
    if module == "aten"
)
SCHEMAS = [
    schema
    for schema in torch._C._jit_get_all_schemas()
    if schema.name.removeprefix("aten::") in SERVED
    and not any(argument.is_out for argument in schema.arguments)
]


@pytest.mark.parametrize("schema", SCHEMAS, ids=lambda schema: str(schema.name))
def test_arguments_stand_where_the_schema_of_torch_has_them(schema: Any) -> None:
    name = schema.name.removeprefix("aten::")
    sample = sample_of(name)
    values = [sample.value(argument, name) for argument in schema.arguments]
    names = [argument.name for argument in schema.arguments]
    call = Call("aten", name, tuple(Arg("", value) for value in values))
    result = flops(call)
    expected = 2 * products_of(name, sample)
    mask = dict(zip(names, values, strict=True)).get("output_mask", (True, True, True))
    if "backward" not in name:
        assert result["main"] == expected
    else:
        assert {role: count for role, count in result.items() if role != "bias"} == {
            "dgrad": expected,
            "wgrad": expected,
        }
        assert ("bias" in result) == (len(mask) == 3)
    assert work(call, "fprop").cost.bytes is not None  # strides and padding were understood


def test_most_names_are_those_of_this_torch() -> None:
    # The rest exist in older versions.
    assert len({schema.name for schema in SCHEMAS}) >= 30


def real_calls() -> dict[str, Any]:
    x, weight = torch.ones(2, 4, 9, 9), torch.ones(6, 4, 3, 3)
    volume, cube = torch.ones(2, 4, 9, 9, 9), torch.ones(6, 4, 3, 3, 3)
    images, volumes = torch.ones(2, 6, 4, 4), torch.ones(2, 6, 4, 4, 4)
    operators, direct = torch.ops.aten, torch._C._nn
    one, two = (1, 1), (2, 2)
    return {
        "convolution": lambda: torch.convolution(x, weight, None, two, one, one, False, one, 1),
        "_convolution": lambda: torch._convolution(
            *(x, weight, None, two, one, one, False, one, 1, False, False, True, True)
        ),
        "_convolution_mode": lambda: torch._convolution_mode(x, weight, None, two, "valid", one, 1),
        "mkldnn_convolution": lambda: operators.mkldnn_convolution(
            *(x, weight, None, one, two, one, 1)
        ),
        "thnn_conv2d": lambda: direct.thnn_conv2d(x, weight, (3, 3), None, two, one),
        "slow_conv3d": lambda: direct.slow_conv3d(volume, cube, (3, 3, 3), None, 2, 1),
        "slow_conv_dilated2d": lambda: direct.slow_conv_dilated2d(x, weight, 3, None, 2, 1, 1),
        "slow_conv_dilated3d": lambda: direct.slow_conv_dilated3d(volume, cube, 3, None, 2, 1, 1),
        "slow_conv_transpose2d": lambda: direct.slow_conv_transpose2d(
            images, weight, 3, None, 2, 1, 0, 1
        ),
        "slow_conv_transpose3d": lambda: direct.slow_conv_transpose3d(
            volumes, cube, 3, None, 2, 1, 0, 1
        ),
    }


@pytest.mark.parametrize("name", real_calls())
def test_operators_below_conv2d_cost_what_it_does_by_both_doors(name: str) -> None:
    function = real_calls()[name]
    sample = sample_of(name)
    transposed = "transpose" in name
    outer = [call for call in recorded(python_calls, function) if find(call) and has_model(call)]
    inner = [call for call in recorded(aten_calls, function) if find(call) and has_model(call)]
    positions = sample.x if transposed else function().shape
    expected = 2 * positions[0] * prod(positions[2:]) * prod(sample.weight)
    result = {call.op: flops(call)["main"] for call in (*outer, *inner)}
    assert result and set(result.values()) == {expected}
