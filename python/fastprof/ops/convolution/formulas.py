"""FLOPs and bytes of convolutions, also transposed, and of their gradients, all or one by one."""

from __future__ import annotations

from typing import Final

from fastprof.model.call import UNKNOWN, Tensor, Unknown
from fastprof.ops.convolution.sizes import (
    AnySteps,
    Convolution,
    Steps,
    convolution_backward,
    convolution_forward,
    gradient_part,
    images,
    is_transposed,
    is_transposed_likely,
    mirrored,
    permuted,
    rank_of,
    read_bytes,
    sized,
    with_output,
    with_result,
)
from fastprof.ops.cost import Answer, CannotModel, Cost, Work, add_known
from fastprof.ops.parameters import Flag, Int, Ints
from fastprof.ops.registry import operators
from fastprof.ops.tensor import elements, flat, fresh, moved, texts


@operators("""
    x [n, c, h, w] * w [k, c/g, r, s] -> [n, k, p, q], in one to three dimensions.
    FLOPs: forward a multiply-add for each output and weight of its group, 2 n k p q (c/g) r s;
    backward the same for each of the two gradients.
    Bytes: forward input, weight and bias read, output written; backward for each gradient the
    other two read and it written.

    FLOPs by definition, including positions in the padding, as in torch's FlopCounterMode and
    PyProf; Winograd and FFT algorithms do fewer. A bias is free, but a separate kernel that adds
    it, or sums its gradient, counts one addition for each output. Only the part of the input that
    the kernel covers is read: a quarter for a one-pixel kernel with stride 2. Without stride and
    padding, the output has the size of the result; if that is unknown, so is the cost. Missing
    groups follow from the channels. Under autocast, a Python call records the types before the
    cast.
    (*): conv1d conv2d conv3d _convolution_mode
    (x, weight, padding, stride, dilation, groups, ...): cudnn_convolution
    (x, weight, bias, padding, stride, dilation, groups, ...): cudnn_convolution
        miopen_convolution mkldnn_convolution miopen_depthwise_convolution
    (x, weight, _, bias, stride, padding, ...): thnn_conv2d thnn_conv2d_forward
        _slow_conv2d_forward slow_conv3d slow_conv3d_forward
    (x, weight, _, bias, stride, padding, dilation, ...): slow_conv_dilated2d
        slow_conv_dilated3d _conv_depthwise2d thnn_conv_depthwise2d
        thnn_conv_depthwise2d_forward conv_depthwise3d
""")
def convolution(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Ints | Unknown = 1,
    padding: Ints | str | Unknown = 0,
    dilation: Ints | Unknown = 1,
    groups: Int = UNKNOWN,
    *,
    direction: str,
    result: Tensor | Unknown = UNKNOWN,
) -> Work:
    sizes = sized(x, weight, (stride, padding, dilation, groups))
    return _either(with_result(sizes, result), x, weight, bias, direction)


@operators("""
    x [n, c, h, w] * w [c, k/g, r, s] -> [n, k, p, q], transposed, in one to three dimensions.
    FLOPs: forward a multiply-add for each input and weight of its group, 2 n h w c (k/g) r s;
    backward the same for each of the two gradients.
    Bytes: forward input, weight and bias read, output written; backward for each gradient the
    other two read and it written.

    Sizes determine the FLOPs; output and bytes also require the size of the result. In params, C,
    H, W are the call's input and K, P, Q its output, not those of the convolution whose gradient it
    is. Otherwise as `convolution`.
    (*): conv_transpose1d conv_transpose2d conv_transpose3d
    (x, weight, padding, output_padding, stride, dilation, groups, ...):
        cudnn_convolution_transpose
    (x, weight, bias, padding, output_padding, stride, dilation, groups, ...):
        cudnn_convolution_transpose miopen_convolution_transpose
    (x, weight, _, bias, stride, padding, output_padding, dilation, ...): slow_conv_transpose2d
        slow_conv_transpose3d
""")
def transposed_convolution(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Ints | Unknown = 1,
    padding: Ints | Unknown = 0,
    output_padding: Ints | Unknown = 0,
    groups: Int = 1,
    dilation: Ints | Unknown = 1,
    *,
    direction: str,
    result: Tensor | Unknown = UNKNOWN,
) -> Work:
    steps, filters = (stride, padding, dilation, groups), _filters(bias)
    sizes = _transposed(x, weight, steps, filters, output_padding)
    return _either(with_result(sizes, result), x, weight, bias, direction)


