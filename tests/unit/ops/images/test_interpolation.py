"""Resizing, sampling, padding and folding of images: sizes, FLOPs and bytes by hand."""

from functools import partial

from fastprof.model.call import UNKNOWN
from fastprof.ops import work
from unit.ops.ops_calls import aten, fp32, int64, python, sizes
from unit.ops.ops_examples import Example, Rows, exact
from unit.ops.ops_examples import both as both_of

F = "torch.nn.functional"
NN = "torch._C._nn"
rows = Rows(globals())
two = Rows(globals(), "torch._C._nn", "aten")
nn = Rows(globals(), F)
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
    *rows("upsample_bilinear2d_backward [2,3,8,8] [] []", 8 * 384, None),
]

UP = 4 * (96 + 384)  # [2, 3, 4, 4] to [2, 3, 8, 8]
RESIZED = [
    *nn("interpolate X2 scale_factor=2", 0, UP, "[2,3,4,4]fp32"),
    *nn("interpolate X2 8 mode='bilinear'", 9 * 384, UP),
    *nn("interpolate X2 (8,8) - 'bicubic'", 35 * 384, UP),
    *nn("interpolate X2 scale_factor=(1.5,1) mode='bilinear'", 9 * 6 * 24, 960),
    *nn.back("interpolate X2 8 mode='bilinear'", 8 * 384, UP),
    *nn("interpolate X2 8 mode='nearest-exact'", 0, UP),
    # Area: the means of an adaptive pooling.
    *nn("interpolate X2 2 mode='area'", 96, 4 * (96 + 24)),
    # Antialiasing to half the size: windows of 2 * 2 elements, 4 * 7 + 7 FLOPs.
    *nn("interpolate X2 2 mode='bilinear' antialias=true", 35 * 24, 4 * (96 + 24)),
    *nn("upsample X2 - 2 'bilinear'", 9 * 384, UP),
    *nn("upsample_nearest X2 scale_factor=2", 0, UP),
    *nn("upsample_bilinear X2 8", 9 * 384, UP),
    *nn.back("upsample_bilinear X2 8", 8 * 384, UP),
    *rows("__interpolate X2 8 - 'bilinear' false - false", 9 * 384, UP),
    *rows("__upsample X2 8 - 'nearest' -", 0, UP),
    *rows("__upsample_nearest X2 8 -", 0, UP),
    *rows("__upsample_bilinear X2 8 -", 9 * 384, UP),
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
    *nn("grid_sample X2 GRID2", (AT2 + 3 * 8) * POINTS2, SAMPLED2),
    *nn("grid_sample X2 GRID2 'nearest'", 4 * 2 * POINTS2, SAMPLED2),
    *nn("grid_sample X2 GRID2 mode='bicubic'", (4 * 2 + 2 * 24 + 3 * 2 * 16) * POINTS2, SAMPLED2),
    *nn.back("grid_sample X2 GRID2", BACK2_FLOPS, BACK2),
    *two("grid_sampler|grid_sampler_2d X2 GRID2 0 0 false", (AT2 + 3 * 8) * POINTS2, SAMPLED2),
    *two("grid_sampler_3d X3 GRID3 0 0 false", (AT3 + 3 * 16) * POINTS3, SAMPLED3),
    *two("cudnn_grid_sampler X2 GRID2", (AT2 + 24) * POINTS2, SAMPLED2),
    *two(
        "grid_sampler_2d_backward fp32[2,3,5,7] X2 GRID2 0 0 false (true,true)", BACK2_FLOPS, BACK2
    ),
    *two(
        "grid_sampler_2d_backward fp32[2,3,5,7] X2 GRID2 1 0 false (true,true)",
        *(4 * 2 * POINTS2 + 3 * POINTS2, BACK2),
    ),
    *two(
        "grid_sampler_3d_backward fp32[2,3,5,6,7] X3 GRID3 0 0 false (true,true)",
        *(AT3 * POINTS3 + 3 * POINTS3 * 8 * (2 + 3 * 3), BACK3),
    ),
    *two("cudnn_grid_sampler_backward X2 GRID2 fp32[2,3,5,7]", BACK2_FLOPS, BACK2),
    Example(sizes("cudnn_grid_sampler", X2.shape, GRID2.shape), (AT2 + 24) * POINTS2, None),
]

