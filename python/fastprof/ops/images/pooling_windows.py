"""Output sizes of pooling, with fixed and adaptive windows."""

from __future__ import annotations

from math import gcd, prod
from typing import TypeAlias

from fastprof.model.call import Tensor, Unknown
from fastprof.ops.cost import CannotModel
from fastprof.ops.parameters import Ints

Sizes: TypeAlias = tuple[int, ...]


def image(x: Tensor, dimensions: int) -> Sizes:
    """The last `dimensions` sizes of x, which also has a channel and optionally a batch dimension.

    Raises
    ------
    CannotModel
        When x has another number of dimensions.
    """
    if len(x.shape) not in (dimensions + 1, dimensions + 2):
        raise CannotModel(f"shape {x.shape} is not an image of {dimensions} dimensions")
    return x.shape[-dimensions:]


def by_dimension(name: str, value: Ints | Unknown, dimensions: int, least: int) -> Sizes:
    """One value for each dimension.

    Raises
    ------
    CannotModel
        When the number of values differs, one is less than `least`, or they are unknown.
    """
    if isinstance(value, Unknown):
        raise CannotModel(f"{name} is not in the capture")
    values = (value,) if isinstance(value, int) else value
    values = values * dimensions if len(values) == 1 else values
    if len(values) != dimensions or min(values) < least:
        raise CannotModel(f"{name} {value!r} does not fit {dimensions} dimensions")
    return values


def pooled(
    sizes: Sizes,
    kernel: Sizes,
    stride: Ints | Unknown | None,
    padding: Ints | Unknown,
    dilation: Ints | Unknown,
    ceil_mode: bool | Unknown,
) -> Sizes:
    """Sizes of the output: windows that fit, and with `ceil_mode` one more that begins inside.

    The default stride is the kernel's size.
    """
    dimensions = len(sizes)
    steps = kernel if stride in (None, ()) else by_dimension("stride", stride, dimensions, 1)
    pads = by_dimension("padding", padding, dimensions, 0)
    spread = by_dimension("dilation", dilation, dimensions, 1)
    if isinstance(ceil_mode, Unknown):
        raise CannotModel("ceil_mode is not in the capture")
    found = []
    for size, window, step, pad, apart in zip(sizes, kernel, steps, pads, spread, strict=True):
        room = size + 2 * pad - apart * (window - 1) - 1
        if room < 0:
            raise CannotModel(f"{sizes} is smaller than a window of {kernel}")
        count = room // step + 1
        if ceil_mode and room % step and count * step < size + pad:
            count += 1
        found.append(count)
    return tuple(found)


def unpooled(
    sizes: Sizes, kernel: Sizes, stride: Ints | Unknown | None, padding: Ints | Unknown
) -> Sizes:
    """Sizes of an unpooled image."""
    dimensions = len(sizes)
    steps = kernel if stride in (None, ()) else by_dimension("stride", stride, dimensions, 1)
    pads = by_dimension("padding", padding, dimensions, 0)
    found = tuple(
        (size - 1) * step - 2 * pad + window
        for size, window, step, pad in zip(sizes, kernel, steps, pads, strict=True)
    )
    if min(found) < 0:
        raise CannotModel(f"padding {padding!r} is too large for windows of {kernel}")
    return found


def adaptive_target(sizes: Sizes, output_size: int | tuple[int | None, ...] | Unknown) -> Sizes:
    """Output sizes of an adaptive pooling; None keeps the input's size."""
    if isinstance(output_size, Unknown):
        raise CannotModel("output_size is not in the capture")
    wanted = (output_size,) * len(sizes) if isinstance(output_size, int) else output_size
    if len(wanted) == 1:
        wanted = wanted * len(sizes)
    if len(wanted) != len(sizes):
        raise CannotModel(f"output_size {output_size!r} does not fit {len(sizes)} dimensions")
    target = tuple(size if each is None else each for size, each in zip(sizes, wanted, strict=True))
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