@operators("""
    A convolution, transposed if the flag `transposed` is set.
    FLOPs: as `convolution` or `transposed_convolution`.
    Bytes: as `convolution` or `transposed_convolution`.

    If the flag is unknown, it follows from the channels if they fit only one kind.
    (*): convolution convolution_overrideable
    (x, weight, bias, stride, padding, dilation, transposed, output_padding, groups, ...):
        _convolution
    (x, weight, bias, stride, padding, dilation, transposed, output_padding):
        _convolution_nogroup
""")
def general_convolution(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Ints | Unknown = 1,
    padding: Ints | Unknown = 0,
    dilation: Ints | Unknown = 1,
    transposed: Flag = False,
    output_padding: Ints | Unknown = 0,
    groups: Int = 1,
    *,
    direction: str,
    result: Tensor | Unknown = UNKNOWN,
) -> Work:
    if isinstance(transposed, Unknown):
        transposed = is_transposed(x, weight, _filters(bias))
    if transposed:
        steps = (stride, padding, output_padding, groups, dilation)
        return transposed_convolution(x, weight, bias, *steps, direction=direction, result=result)
    plain = (stride, padding, dilation, groups)
    return convolution(x, weight, bias, *plain, direction=direction, result=result)


@operators("""
    relu(x * w + alpha z + bias), z of the output's shape, in one kernel.
    FLOPs: those of the convolution; fused operations are not counted.
    Bytes: input, weight, bias and z read, output written.

    With z, sizes suffice. There is no backward pass.
    (x, weight, bias, stride, padding, dilation, groups): cudnn_convolution_relu
        miopen_convolution_relu
    (x, weight, addend, _, bias, stride, padding, dilation, groups): cudnn_convolution_add_relu
        miopen_convolution_add_relu
""")
def cudnn_convolution_relu(
    x: Tensor,
    weight: Tensor,
    addend: Tensor | None = None,
    bias: Tensor | None = None,
    stride: Ints | Unknown = 1,
    padding: Ints | Unknown = 0,
    dilation: Ints | Unknown = 1,
    groups: Int = UNKNOWN,
) -> Work:
    sizes = sized(x, weight, (stride, padding, dilation, groups))
    _check_bias(sizes, bias)
    if addend is not None:
        sizes = with_output(sizes, addend)
    return convolution_forward(sizes, x, weight, bias, addend, fused=True)


# conv_tbc's [time, batch, channels] and [time, channels, filters] in the usual order.
_IMAGES: Final = (1, 2, 0)
_FILTERS: Final = (2, 1, 0)


@operators("""
    x [t, n, c] * w [s, c, k] + bias [k] -> [q, n, k], along the first dimension.
    FLOPs: as `convolution` of one dimension.
    Bytes: as `convolution` of one dimension.
    (*): conv_tbc
""")
def conv_tbc(x: Tensor, weight: Tensor, bias: Tensor, pad: Int = 0, *, direction: str) -> Work:
    operands = permuted(x, _IMAGES), permuted(weight, _FILTERS), bias
    return convolution(*operands, 1, pad, 1, 1, direction=direction)


def _filters(bias: Tensor | None) -> int | None:
    return bias.shape[0] if bias is not None and len(bias.shape) == 1 else None


def _check_bias(sizes: Convolution, bias: Tensor | None) -> None:
    if bias is not None and (len(bias.shape) != 1 or sizes.filters not in (None, *bias.shape)):
        raise CannotModel(f"bias {bias.shape} does not fit {sizes.filters} channels")


def _either(
    sizes: Convolution, x: Tensor, weight: Tensor, bias: Tensor | None, direction: str
) -> Work:
    _check_bias(sizes, bias)
    if direction == "fprop":
        return convolution_forward(sizes, x, weight, bias)
    return convolution_backward(
        sizes, x, weight, wanted=(None, None, False if bias is None else None)
    )


