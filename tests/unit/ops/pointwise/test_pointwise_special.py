"""Pointwise operators with separate formulas, and complex numbers: FLOPs and bytes."""

from fastprof.model.call import Arg, Call, Tensor
from fastprof.ops import has_model, work
from unit.ops.ops_examples import Example, aten, fp16, fp32, int64, python, sizes, tensor


def call(mod, op, *values):
    return Call(mod, op, tuple(Arg("", value) for value in values))


HALF = fp16(4, 6)  # 24 elements, 48 bytes
GELU_SIZES = sizes("gelu", (4, 6), ())
EXAMPLES = [
    # A condition of one byte per element, two operands, one of them a scalar.
    Example(python("torch", "where", tensor("bool", 10), fp32(10), fp32()), 0, 10 + 40 + 4 + 40),
    Example(aten("where", tensor("bool", 10), fp32(10), fp32(10)), 0, 10 + 3 * 40),
    Example(python("Tensor", "where", fp32(10), tensor("bool", 10), 0.0), 0, 40 + 10 + 4 + 40),
    *(
        Example(call(door, name, fp32(10), 0.0, 6.0), 2 * 10, 40 + 2 * 4 + 40)
        for door in ("torch", "aten")
        for name in ("clamp", "clip", "clamp_", "clip_")
    ),
    # One slope for each of 3 channels.
    *(
        Example(call(door, "prelu", fp32(2, 3, 5), fp32(3)), 2 * 30, 120 + 12 + 120)
        for door in ("torch", "aten")
    ),
    *(
        Example(call(door, name, fp32(10), fp32(10)), 10 * flops, 2 * 40 + 10 * 8)
        for door in ("torch", "aten")
        for name, flops in (("complex", 0), ("polar", 2 * 20 + 2))
    ),
    Example(aten("elu_backward", fp32(10), 1.0, 1.0, 1.0, False, fp32(10)), 10 * 23, 3 * 40),
    Example(
        aten("rrelu_with_noise_backward", fp32(10), fp32(10), fp32(10), 0.1, 0.3, True, False),
        10,
        4 * 40,
    ),
    Example(aten("_prelu_kernel_backward", fp32(2, 3), fp32(2, 3), fp32(1, 3)), 3 * 6, 4 * 27),
    # Division: integers give float32, or integers if the result is rounded.
    *(
        Example(call(door, name, fp32(10), fp32(10)), 10, 3 * 40)
        for door, names in (
            ("torch", "div divide true_divide div_ divide_ true_divide_"),
            ("torch", "truediv __truediv__ __rtruediv__ __div__ __rdiv__"),
            ("torch", "__itruediv__ __idiv__ itruediv"),
            ("aten", "div divide true_divide div_ divide_ true_divide_"),
        )
        for name in names.split()
    ),
    Example(python("torch", "div", int64(10), int64(10)), 10, 80 + 80 + 40),
    Example(python("torch", "div", int64(10), int64(10), rounding_mode="floor"), 10, 3 * 80),
    Example(aten("div", int64(10), int64(10), "trunc"), 10, 3 * 80),
    Example(aten("div", int64(10), int64(10), Tensor(())), 10, None),
    Example(aten("div", fp32(10), fp32(10), Tensor(())), 10, 3 * 40),
    Example(sizes("div", (10,), (10,), ()), 10, None),
    Example(python("torch", "div", fp32(10), fp32(10)), 10, 3 * 40, None, "bprop"),
    # GELU: x / sqrt 2, erf, + 1, twice times; by tanh 9 other operations.
    *(
        Example(call(door, name, HALF, *approximate), 24 * flops, 2 * 48)
        for door in ("torch", "aten")
        for name in ("gelu", "gelu_")
        for approximate, flops in (((), 20 + 4), (("none",), 20 + 4), (("tanh",), 20 + 8))
    ),
    Example(python("torch.nn.functional", "gelu", HALF, approximate="tanh"), 24 * 28, 2 * 48),
    Example(python("torch", "gelu", HALF), 24 * 49, 3 * 48, None, "bprop"),
    Example(GELU_SIZES, 24 * 24, None),
    Example(aten("gelu_backward", HALF, HALF, "none"), 24 * 49, 3 * 48),
    Example(aten("gelu_backward", HALF, HALF, "tanh"), 24 * 37, 3 * 48),
    Example(aten("infinitely_differentiable_gelu_backward", HALF, HALF), 24 * 49, 3 * 48),
    # The output has half of the elements.
    *(Example(call(door, "glu", HALF, -1), 12 * 23, 48 + 24) for door in ("torch", "aten")),
    Example(python("torch", "glu", HALF), 12 * 27, 48 + 24 + 48, None, "bprop"),
    Example(aten("glu_backward", fp16(4, 3), HALF, -1), 12 * 27, 24 + 48 + 48),
    *(
        Example(call(door, name, *arguments), 10 * 20, 2 * 40)
        for door, name, arguments in (
            ("torch", "polygamma", (1, fp32(10))),
            ("Tensor", "polygamma", (fp32(10), 1)),
            ("Tensor", "polygamma_", (fp32(10), 1)),
            ("aten", "polygamma", (1, fp32(10))),
            ("aten", "polygamma_", (fp32(10), 1)),
            ("aten", "special_polygamma", (1, fp32(10))),
        )
    ),
    *(
        Example(call(door, "frexp", tensor("float64", 10)), 2 * 10, 80 + 80 + 40)
        for door in ("torch", "aten")
    ),
    *(
        Example(call(door, name, fp32(10)), 0, 0)
        for door, name in (
            *(("torch", "positive"), ("operator", "pos"), ("Tensor", "__pos__")),
            ("aten", "positive"),
        )
    ),
    # Complex numbers: two additions, four multiplications and two additions, and so on.
    *(
        Example(call(door, name, *[tensor("complex64", 10)] * operands), 10 * flops, moved)
        for door in ("torch", "aten")
        for name, operands, flops, moved in (
            ("add", 2, 2, 3 * 80),
            ("mul", 2, 6, 3 * 80),
            ("div", 2, 11, 3 * 80),
            ("neg", 1, 2, 2 * 80),
            ("eq", 2, 2, 2 * 80 + 10),
            ("abs", 1, 23, 80 + 40),
            ("angle", 1, 20, 80 + 40),
            ("exp", 1, 20 + 2 * 20 + 2, 2 * 80),
            ("addcmul", 3, 14, 4 * 80),
            ("conj_physical", 1, 1, 2 * 80),
        )
    ),
    Example(python("torch", "mul", tensor("complex64", 10), fp32(10)), 60, 80 + 40 + 80),
    Example(python("torch", "mul", fp32(10), 2j), 60, 40 + 4 + 80),
    Example(python("torch", "erf", tensor("complex64", 10)), None, 2 * 80),
    Example(python("torch", "mul", *[tensor("complex64", 10)] * 2), 60, 3 * 80, None, "bprop"),
    # Backward, by the actual computation.
    Example(python("torch", "tanh", fp32(10)), 3 * 10, 3 * 40, None, "bprop"),
    Example(python("torch", "silu", fp32(10)), 27 * 10, 3 * 40, None, "bprop"),
    Example(sizes("silu", (10,)), 23 * 10, None),
    Example(sizes("threshold_backward", (10,), (10,), ()), 10, None),
]


def test_without_its_approximation_a_gelu_is_an_estimate():
    assert not work(GELU_SIZES, "fprop").cost.exact
    assert work(aten("gelu", HALF, "none"), "fprop").cost.exact
    assert not has_model(aten("gelu", HALF, "cubic"))


def test_what_cannot_be_halved_has_no_work():
    assert work(python("torch", "glu", fp32(3, 3)), "fprop") is None
    assert work(aten("glu_backward", fp16(4, 4), HALF), "fprop") is None


def test_an_in_place_result_keeps_the_type_of_its_first_operand():
    mixed = work(python("Tensor", "add_", fp16(10), fp32(10)), "fprop")
    assert mixed.cost.bytes == 20 + 40 + 20
    assert (
        work(python("Tensor", "__itruediv__", fp16(10), fp32(10)), "fprop").cost.bytes
        == 20 + 40 + 20
    )
