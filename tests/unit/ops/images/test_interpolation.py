"""Resizing, sampling, padding and folding of images: sizes, FLOPs and bytes by hand."""

from __future__ import annotations

from functools import partial

import pytest

from fastprof.model.call import UNKNOWN, Call
from fastprof.ops import work
from unit.ops.ops_examples import Example, aten, exact, fp16, fp32, int64, python, sizes
from unit.ops.ops_examples import both as both_of

F = "torch.nn.functional"
NN = "torch._C._nn"
both = partial(both_of, mod=NN)
X1, X2, X3 = fp32(2, 3, 4), fp32(2, 3, 4, 4), fp32(2, 3, 4, 4, 4)
SHAPES = {1: X1, 2: X2, 3: X3}


def operator(
    name: str, dimensions: int, aligned: bool, forward: int, backward: int
) -> list[Example]:
    """Doubled size along each dimension, by size and by factor, and the backward operator."""
    x, corners = SHAPES[dimensions], (False,) if aligned else ()
    count, size = 6 * 4**dimensions, (8,) * dimensions
    outputs = count * 2**dimensions
    moved = 4 * (count + outputs)
    dy, input_size = fp32(2, 3, *size), x.shape
    return [
        *both(name, x, size, *corners, flops=forward * outputs, moved=moved),
        *both(
            name, *(x, None, *corners, (2.0,) * dimensions), flops=forward * outputs, moved=moved
        ),
        *both(name, *(x, size, *corners), flops=backward * outputs, moved=moved, direction="bprop"),
        *both(
            f"{name}_backward",
            *(dy, size, input_size, *corners),
            flops=backward * outputs,
            moved=moved,
        ),
    ]


OPERATORS = [
    *operator("upsample_nearest1d", 1, False, 0, 1),
    *operator("upsample_nearest2d", 2, False, 0, 1),
    *operator("upsample_nearest3d", 3, False, 0, 1),
    *operator("_upsample_nearest_exact1d", 1, False, 0, 1),
    *operator("_upsample_nearest_exact2d", 2, False, 0, 1),
    *operator("_upsample_nearest_exact3d", 3, False, 0, 1),
    *operator("upsample_linear1d", 1, True, 3, 2 * 2),
    *operator("upsample_bilinear2d", 2, True, 2 * 3 + 3, 2 * 4),
    *operator("upsample_trilinear3d", 3, True, 2 * 9 + 3, 2 * 8),
    *operator("upsample_bicubic2d", 2, True, 4 * 7 + 7, 2 * 16),
    # Antialiased without shrinking: the usual windows, six elements wide for Lanczos.
    *operator("_upsample_bilinear2d_aa", 2, True, 9, 8),
    *operator("_upsample_bicubic2d_aa", 2, True, 35, 32),
    *operator("_upsample_lanczos2d_aa", 2, True, 6 * 11 + 11, 2 * 36),
    Example(sizes("upsample_bilinear2d_backward", (2, 3, 8, 8), (), ()), 8 * 384, None),
]

UP = 4 * (96 + 384)  # [2, 3, 4, 4] to [2, 3, 8, 8]
RESIZED = [
    Example(python(F, "interpolate", X2, scale_factor=2), 0, UP, "[2,3,4,4]fp32"),
    Example(python(F, "interpolate", X2, 8, mode="bilinear"), 9 * 384, UP),
    Example(python(F, "interpolate", X2, (8, 8), None, "bicubic"), 35 * 384, UP),
    Example(python(F, "interpolate", X2, scale_factor=(1.5, 1), mode="bilinear"), 9 * 6 * 24, 960),
    Example(python(F, "interpolate", X2, 8, mode="bilinear"), 8 * 384, UP, direction="bprop"),
    Example(python(F, "interpolate", X2, 8, mode="nearest-exact"), 0, UP),
    # Area: the means of an adaptive pooling.
    Example(python(F, "interpolate", X2, 2, mode="area"), 96, 4 * (96 + 24)),
    # Antialiasing to half the size: windows of 2 * 2 elements, 4 * 7 + 7 FLOPs.
    Example(
        python(F, "interpolate", X2, 2, mode="bilinear", antialias=True), 35 * 24, 4 * (96 + 24)
    ),
    Example(python(F, "upsample", X2, None, 2, "bilinear"), 9 * 384, UP),
    Example(python(F, "upsample_nearest", X2, scale_factor=2), 0, UP),
    Example(python(F, "upsample_bilinear", X2, 8), 9 * 384, UP),
    Example(python(F, "upsample_bilinear", X2, 8), 8 * 384, UP, direction="bprop"),
    Example(aten("__interpolate", X2, 8, None, "bilinear", False, None, False), 9 * 384, UP),
    Example(aten("__upsample", X2, 8, None, "nearest", None), 0, UP),
    Example(aten("__upsample_nearest", X2, 8, None), 0, UP),
    Example(aten("__upsample_bilinear", X2, 8, None), 9 * 384, UP),
]

