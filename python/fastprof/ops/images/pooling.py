"""FLOPs and bytes of pooling with windows of equal size."""

from __future__ import annotations

from typing import Final

from fastprof.model.call import Tensor, Unknown
from fastprof.ops.arithmetic import POWER
from fastprof.ops.cost import CannotModel, Cost
from fastprof.ops.images.pooling_windows import Sizes, by_dimension, image, pooled, unpooled
from fastprof.ops.parameters import Ints
from fastprof.ops.registry import TORCH, op
from fastprof.ops.tensor import elements
from fastprof.ops.traffic import fresh, moved, texts

_DIMENSIONS: Final = (1, 2, 3)
_WINDOW: Final = "x, kernel_size, stride, padding, dilation, ceil_mode, ..."


def _register_max(dimensions: int) -> None:
    names = [f"max_pool{dimensions}d", f"max_pool{dimensions}d_with_indices"]
    texts_of = [f"{name}({_WINDOW})" for name in (*names, f"_{names[0]}")]

    @op(TORCH, *texts_of, aten=texts_of[:2])
    def max_pool_of(
        x: Tensor,
        kernel_size: Ints | Unknown,
        stride: Ints | Unknown | None = None,
        padding: Ints | Unknown = 0,
        dilation: Ints | Unknown = 1,
        ceil_mode: bool | Unknown = False,
        *,
        direction: str,
    ) -> tuple[Cost, str]:
        """Maximum of each window of x[n, c, ..] -> y[n, c, ..].

        FLOPs: one comparison for each element of a window and output; backward one addition for
        each output.
        Bytes: x read, y and its indices (int64, which torch's kernels write in any case) written.
        Backward reads dy and indices, writes dx.

        Padding counts as compared.
        """
        return max_pool(x, kernel_size, stride, padding, dilation, ceil_mode, dimensions, direction)


def max_pool(
    x: Tensor,
    kernel_size: Ints | Unknown,
    stride: Ints | Unknown | None,
    padding: Ints | Unknown,
    dilation: Ints | Unknown,
    ceil_mode: bool | Unknown,
    dimensions: int,
    direction: str,
) -> tuple[Cost, str]:
    """Cost of a maximum pooling over the last `dimensions`."""
    sizes = image(x, dimensions)
    kernel = by_dimension("kernel_size", kernel_size, dimensions, 1)
    y = fresh(
        x,
        (*x.shape[:-dimensions], *pooled(sizes, kernel, stride, padding, dilation, ceil_mode)),
    )
    return picked(x, y, elements(kernel), direction)


def picked(x: Tensor, y: Tensor, window: int, direction: str) -> tuple[Cost, str]:
    """Cost of a pooling that selects an element of each window and writes its index."""
    indices = fresh(y, dtype="int64")
    if direction == "bprop":
        return Cost(elements(y.shape), moved(y, indices, fresh(x))), texts(x)
    return Cost(elements(y.shape) * window, moved(x, y, indices)), texts(x)


def _register_average(dimensions: int) -> None:
    text = f"avg_pool{dimensions}d(x, kernel_size, stride, padding, ceil_mode, ...)"

    @op(TORCH, text, aten=(text,))
    def avg_pool_of(
        x: Tensor,
        kernel_size: Ints | Unknown,
        stride: Ints | Unknown | None = None,
        padding: Ints | Unknown = 0,
        ceil_mode: bool | Unknown = False,
        *,
        direction: str,
    ) -> tuple[Cost, str]:
        """Mean of each window of x[n, c, ..] -> y[n, c, ..].

        FLOPs: the window's number of elements for each output (additions, division); backward one
        more (division, an addition for each element).
        Bytes: x read, y written. Backward reads dy, writes dx.

        Padding counts as added.
        """
        return avg_pool(x, kernel_size, stride, padding, ceil_mode, dimensions, direction)


def avg_pool(
    x: Tensor,
    kernel_size: Ints | Unknown,
    stride: Ints | Unknown | None,
    padding: Ints | Unknown,
    ceil_mode: bool | Unknown,
    dimensions: int,
    direction: str,
) -> tuple[Cost, str]:
    """Cost of a mean pooling over the last `dimensions`."""
    kernel, y = _averaged(x, kernel_size, stride, padding, ceil_mode, dimensions)
    window = elements(kernel)
    flops = elements(y.shape) * (window + (direction == "bprop"))
    return Cost(flops, moved(x, y) if direction == "fprop" else moved(y, fresh(x))), texts(x)


