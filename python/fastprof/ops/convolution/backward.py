"""FLOPs and bytes of the gradients of convolutions, all of a call or one by one."""

from __future__ import annotations

from math import prod

from fastprof.model.call import UNKNOWN, Tensor, Unknown
from fastprof.ops.convolution.parts import (
    convolution_backward,
    input_gradient,
    read_bytes,
    weight_gradient,
)
from fastprof.ops.convolution.sizes import (
    Convolution,
    channels_first,
    filters_first,
    images,
    is_transposed_likely,
    mirrored,
    rank_of,
    sized,
    with_output,
)
from fastprof.ops.cost import CannotModel, Cost, Work, add_known
from fastprof.ops.parameters import Ints
from fastprof.ops.registry import operators
from fastprof.ops.tensor import byte_count, elements, tensor_bytes, tensor_text

# FLOPs and bytes of single-gradient convolution operators of older versions.


@operators("""
    (size, gradient, weight, padding, stride, dilation, groups, ...):
        aten::cudnn_convolution_backward_input aten::miopen_convolution_backward_input
        aten::miopen_depthwise_convolution_backward_input
        aten::mkldnn_convolution_backward_input
""")
def cudnn_convolution_backward_input(
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
def cudnn_convolution_transpose_backward_input(
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
def mkldnn_convolution_backward_weights(
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
def cudnn_convolution_transpose_backward_weight(
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
def cudnn_convolution_backward_bias(gradient: Tensor) -> tuple[Cost, str]:
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


@operators("""
    (gradient, x, weight, _, stride, padding, dilation, transposed, output_padding, groups,
        output_mask): aten::convolution_backward
    (gradient, x, weight, stride, padding, dilation, transposed, output_padding, groups,
        output_mask): aten::convolution_backward_overrideable
    (x, gradient, weight, padding, stride, dilation, groups, _, _, output_mask):
        aten::cudnn_convolution_backward aten::miopen_convolution_backward
        aten::miopen_depthwise_convolution_backward
    (x, gradient, weight, padding, stride, dilation, groups, _, _, _, output_mask):
        aten::cudnn_convolution_backward
    (x, gradient, weight, padding, stride, dilation, groups, output_mask):
        aten::mkldnn_convolution_backward
    (gradient, x, weight, _, stride, padding, output_mask): aten::_slow_conv2d_backward
    (gradient, x, weight, _, stride, padding, ...): aten::_slow_conv2d_backward
        aten::thnn_conv2d_backward aten::slow_conv3d_backward
    (gradient, x, weight, _, stride, padding, dilation, output_mask):
        aten::slow_conv_dilated2d_backward aten::slow_conv_dilated3d_backward
        aten::_conv_depthwise2d_backward aten::thnn_conv_depthwise2d_backward
        aten::conv_depthwise3d_backward
""")
def gradients(
    gradient: Tensor,
    x: Tensor,
    weight: Tensor,
    stride: Ints | Unknown = UNKNOWN,
    padding: Ints | Unknown = UNKNOWN,
    dilation: Ints | Unknown = 1,
    transposed: bool | Unknown = False,
    output_padding: Ints | Unknown = 0,
    groups: int | Unknown = UNKNOWN,
    output_mask: tuple[bool, ...] | Unknown = UNKNOWN,
) -> Work:
    """dy [n, k, p, q], x [n, c, h, w] and w [k, c/g, r, s] -> dx, dw and db, selected by the mask.

    FLOPs: for dx and for dw those of the forward pass, 2 n k p q (c/g) r s (transposed
    2 n h w c (k/g) r s); for db one addition for each element of dy.
    Bytes: for dx dy and w read and dx written, for dw dy and x read and dw written, for db dy read
    and db written.

    Sizes suffice. Without the mask, a gradient counts if a kernel of it is recognised. If
    `transposed` is unknown, it follows from the channels if they fit only one kind; if they fit
    both, an output no larger than the input is assumed to be that of a plain convolution, an
    estimate: a transposed convolution shrinks an image if its padding exceeds half of its kernel.
    FLOPs by definition, as in PyProf; torch's FlopCounterMode counts dw of g groups g times.
    """
    exact = True
    if isinstance(transposed, Unknown):
        transposed, exact = is_transposed_likely(x, weight, gradient)
    sizes = sized(
        x,
        weight,
        stride,
        padding,
        dilation,
        groups,
        transposed=transposed,
        output_padding=output_padding,
        filters=images(gradient, rank_of(weight)).channels,
        exact=exact,
    )
    return convolution_backward(
        with_output(sizes, gradient), x, weight, gradient, _wanted(output_mask)
    )


@operators("""
    (x, gradient, weight, padding, output_padding, stride, dilation, groups, _, _, output_mask):
        aten::cudnn_convolution_transpose_backward aten::miopen_convolution_transpose_backward
    (x, gradient, weight, padding, output_padding, stride, dilation, groups, _, _, _,
        output_mask): aten::cudnn_convolution_transpose_backward
    (gradient, x, weight, _, stride, padding, output_padding, dilation, ...):
        aten::slow_conv_transpose2d_backward aten::slow_conv_transpose3d_backward
""")
def cudnn_convolution_transpose_backward(
    gradient: Tensor,
    x: Tensor,
    weight: Tensor,
    stride: Ints | Unknown,
    padding: Ints | Unknown,
    dilation: Ints | Unknown,
    output_padding: Ints | Unknown,
    groups: int | Unknown = UNKNOWN,
    output_mask: tuple[bool, ...] | Unknown = UNKNOWN,
) -> Work:
    """dy [n, k, p, q], x [n, c, h, w] and w [c, k/g, r, s] -> dx, dw and db, selected by the mask.

    FLOPs: for dx and for dw 2 n h w c (k/g) r s, for db one addition for each element of dy.
    Bytes: as `gradients`.

    Otherwise as `gradients`.
    """
    return gradients(
        gradient,
        x,
        weight,
        stride,
        padding,
        dilation,
        True,
        output_padding,
        groups,
        output_mask,
    )


@operators("aten::conv_tbc_backward")
def conv_tbc_backward(
    gradient: Tensor, x: Tensor, weight: Tensor, bias: Tensor, pad: int | Unknown
) -> Work:
    """dy [q, n, k], x [t, n, c] and w [s, c, k] -> dx, dw and db [k].

    FLOPs: as `gradients` of one dimension.
    Bytes: as `gradients` of one dimension.
    """
    if bias.shape != gradient.shape[-1:]:
        raise CannotModel(f"bias {bias.shape} does not fit {gradient.shape}")
    moved = (channels_first(gradient), channels_first(x), filters_first(weight))
    return gradients(*moved, 1, pad, 1, output_mask=(True, True, True))


def _wanted(mask: tuple[bool, ...] | Unknown) -> tuple[bool | None, ...]:
    # Some masks have no entry for the bias.
    if isinstance(mask, Unknown):
        return (None, None, None)
    if len(mask) not in (2, 3):
        raise CannotModel(f"output_mask {mask!r} is not that of two or three gradients")
    return (*mask, False)[:3]
