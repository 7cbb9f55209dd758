"""FLOPs and bytes of unfold (im2col), fold (col2im) and padding."""

from __future__ import annotations

from typing import Final, TypeAlias

from fastprof.model.call import Tensor, Unknown
from fastprof.ops.cost import CannotModel, Cost
from fastprof.ops.images.pooling import by_dimension, pooled
from fastprof.ops.parameters import Ints
from fastprof.ops.registry import operators
from fastprof.ops.table import Traffic, table_row
from fastprof.ops.tensor import elements
from fastprof.ops.traffic import fresh, moved, texts

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
    windows = pooled(image, kernel, steps, padding, dilation, False)
    return elements(kernel), elements(windows)


@operators("(x, kernel_size, dilation, padding, stride): torch.unfold im2col")
def unfold(
    x: Tensor,
    kernel_size: Size,
    dilation: Size | None = None,
    padding: Size | None = None,
    stride: Size | None = None,
    *,
    direction: str,
) -> tuple[Cost, str]:
    """Windows of x[n, c, h, w] as columns [n, c k k, windows].

    FLOPs: none; backward one addition for each element of the columns.
    Bytes: x read, the columns written. Backward reads their gradient, writes dx.

    A call with only three numbers is assumed to be Tensor.unfold(dimension, size, step), a view of
    the same name, and has no cost.
    """
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


@operators("(x, output_size, kernel_size, dilation, padding, stride): torch.fold col2im")
def fold(
    x: Tensor,
    output_size: Size,
    kernel_size: Size,
    dilation: Size = 1,
    padding: Size = 0,
    stride: Size = 1,
    *,
    direction: str,
) -> tuple[Cost, str]:
    """Columns x[n, c k k, windows] summed to an image [n, c, h, w].

    FLOPs: one addition for each element of x; backward none.
    Bytes: x read, the image written. Backward reads its gradient, writes dx.
    """
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
@operators("(gradient, input_size, kernel_size, dilation, padding, stride): im2col_backward")
def im2col_backward(
    gradient: Tensor,
    input_size: Size,
    kernel_size: Size,
    dilation: Size,
    padding: Size,
    stride: Size,
) -> tuple[Cost, str]:
    """Columns summed to dx[n, c, h, w].

    FLOPs: one addition for each element of the columns.
    Bytes: their gradient read, dx written.
    """
    return fold(gradient, input_size, kernel_size, dilation, padding, stride, direction="fprop")


@operators("(gradient, kernel_size, dilation, padding, stride): col2im_backward")
def col2im_backward(
    gradient: Tensor, kernel_size: Size, dilation: Size, padding: Size, stride: Size
) -> tuple[Cost, str]:
    """Windows of an image's gradient as columns.

    FLOPs: none.
    Bytes: the gradient read, the columns written.
    """
    return unfold(gradient, kernel_size, dilation, padding, stride, direction="fprop")


# FLOPs and bytes of padding.

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


def _cost(x: Tensor, pads: Pads, repeats: bool, direction: str) -> tuple[Cost, str]:
    read, y = _padded(x, pads)
    if direction == "fprop":
        whole = x if read.shape == x.shape else read
        return Cost(0, moved(whole, y)), texts(x)
    if repeats:
        return Cost(elements(y.shape), moved(y, fresh(x))), texts(x)
    return Cost(0, moved(read, fresh(x))), texts(x)


@operators("(x, pad, mode, _): pad torch._pad aten::_pad_enum")
def pad(x: Tensor, pad: Pads, mode: Mode = "constant", *, direction: str) -> tuple[Cost, str]:
    """x padded with a constant or with its own elements.

    FLOPs: none; backward none for a constant, else one addition for each output.
    Bytes: x read (cropped by negative pads), y written. Backward reads dy (for a constant without
    the border), writes dx.
    """
    repeats = mode in _REPEATING
    if not repeats and mode not in _CONSTANT and not isinstance(mode, Unknown):
        raise CannotModel(f"unknown mode {mode!r}")
    return _cost(x, pad, repeats, direction)


@operators("(x, pad, _): constant_pad_nd")
def constant_pad_nd(x: Tensor, pad: Pads, *, direction: str) -> tuple[Cost, str]:
    """x padded with a constant.

    FLOPs: none.
    Bytes: x read (cropped by negative pads), y written. Backward reads dy without the border,
    writes dx.
    """
    return _cost(x, pad, False, direction)


@operators("""
    (x, padding=pads): reflection_pad1d reflection_pad2d reflection_pad3d replication_pad1d
        replication_pad2d replication_pad3d
    (x, pad=pads): torch._pad_circular
    (x, pads): aten::_pad_circular
""")
def reflection_pad1d(x: Tensor, pads: Pads, *, direction: str) -> tuple[Cost, str]:
    """x padded with its own elements: reflected, replicated or circular.

    FLOPs: none; backward one addition for each output.
    Bytes: x read, y written. Backward reads dy, writes dx.
    """
    return _cost(x, pads, True, direction)


table_row("""
    dx of a reflection or replication pad: dy added to the source elements.
    FLOPs: one addition for each element of dy.
    Bytes: dy read, dx written.
    (gradient, x, _): reflection_pad1d_backward reflection_pad2d_backward reflection_pad3d_backward
        replication_pad1d_backward replication_pad2d_backward replication_pad3d_backward
""")("gradient, x", Traffic(1, "gradient x'", "gradient x"))