GRID2, GRID3 = fp32(2, 5, 7, 2), fp32(2, 5, 6, 7, 3)
POINTS2, POINTS3 = 2 * 5 * 7, 2 * 5 * 6 * 7
# Coordinates 4 for each; weights: 4 of 3 in two dimensions, 8 of 5 in three.
AT2, AT3 = 4 * 2 + 4 * 3, 4 * 3 + 8 * 5
SAMPLED2 = 4 * (96 + 2 * POINTS2 + 3 * POINTS2)
SAMPLED3 = 4 * (384 + 3 * POINTS3 + 3 * POINTS3)
BACK2, BACK3 = (
    4 * 3 * POINTS2 + 2 * 4 * (96 + 2 * POINTS2),
    4 * 3 * POINTS3 + 8 * (384 + 3 * POINTS3),
)
BACK2_FLOPS = AT2 * POINTS2 + 3 * POINTS2 * 4 * (2 + 3 * 2)
GRIDS = [
    Example(python(F, "grid_sample", X2, GRID2), (AT2 + 3 * 8) * POINTS2, SAMPLED2),
    Example(python(F, "grid_sample", X2, GRID2, "nearest"), 4 * 2 * POINTS2, SAMPLED2),
    Example(
        python(F, "grid_sample", X2, GRID2, mode="bicubic"),
        (4 * 2 + 2 * 24 + 3 * 2 * 16) * POINTS2,
        SAMPLED2,
    ),
    Example(python(F, "grid_sample", X2, GRID2), BACK2_FLOPS, BACK2, direction="bprop"),
    *both(
        "grid_sampler grid_sampler_2d",
        *(X2, GRID2, 0, 0, False),
        flops=(AT2 + 3 * 8) * POINTS2,
        moved=SAMPLED2,
    ),
    *both(
        "grid_sampler_3d", X3, GRID3, 0, 0, False, flops=(AT3 + 3 * 16) * POINTS3, moved=SAMPLED3
    ),
    *both("cudnn_grid_sampler", X2, GRID2, flops=(AT2 + 24) * POINTS2, moved=SAMPLED2),
    *both(
        "grid_sampler_2d_backward",
        *(fp32(2, 3, 5, 7), X2, GRID2, 0, 0, False, (True, True)),
        flops=BACK2_FLOPS,
        moved=BACK2,
    ),
    *both(
        "grid_sampler_2d_backward",
        *(fp32(2, 3, 5, 7), X2, GRID2, 1, 0, False, (True, True)),
        flops=4 * 2 * POINTS2 + 3 * POINTS2,
        moved=BACK2,
    ),
    *both(
        "grid_sampler_3d_backward",
        *(fp32(2, 3, 5, 6, 7), X3, GRID3, 0, 0, False, (True, True)),
        flops=AT3 * POINTS3 + 3 * POINTS3 * 8 * (2 + 3 * 3),
        moved=BACK3,
    ),
    *both(
        "cudnn_grid_sampler_backward", X2, GRID2, fp32(2, 3, 5, 7), flops=BACK2_FLOPS, moved=BACK2
    ),
    Example(sizes("cudnn_grid_sampler", X2.shape, GRID2.shape), (AT2 + 24) * POINTS2, None),
]

