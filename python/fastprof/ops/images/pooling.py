"""FLOPs and bytes of pooling and of its gradients: equal windows, adaptive and fractional ones."""

from __future__ import annotations

from math import gcd, prod
from typing import TypeAlias

from fastprof._system.classes import NamedTuple
from fastprof.model.call import Tensor, Unknown
from fastprof.ops.axes import POWER
from fastprof.ops.cost import Answer, CannotModel, Cost
from fastprof.ops.parameters import Flag, Ints
from fastprof.ops.registry import operators
from fastprof.ops.table import table_row
from fastprof.ops.tensor import elements, fresh, moved, texts

Sizes: TypeAlias = tuple[int, ...]


def image(x: Tensor, dimensions: int) -> Sizes:
    """The last `dimensions` sizes of x, which also has a channel and optionally a batch dimension.

    Raises CannotModel when x has another number of dimensions.
    """
    if len(x.shape) not in (dimensions + 1, dimensions + 2):
        raise CannotModel(f"shape {x.shape} is not an image of {dimensions} dimensions")
    return x.shape[-dimensions:]


def by_dimension(name: str, value: Ints | Unknown, dimensions: int, least: int) -> Sizes:
    """One value for each dimension.

    Raises CannotModel when the number of values differs, one is less than `least`, or they are
    unknown.
    """
    if isinstance(value, Unknown):
        raise CannotModel(f"{name} is not in the capture")
    values = (value,) if isinstance(value, int) else value
    values = values * dimensions if len(values) == 1 else values
    if len(values) != dimensions or min(values) < least:
        raise CannotModel(f"{name} {value!r} does not fit {dimensions} dimensions")
    return values


class PoolingWindows(NamedTuple):
    """The arguments of a call that say where its windows are."""

    kernel_size: Ints | Unknown
    stride: Ints | Unknown | None = None
    padding: Ints | Unknown = 0
    dilation: Ints | Unknown = 1
    ceil_mode: Flag = False

    def pooled(self, sizes: Sizes) -> tuple[int, Sizes]:
        """Elements of a window, and sizes of the output, for images of these sizes.

        The output has the windows that fit, and with `ceil_mode` one more that begins inside. The
        default stride is the kernel's size.
        """
        kernel, steps, pads = self._along(len(sizes))
        spread = by_dimension("dilation", self.dilation, len(sizes), 1)
        if isinstance(self.ceil_mode, Unknown):
            raise CannotModel("ceil_mode is not in the capture")
        results = []
        for size, window, step, pad, apart in zip(sizes, kernel, steps, pads, spread, strict=True):
            room = size + 2 * pad - apart * (window - 1) - 1
            if room < 0:
                raise CannotModel(f"{sizes} is smaller than a window of {kernel}")
            count = room // step + 1
            if self.ceil_mode and room % step and count * step < size + pad:
                count += 1
            results.append(count)
        return elements(kernel), tuple(results)

    def unpooled(self, sizes: Sizes) -> Sizes:
        """Sizes of the images that pooling makes those of these sizes."""
        kernel, steps, pads = self._along(len(sizes))
        result = tuple(
            (size - 1) * step - 2 * pad + window
            for size, window, step, pad in zip(sizes, kernel, steps, pads, strict=True)
        )
        if min(result) < 0:
            raise CannotModel(f"padding {self.padding!r} is too large for windows of {kernel}")
        return result

    def _along(self, dimensions: int) -> tuple[Sizes, Sizes, Sizes]:
        # Window, step and padding by dimension.
        kernel = by_dimension("kernel_size", self.kernel_size, dimensions, 1)
        steps = kernel
        if self.stride is not None and self.stride != ():
            steps = by_dimension("stride", self.stride, dimensions, 1)
        return kernel, steps, by_dimension("padding", self.padding, dimensions, 0)


def adaptive_target(sizes: Sizes, output_size: int | tuple[int | None, ...] | Unknown) -> Sizes:
    """Output sizes of an adaptive pooling; None keeps the input's size."""
    if isinstance(output_size, Unknown):
        raise CannotModel("output_size is not in the capture")
    wanted = (output_size,) * len(sizes) if isinstance(output_size, int) else output_size
    if len(wanted) == 1:
        wanted = wanted * len(sizes)
    if len(wanted) != len(sizes):
        raise CannotModel(f"output_size {output_size!r} does not fit {len(sizes)} dimensions")
    target = tuple(
        size if number is None else number for size, number in zip(sizes, wanted, strict=True)
    )
    if min(target) < 0:
        raise CannotModel(f"output_size {output_size!r} is negative")
    return target


