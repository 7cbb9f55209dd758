"""Pooling: output sizes, FLOPs and bytes by hand."""

import pytest

from fastprof.model.call import UNKNOWN
from fastprof.ops import work
from fastprof.ops.images.pooling import adaptive_taps
from unit.ops.ops_calls import aten, fp32, int64, python, sizes
from unit.ops.ops_examples import Example, Rows, both

F = "torch.nn.functional"
nn = Rows(globals(), F)
X1, X2, X3 = fp32(2, 3, 8), fp32(2, 3, 8, 8), fp32(2, 3, 8, 8, 8)
IN1, IN2, IN3 = 6 * 8, 6 * 8 * 8, 6 * 8 * 8 * 8  # elements
OUT1, OUT2, OUT3 = 6 * 4, 6 * 4 * 4, 6 * 4 * 4 * 4  # windows of 2: half the size
SHAPES = {1: (X1, IN1, OUT1, 2), 2: (X2, IN2, OUT2, 4), 3: (X3, IN3, OUT3, 8)}


def of_windows(dimensions: int) -> list[Example]:
    """Pooling with windows of 2 along each dimension."""
    x, count, outputs, window = SHAPES[dimensions]
    y = fp32(*x.shape[:2], *[4] * dimensions)
    picked = 4 * count + (4 + 8) * outputs  # x; y and int64 indices
    averaged = 4 * (count + outputs)
    maximum, mean, norm = (
        f"max_pool{dimensions}d",
        f"avg_pool{dimensions}d",
        f"lp_pool{dimensions}d",
    )
    unpool = f"max_unpool{dimensions}d"
    return [
        *both(f"{maximum} {maximum}_with_indices", x, 2, flops=window * outputs, moved=picked),
        *both(maximum, x, 2, flops=outputs, moved=picked, direction="bprop"),
        Example(python(F, f"_{maximum}", x, kernel_size=2), window * outputs, picked),
        Example(aten(maximum, x, (2,) * dimensions, (), 0, 1, False), window * outputs, picked),
        *both(mean, x, 2, flops=window * outputs, moved=averaged),
        *both(mean, x, 2, flops=(window + 1) * outputs, moved=averaged, direction="bprop"),
        Example(python(F, norm, x, 2.0, 2), 20 * count + (window + 24) * outputs, averaged),
        Example(
            python(F, norm, x, 2.0, 2),
            21 * count + (window + 21) * outputs,
            4 * (2 * count + 2 * outputs),
            direction="bprop",
        ),
        # Unpooled: zeros except at the indices.
        Example(python(F, unpool, y, int64(*y.shape), 2), 0, (4 + 8) * outputs + 4 * count),
        Example(
            python(F, unpool, y, int64(*y.shape), 2, output_size=x.shape),
            0,
            (4 + 8) * outputs + 4 * count,
        ),
        Example(
            python(F, unpool, y, int64(*y.shape), 2), 0, (8 + 4 + 4) * outputs, direction="bprop"
        ),
    ]


def of_targets(dimensions: int) -> list[Example]:
    """Adaptive pooling of 8 to 4 along each dimension."""
    x, count, outputs, _ = SHAPES[dimensions]
    mean, maximum = f"adaptive_avg_pool{dimensions}d", f"adaptive_max_pool{dimensions}d"
    inner = f"{mean} _{mean}" if dimensions > 1 else mean
    averaged, picked = 4 * (count + outputs), 4 * count + 12 * outputs
    return [
        *both(inner, x, 4, flops=count, moved=averaged),
        *both(inner, x, 4, flops=count + outputs, moved=averaged, direction="bprop"),
        *both(maximum, x, 4, flops=count, moved=picked),
        *both(maximum, x, 4, flops=outputs, moved=picked, direction="bprop"),
        *(
            Example(python(F, name, x, 4, True), count, picked)
            for name in (f"_{maximum}", f"{maximum}_with_indices")
        ),
        Example(aten(mean, x, (4,) * dimensions), count, averaged),
    ]


BACKWARD = [
    example
    for dimensions in (2, 3)
    for x, count, outputs, window in [SHAPES[dimensions]]
    for y in [fp32(*x.shape[:2], *[4] * dimensions)]
    for example in [
        *both(
            f"max_pool{dimensions}d_with_indices_backward",
            *(y, x, 2, 2, 0, 1, False, int64(*y.shape)),
            flops=outputs,
            moved=12 * outputs + 4 * count,
        ),
        *both(
            f"adaptive_max_pool{dimensions}d_backward",
            *(y, x, int64(*y.shape)),
            flops=outputs,
            moved=12 * outputs + 4 * count,
        ),
        *both(
            f"fractional_max_pool{dimensions}d_backward",
            *(y, x, 2, 4, int64(*y.shape)),
            flops=outputs,
            moved=12 * outputs + 4 * count,
        ),
        *both(
            f"avg_pool{dimensions}d_backward",
            *(y, x, 2, 2, 0, False, True, None),
            flops=(window + 1) * outputs,
            moved=4 * (outputs + count),
        ),
        *both(
            f"_adaptive_avg_pool{dimensions}d_backward",
            *(y, x),
            flops=outputs + count,
            moved=4 * (outputs + count),
        ),
        *both(
            f"max_unpool{dimensions}d_backward",
            *(x, y, int64(*y.shape), (8,) * dimensions),
            flops=0,
            moved=(8 + 4 + 4) * outputs,
        ),
        Example(
            aten(f"max_unpool{dimensions}d", y, int64(*y.shape), (8,) * dimensions),
            0,
            12 * outputs + 4 * count,
        ),
    ]
]