THETA2, THETA3 = fp32(2, 2, 3), fp32(2, 3, 4)
PLANE = 2 * 2 * 5 * 7 * 3 * 2  # [5 * 7, 3] @ [3, 2] for 2 images
MOVED2 = 4 * (2 * 2 * 3 + 2 * 5 * 7 * 2)
AFFINE = [
    Example(python(F, "affine_grid", THETA2, (2, 3, 5, 7)), PLANE, MOVED2, "[2,2,3]fp32"),
    Example(python(F, "affine_grid", THETA2, (2, 3, 5, 7)), PLANE, MOVED2, direction="bprop"),
    *both("affine_grid_generator", THETA2, (2, 3, 5, 7), False, flops=PLANE, moved=MOVED2),
    *both(
        "affine_grid_generator",
        *(THETA3, (2, 3, 4, 5, 6), False),
        flops=2 * 2 * 4 * 5 * 6 * 4 * 3,
        moved=4 * (2 * 3 * 4 + 2 * 4 * 5 * 6 * 3),
    ),
    *both("cudnn_affine_grid_generator", THETA2, 2, 3, 5, 7, flops=PLANE, moved=MOVED2),
    *both("affine_grid_generator_backward", GRID2, (2, 3, 5, 7), False, flops=PLANE, moved=MOVED2),
    *both("cudnn_affine_grid_generator_backward", GRID2, 2, 3, 5, 7, flops=PLANE, moved=MOVED2),
    Example(sizes("affine_grid_generator_backward", (2, 5, 7, 2), (), ()), PLANE, None),
]

PADDED = 4 * (96 + 6 * 4 * 7)  # the last dimension from 4 to 1 + 4 + 2
KINDS = "reflection_pad{0}d replication_pad{0}d"
PADS = [
    Example(python(F, "pad", X2, (1, 2)), 0, PADDED, "[2,3,4,4]fp32"),
    Example(python(F, "pad", X2, (1, 2), "reflect"), 0, PADDED),
    Example(python(F, "pad", X2, (1, 2), "constant", 0.5), 0, 4 * 2 * 96, direction="bprop"),
    Example(python(F, "pad", X2, (1, 2), "reflect"), 6 * 4 * 7, PADDED, direction="bprop"),
    # A negative pad crops: 3 of 4 columns are read, and written with one more.
    Example(python(F, "pad", X2, (-1, 1)), 0, 4 * (6 * 4 * 3 + 6 * 4 * 4)),
    Example(python("torch", "_pad", X2, (1, 2)), 0, PADDED),
    Example(aten("pad", fp16(2, 3, 4), (1, 2), "constant", None), 0, 2 * (24 + 6 * 7)),
    Example(aten("_pad_enum", X2, (1, 2), 3, None), 0, PADDED),
    *both("constant_pad_nd", X2, (1, 2), 0, flops=0, moved=PADDED),
    *both("constant_pad_nd", X2, (1, 2), 0, flops=0, moved=8 * 96, direction="bprop"),
    *both("_pad_circular", X2, (1, 2), flops=0, moved=PADDED),
    *(
        example
        for dimensions, x in SHAPES.items()
        for outputs in [6 * 7 * 4 ** (dimensions - 1)]
        for moved in [4 * (6 * 4**dimensions + outputs)]
        for names in [KINDS.format(dimensions)]
        for pads in [(1, 2) + (0, 0) * (dimensions - 1)]
        for dy in [fp32(*x.shape[:-1], 7)]
        for example in [
            *both(names, x, pads, flops=0, moved=moved),
            *both(names, x, pads, flops=outputs, moved=moved, direction="bprop"),
            *both(
                " ".join(f"{name}_backward" for name in names.split()),
                *(dy, x, pads),
                flops=outputs,
                moved=moved,
            ),
        ]
    ),
    Example(sizes("reflection_pad1d_backward", (2, 3, 7), (2, 3, 4), ()), 42, None),
]