def adaptive_taps(sizes: Sizes, target: Sizes) -> int:
    """Elements in all windows of an adaptive pooling together, of one channel.

    Window i of n out of m goes from floor(i m / n) to ceil((i + 1) m / n): the windows cover m
    once, plus one element for each of the n - 1 borders inside an element; gcd(m, n) - 1 borders
    are between elements.
    """
    if 0 in sizes or 0 in target:
        return 0
    return prod(
        size + wanted - gcd(size, wanted) for size, wanted in zip(sizes, target, strict=True)
    )


def _pooled(x: Tensor, windows: PoolingWindows, dimensions: int) -> tuple[int, Tensor]:
    # Elements of a window, and the output.
    window, sizes = windows.pooled(image(x, dimensions))
    return window, _resized(x, sizes)


def _resized(x: Tensor, sizes: Sizes) -> Tensor:
    return fresh(x, (*x.shape[: -len(sizes)], *sizes))


def picked_windows(x: Tensor, y: Tensor, window: int, direction: str) -> Answer:
    """Cost of a pooling that selects an element of each window and writes its index."""
    indices = fresh(y, dtype="int64")
    if direction == "bprop":
        return Cost(elements(y.shape), moved(y, indices, fresh(x))), texts(x)
    return Cost(elements(y.shape) * window, moved(x, y, indices)), texts(x)


def max_pool(x: Tensor, windows: PoolingWindows, *, dimensions: int, direction: str) -> Answer:
    """Cost of a maximum pooling over the last `dimensions`."""
    window, y = _pooled(x, windows, dimensions)
    return picked_windows(x, y, window, direction)


def avg_pool(x: Tensor, windows: PoolingWindows, *, dimensions: int, direction: str) -> Answer:
    """Cost of a mean pooling over the last `dimensions`."""
    window, y = _pooled(x, windows, dimensions)
    flops = elements(y.shape) * (window + (direction == "bprop"))
    return Cost(flops, moved(x, y) if direction == "fprop" else moved(y, fresh(x))), texts(x)


def lp_pool(x: Tensor, windows: PoolingWindows, *, dimensions: int, direction: str) -> Answer:
    """Cost of a power-mean pooling over the last `dimensions`."""
    window, y = _pooled(x, windows, dimensions)
    count, outputs = elements(x.shape), elements(y.shape)
    if direction == "bprop":
        flops = count * (POWER + 1) + outputs * (window + POWER + 1)
        return Cost(flops, moved(y, y, x, fresh(x))), texts(x)
    return Cost(count * POWER + outputs * (window + 4 + POWER), moved(x, y)), texts(x)


def max_unpool(
    x: Tensor,
    indices: Tensor,
    kernel_size: Ints | Unknown = 1,
    stride: Ints | Unknown | None = None,
    padding: Ints | Unknown = 0,
    output_size: Ints | Unknown | None = None,
    *,
    dimensions: int,
    direction: str,
) -> Answer:
    """Cost of scattering x into zeros."""
    sizes = image(x, dimensions)
    if indices.shape != x.shape:
        raise CannotModel(f"indices {indices.shape} do not fit {x.shape}")
    if output_size is None:
        result = PoolingWindows(kernel_size, stride, padding).unpooled(sizes)
    else:
        last = output_size[-dimensions:] if isinstance(output_size, tuple) else output_size
        result = by_dimension("output_size", last, dimensions, 0)
    if direction == "bprop":
        return Cost(0, moved(indices, fresh(x), fresh(x))), texts(x)
    return Cost(0, moved(x, indices, _resized(x, result))), texts(x)


