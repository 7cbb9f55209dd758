"""FLOPs and bytes of grid sampling."""

from __future__ import annotations

from typing import Final, TypeAlias

from fastprof.model.call import Tensor, Unknown
from fastprof.ops.cost import CannotModel, Cost, Part, Work
from fastprof.ops.matrix.product import GEMM
from fastprof.ops.registry import operators
from fastprof.ops.tensor import elements
from fastprof.ops.tensor_cores import why_not
from fastprof.ops.traffic import fresh, moved, texts

# Python calls record "bilinear"; ATen calls record its number.
Mode: TypeAlias = str | int | Unknown

_TAPS: Final = {"bilinear": 2, "nearest": 1, "bicubic": 4, 0: 2, 1: 1, 2: 4}
# Converting coordinates from -1 .. 1 to elements: 1 added, times size, minus 1, halved.
UNNORMALISED: Final = 4
CUBIC_WEIGHTS: Final = 24  # four polynomials of third degree along one dimension


class _Sampling:
    """Sizes of a sampling: points, outputs, input elements per output."""

    def __init__(self, x: Tensor, grid: Tensor, mode: Mode) -> None:
        self.dimensions = len(x.shape) - 2
        fits = len(grid.shape) == len(x.shape) and self.dimensions in (2, 3)
        if not fits or grid.shape[-1] != self.dimensions or grid.shape[0] != x.shape[0]:
            raise CannotModel(f"grid {grid.shape} does not fit {x.shape}")
        along = 2 if isinstance(mode, Unknown) else _TAPS.get(mode)
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
    (x, grid, mode, ...): torch.grid_sample grid_sampler grid_sampler_2d grid_sampler_3d
    (x, grid): cudnn_grid_sampler
""")
def grid_sample(
    x: Tensor, grid: Tensor, mode: Mode = "bilinear", *, direction: str
) -> tuple[Cost, str]:
    """x[n, c, h, w] at the points grid[n, p, q, 2] -> y[n, c, p, q]; also in three dimensions.

    FLOPs: for each output a product and an addition for each of 4 elements (8 in three dimensions,
    16 bicubic; nearest 0), for each point 4 for each coordinate and the weights (4 times 3, 8 times
    5, bicubic 48). Backward for each of those elements 2 for dx and 3 for each coordinate of dgrid,
    and the points' again; nearest 1.
    Bytes: x and grid read, y written. Backward reads dy, x and grid, writes dx and dgrid.

    If not recorded,  the mode is assumed to be bilinear (not exact).
    """
    sampling = _Sampling(x, grid, mode)
    if direction == "bprop":
        return sampling.gradient(sampling.y, x, grid), texts(x, grid)
    return sampling.cost(x, grid), texts(x, grid)


@operators("""
    (gradient, x, grid, mode, ...): grid_sampler_2d_backward grid_sampler_3d_backward
    (x, grid, gradient): cudnn_grid_sampler_backward
""")
def grid_sampler_2d_backward(
    gradient: Tensor, x: Tensor, grid: Tensor, mode: Mode = "bilinear"
) -> tuple[Cost, str]:
    """dx[n, c, h, w] and dgrid[n, p, q, 2] of a grid_sample; also in three dimensions.

    FLOPs: for each output and each of 4 elements (8 in three dimensions, 16 bicubic) 2 for dx and 3
    for each coordinate of dgrid, for each point its coordinates and weights; nearest 1 for each
    output.
    Bytes: dy, x and grid read, dx and dgrid written.
    """
    sampling = _Sampling(x, grid, mode)
    if gradient.shape != sampling.y.shape:
        raise CannotModel(f"gradient {gradient.shape} does not fit {sampling.y.shape}")
    return sampling.gradient(gradient, x, grid), texts(gradient, x, grid)


@operators("""
    (theta, size, ...): torch.affine_grid affine_grid_generator
    (theta, batch, channels, height, width): cudnn_affine_grid_generator
""")
def affine_grid(
    theta: Tensor,
    size: tuple[int, ...] | Unknown | None = None,
    batch: int | Unknown = 0,
    channels: int | Unknown = 0,
    height: int | Unknown = 0,
    width: int | Unknown = 0,
    *,
    direction: str,
) -> Work:
    """Points of an image of size [n, c, h, w] under theta[n, 2, 3] -> grid[n, h, w, 2]; also in
    three dimensions.

    FLOPs: 2 n h w (d + 1) d: the product of all points [h w, d + 1] with theta; backward the same.
    Bytes: theta read, the grid written; backward the grid's gradient read, that of theta written.

    FlopCounterMode counts only the backward pass.
    """
    if size is None:
        sides = (batch, channels, height, width)
        size = tuple(side for side in sides if isinstance(side, int))
    if isinstance(size, Unknown) or len(size) not in (4, 5) or min(size) < 0:
        raise CannotModel(f"size {size!r} is not a batch of images")
    return _product(theta, size)


@operators("(gradient, ...): affine_grid_generator_backward cudnn_affine_grid_generator_backward")
def affine_grid_generator_backward(gradient: Tensor) -> Work:
    """Gradient of theta[n, 2, 3] from that of the grid[n, h, w, 2]; also in three dimensions.

    FLOPs: 2 n h w (d + 1) d: a product with all points.
    Bytes: the grid's gradient read, that of theta written.
    """
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
