"""FLOPs and bytes of unfold (im2col) and fold (col2im)."""

from __future__ import annotations

from fastprof.model.call import Tensor, Unknown
from fastprof.ops.cost import CannotModel, Cost
from fastprof.ops.images.pooling_windows import by_dimension, pooled
from fastprof.ops.parameters import Ints
from fastprof.ops.registry import operators
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
def unfold_backward(
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
def fold_backward(
    gradient: Tensor, kernel_size: Size, dilation: Size, padding: Size, stride: Size
) -> tuple[Cost, str]:
    """Windows of an image's gradient as columns.

    FLOPs: none.
    Bytes: the gradient read, the columns written.
    """
    return unfold(gradient, kernel_size, dilation, padding, stride, direction="fprop")