for _n in (1, 2, 3):
    table_row(f"""
        Maximum of each window of x[n, c, ..] -> y[n, c, ..].
        FLOPs: one comparison for each element of a window and output; backward one addition for
        each output.
        Bytes: x read, y and its indices (int64, which torch's kernels write in any case) written.
        Backward reads dy and indices, writes dx.

        Padding counts as compared.
        (x, kernel_size, stride, padding, dilation, ceil_mode, ...): max_pool{_n}d
            max_pool{_n}d_with_indices torch._max_pool{_n}d
    """)(max_pool, dimensions=_n)
    table_row(f"""
        Mean of each window of x[n, c, ..] -> y[n, c, ..].
        FLOPs: the window's number of elements for each output (additions, division); backward one
        more (division, an addition for each element).
        Bytes: x read, y written. Backward reads dy, writes dx.

        Padding counts as added.
        (x, kernel_size, stride, padding, ceil_mode, ...): avg_pool{_n}d
    """)(avg_pool, dimensions=_n)
    table_row(f"""
        p-norm of each window of x[n, c, ..] -> y[n, c, ..].
        FLOPs: 20 per element (its power); for each output the window's number of elements and 24
        (sign, magnitude, limit, product, root 20); backward 21 per element, and for each output the
        window's number of elements and 21.
        Bytes: x read, y written. Backward reads dy, y and x, writes dx.

        Counted as one kernel; torch uses several.
        (x, _, kernel_size, stride, ceil_mode): torch.lp_pool{_n}d
    """)(lp_pool, dimensions=_n)
    _operator = f"(x, indices, output_size, ...): aten::max_unpool{_n}d" if _n > 1 else ""
    table_row(f"""
        x[n, c, ..] scattered to its indices in zeros -> y[n, c, ..].
        FLOPs: none.
        Bytes: x and indices read, y written. Backward reads indices and the selected elements of
        dy, writes dx.
        (x, indices, kernel_size, stride, padding, output_size): torch.max_unpool{_n}d
        {_operator}
    """)(max_unpool, dimensions=_n)


Target: TypeAlias = int | tuple[int | None, ...] | Unknown
Ratio: TypeAlias = float | tuple[float, ...] | None


def _target(x: Tensor, output_size: Target, dimensions: int) -> tuple[Tensor, int]:
    # The output, and the elements of all windows of all channels.
    sizes = image(x, dimensions)
    target = adaptive_target(sizes, output_size)
    return _resized(x, target), elements(x.shape[:-dimensions]) * adaptive_taps(sizes, target)


def adaptive_avg_pool(x: Tensor, output_size: Target, *, dimensions: int, direction: str) -> Answer:
    """Cost of an adaptive mean pooling over the last `dimensions`."""
    y, taps = _target(x, output_size, dimensions)
    if direction == "bprop":
        return adaptive_avg_pool_backward(y, x, dimensions=dimensions)[0], texts(x)
    return Cost(taps, moved(x, y)), texts(x)


def adaptive_max_pool(x: Tensor, output_size: Target, *, dimensions: int, direction: str) -> Answer:
    """Cost of an adaptive maximum pooling over the last `dimensions`."""
    y, taps = _target(x, output_size, dimensions)
    cost, params = picked_windows(x, y, 1, direction)
    return Cost(taps if direction == "fprop" else cost.flops, cost.bytes), params


def fractional_max_pool(
    x: Tensor,
    kernel_size: Ints | Unknown,
    output_size: Ints | Unknown | None = None,
    output_ratio: Ratio = None,
    samples: Tensor | None = None,
    *,
    dimensions: int,
    direction: str,
) -> Answer:
    """Cost of a maximum pooling with randomly placed windows over the last `dimensions`."""
    sizes = image(x, dimensions)
    window = elements(by_dimension("kernel_size", kernel_size, dimensions, 1))
    if output_size is None:
        result = _scaled(sizes, output_ratio)
    else:
        result = by_dimension("output_size", output_size, dimensions, 0)
    return picked_windows(x, _resized(x, result), window, direction)


def _scaled(sizes: Sizes, ratio: Ratio) -> Sizes:
    ratios = (ratio,) * len(sizes) if isinstance(ratio, float | int) else ratio
    if ratios is None or len(ratios) != len(sizes) or not all(0 < ratio < 1 for ratio in ratios):
        raise CannotModel(f"output_ratio {ratio!r} does not fit {sizes}")
    return tuple(int(size * ratio) for size, ratio in zip(sizes, ratios, strict=True))


