"""FLOPs and bytes of adaptive and fractional pooling, and of the gradients of all pooling."""

from __future__ import annotations

from typing import TypeAlias

from fastprof.model.call import Tensor, Unknown
from fastprof.ops.cost import CannotModel, Cost
from fastprof.ops.images.pooling import (
    Sizes,
    adaptive_taps,
    adaptive_target,
    by_dimension,
    image,
    picked_windows,
)
from fastprof.ops.parameters import Ints
from fastprof.ops.registry import TORCH, op, operators
from fastprof.ops.tensor import elements
from fastprof.ops.traffic import fresh, moved, texts

Target: TypeAlias = int | tuple[int | None, ...] | Unknown
Ratio: TypeAlias = float | tuple[float, ...] | None


def _register_average(dimensions: int) -> None:
    text = f"adaptive_avg_pool{dimensions}d(x, output_size)"
    inner = () if dimensions == 1 else (f"_{text}",)

    @op(TORCH, text, *inner, aten=(text, *inner))
    def adaptive_avg_pool_of(x: Tensor, output_size: Target, *, direction: str) -> tuple[Cost, str]:
        """Means of x[n, c, ..] over windows of the requested output size -> y[n, c, ..].

        FLOPs: one for each element of all windows (additions, division); backward one more for each
        output.
        Bytes: x read, y written. Backward reads dy, writes dx.

        Windows overlap where the sizes do not divide: n windows over m elements have m + n - gcd(m,
        n) elements in total.
        """
        return adaptive_avg_pool(x, output_size, dimensions, direction)


def adaptive_avg_pool(
    x: Tensor, output_size: Target, dimensions: int, direction: str
) -> tuple[Cost, str]:
    """Cost of an adaptive mean pooling over the last `dimensions`."""
    y, taps = _target(x, output_size, dimensions)
    if direction == "bprop":
        return adaptive_avg_pool_backward(y, x, dimensions)[0], texts(x)
    return Cost(taps, moved(x, y)), texts(x)


def _register_maximum(dimensions: int) -> None:
    name = f"adaptive_max_pool{dimensions}d"
    names = [f"{each}(x, output_size, ...)" for each in (name, f"_{name}", f"{name}_with_indices")]

    @op(TORCH, *names, aten=names[:1])
    def adaptive_max_pool_of(x: Tensor, output_size: Target, *, direction: str) -> tuple[Cost, str]:
        """Maxima of x[n, c, ..] over windows of the requested output size -> y[n, c, ..].

        FLOPs: one comparison for each element of all windows; backward one addition for each
        output.
        Bytes: x read, y and its indices (int64) written. Backward reads dy and indices, writes dx.
        """
        return adaptive_max_pool(x, output_size, dimensions, direction)


def adaptive_max_pool(
    x: Tensor, output_size: Target, dimensions: int, direction: str
) -> tuple[Cost, str]:
    """Cost of an adaptive maximum pooling over the last `dimensions`."""
    y, taps = _target(x, output_size, dimensions)
    cost, params = picked_windows(x, y, 1, direction)
    return Cost(taps if direction == "fprop" else cost.flops, cost.bytes), params


def _target(x: Tensor, output_size: Target, dimensions: int) -> tuple[Tensor, int]:
    # The output, and the elements of all windows of all channels.
    sizes = image(x, dimensions)
    target = adaptive_target(sizes, output_size)
    channels = x.shape[:-dimensions]
    return fresh(x, (*channels, *target)), elements(channels) * adaptive_taps(sizes, target)


def _register_fractional(dimensions: int) -> None:
    name = f"fractional_max_pool{dimensions}d"
    arguments = "x, kernel_size, output_size, output_ratio, ..."

    @op(
        TORCH,
        f"{name}({arguments})",
        f"{name}_with_indices({arguments})",
        aten=(f"{name}(x, kernel_size, output_size, samples)",),
    )
    def fractional_max_pool_of(
        x: Tensor,
        kernel_size: Ints | Unknown,
        output_size: Ints | Unknown | None = None,
        output_ratio: Ratio = None,
        samples: Tensor | None = None,
        *,
        direction: str,
    ) -> tuple[Cost, str]:
        """Maxima of x[n, c, ..] over randomly placed windows -> y[n, c, ..].

        FLOPs: one comparison for each element of a window and output; backward one addition for
        each output.
        Bytes: x read, y and its indices (int64) written. Backward reads dy and indices, writes dx.
        """
        sizes = image(x, dimensions)
        window = elements(by_dimension("kernel_size", kernel_size, dimensions, 1))
        if output_size is None:
            found = _scaled(sizes, output_ratio)
        else:
            found = by_dimension("output_size", output_size, dimensions, 0)
        y = fresh(x, (*x.shape[:-dimensions], *found))
        return picked_windows(x, y, window, direction)