@operators("""
    dy [n, k, p, q] and w [k, c/g, r, s] -> dx [n, c, h, w], whose size is an argument.
    FLOPs: those of the forward pass, 2 n k p q (c/g) r s.
    Bytes: dy and w read, dx written.

    Sizes determine the FLOPs, but not dx and the bytes.
    (size, gradient, weight, padding, stride, dilation, groups, ...):
        aten::cudnn_convolution_backward_input aten::miopen_convolution_backward_input
        aten::miopen_depthwise_convolution_backward_input
        aten::mkldnn_convolution_backward_input
""")
def cudnn_convolution_backward_input(
    size: tuple[int, ...] | Unknown, gradient: Tensor, weight: Tensor, steps: Steps
) -> Work:
    known = None if isinstance(size, Unknown) else Tensor(size, gradient.dtype)
    filters = None if known is None else images(known, rank_of(weight)).channels
    # dx is the transposed convolution of dy with w.
    sizes = _transposed(gradient, weight, steps, filters)
    return _of_input(with_output(sizes, known) if known else sizes, gradient, weight)


def _transposed(
    x: Tensor, weight: Tensor, steps: AnySteps, filters: int | None, more: Ints | Unknown = UNKNOWN
) -> Convolution:
    # `more` is the output padding.
    return sized(x, weight, steps, transposed=True, output_padding=more, filters=filters)


@operators("""
    dy [n, k, p, q] and w [c, k/g, r, s] -> dx [n, c, h, w] of a transposed convolution.
    FLOPs: those of the forward pass, 2 n h w c (k/g) r s.
    Bytes: dy and w read, dx written.

    Unknown without stride and padding: sizes do not determine dx.
    (gradient, weight, padding, stride, dilation, groups, ...):
        aten::cudnn_convolution_transpose_backward_input
        aten::miopen_convolution_transpose_backward_input
""")
def cudnn_convolution_transpose_backward_input(
    gradient: Tensor, weight: Tensor, steps: Steps
) -> Work:
    # dx is the convolution of dy with w.
    return _of_input(sized(gradient, weight, steps), gradient, weight)


@operators("""
    dy [n, k, p, q] and x [n, c, h, w] -> dw [k, c/g, r, s], whose size is an argument.
    FLOPs: those of the forward pass, 2 n k p q (c/g) r s.
    Bytes: dy and x read, dw written.

    Unknown without the size: the other sizes do not determine dw.
    (size, gradient, x, padding, stride, dilation, groups, ...):
        aten::mkldnn_convolution_backward_weights aten::cudnn_convolution_backward_weight
        aten::miopen_convolution_backward_weight
        aten::miopen_depthwise_convolution_backward_weight
""")
def mkldnn_convolution_backward_weights(
    size: tuple[int, ...], gradient: Tensor, x: Tensor, steps: Steps
) -> Work:
    weight = Tensor(size, x.dtype)
    return _of_weight(sized(x, weight, steps), gradient, x, weight)


@operators("""
    dy [n, k, p, q] and x [n, c, h, w] -> dw [c, k/g, r, s] of a transposed convolution.
    FLOPs: those of the forward pass, 2 n h w c (k/g) r s.
    Bytes: dy and x read, dw written.

    Unknown without the size: the other sizes do not determine dw.
    (size, gradient, x, padding, stride, dilation, groups, ...):
        aten::cudnn_convolution_transpose_backward_weight
        aten::miopen_convolution_transpose_backward_weight
""")
def cudnn_convolution_transpose_backward_weight(
    size: tuple[int, ...], gradient: Tensor, x: Tensor, steps: Steps
) -> Work:
    weight = Tensor(size, x.dtype)
    sizes = _transposed(x, weight, steps, images(gradient, rank_of(weight)).channels)
    return _of_weight(sizes, gradient, x, weight)


@operators("""
    dy [n, k, p, q] -> db [k], the sum over all but the channels.
    FLOPs: one addition for each element of dy.
    Bytes: dy read, db written.
    (*): aten::cudnn_convolution_backward_bias aten::cudnn_convolution_transpose_backward_bias
        aten::miopen_convolution_backward_bias
""")
def cudnn_convolution_backward_bias(gradient: Tensor) -> Answer:
    if len(gradient.shape) < 2:
        raise CannotModel(f"shape {gradient.shape} has no channels")
    moves = moved(gradient, fresh(gradient, gradient.shape[1:2]))
    return Cost(elements(gradient.shape), moves), texts(gradient)