def _averaged(
    x: Tensor,
    kernel_size: Ints | Unknown,
    stride: Ints | Unknown | None,
    padding: Ints | Unknown,
    ceil_mode: bool | Unknown,
    dimensions: int,
) -> tuple[Sizes, Tensor]:
    sizes = image(x, dimensions)
    kernel = by_dimension("kernel_size", kernel_size, dimensions, 1)
    found = pooled(sizes, kernel, stride, padding, 1, ceil_mode)
    return kernel, fresh(x, (*x.shape[:-dimensions], *found))


def _register_power(dimensions: int) -> None:
    @op(TORCH, f"lp_pool{dimensions}d(x, _, kernel_size, stride, ceil_mode)")
    def lp_pool_of(
        x: Tensor,
        kernel_size: Ints | Unknown,
        stride: Ints | Unknown | None = None,
        ceil_mode: bool | Unknown = False,
        *,
        direction: str,
    ) -> tuple[Cost, str]:
        """p-norm of each window of x[n, c, ..] -> y[n, c, ..].

        FLOPs: 20 per element (its power); for each output the window's number of elements and 24
        (sign, magnitude, limit, product, root 20); backward 21 per element, and for each output the
        window's number of elements and 21.
        Bytes: x read, y written. Backward reads dy, y and x, writes dx.

        Counted as one kernel; torch uses several.
        """
        return lp_pool(x, kernel_size, stride, ceil_mode, dimensions, direction)


def lp_pool(
    x: Tensor,
    kernel_size: Ints | Unknown,
    stride: Ints | Unknown | None,
    ceil_mode: bool | Unknown,
    dimensions: int,
    direction: str,
) -> tuple[Cost, str]:
    """Cost of a power-mean pooling over the last `dimensions`."""
    kernel, y = _averaged(x, kernel_size, stride, 0, ceil_mode, dimensions)
    window, count, outputs = elements(kernel), elements(x.shape), elements(y.shape)
    if direction == "bprop":
        flops = count * (POWER + 1) + outputs * (window + POWER + 1)
        return Cost(flops, moved(y, y, x, fresh(x))), texts(x)
    return Cost(count * POWER + outputs * (window + 4 + POWER), moved(x, y)), texts(x)


def _register_unpooling(dimensions: int) -> None:
    name = f"max_unpool{dimensions}d"
    operators = () if dimensions == 1 else (f"{name}(x, indices, output_size, ...)",)

    @op(TORCH, f"{name}(x, indices, kernel_size, stride, padding, output_size)", aten=operators)
    def max_unpool_of(
        x: Tensor,
        indices: Tensor,
        kernel_size: Ints | Unknown = 1,
        stride: Ints | Unknown | None = None,
        padding: Ints | Unknown = 0,
        output_size: Ints | Unknown | None = None,
        *,
        direction: str,
    ) -> tuple[Cost, str]:
        """x[n, c, ..] scattered to its indices in zeros -> y[n, c, ..].

        FLOPs: none.
        Bytes: x and indices read, y written. Backward reads indices and the selected elements of
        dy, writes dx.
        """
        sizes = image(x, dimensions)
        if indices.shape != x.shape:
            raise CannotModel(f"indices {indices.shape} do not fit {x.shape}")
        if output_size is None:
            kernel = by_dimension("kernel_size", kernel_size, dimensions, 1)
            found = unpooled(sizes, kernel, stride, padding)
        else:
            last = output_size[-dimensions:] if isinstance(output_size, tuple) else output_size
            found = by_dimension("output_size", last, dimensions, 0)
        return max_unpool(x, indices, fresh(x, (*x.shape[:-dimensions], *found)), direction)


def max_unpool(x: Tensor, indices: Tensor, y: Tensor, direction: str) -> tuple[Cost, str]:
    """Cost of scattering x into zeros."""
    if direction == "bprop":
        return Cost(0, moved(indices, fresh(x), fresh(x))), texts(x)
    return Cost(0, moved(x, indices, y)), texts(x)


for _dimensions in _DIMENSIONS:
    _register_max(_dimensions)
    _register_average(_dimensions)
    _register_power(_dimensions)
    _register_unpooling(_dimensions)
