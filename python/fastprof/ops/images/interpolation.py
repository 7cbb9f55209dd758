"""FLOPs and bytes of resizing, unfold (im2col), fold (col2im), padding and grid sampling."""

from __future__ import annotations

from math import ceil, prod
from typing import Final, TypeAlias

from fastprof.model.call import Tensor, Unknown
from fastprof.ops.cost import Answer, CannotModel, Cost, Part, Work
from fastprof.ops.images.pooling import PoolingWindows, Sizes, adaptive_avg_pool, by_dimension
from fastprof.ops.matrix.matmul import GEMM
from fastprof.ops.parameters import Flag, Int, Ints
from fastprof.ops.registry import operators
from fastprof.ops.table import Traffic, table_row
from fastprof.ops.tensor import elements, fresh, moved, same_shape, texts
from fastprof.ops.tensor_cores import why_not

Scale: TypeAlias = float | tuple[float, ...] | Unknown | None

_LARGEST: Final = 2**32  # larger factors are invalid

# Number of input elements of one output element, along one dimension.
_TAPS: Final = {
    "nearest": 1,
    "nearest-exact": 1,
    "linear": 2,
    "bilinear": 2,
    "trilinear": 2,
    "bicubic": 4,
    "lanczos": 6,
}


def interpolated(taps: Sizes) -> int:
    """FLOPs of one output: weighted sums along the last dimension, then along the one before.

    A sum of n weighted elements is n products and n - 1 additions: linear 3, bilinear 9, trilinear
    21, bicubic 35. Nearest is a copy: 0.
    """
    flops = 0
    for n in reversed(taps):
        flops = n * flops + 2 * n - 1
    return 0 if prod(taps) == 1 else flops


def resized(x: Tensor, sizes: Sizes, mode: str, antialias: bool, direction: str) -> Answer:
    """Cost of x[n, c, ..] resized to the sizes `found`.

    FLOPs are those of `interpolated`, in the backward pass one product and one addition for each
    input element of an output. Weights are shared by all channels and not counted.
    """
    if len(x.shape) != len(sizes) + 2:
        raise CannotModel(f"shape {x.shape} is not a batch of images of {len(sizes)} dimensions")
    taps = (_TAPS[mode],) * len(sizes)
    if antialias:
        # Antialiasing: if the image shrinks, the window widens by the same factor.
        taps = tuple(
            ceil(_TAPS[mode] * max(size / max(number, 1), 1.0))
            for size, number in zip(x.shape[2:], sizes, strict=True)
        )
    y = fresh(x, (*x.shape[:2], *sizes))
    if direction == "bprop":
        return Cost(elements(y.shape) * _spread(taps), moved(y, fresh(x)), not antialias), texts(x)
    return Cost(elements(y.shape) * interpolated(taps), moved(x, y), not antialias), texts(x)


def _spread(taps: Sizes) -> int:
    return 1 if prod(taps) == 1 else 2 * prod(taps)


def resized_backward(
    gradient: Tensor,
    output_size: Ints | Unknown | None,
    input_size: Ints | Unknown,
    *,
    mode: str,
    antialias: bool,
) -> Answer:
    """Cost of dx from dy[n, c, ..]."""
    dimensions = len(gradient.shape) - 2
    if dimensions < 1:
        raise CannotModel(f"shape {gradient.shape} is not a batch of images")
    if isinstance(input_size, Unknown):
        if antialias:
            raise CannotModel("input_size is not in the capture")
        taps = (_TAPS[mode],) * dimensions
        return Cost(elements(gradient.shape) * _spread(taps), None), texts(gradient)
    sizes = by_dimension("input_size", input_size, dimensions + 2, 0)
    x = fresh(gradient, sizes)
    return resized(x, gradient.shape[2:], mode, antialias, "bprop")[0], texts(gradient)


def target(x: Tensor, size: Ints | Unknown | None, scale: Scale) -> Sizes:
    """The requested sizes: given directly, or as scale factors, rounded down."""
    sizes = x.shape[2:]
    if not sizes:
        raise CannotModel(f"shape {x.shape} is not a batch of images")
    if size is not None and size != ():
        return by_dimension("size", size, len(sizes), 0)
    if scale is None or isinstance(scale, Unknown):
        raise CannotModel("neither size nor scale_factor is in the capture")
    factors = (scale,) * len(sizes) if isinstance(scale, float | int) else scale
    if len(factors) != len(sizes) or not all(0 < factor < _LARGEST for factor in factors):
        raise CannotModel(f"scale_factor {scale!r} does not fit {len(sizes)} dimensions")
    return tuple(int(n * factor) for n, factor in zip(sizes, factors, strict=True))


