"""FLOPs and bytes of single-gradient convolution operators of older versions."""

from __future__ import annotations

from math import prod

from fastprof.model.call import UNKNOWN, Tensor, Unknown
from fastprof.ops.convolution.images import images, rank_of
from fastprof.ops.convolution.parts import input_gradient, read_bytes, weight_gradient
from fastprof.ops.convolution.sizes import Convolution, mirrored, sized, with_output
from fastprof.ops.cost import CannotModel, Cost, Work, add_known
from fastprof.ops.parameters import Ints
from fastprof.ops.registry import operators
from fastprof.ops.tensor import byte_count, elements, tensor_bytes, tensor_text


@operators("""
    (size, gradient, weight, padding, stride, dilation, groups, ...):
        aten::cudnn_convolution_backward_input aten::miopen_convolution_backward_input
        aten::miopen_depthwise_convolution_backward_input
        aten::mkldnn_convolution_backward_input
""")
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


@operators("""
    (gradient, weight, padding, stride, dilation, groups, ...):
        aten::cudnn_convolution_transpose_backward_input
        aten::miopen_convolution_transpose_backward_input
""")
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


@operators("""
    (size, gradient, x, padding, stride, dilation, groups, ...):
        aten::mkldnn_convolution_backward_weights aten::cudnn_convolution_backward_weight
        aten::miopen_convolution_backward_weight
        aten::miopen_depthwise_convolution_backward_weight
""")
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


@operators("""
    (size, gradient, x, padding, stride, dilation, groups, ...):
        aten::cudnn_convolution_transpose_backward_weight
        aten::miopen_convolution_transpose_backward_weight
""")
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


@operators("""
    aten::cudnn_convolution_backward_bias aten::cudnn_convolution_transpose_backward_bias
        aten::miopen_convolution_backward_bias
""")
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