FRACTIONAL = [
    example
    for dimensions in (2, 3)
    for x, count, outputs, window in [SHAPES[dimensions]]
    for name in [f"fractional_max_pool{dimensions}d"]
    for moved in [4 * count + 12 * outputs]
    for example in [
        Example(python(F, name, x, 2, 4), window * outputs, moved),
        Example(python(F, name, x, 2, output_ratio=0.5), window * outputs, moved),
        Example(python(F, f"{name}_with_indices", x, 2, 4, None, True), window * outputs, moved),
        Example(aten(name, x, 2, 4, fp32(2, 3, dimensions)), window * outputs, moved),
        Example(python(F, name, x, 2, 4), outputs, moved, direction="bprop"),
    ]
]

# Sizes: (8 + 2 - 1 * (3 - 1) - 1) // 2 + 1 = 4; with dilation 2 (8 + 2 - 4 - 1) // 2 + 1 = 3.
ODD = [
    *nn(
        "max_pool2d X2 3 2 1 ceil_mode=false return_indices=false",
        *(9 * 6 * 4 * 4, 4 * IN2 + 12 * 6 * 4 * 4, "[2,3,8,8]fp32"),
    ),
    Example(python(F, "max_pool2d", X2, 3, 2, 1, 2), 9 * 6 * 3 * 3, 4 * IN2 + 12 * 6 * 3 * 3),
    # ceil_mode: one more window if it begins inside, none if it begins in the trailing padding.
    Example(python(F, "max_pool2d", X2, 3, 2, 0, 1, True), 9 * 6 * 16, 4 * IN2 + 12 * 6 * 16),
    Example(python(F, "max_pool2d", X2, 3, 2, 0, 1, False), 9 * 6 * 9, 4 * IN2 + 12 * 6 * 9),
    Example(python(F, "avg_pool1d", fp32(3, 5), 2, 3, 1, True), 2 * 3 * 2, 4 * (3 * 5 + 3 * 2)),
    *nn("avg_pool2d fp16[3,8,6] (2,3) stride=(2,3)", 6 * 3 * 4 * 2, 2 * 3 * (8 * 6 + 4 * 2)),
    # 5 to 3 along one dimension: windows 0..1, 1..3, 3..4 of 2 + 3 + 2 = 5 + 3 - 1 elements.
    Example(python(F, "adaptive_avg_pool1d", fp32(2, 3, 5), 3), 6 * 7, 4 * 6 * (5 + 3)),
    *nn("adaptive_avg_pool2d fp32[2,3,5,8] (-,1)", 6 * 5 * 8, 4 * 6 * (40 + 5)),
    Example(
        sizes(
            "max_pool2d_with_indices_backward",
            *[(2, 3, 4, 4), (2, 3, 8, 8)],
            *[()] * 5,
            (2, 3, 4, 4),
        ),
        96,
        None,
    ),
    Example(sizes("_adaptive_avg_pool2d_backward", (2, 3, 4, 4), (2, 3, 8, 8)), 96 + 384, None),
]

EXAMPLES = [
    *(example for dimensions in (1, 2, 3) for example in of_windows(dimensions)),
    *(example for dimensions in (1, 2, 3) for example in of_targets(dimensions)),
    *BACKWARD,
    *FRACTIONAL,
    *ODD,
]


@pytest.mark.parametrize("size", range(1, 12))
@pytest.mark.parametrize("wanted", range(1, 12))
def test_adaptive_windows_hold_what_counting_them_gives(size: int, wanted: int) -> None:
    ends = [(i * size // wanted, -(-(i + 1) * size // wanted)) for i in range(wanted)]
    assert adaptive_taps((size,), (wanted,)) == sum(end - start for start, end in ends)


def test_both_doors_of_a_pooling_give_the_same() -> None:
    called = python(F, "max_pool2d", X2, kernel_size=3, stride=2, padding=1)
    dispatched = aten("max_pool2d_with_indices", X2, (3, 3), (2, 2), (1, 1), (1, 1), False)
    for direction in ("fprop", "bprop"):
        assert work(called, direction) == work(dispatched, direction)


def test_from_sizes_alone_a_window_is_not_known() -> None:
    for name in ("max_pool2d", "avg_pool2d", "adaptive_avg_pool2d"):
        assert work(sizes(name, (2, 3, 8, 8), (), (), ()), "fprop") is None


MALFORMED = [
    python(F, "max_pool2d", fp32(8, 8), 2),
    python(F, "max_pool2d", X2, 9),
    python(F, "max_pool2d", X2, 0),
    python(F, "max_pool2d", X2, 2, 0),
    python(F, "max_pool2d", X2, (2, 2, 2)),
    python(F, "max_pool2d", X2, 2, padding=-1),
    python(F, "max_pool2d", X2, "2"),
    python(F, "max_pool2d", X2, 2, UNKNOWN),
    python(F, "max_pool2d", X2, 2, 2, 0, 1, UNKNOWN),
    python(F, "avg_pool3d", X2, 20),
    python(F, "adaptive_avg_pool2d", X2, (4, 4, 4)),
    python(F, "adaptive_avg_pool2d", X2, -1),
    python(F, "adaptive_avg_pool2d", X2, ()),
    python(F, "fractional_max_pool2d", X2, 2),
    python(F, "fractional_max_pool2d", X2, 2, output_ratio=2.0),
    python(F, "max_unpool2d", X2, int64(2, 3, 4, 4), 2),
    python(F, "max_unpool1d", X1, int64(2, 3, 8), 1, 1, 9),
    aten("max_pool2d_with_indices_backward", X2, X2, 2, 2, 0, 1, False, int64(2, 3, 4, 4)),
]
