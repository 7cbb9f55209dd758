"""Pointwise operators with separate formulas, and complex numbers: FLOPs and bytes."""

from fastprof.ops import has_model, work
from unit.ops.ops_calls import aten, fp16, fp32, python, sizes
from unit.ops.ops_examples import Example, Rows

HALF = fp16(4, 6)  # 24 elements, 48 bytes
GELU_SIZES = sizes("gelu", (4, 6), ())
rows = Rows(globals())
two = Rows(globals(), "torch", "aten")
EXAMPLES = [
    # A condition of one byte per element, two operands, one of them a scalar.
    *rows("torch.where bool[10] fp32[10] fp32[]", 0, 10 + 40 + 4 + 40),
    *rows("where bool[10] fp32[10] fp32[10]", 0, 10 + 3 * 40),
    *rows("Tensor.where fp32[10] bool[10] 0.0", 0, 40 + 10 + 4 + 40),
    *two("clamp|clip|clamp_|clip_ fp32[10] 0.0 6.0", 2 * 10, 40 + 2 * 4 + 40),
    # One slope for each of 3 channels.
    *two("prelu fp32[2,3,5] fp32[3]", 2 * 30, 120 + 12 + 120),
    *two("complex fp32[10] fp32[10]", 0, 2 * 40 + 10 * 8),
    *two("polar fp32[10] fp32[10]", 10 * (2 * 20 + 2), 2 * 40 + 10 * 8),
    *rows("elu_backward fp32[10] 1.0*3 false fp32[10]", 10 * 23, 3 * 40),
    *rows("rrelu_with_noise_backward fp32[10]*3 0.1 0.3 true false", 10, 4 * 40),
    *rows("_prelu_kernel_backward fp32[2,3]*2 fp32[1,3]", 3 * 6, 4 * 27),
    # Division: integers give float32, or integers if the result is rounded.
    *two("div|divide|true_divide|div_|divide_|true_divide_ fp32[10] fp32[10]", 10, 3 * 40),
    *rows(
        """torch.truediv|torch.__truediv__|torch.__rtruediv__|torch.__div__ fp32[10] fp32[10]
        torch.__rdiv__|torch.__itruediv__|torch.__idiv__|torch.itruediv fp32[10] fp32[10]""",
        *(10, 3 * 40),
    ),
    *rows("torch.div int64[10] int64[10]", 10, 80 + 80 + 40),
    *rows("torch.div int64[10] int64[10] rounding_mode='floor'", 10, 3 * 80),
    *rows("div int64[10] int64[10] 'trunc'", 10, 3 * 80),
    *rows("div int64[10] int64[10] []", 10, None),
    *rows("div fp32[10] fp32[10] []", 10, 3 * 40),
    *rows("div [10] [10] []", 10, None),
    *rows.back("torch.div fp32[10] fp32[10]", 10, 3 * 40),
    # GELU: x / sqrt 2, erf, + 1, twice times; by tanh 9 other operations.
    *two("gelu|gelu_ HALF\ngelu|gelu_ HALF 'none'", 24 * (20 + 4), 2 * 48),
    *two("gelu|gelu_ HALF 'tanh'", 24 * (20 + 8), 2 * 48),
    *rows("torch.nn.functional.gelu HALF approximate='tanh'", 24 * 28, 2 * 48),
    *rows.back("torch.gelu HALF", 24 * 49, 3 * 48),
    Example(GELU_SIZES, 24 * 24, None),
    *rows("gelu_backward HALF HALF 'none'", 24 * 49, 3 * 48),
    *rows("gelu_backward HALF HALF 'tanh'", 24 * 37, 3 * 48),
    *rows("infinitely_differentiable_gelu_backward HALF HALF", 24 * 49, 3 * 48),
    # The output has half of the elements.
    *two("glu HALF -1", 12 * 23, 48 + 24),
    *rows.back("torch.glu HALF", 12 * 27, 48 + 24 + 48),
    *rows("glu_backward fp16[4,3] HALF -1", 12 * 27, 24 + 48 + 48),
    *rows(
        """torch.polygamma|polygamma|special_polygamma 1 fp32[10]
        Tensor.polygamma|Tensor.polygamma_|polygamma_ fp32[10] 1""",
        *(10 * 20, 2 * 40),
    ),
    *two("frexp float64[10]", 2 * 10, 80 + 80 + 40),
    *rows("torch.positive|operator.pos|Tensor.__pos__|positive fp32[10]", 0, 0),
    # Complex numbers: two additions, four multiplications and two additions, and so on.
    *(
        example
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
        for example in two(f"{name} complex64[10]*{operands}", 10 * flops, moved)
    ),
    *rows("torch.mul complex64[10] fp32[10]", 60, 80 + 40 + 80),
    Example(python("torch", "mul", fp32(10), 2j), 60, 40 + 4 + 80),
    *rows("torch.erf complex64[10]", None, 2 * 80),
    *rows.back("torch.mul complex64[10]*2", 60, 3 * 80),
    # Backward, by the actual computation.
    *rows.back("torch.tanh fp32[10]", 3 * 10, 3 * 40),
    *rows.back("torch.silu fp32[10]", 27 * 10, 3 * 40),
    *rows("silu [10]", 23 * 10, None),
    *rows("threshold_backward [10] [10] []", 10, None),
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
