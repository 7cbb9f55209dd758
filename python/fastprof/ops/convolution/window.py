"""The window of a convolution: stride, padding and dilation, and the output sizes."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from fastprof.model.call import Unknown
from fastprof.ops.cost import CannotModel
from fastprof.ops.parameters import Ints

Sizes: TypeAlias = tuple[int, ...]


class Window(NamedTuple):
    """The movement of the kernel over the image, by dimension; None if not recorded.

    `padding` is the sum of both sides: 'same' can pad them differently.
    """

    stride: Sizes | None
    padding: Sizes | None
    dilation: Sizes | None
    more: Sizes | None  # output_padding of a transposed convolution

    @classmethod
    def read(
        cls,
        kernel: Sizes,
        stride: Ints | Unknown,
        padding: Ints | str | Unknown,
        dilation: Ints | Unknown,
        output_padding: Ints | Unknown = 0,
    ) -> Window:
        """Read the arguments of a call.

        Raises
        ------
        CannotModel
            When torch would reject them.
        """
        rank = len(kernel)
        steps = _by_dimension("stride", stride, rank, 1)
        spread = _by_dimension("dilation", dilation, rank, 1)
        more = _by_dimension("output_padding", output_padding, rank, 0)
        if padding == "same":
            if steps not in (None, (1,) * rank):
                raise CannotModel(f"padding 'same' requires stride 1, found {steps}")
            steps = (1,) * rank
            both = spread and tuple(d * (k - 1) for d, k in zip(spread, kernel, strict=True))
        elif isinstance(padding, str):
            if padding != "valid":
                raise CannotModel(f"padding {padding!r} is neither 'same' nor 'valid'")
            both = (0,) * rank
        else:
            side = _by_dimension("padding", padding, rank, 0)
            both = side and tuple(2 * size for size in side)
        return cls(steps, both, spread, more)

    def output(self, image: Sizes, kernel: Sizes, transposed: bool) -> Sizes | None:
        """Sizes of the output; None if unknown.

        Raises
        ------
        CannotModel
            When the padded image is smaller than the kernel.
        """
        if self.stride is None or self.padding is None or self.dilation is None:
            return None
        reach = [d * (k - 1) for d, k in zip(self.dilation, kernel, strict=True)]
        pairs = zip(image, self.stride, self.padding, reach, strict=True)
        if not transposed:
            sizes = tuple((n + pad - far - 1) // step + 1 for n, step, pad, far in pairs)
        elif self.more is None:
            return None
        else:
            grown = [(n - 1) * step - pad + far + 1 for n, step, pad, far in pairs]
            sizes = tuple(n + more for n, more in zip(grown, self.more, strict=True))
        if min(sizes) < (0 if transposed else 1):
            raise CannotModel(f"image {image} is too small for the kernel {kernel}")
        return sizes


def touched(size: int, kernel: int, output: int, stride: int, before: int, dilation: int) -> int:
    """Number of the `size` positions of an image that a convolution reads along one dimension.

    Parameters
    ----------
    size, kernel, output : int
        Extents of the image, of the kernel and of the output.
    stride, before, dilation : int
        Steps of the kernel, padding before the image, distance of the kernel's elements.

    Returns
    -------
    int
        Fewer than `size` if the stride skips positions or trailing positions remain: ceil(size /
        stride) for a kernel of one element without padding.
    """
    runs: dict[int, list[tuple[int, int]]] = {}  # positions by remainder modulo the stride
    for element in range(kernel):
        first, rest = divmod(element * dilation - before, stride)
        last = min(first + output - 1, (size - 1 - rest) // stride)
        runs.setdefault(rest, []).append((max(first, 0), last))
    count = 0
    for spans in runs.values():
        end = -1
        for first, last in sorted(spans):
            count += max(last - max(first, end + 1) + 1, 0)
            end = max(end, last)
    return count


def _by_dimension(name: str, value: Ints | Unknown, rank: int, least: int) -> Sizes | None:
    if isinstance(value, Unknown):
        return None
    values = (value,) if isinstance(value, int) else value
    sizes = values * rank if len(values) == 1 else values
    if len(sizes) != rank or min(sizes) < least:
        raise CannotModel(f"{name} {value!r} does not fit {rank} dimensions")
    return sizes
