"""FLOPs and bytes of single-gradient convolution operators of older versions."""

from __future__ import annotations

from math import prod
from typing import Final

from fastprof.model.call import UNKNOWN, Tensor, Unknown
from fastprof.ops.convolution.images import images, rank_of
from fastprof.ops.convolution.parts import input_gradient, read_bytes, weight_gradient
from fastprof.ops.convolution.sizes import Convolution, mirrored, sized, with_output
from fastprof.ops.cost import CannotModel, Cost, Work, add_known
from fastprof.ops.parameters import Ints
from fastprof.ops.registry import op
from fastprof.ops.tensor import byte_count, elements, tensor_bytes, tensor_text

_STEPS: Final = "padding, stride, dilation, groups"
_INPUT: Final = tuple(
    f"{name}_backward_input(size, gradient, weight, {_STEPS}, ...)"
    for name in (
        "cudnn_convolution",
        "miopen_convolution",
        "miopen_depthwise_convolution",
        "mkldnn_convolution",
    )
)


@op(None, aten=_INPUT)
def gradient_of_input(
    size: tuple[int, ...] | Unknown,
    gradient: Tensor,
    weight: Tensor,
    stride: Ints | Unknown,
    padding: Ints | Unknown,
    dilation: Ints | Unknown,
    groups: int | Unknown,
) -> Work:
    """dy [n, k, p, q] and w [k, c/g, r, s] -> dx [n, c, h, w], whose size is an argument.

    FLOPs: those of the forward pass, 2 n k p q (c/g) r s.
    Bytes: dy and w read, dx written.

    Sizes determine the FLOPs, but not dx and the bytes.
    """
    known = None if isinstance(size, Unknown) else Tensor(size, gradient.dtype)
    # dx is the transposed convolution of dy with w.
    sizes = sized(
        gradient,
        weight,
        stride,
        padding,
        dilation,
        groups,
        transposed=True,
        output_padding=UNKNOWN,
        filters=None if known is None else images(known, rank_of(weight)).channels,
    )
    return _of_input(with_output(sizes, known) if known else sizes, gradient, weight)


_TRANSPOSED_INPUT: Final = tuple(
    f"{name}_transpose_backward_input(gradient, weight, {_STEPS}, ...)"
    for name in ("cudnn_convolution", "miopen_convolution")
)


@op(None, aten=_TRANSPOSED_INPUT)
def transposed_gradient_of_input(
    gradient: Tensor,
    weight: Tensor,
    stride: Ints | Unknown,
    padding: Ints | Unknown,
    dilation: Ints | Unknown,
    groups: int | Unknown,
) -> Work:
    """dy [n, k, p, q] and w [c, k/g, r, s] -> dx [n, c, h, w] of a transposed convolution.

    FLOPs: those of the forward pass, 2 n h w c (k/g) r s.
    Bytes: dy and w read, dx written.

    Unknown without stride and padding: sizes do not determine dx.
    """
    # dx is the convolution of dy with w.
    sizes = sized(gradient, weight, stride, padding, dilation, groups)
    return _of_input(sizes, gradient, weight)


_WEIGHT: Final = (
    f"mkldnn_convolution_backward_weights(size, gradient, x, {_STEPS}, ...)",
    *(
        f"{name}_backward_weight(size, gradient, x, {_STEPS}, ...)"
        for name in ("cudnn_convolution", "miopen_convolution", "miopen_depthwise_convolution")
    ),
)


@op(None, aten=_WEIGHT)
def gradient_of_weight(
    size: tuple[int, ...],
    gradient: Tensor,
    x: Tensor,
    stride: Ints | Unknown,
    padding: Ints | Unknown,
    dilation: Ints | Unknown,
    groups: int | Unknown,
) -> Work:
    """dy [n, k, p, q] and x [n, c, h, w] -> dw [k, c/g, r, s], whose size is an argument.

    FLOPs: those of the forward pass, 2 n k p q (c/g) r s.
    Bytes: dy and x read, dw written.

    Unknown without the size: the other sizes do not determine dw.
    """
    weight = Tensor(size, x.dtype)
    sizes = sized(x, weight, stride, padding, dilation, groups)
    return _of_weight(sizes, gradient, x, weight)


_TRANSPOSED_WEIGHT: Final = tuple(
    f"{name}_transpose_backward_weight(size, gradient, x, {_STEPS}, ...)"
    for name in ("cudnn_convolution", "miopen_convolution")
)


@op(None, aten=_TRANSPOSED_WEIGHT)
def transposed_gradient_of_weight(
    size: tuple[int, ...],
    gradient: Tensor,
    x: Tensor,
    stride: Ints | Unknown,
    padding: Ints | Unknown,
    dilation: Ints | Unknown,
    groups: int | Unknown,
) -> Work:
    """dy [n, k, p, q] and x [n, c, h, w] -> dw [c, k/g, r, s] of a transposed convolution.

    FLOPs: those of the forward pass, 2 n h w c (k/g) r s.
    Bytes: dy and x read, dw written.

    Unknown without the size: the other sizes do not determine dw.
    """
    weight = Tensor(size, x.dtype)
    sizes = sized(
        x,
        weight,
        stride,
        padding,
        dilation,
        groups,
        transposed=True,
        output_padding=UNKNOWN,
        filters=images(gradient, rank_of(weight)).channels,
    )
    return _of_weight(sizes, gradient, x, weight)


_BIAS: Final = tuple(
    f"{name}_backward_bias"
    for name in ("cudnn_convolution", "cudnn_convolution_transpose", "miopen_convolution")
)


@op(None, aten=_BIAS)
def bias_sum(gradient: Tensor) -> tuple[Cost, str]:
    """dy [n, k, p, q] -> db [k], the sum over all but the channels.

    FLOPs: one addition for each element of dy.
    Bytes: dy read, db written.
    """
    if len(gradient.shape) < 2:
        raise CannotModel(f"shape {gradient.shape} has no channels")
    moved = add_known(tensor_bytes(gradient), byte_count(gradient.shape[1], gradient.dtype))
    return Cost(elements(gradient.shape), moved), tensor_text(gradient)


def _of_input(sizes: Convolution, gradient: Tensor, weight: Tensor) -> Work:
    # `sizes` are those of the convolution that computes the gradient.
    written = None if sizes.outputs is None else byte_count(sizes.outputs, sizes.dtype)
    moved = add_known(tensor_bytes(gradient), tensor_bytes(weight), written)
    return Work((input_gradient(mirrored(sizes), moved),))


def _of_weight(sizes: Convolution, gradient: Tensor, x: Tensor, weight: Tensor) -> Work:
    written = byte_count(prod(weight.shape), weight.dtype)
    sizes = with_output(sizes, gradient)
    moved = add_known(tensor_bytes(gradient), read_bytes(sizes, x), written)
    return Work((weight_gradient(sizes, moved),))