THETA2, THETA3 = fp32(2, 2, 3), fp32(2, 3, 4)
PLANE = 2 * 2 * 5 * 7 * 3 * 2  # [5 * 7, 3] @ [3, 2] for 2 images
MOVED2 = 4 * (2 * 2 * 3 + 2 * 5 * 7 * 2)
AFFINE = [
    *nn("affine_grid THETA2 (2,3,5,7)", PLANE, MOVED2, "[2,2,3]fp32"),
    *nn.back("affine_grid THETA2 (2,3,5,7)", PLANE, MOVED2),
    *two("affine_grid_generator THETA2 (2,3,5,7) false", PLANE, MOVED2),
    *two(
        "affine_grid_generator THETA3 (2,3,4,5,6) false",
        *(2 * 2 * 4 * 5 * 6 * 4 * 3, 4 * (2 * 3 * 4 + 2 * 4 * 5 * 6 * 3)),
    ),
    *two("cudnn_affine_grid_generator THETA2 2 3 5 7", PLANE, MOVED2),
    *two("affine_grid_generator_backward GRID2 (2,3,5,7) false", PLANE, MOVED2),
    *two("cudnn_affine_grid_generator_backward GRID2 2 3 5 7", PLANE, MOVED2),
    *rows("affine_grid_generator_backward [2,5,7,2] [] []", PLANE, None),
]

PADDED = 4 * (96 + 6 * 4 * 7)  # the last dimension from 4 to 1 + 4 + 2
KINDS = "reflection_pad{0}d replication_pad{0}d"
PADS = [
    *nn("pad X2 (1,2)", 0, PADDED, "[2,3,4,4]fp32"),
    *nn("pad X2 (1,2) 'reflect'", 0, PADDED),
    *nn.back("pad X2 (1,2) 'constant' 0.5", 0, 4 * 2 * 96),
    *nn.back("pad X2 (1,2) 'reflect'", 6 * 4 * 7, PADDED),
    # A negative pad crops: 3 of 4 columns are read, and written with one more.
    *nn("pad X2 (-1,1)", 0, 4 * (6 * 4 * 3 + 6 * 4 * 4)),
    *rows("torch._pad X2 (1,2)", 0, PADDED),
    *rows("pad fp16[2,3,4] (1,2) 'constant' -", 0, 2 * (24 + 6 * 7)),
    *rows("_pad_enum X2 (1,2) 3 -", 0, PADDED),
    *two("constant_pad_nd X2 (1,2) 0", 0, PADDED),
    *two.back("constant_pad_nd X2 (1,2) 0", 0, 8 * 96),
    *two("_pad_circular X2 (1,2)", 0, PADDED),
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
    *rows("reflection_pad1d_backward [2,3,7] [2,3,4] []", 42, None),
]

# Windows of 3 by 3 over 4 by 4 with padding 1: 16 columns of 3 * 9 elements.
COLUMNS = fp32(2, 27, 16)
FOLDED = 4 * (96 + 2 * 27 * 16)
FOLDS = [
    *nn("unfold X2 3 padding=1", 0, FOLDED, "[2,3,4,4]fp32"),
    *nn.back("unfold X2 3 1*3", 2 * 27 * 16, FOLDED),
    *two("im2col X2 (3,3) (1,1)*3", 0, FOLDED),
    *nn("fold COLUMNS 4 3 padding=1", 2 * 27 * 16, FOLDED),
    *nn.back("fold COLUMNS 4 3 padding=1", 0, FOLDED),
    *two("col2im COLUMNS (4,4) (3,3) 1*3", 2 * 27 * 16, FOLDED),
    *two("im2col_backward COLUMNS (4,4) 3 1*3", 2 * 27 * 16, FOLDED),
    *two("col2im_backward X2 (3,3) 1*3", 0, FOLDED),
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


MALFORMED = [
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
]