def _scaled(sizes: Sizes, ratio: Ratio) -> Sizes:
    ratios = (ratio,) * len(sizes) if isinstance(ratio, float | int) else ratio
    if ratios is None or len(ratios) != len(sizes) or not all(0 < each < 1 for each in ratios):
        raise CannotModel(f"output_ratio {ratio!r} does not fit {sizes}")
    return tuple(int(size * each) for size, each in zip(sizes, ratios, strict=True))


for _dimensions in (1, 2, 3):
    _register_average(_dimensions)
    _register_maximum(_dimensions)
for _dimensions in (2, 3):
    _register_fractional(_dimensions)


# FLOPs and bytes of the backward operators of pooling.


@operators("""
    (gradient, x, _, _, _, _, _, indices): max_pool2d_with_indices_backward
        max_pool3d_with_indices_backward
    (gradient, x, indices): adaptive_max_pool2d_backward adaptive_max_pool3d_backward
    (gradient, x, _, _, indices): fractional_max_pool2d_backward fractional_max_pool3d_backward
""")
def max_pool2d_with_indices_backward(
    gradient: Tensor, x: Tensor, indices: Tensor
) -> tuple[Cost, str]:
    """dx[n, c, ..] of a maximum pooling: dy added at its indices.

    FLOPs: one addition for each output.
    Bytes: dy and indices read, dx written.
    """
    if gradient.shape != indices.shape:
        raise CannotModel(f"gradient {gradient.shape} does not fit indices {indices.shape}")
    return Cost(elements(gradient.shape), moved(gradient, indices, fresh(x))), texts(gradient, x)


def _register_average_backward(dimensions: int) -> None:
    text = f"avg_pool{dimensions}d_backward(gradient, x, kernel_size, ...)"

    @op(TORCH, text, aten=(text,))
    def avg_pool_backward(
        gradient: Tensor, x: Tensor, kernel_size: Ints | Unknown
    ) -> tuple[Cost, str]:
        """dx[n, c, ..] of a mean pooling: dy divided, and added to each element of its window.

        FLOPs: one more than a window has elements for each output.
        Bytes: dy read, dx written.

        Padding counts as added to.
        """
        image(x, dimensions)
        image(gradient, dimensions)
        window = elements(by_dimension("kernel_size", kernel_size, dimensions, 1))
        moves = moved(gradient, fresh(x))
        return Cost(elements(gradient.shape) * (window + 1), moves), texts(gradient, x)


def _register_adaptive(dimensions: int) -> None:
    text = f"_adaptive_avg_pool{dimensions}d_backward(gradient, x)"

    @op(TORCH, text, aten=(text,))
    def adaptive_avg_pool_backward_of(gradient: Tensor, x: Tensor) -> tuple[Cost, str]:
        """dx[n, c, ..] of an adaptive mean pooling.

        FLOPs: one for each output (division), one for each element of all windows (added).
        Bytes: dy read, dx written.
        """
        return adaptive_avg_pool_backward(gradient, x, dimensions)


def adaptive_avg_pool_backward(gradient: Tensor, x: Tensor, dimensions: int) -> tuple[Cost, str]:
    """Cost of the backward pass of an adaptive mean pooling over the last `dimensions`."""
    taps = adaptive_taps(image(x, dimensions), image(gradient, dimensions))
    channels = elements(x.shape[:-dimensions])
    flops = elements(gradient.shape) + channels * taps
    return Cost(flops, moved(gradient, fresh(x))), texts(gradient, x)


@operators("(gradient, x, indices, ...): max_unpool2d_backward max_unpool3d_backward")
def max_unpool2d_backward(gradient: Tensor, x: Tensor, indices: Tensor) -> tuple[Cost, str]:
    """dx[n, c, ..] of an unpooling: elements of dy at the indices. Up to torch 1.10.

    FLOPs: none.
    Bytes: indices and the selected elements of dy read, dx written.
    """
    if x.shape != indices.shape:
        raise CannotModel(f"indices {indices.shape} do not fit {x.shape}")
    read = fresh(gradient, x.shape)
    return Cost(0, moved(indices, read, fresh(x))), texts(gradient, x)


for _dimensions in (2, 3):
    _register_average_backward(_dimensions)
    _register_adaptive(_dimensions)