# Windows of 3 by 3 over 4 by 4 with padding 1: 16 columns of 3 * 9 elements.
COLUMNS = fp32(2, 27, 16)
FOLDED = 4 * (96 + 2 * 27 * 16)
FOLDS = [
    Example(python(F, "unfold", X2, 3, padding=1), 0, FOLDED, "[2,3,4,4]fp32"),
    Example(python(F, "unfold", X2, 3, 1, 1, 1), 2 * 27 * 16, FOLDED, direction="bprop"),
    *both("im2col", X2, (3, 3), (1, 1), (1, 1), (1, 1), flops=0, moved=FOLDED),
    Example(python(F, "fold", COLUMNS, 4, 3, padding=1), 2 * 27 * 16, FOLDED),
    Example(python(F, "fold", COLUMNS, 4, 3, padding=1), 0, FOLDED, direction="bprop"),
    *both("col2im", COLUMNS, (4, 4), (3, 3), 1, 1, 1, flops=2 * 27 * 16, moved=FOLDED),
    *both("im2col_backward", COLUMNS, (4, 4), 3, 1, 1, 1, flops=2 * 27 * 16, moved=FOLDED),
    *both("col2im_backward", X2, (3, 3), 1, 1, 1, flops=0, moved=FOLDED),
]

EXAMPLES = [*OPERATORS, *RESIZED, *GRIDS, *AFFINE, *PADS, *FOLDS]


def test_antialiasing_is_an_estimate() -> None:
    assert not exact(python(F, "interpolate", X2, 2, mode="bilinear", antialias=True))
    assert not exact(python(F, "interpolate", X2, 2, mode="bilinear", antialias=UNKNOWN))
    assert exact(python(F, "interpolate", X2, 2, mode="bilinear"))
    assert not exact(aten("grid_sampler_2d", X2, GRID2, UNKNOWN, UNKNOWN, UNKNOWN))


def test_both_doors_of_a_resizing_give_the_same() -> None:
    for mode, name in (("nearest", "upsample_nearest2d"), ("bicubic", "upsample_bicubic2d")):
        corners = () if mode == "nearest" else (False,)
        for direction in ("fprop", "bprop"):
            called = python(F, "interpolate", X2, scale_factor=1.7, mode=mode)
            assert work(called, direction) == work(aten(name, X2, (6, 6), *corners), direction)


def test_a_view_of_sliding_windows_is_not_taken_for_columns() -> None:
    assert work(python("Tensor", "unfold", X2, 2, 3, 1), "fprop") is None


def test_from_sizes_alone_a_target_is_not_known() -> None:
    assert work(sizes("upsample_nearest2d", (2, 3, 4, 4), (), ()), "fprop") is None
    assert work(sizes("constant_pad_nd", (2, 3, 4, 4), (), ()), "fprop") is None


@pytest.mark.parametrize(
    "call",
    [
        python(F, "interpolate", X2),
        python(F, "interpolate", X2, (8, 8, 8)),
        python(F, "interpolate", X2, scale_factor=float("inf")),
        python(F, "interpolate", X2, scale_factor=-1),
        python(F, "interpolate", X2, 8, mode="best"),
        python(F, "interpolate", fp32(3, 4), 8),
        aten("upsample_nearest2d", X1, (8, 8)),
        aten("upsample_bilinear2d_backward", fp32(2, 3), (8, 8), X2.shape, False),
        aten("_upsample_bicubic2d_aa_backward", X2, (4, 4), UNKNOWN, False),
        python(F, "grid_sample", X2, GRID3),
        python(F, "grid_sample", X2, GRID2, "best"),
        python(F, "grid_sample", X3, GRID3, "bicubic"),
        python(F, "affine_grid", THETA2, (3, 3, 5, 7)),
        python(F, "affine_grid", THETA2, (2, 3)),
        aten("affine_grid_generator_backward", fp32(2, 5, 7, 3), (2, 3, 5, 7), False),
        python(F, "pad", X2, (1,)),
        python(F, "pad", X2, (1, 2) * 5),
        python(F, "pad", X2, (-3, -3)),
        python(F, "pad", X2, (1, 2), "best"),
        python(F, "unfold", fp32(4, 4), 3),
        python(F, "unfold", X2, 5),
        python(F, "fold", COLUMNS, 5, 3, padding=1),
        python(F, "fold", fp32(2, 26, 16), 4, 3, padding=1),
        python(F, "fold", int64(27), 4, 3),
    ],
)
def test_a_malformed_resizing_has_no_cost(call: Call) -> None:
    assert work(call, "fprop") is None
