"""Pointwise operators: FLOPs, bytes and params, forward and backward."""

import pytest

from fastprof.model.call import Tensor
from fastprof.ops import Cost, work
from unit.ops.ops_calls import fp32, python, tensor

FUNCTIONAL = "torch.nn.functional"


def only(the_call, direction="fprop"):
    (part,) = work(the_call, direction).parts
    return part


@pytest.mark.parametrize(
    ("the_call", "flops", "moved", "params"),
    [
        (
            python("Tensor", "__mul__", fp32(35, 20, 200), 14.142135623730951),
            140000,
            1120004,
            "[35,20,200]fp32;[]fp32",
        ),
        (
            python("Tensor", "__add__", fp32(35, 20, 200), fp32(35, 1, 200)),
            140000,
            1148000,
            "[35,20,200]fp32;[35,1,200]fp32",
        ),
        (
            python("Tensor", "__add__", fp32(35, 20, 200), fp32(35, 20, 200)),
            140000,
            1680000,
            "[35,20,200]fp32;[35,20,200]fp32",
        ),
        (python(FUNCTIONAL, "relu", fp32(35, 20, 200), False), 140000, 1120000, "[35,20,200]fp32"),
        (python("Tensor", "mul_", fp32(600, 200), fp32()), 120000, 960004, "[600,200]fp32;[]fp32"),
        (python("Tensor", "mul_", fp32(600, 200), 0.25), 120000, 960004, "[600,200]fp32;[]fp32"),
        (python("Tensor", "mul_", fp32(33278), fp32()), 33278, 266228, "[33278]fp32;[]fp32"),
    ],
)
def test_forward_is_what_pyprof_printed(the_call, flops, moved, params):
    part = only(the_call)
    assert part.cost == Cost(flops, moved)
    assert part.params == params
    assert part.role == "main" and not part.kernels


def test_backward_is_what_pyprof_printed():
    relu = python(FUNCTIONAL, "relu", fp32(35, 20, 200), False)
    assert only(relu, "bprop").cost == Cost(140000, 1680000)
    scaled = python("Tensor", "__mul__", fp32(35, 20, 200), 14.142135623730951)
    assert only(scaled, "bprop").cost == Cost(140000, 1680000)
    assert only(scaled, "bprop").params == "[35,20,200]fp32;[]fp32"


def test_backward_of_a_sum_needs_no_saved_value_and_of_a_rounding_only_writes_zeros():
    assert only(python("torch", "add", fp32(10), fp32(10)), "bprop").cost == Cost(10, 80)
    assert only(python("torch", "floor", fp32(10)), "bprop").cost == Cost(0, 40)
    assert work(python("torch", "eq", fp32(10), fp32(10)), "bprop") is None


@pytest.mark.parametrize(
    ("the_call", "moved"),
    [
        (python("Tensor", "__lt__", fp32(10), fp32(10)), 90),
        (python("torch", "isnan", fp32(10)), 50),
        (python("Tensor", "lt_", fp32(10), fp32(10)), 120),
        (python("torch", "div", tensor("int32", 10), tensor("int32", 10)), 120),
        (python("torch", "add", tensor("int64", 10), 1), 168),
        (python("torch", "mul", tensor("int64", 10), 0.5), 80 + 8 + 40),
        (python("torch", "mul", tensor("float16", 10), 2.5), 42),
        (python("torch", "mul", tensor("float16", 10), fp32()), 44),
        (python("torch", "mul", tensor("float16", 10), fp32(10)), 20 + 40 + 40),
        (python("torch", "add", tensor("float16", 10), tensor("bfloat16", 10)), 80),
        (python("torch", "sqrt", tensor("int32", 10)), 80),
        (python("torch", "sqrt", tensor("float64", 10)), 160),
        (python("torch", "where", tensor("bool", 10), fp32(10), 0.0), 10 + 40 + 1 * 4 + 40),
        (python(FUNCTIONAL, "prelu", fp32(2, 3, 5), fp32(3)), 120 + 12 + 120),
        (python("torch", "clamp", fp32(10), min=0.0), 84),
        (python("torch", "clamp", fp32(10), None, 6.0), 84),
        (python("torch", "pow", 2, fp32(10)), 84),
        (python("torch", "add", fp32(0, 4), fp32(1, 4)), 16),
    ],
)
def test_bytes_follow_broadcasting_and_type_promotion(the_call, moved):
    assert only(the_call).cost.bytes == moved


@pytest.mark.parametrize(
    ("op", "operands", "flops"),
    [
        ("exp", 1, 20),
        ("sqrt_", 1, 20),
        ("sigmoid", 1, 22),
        ("neg", 1, 1),
        ("addcmul", 3, 3),
        ("addcdiv_", 3, 3),
        ("lerp", 3, 3),
        ("pow", 2, 20),
        ("maximum", 2, 1),
        ("where", 3, 0),
        ("relu6", 1, 2),
        ("hardsigmoid", 1, 4),
        ("softplus", 1, 41),
        ("__iadd__", 2, 1),
        ("__rsub__", 2, 1),
        ("__rtruediv__", 2, 1),
        ("__ixor__", 2, 1),
        ("__abs__", 1, 1),
        ("leaky_relu_", 1, 2),
    ],
)
def test_flops_of_one_element_come_from_the_table(op, operands, flops):
    assert only(python("torch", op, *[fp32(10)] * operands)).cost.flops == 10 * flops


def test_options_are_no_operands():
    part = only(python("torch", "add", fp32(4), fp32(4), alpha=2, out=fp32(4)))
    assert part.params == "[4]fp32;[4]fp32"
    assert only(python(FUNCTIONAL, "leaky_relu", fp32(4), 0.1, True)).params == "[4]fp32"
    assert only(python(FUNCTIONAL, "threshold", fp32(4), 0.1, 20)).params == "[4]fp32"
    divided = python("torch", "div", fp32(4), fp32(4), rounding_mode="floor")
    assert only(divided).params == "[4]fp32;[4]fp32"


def test_an_aten_call_takes_an_untyped_empty_shape_for_a_scalar():
    untyped = python("aten", "mul", Tensor((4, 5), None), Tensor((), None))
    assert only(untyped).cost == Cost(20, None)
    assert only(untyped).params == "[4,5]na;[]na"
    typed_call = python("aten", "add", Tensor((4, 5), "float"), Tensor((), "Scalar"), None)
    assert only(typed_call).cost == Cost(20, 164)
    assert only(typed_call).params == "[4,5]fp32;[]fp32"


MALFORMED = [
    python("Tensor", "__mul__"),
    python("Tensor", "__mul__", fp32(4)),
    python("Tensor", "__mul__", fp32(4), None),
    python("Tensor", "__mul__", fp32(4), "inf"),
    python("Tensor", "__mul__", fp32(4), fp32(5)),
    python("Tensor", "__mul__", fp32(4), (1, 2)),
    python("Tensor", "__mul__", 2, 3),
    python("Tensor", "mul_", fp32(1), fp32(5)),
    python("Tensor", "mul_", 2.0, fp32(5)),
    python("torch", "where", tensor("bool", 4)),
    python("torch", "relu", Tensor([4], "float32")),
    python("torch", "relu", Tensor((4,), 7)),
    python(FUNCTIONAL, "prelu", 2.0, fp32(3)),
]


def test_an_unknown_type_makes_bytes_unknown_and_not_zero():
    part = only(python("torch", "add", tensor("float31", 4), fp32(4)))
    assert part.cost == Cost(4, None)
    assert part.params == "[4]na;[4]fp32"
