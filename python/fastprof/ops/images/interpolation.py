"""FLOPs and bytes of image resizing."""

from __future__ import annotations

from math import ceil, prod
from typing import Final, TypeAlias

from fastprof.model.call import Tensor, Unknown
from fastprof.ops.cost import CannotModel, Cost
from fastprof.ops.images.pooling import Sizes, by_dimension
from fastprof.ops.images.pooling_adaptive import adaptive_avg_pool
from fastprof.ops.parameters import Ints
from fastprof.ops.registry import TORCH, op, operators
from fastprof.ops.tensor import elements
from fastprof.ops.traffic import fresh, moved, texts

Scale: TypeAlias = float | tuple[float, ...] | Unknown | None
Flag: TypeAlias = bool | Unknown

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


def _widened(taps: int, sizes: Sizes, found: Sizes) -> Sizes:
    # Antialiasing: if the image shrinks, the window widens by the same factor.
    return tuple(
        ceil(taps * max(size / max(each, 1), 1.0)) for size, each in zip(sizes, found, strict=True)
    )


def resized(
    x: Tensor, found: Sizes, mode: str, antialias: bool, direction: str
) -> tuple[Cost, str]:
    """Cost of x[n, c, ..] resized to the sizes `found`.

    FLOPs are those of `interpolated`, in the backward pass one product and one addition for each
    input element of an output. Weights are shared by all channels and not counted.
    """
    if len(x.shape) != len(found) + 2:
        raise CannotModel(f"shape {x.shape} is not a batch of images of {len(found)} dimensions")
    taps = (_TAPS[mode],) * len(found)
    if antialias:
        taps = _widened(_TAPS[mode], x.shape[2:], found)
    y = fresh(x, (*x.shape[:2], *found))
    if direction == "bprop":
        return Cost(elements(y.shape) * _spread(taps), moved(y, fresh(x)), not antialias), texts(x)
    return Cost(elements(y.shape) * interpolated(taps), moved(x, y), not antialias), texts(x)


def _spread(taps: Sizes) -> int:
    return 1 if prod(taps) == 1 else 2 * prod(taps)


def resized_backward(
    gradient: Tensor, input_size: Ints | Unknown, mode: str, antialias: bool
) -> tuple[Cost, str]:
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
    cost, _ = resized(x, gradient.shape[2:], mode, antialias, "bprop")
    return Cost(cost.flops, cost.bytes, cost.exact), texts(gradient)


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
    return tuple(int(n * each) for n, each in zip(sizes, factors, strict=True))


@operators("""
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
) -> tuple[Cost, str]:
    """x[n, c, ..] resized to `size`, or by `scale_factor`, -> y[n, c, ..].

    FLOPs: for each output 0 (nearest), 3 (linear), 9 (bilinear), 21 (trilinear), 35 (bicubic);
    backward 1, 4, 8, 16, 32. Mode area: as adaptive_avg_pool.
    Bytes: x read, y written. Backward reads dy, writes dx.

    Weights are shared by all channels and not counted. With antialiasing, a window widens by the
    scale factor if the image shrinks (not exact: its ends are rounded).
    """
    found = target(x, size, scale_factor)
    if mode == "area":
        return adaptive_avg_pool(x, found, len(found), direction)
    if mode not in _TAPS:
        raise CannotModel(f"unknown mode {mode!r}")
    cost, params = resized(x, found, mode, antialias is True, direction)
    return Cost(cost.flops, cost.bytes, cost.exact and not isinstance(antialias, Unknown)), params


def _register(name: str, mode: str, aligned: bool, antialias: bool = False) -> None:
    # Overloads by size and by factors use the same positions, one later with align_corners.
    corners = "_, " if aligned else ""
    text = f"{name}(x, output_size, {corners}scale_factors, ...)"

    @op(TORCH, text, aten=(text,))
    def resize_operator(
        x: Tensor,
        output_size: Ints | Unknown | None,
        scale_factors: Scale = None,
        *,
        direction: str,
    ) -> tuple[Cost, str]:
        """The operators behind interpolate.

        FLOPs: as interpolate.
        Bytes: as interpolate.
        """
        found = target(x, output_size, scale_factors)
        return resized(x, found, mode, antialias, direction)

    text = f"{name}_backward(gradient, output_size, input_size, ...)"

    @op(TORCH, text, aten=(text,))
    def resize_operator_backward(
        gradient: Tensor,
        output_size: Ints | Unknown | None,
        input_size: Ints | Unknown,
    ) -> tuple[Cost, str]:
        """dx[n, c, ..] of the operators behind interpolate.

        FLOPs: for each output 1 (nearest), 4 (linear), 8 (bilinear), 16 (trilinear), 32 (bicubic).
        Bytes: dy read, dx written.
        """
        return resized_backward(gradient, input_size, mode, antialias)


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


@operators("(x, size, scale_factor): torch.upsample_bilinear aten::__upsample_bilinear")
def upsample_bilinear(
    x: Tensor, size: Ints | Unknown | None = None, scale_factor: Scale = None, *, direction: str
) -> tuple[Cost, str]:
    """x[n, c, h, w] resized bilinearly.

    FLOPs: as interpolate.
    Bytes: as interpolate.
    """
    return interpolate(x, size, scale_factor, "bilinear", direction=direction)