@operators("""
    x[n, c, ..] resized to `size`, or by `scale_factor`, -> y[n, c, ..].
    FLOPs: for each output 0 (nearest), 3 (linear), 9 (bilinear), 21 (trilinear), 35 (bicubic);
    backward 1, 4, 8, 16, 32. Mode area: as adaptive_avg_pool.
    Bytes: x read, y written. Backward reads dy, writes dx.

    Weights are shared by all channels and not counted. With antialiasing, a window widens by the
    scale factor if the image shrinks (not exact: its ends are rounded).
    (x, size, scale_factor, mode, _, _, antialias): torch.interpolate aten::__interpolate
    (x, size, scale_factor, mode, _): torch.upsample aten::__upsample
    (x, size, scale_factor): torch.upsample_nearest aten::__upsample_nearest
""")
def interpolate(
    x: Tensor,
    size: Ints | Unknown | None = None,
    scale_factor: Scale = None,
    mode: str = "nearest",
    antialias: Flag = False,
    *,
    direction: str,
) -> Answer:
    result = target(x, size, scale_factor)
    if mode == "area":
        return adaptive_avg_pool(x, result, dimensions=len(result), direction=direction)
    if mode not in _TAPS:
        raise CannotModel(f"unknown mode {mode!r}")
    cost, params = resized(x, result, mode, antialias is True, direction)
    return cost + Cost(0, 0, not isinstance(antialias, Unknown)), params


def _resize(
    x: Tensor,
    output_size: Ints | Unknown | None,
    scale_factors: Scale = None,
    *,
    mode: str,
    antialias: bool,
    direction: str,
) -> Answer:
    return resized(x, target(x, output_size, scale_factors), mode, antialias, direction)


def _register(name: str, mode: str, aligned: bool, antialias: bool = False) -> None:
    # Overloads by size and by factors use the same positions, one later with align_corners.
    table_row(f"""
        The operators behind interpolate.
        FLOPs: as interpolate.
        Bytes: as interpolate.
        (x, output_size, {"_, " if aligned else ""}scale_factors, ...): {name}
    """)(_resize, mode=mode, antialias=antialias)
    table_row(f"""
        dx[n, c, ..] of the operators behind interpolate.
        FLOPs: for each output 1 (nearest), 4 (linear), 8 (bilinear), 16 (trilinear), 32 (bicubic).
        Bytes: dy read, dx written.
        (gradient, output_size, input_size, ...): {name}_backward
    """)(resized_backward, mode=mode, antialias=antialias)


for _dimensions in (1, 2, 3):
    _register(f"upsample_nearest{_dimensions}d", "nearest", aligned=False)
    _register(f"_upsample_nearest_exact{_dimensions}d", "nearest", aligned=False)
_register("upsample_linear1d", "linear", aligned=True)
_register("upsample_bilinear2d", "bilinear", aligned=True)
_register("upsample_trilinear3d", "trilinear", aligned=True)
_register("upsample_bicubic2d", "bicubic", aligned=True)
_register("_upsample_bilinear2d_aa", "bilinear", aligned=True, antialias=True)
_register("_upsample_bicubic2d_aa", "bicubic", aligned=True, antialias=True)
_register("_upsample_lanczos2d_aa", "lanczos", aligned=True, antialias=True)


table_row("""
    x[n, c, h, w] resized bilinearly.
    FLOPs: as interpolate.
    Bytes: as interpolate.
    (x, size, scale_factor): torch.upsample_bilinear aten::__upsample_bilinear
""")(interpolate, mode="bilinear")


Size = Ints | Unknown


def _columns(
    x: Tensor,
    image: tuple[int, ...],
    kernel_size: Size,
    dilation: Size,
    padding: Size,
    stride: Size,
) -> tuple[int, int]:
    # Elements of a window, and windows, of an image of two dimensions.
    kernel = by_dimension("kernel_size", kernel_size, 2, 1)
    steps = by_dimension("stride", stride, 2, 1)
    window, windows = PoolingWindows(kernel, steps, padding, dilation).pooled(image)
    return window, elements(windows)


