"""FLOPs and bytes of the backward operators of pooling."""

from __future__ import annotations

from fastprof.model.call import Tensor, Unknown
from fastprof.ops.cost import CannotModel, Cost
from fastprof.ops.images.pooling_windows import adaptive_taps, by_dimension, image
from fastprof.ops.parameters import Ints
from fastprof.ops.registry import TORCH, op, operators
from fastprof.ops.tensor import elements
from fastprof.ops.traffic import fresh, moved, texts


@operators("""
    (gradient, x, _, _, _, _, _, indices): max_pool2d_with_indices_backward
        max_pool3d_with_indices_backward
    (gradient, x, indices): adaptive_max_pool2d_backward adaptive_max_pool3d_backward
    (gradient, x, _, _, indices): fractional_max_pool2d_backward fractional_max_pool3d_backward
""")
def max_pool_backward(gradient: Tensor, x: Tensor, indices: Tensor) -> tuple[Cost, str]:
    """dx[n, c, ..] of a maximum pooling: dy added at its indices.

    FLOPs: one addition for each output.
    Bytes: dy and indices read, dx written.
    """
    if gradient.shape != indices.shape:
        raise CannotModel(f"gradient {gradient.shape} does not fit indices {indices.shape}")
    return Cost(elements(gradient.shape), moved(gradient, indices, fresh(x))), texts(gradient, x)


def _register_average(dimensions: int) -> None:
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
def max_unpool_backward(gradient: Tensor, x: Tensor, indices: Tensor) -> tuple[Cost, str]:
    """dx[n, c, ..] of an unpooling: elements of dy at the indices. Up to torch 1.10.

    FLOPs: none.
    Bytes: indices and the selected elements of dy read, dx written.
    """
    if x.shape != indices.shape:
        raise CannotModel(f"indices {indices.shape} do not fit {x.shape}")
    read = fresh(gradient, x.shape)
    return Cost(0, moved(indices, read, fresh(x))), texts(gradient, x)


for _dimensions in (2, 3):
    _register_average(_dimensions)
    _register_adaptive(_dimensions)