for _n in (1, 2, 3):
    _inner = f"_adaptive_avg_pool{_n}d" if _n > 1 else ""
    table_row(f"""
        Means of x[n, c, ..] over windows of the requested output size -> y[n, c, ..].
        FLOPs: one for each element of all windows (additions, division); backward one more for each
        output.
        Bytes: x read, y written. Backward reads dy, writes dx.

        Windows overlap where the sizes do not divide: n windows over m elements have m + n - gcd(m,
        n) elements in total.
        (x, output_size): adaptive_avg_pool{_n}d {_inner}
    """)(adaptive_avg_pool, dimensions=_n)
    table_row(f"""
        Maxima of x[n, c, ..] over windows of the requested output size -> y[n, c, ..].
        FLOPs: one comparison for each element of all windows; backward one addition for each
        output.
        Bytes: x read, y and its indices (int64) written. Backward reads dy and indices, writes dx.
        (x, output_size, ...): adaptive_max_pool{_n}d torch._adaptive_max_pool{_n}d
            torch.adaptive_max_pool{_n}d_with_indices
    """)(adaptive_max_pool, dimensions=_n)
for _n in (2, 3):
    table_row(f"""
        Maxima of x[n, c, ..] over randomly placed windows -> y[n, c, ..].
        FLOPs: one comparison for each element of a window and output; backward one addition for
        each output.
        Bytes: x read, y and its indices (int64) written. Backward reads dy and indices, writes dx.
        (x, kernel_size, output_size, output_ratio, ...): torch.fractional_max_pool{_n}d
            torch.fractional_max_pool{_n}d_with_indices
        (x, kernel_size, output_size, samples): aten::fractional_max_pool{_n}d
    """)(fractional_max_pool, dimensions=_n)


@operators("""
    dx[n, c, ..] of a maximum pooling: dy added at its indices.
    FLOPs: one addition for each output.
    Bytes: dy and indices read, dx written.
    (gradient, x, _, _, _, _, _, indices): max_pool2d_with_indices_backward
        max_pool3d_with_indices_backward
    (gradient, x, indices): adaptive_max_pool2d_backward adaptive_max_pool3d_backward
    (gradient, x, _, _, indices): fractional_max_pool2d_backward fractional_max_pool3d_backward
""")
def max_pool2d_with_indices_backward(gradient: Tensor, x: Tensor, indices: Tensor) -> Answer:
    if gradient.shape != indices.shape:
        raise CannotModel(f"gradient {gradient.shape} does not fit indices {indices.shape}")
    return Cost(elements(gradient.shape), moved(gradient, indices, fresh(x))), texts(gradient, x)


def _avg_pool_backward(
    gradient: Tensor, x: Tensor, kernel_size: Ints | Unknown, *, dimensions: int
) -> Answer:
    image(x, dimensions)
    image(gradient, dimensions)
    window = elements(by_dimension("kernel_size", kernel_size, dimensions, 1))
    moves = moved(gradient, fresh(x))
    return Cost(elements(gradient.shape) * (window + 1), moves), texts(gradient, x)


def adaptive_avg_pool_backward(gradient: Tensor, x: Tensor, *, dimensions: int) -> Answer:
    """Cost of the backward pass of an adaptive mean pooling over the last `dimensions`."""
    taps = adaptive_taps(image(x, dimensions), image(gradient, dimensions))
    flops = elements(gradient.shape) + elements(x.shape[:-dimensions]) * taps
    return Cost(flops, moved(gradient, fresh(x))), texts(gradient, x)


@operators("""
    dx[n, c, ..] of an unpooling: elements of dy at the indices. Up to torch 1.10.
    FLOPs: none.
    Bytes: indices and the selected elements of dy read, dx written.
    (gradient, x, indices, ...): max_unpool2d_backward max_unpool3d_backward
""")
def max_unpool2d_backward(gradient: Tensor, x: Tensor, indices: Tensor) -> Answer:
    if x.shape != indices.shape:
        raise CannotModel(f"indices {indices.shape} do not fit {x.shape}")
    read = fresh(gradient, x.shape)
    return Cost(0, moved(indices, read, fresh(x))), texts(gradient, x)


for _n in (2, 3):
    table_row(f"""
        dx[n, c, ..] of a mean pooling: dy divided, and added to each element of its window.
        FLOPs: one more than a window has elements for each output.
        Bytes: dy read, dx written.

        Padding counts as added to.
        (gradient, x, kernel_size, ...): avg_pool{_n}d_backward
    """)(_avg_pool_backward, dimensions=_n)
    table_row(f"""
        dx[n, c, ..] of an adaptive mean pooling.
        FLOPs: one for each output (division), one for each element of all windows (added).
        Bytes: dy read, dx written.
        (gradient, x): _adaptive_avg_pool{_n}d_backward
    """)(adaptive_avg_pool_backward, dimensions=_n)