@operators("""
    Windows of x[n, c, h, w] as columns [n, c k k, windows].
    FLOPs: none; backward one addition for each element of the columns.
    Bytes: x read, the columns written. Backward reads their gradient, writes dx.

    A call with only three numbers is assumed to be Tensor.unfold(dimension, size, step), a view of
    the same name, and has no cost.
    (x, kernel_size, dilation, padding, stride): torch.unfold im2col
""")
def unfold(
    x: Tensor,
    kernel_size: Size,
    dilation: Size | None = None,
    padding: Size | None = None,
    stride: Size | None = None,
    *,
    direction: str,
) -> Answer:
    if stride is None and dilation is not None and padding is not None:
        raise CannotModel("Tensor.unfold is a view")
    if len(x.shape) not in (3, 4):
        raise CannotModel(f"shape {x.shape} is not an image")
    dilation, padding, stride = (
        default if each is None else each
        for each, default in ((dilation, 1), (padding, 0), (stride, 1))
    )
    window, windows = _columns(x, x.shape[-2:], kernel_size, dilation, padding, stride)
    channels = x.shape[-3] * window
    columns = fresh(x, (*x.shape[:-3], channels, windows))
    if direction == "bprop":
        return Cost(elements(columns.shape), moved(columns, fresh(x))), texts(x)
    return Cost(0, moved(x, columns)), texts(x)