def _of_input(sizes: Convolution, gradient: Tensor, weight: Tensor) -> Work:
    # `sizes` are those of the convolution that computes the gradient.
    moves = moved(gradient, weight, flat(sizes.outputs, sizes.dtype))
    return Work((gradient_part("dgrad", mirrored(sizes), moves),))


def _of_weight(sizes: Convolution, gradient: Tensor, x: Tensor, weight: Tensor) -> Work:
    sizes = with_output(sizes, gradient)
    moves = add_known(moved(gradient, fresh(weight)), read_bytes(sizes, x))
    return Work((gradient_part("wgrad", sizes, moves),))


@operators("""
    dy [n, k, p, q], x [n, c, h, w] and w [k, c/g, r, s] -> dx, dw and db, selected by the mask.
    FLOPs: for dx and for dw those of the forward pass, 2 n k p q (c/g) r s (transposed
    2 n h w c (k/g) r s); for db one addition for each element of dy.
    Bytes: for dx dy and w read and dx written, for dw dy and x read and dw written, for db dy read
    and db written.

    Sizes suffice. Without the mask, a gradient counts if a kernel of it is recognised. If
    `transposed` is unknown, it follows from the channels if they fit only one kind; if they fit
    both, an output no larger than the input is assumed to be that of a plain convolution, an
    estimate: a transposed convolution shrinks an image if its padding exceeds half of its kernel.
    FLOPs by definition, as in PyProf; torch's FlopCounterMode counts dw of g groups g times.
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
    transposed: Flag = False,
    output_padding: Ints | Unknown = 0,
    groups: Int = UNKNOWN,
    output_mask: tuple[bool, ...] | Unknown = UNKNOWN,
) -> Work:
    exact = True
    if isinstance(transposed, Unknown):
        transposed, exact = is_transposed_likely(x, weight, gradient)
    sizes = sized(
        x,
        weight,
        (stride, padding, dilation, groups),
        transposed=transposed,
        output_padding=output_padding,
        filters=images(gradient, rank_of(weight)).channels,
        exact=exact,
    )
    return convolution_backward(
        with_output(sizes, gradient), x, weight, gradient, _wanted(output_mask)
    )


@operators("""
    dy [n, k, p, q], x [n, c, h, w] and w [c, k/g, r, s] -> dx, dw and db, selected by the mask.
    FLOPs: for dx and for dw 2 n h w c (k/g) r s, for db one addition for each element of dy.
    Bytes: as `gradients`.

    Otherwise as `gradients`.
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
    groups: Int = UNKNOWN,
    output_mask: tuple[bool, ...] | Unknown = UNKNOWN,
) -> Work:
    steps = (stride, padding, dilation, True, output_padding, groups)
    return gradients(gradient, x, weight, *steps, output_mask)


@operators("""
    dy [q, n, k], x [t, n, c] and w [s, c, k] -> dx, dw and db [k].
    FLOPs: as `gradients` of one dimension.
    Bytes: as `gradients` of one dimension.
    (*): aten::conv_tbc_backward
""")
def conv_tbc_backward(gradient: Tensor, x: Tensor, weight: Tensor, bias: Tensor, pad: Int) -> Work:
    if bias.shape != gradient.shape[-1:]:
        raise CannotModel(f"bias {bias.shape} does not fit {gradient.shape}")
    tensors = (permuted(gradient, _IMAGES), permuted(x, _IMAGES), permuted(weight, _FILTERS))
    return gradients(*tensors, 1, pad, 1, output_mask=(True, True, True))


def _wanted(mask: tuple[bool, ...] | Unknown) -> tuple[bool | None, ...]:
    # Some masks have no entry for the bias.
    if isinstance(mask, Unknown):
        return (None, None, None)
    if len(mask) not in (2, 3):
        raise CannotModel(f"output_mask {mask!r} is not that of two or three gradients")
    return (*mask, False)[:3]