@operators("""
    Columns x[n, c k k, windows] summed to an image [n, c, h, w].
    FLOPs: one addition for each element of x; backward none.
    Bytes: x read, the image written. Backward reads its gradient, writes dx.
    (x, output_size, kernel_size, dilation, padding, stride): torch.fold col2im
""")
def fold(
    x: Tensor,
    output_size: Size,
    kernel_size: Size,
    dilation: Size = 1,
    padding: Size = 0,
    stride: Size = 1,
    *,
    direction: str,
) -> Answer:
    image = by_dimension("output_size", output_size, 2, 0)
    window, windows = _columns(x, image, kernel_size, dilation, padding, stride)
    fits = len(x.shape) in (2, 3) and x.shape[-1] == windows and x.shape[-2] % window == 0
    if not fits:
        raise CannotModel(f"columns {x.shape} do not fit {windows} windows of {window} elements")
    y = fresh(x, (*x.shape[:-2], x.shape[-2] // window, *image))
    if direction == "bprop":
        return Cost(0, moved(y, fresh(x))), texts(x)
    return Cost(elements(x.shape), moved(x, y)), texts(x)


# Up to torch 1.12, these are separate operators; later, each is the forward of the other.
@operators("""
    Columns summed to dx[n, c, h, w].
    FLOPs: one addition for each element of the columns.
    Bytes: their gradient read, dx written.
    (gradient, input_size, kernel_size, dilation, padding, stride): im2col_backward
""")
def im2col_backward(
    gradient: Tensor,
    input_size: Size,
    kernel_size: Size,
    dilation: Size,
    padding: Size,
    stride: Size,
) -> Answer:
    return fold(gradient, input_size, kernel_size, dilation, padding, stride, direction="fprop")


@operators("""
    Windows of an image's gradient as columns.
    FLOPs: none.
    Bytes: the gradient read, the columns written.
    (gradient, kernel_size, dilation, padding, stride): col2im_backward
""")
def col2im_backward(
    gradient: Tensor, kernel_size: Size, dilation: Size, padding: Size, stride: Size
) -> Answer:
    return unfold(gradient, kernel_size, dilation, padding, stride, direction="fprop")


Pads: TypeAlias = tuple[int, ...] | Unknown
Mode: TypeAlias = str | int | Unknown

# Numbers of _pad_enum (torch/nn/modules/padding). Backward sums the gradients of copied elements.
_REPEATING: Final = frozenset({"reflect", "replicate", "circular", 1, 2, 3})
_CONSTANT: Final = frozenset({"constant", 0})


def _padded(x: Tensor, pads: Pads) -> tuple[Tensor, Tensor]:
    # The part of x that is read (negative pads crop it), and y. Pads are pairs, the last dimension
    # first.
    if isinstance(pads, Unknown):
        raise CannotModel("pad is not in the capture")
    if len(pads) % 2 or len(pads) > 2 * len(x.shape):
        raise CannotModel(f"pad {pads!r} does not fit {x.shape}")
    read, written = list(x.shape), list(x.shape)
    for i in range(len(pads) // 2):
        place = len(x.shape) - 1 - i
        low, high = pads[2 * i : 2 * i + 2]
        written[place] += low + high
        read[place] += min(low, 0) + min(high, 0)
    if min((*read, *written), default=0) < 0:
        raise CannotModel(f"pad {pads!r} exceeds the size of {x.shape}")
    return fresh(x, tuple(read)), fresh(x, tuple(written))


def _cost(x: Tensor, pad: Pads, *, repeats: bool, direction: str) -> Answer:
    read, y = _padded(x, pad)
    if direction == "fprop":
        whole = x if read.shape == x.shape else read
        return Cost(0, moved(whole, y)), texts(x)
    if repeats:
        return Cost(elements(y.shape), moved(y, fresh(x))), texts(x)
    return Cost(0, moved(read, fresh(x))), texts(x)


@operators("""
    x padded with a constant or with its own elements.
    FLOPs: none; backward none for a constant, else one addition for each output.
    Bytes: x read (cropped by negative pads), y written. Backward reads dy (for a constant without
    the border), writes dx.
    (x, pad, mode, _): pad torch._pad aten::_pad_enum
""")
def pad(x: Tensor, pad: Pads, mode: Mode = "constant", *, direction: str) -> Answer:
    repeats = mode in _REPEATING
    if not repeats and mode not in _CONSTANT and not isinstance(mode, Unknown):
        raise CannotModel(f"unknown mode {mode!r}")
    return _cost(x, pad, repeats=repeats, direction=direction)


table_row("""
    x padded with a constant.
    FLOPs: none.
    Bytes: x read (cropped by negative pads), y written. Backward reads dy without the border,
    writes dx.
    (x, pad, _): constant_pad_nd
""")(_cost, repeats=False)

table_row("""
    x padded with its own elements: reflected, replicated or circular.
    FLOPs: none; backward one addition for each output.
    Bytes: x read, y written. Backward reads dy, writes dx.
    (x, padding=pad): reflection_pad1d reflection_pad2d reflection_pad3d replication_pad1d
        replication_pad2d replication_pad3d
    (x, pad): torch._pad_circular
    (x, pad): aten::_pad_circular
""")(_cost, repeats=True)

table_row("""
    dx of a reflection or replication pad: dy added to the source elements.
    FLOPs: one addition for each element of dy.
    Bytes: dy read, dx written.
    (gradient, x, _): reflection_pad1d_backward reflection_pad2d_backward reflection_pad3d_backward
        replication_pad1d_backward replication_pad2d_backward replication_pad3d_backward
""")("gradient, x", Traffic(1, "gradient x'", "gradient x"))


# Python calls record "bilinear"; ATen calls record its number.
SamplingMode: TypeAlias = str | int | Unknown

_SAMPLING_TAPS: Final = {"bilinear": 2, "nearest": 1, "bicubic": 4, 0: 2, 1: 1, 2: 4}
# Converting coordinates from -1 .. 1 to elements: 1 added, times size, minus 1, halved.
UNNORMALISED: Final = 4
CUBIC_WEIGHTS: Final = 24  # four polynomials of third degree along one dimension


class _Sampling:
    """Sizes of a sampling: points, outputs, input elements per output."""

    def __init__(self, x: Tensor, grid: Tensor, mode: SamplingMode) -> None:
        self.dimensions = len(x.shape) - 2
        fits = len(grid.shape) == len(x.shape) and self.dimensions in (2, 3)
        if not fits or grid.shape[-1] != self.dimensions or grid.shape[0] != x.shape[0]:
            raise CannotModel(f"grid {grid.shape} does not fit {x.shape}")
        along = 2 if isinstance(mode, Unknown) else _SAMPLING_TAPS.get(mode)
        if along is None or (along == 4 and self.dimensions == 3):
            raise CannotModel(f"mode {mode!r} does not fit {self.dimensions} dimensions")
        self.points = elements(grid.shape[:-1])
        self.taps: int = along**self.dimensions
        self.y = Tensor((*x.shape[:2], *grid.shape[1:-1]), x.dtype)
        self.exact = not isinstance(mode, Unknown)

    @property
    def per_point(self) -> int:
        """FLOPs for a point, the same for all channels: coordinates and weights."""
        weights: dict[int, int] = {
            1: 0,
            2**self.dimensions: self.taps * (2 * self.dimensions - 1),
            4**self.dimensions: self.dimensions * CUBIC_WEIGHTS,
        }
        return UNNORMALISED * self.dimensions + weights[self.taps]

    def cost(self, x: Tensor, grid: Tensor) -> Cost:
        """Cost of the samples."""
        per_output = 0 if self.taps == 1 else 2 * self.taps
        flops = self.points * self.per_point + elements(self.y.shape) * per_output
        return Cost(flops, moved(x, grid, self.y), self.exact)

    def gradient(self, gradient: Tensor, x: Tensor, grid: Tensor) -> Cost:
        """Cost of dx and dgrid."""
        per_output = 1  # nearest: dy added, no gradient of the grid
        if self.taps > 1:
            per_output = self.taps * (2 + 3 * self.dimensions)
        flops = self.points * self.per_point + elements(self.y.shape) * per_output
        return Cost(flops, moved(gradient, x, grid, fresh(x), fresh(grid)), self.exact)


@operators("""
    x[n, c, h, w] at the points grid[n, p, q, 2] -> y[n, c, p, q]; also in three dimensions.
    FLOPs: for each output a product and an addition for each of 4 elements (8 in three dimensions,
    16 bicubic; nearest 0), for each point 4 for each coordinate and the weights (4 times 3, 8 times
    5, bicubic 48). Backward for each of those elements 2 for dx and 3 for each coordinate of dgrid,
    and the points' again; nearest 1.
    Bytes: x and grid read, y written. Backward reads dy, x and grid, writes dx and dgrid.

    If not recorded,  the mode is assumed to be bilinear (not exact).
    (x, grid, mode, ...): torch.grid_sample grid_sampler grid_sampler_2d grid_sampler_3d
    (x, grid): cudnn_grid_sampler
""")
def grid_sample(
    x: Tensor, grid: Tensor, mode: SamplingMode = "bilinear", *, direction: str
) -> Answer:
    sampling = _Sampling(x, grid, mode)
    if direction == "bprop":
        return sampling.gradient(sampling.y, x, grid), texts(x, grid)
    return sampling.cost(x, grid), texts(x, grid)


@operators("""
    dx[n, c, h, w] and dgrid[n, p, q, 2] of a grid_sample; also in three dimensions.
    FLOPs: for each output and each of 4 elements (8 in three dimensions, 16 bicubic) 2 for dx and 3
    for each coordinate of dgrid, for each point its coordinates and weights; nearest 1 for each
    output.
    Bytes: dy, x and grid read, dx and dgrid written.
    (gradient, x, grid, mode, ...): grid_sampler_2d_backward grid_sampler_3d_backward
    (x, grid, gradient): cudnn_grid_sampler_backward
""")
def grid_sampler_2d_backward(
    gradient: Tensor, x: Tensor, grid: Tensor, mode: SamplingMode = "bilinear"
) -> Answer:
    sampling = _Sampling(x, grid, mode)
    same_shape(gradient, sampling.y)
    return sampling.gradient(gradient, x, grid), texts(gradient, x, grid)


@operators("""
    Points of an image of size [n, c, h, w] under theta[n, 2, 3] -> grid[n, h, w, 2]; also in
    three dimensions.
    FLOPs: 2 n h w (d + 1) d: the product of all points [h w, d + 1] with theta; backward the same.
    Bytes: theta read, the grid written; backward the grid's gradient read, that of theta written.

    FlopCounterMode counts only the backward pass.
    (theta, size, ...): torch.affine_grid affine_grid_generator
    (theta, batch, channels, height, width): cudnn_affine_grid_generator
""")
def affine_grid(
    theta: Tensor,
    size: tuple[int, ...] | Unknown | None = None,
    batch: Int = 0,
    channels: Int = 0,
    height: Int = 0,
    width: Int = 0,
    *,
    direction: str,
) -> Work:
    if size is None:
        sides = (batch, channels, height, width)
        size = tuple(side for side in sides if isinstance(side, int))
    if isinstance(size, Unknown) or len(size) not in (4, 5) or min(size) < 0:
        raise CannotModel(f"size {size!r} is not a batch of images")
    return _product(theta, size)


@operators("""
    Gradient of theta[n, 2, 3] from that of the grid[n, h, w, 2]; also in three dimensions.
    FLOPs: 2 n h w (d + 1) d: a product with all points.
    Bytes: the grid's gradient read, that of theta written.
    (gradient, ...): affine_grid_generator_backward cudnn_affine_grid_generator_backward
""")
def affine_grid_generator_backward(gradient: Tensor) -> Work:
    shape = gradient.shape
    if len(shape) not in (4, 5) or shape[-1] != len(shape) - 2:
        raise CannotModel(f"shape {shape} is not a grid")
    dimensions = shape[-1]
    theta = fresh(gradient, (shape[0], dimensions, dimensions + 1))
    return _product(theta, (shape[0], 1, *shape[1:-1]))


def _product(theta: Tensor, size: tuple[int, ...]) -> Work:
    # [h w, d + 1] @ theta^T [d + 1, d] for each image, or its gradient.
    dimensions = len(size) - 2
    if theta.shape != (size[0], dimensions, dimensions + 1):
        raise CannotModel(f"theta {theta.shape} does not fit {size}")
    grid = fresh(theta, (size[0], *size[2:], dimensions))
    flops = 2 * elements(grid.shape) * (dimensions + 1)
    points = elements(size[2:])
    reason = why_not(theta.dtype, {"M": dimensions, "N": points, "K": dimensions + 1})
    cost = Cost(flops, moved(theta, grid))
    return Work((Part("main", cost, texts(theta), kernels=GEMM, no_tensor_cores=reason),))
