"""FLOPs and bytes of convolutions and transposed convolutions."""

from __future__ import annotations

from fastprof.model.call import UNKNOWN, Tensor, Unknown
from fastprof.ops.convolution.parts import convolution_backward, convolution_forward
from fastprof.ops.convolution.sizes import (
    Convolution,
    channels_first,
    filters_first,
    is_transposed,
    sized,
    with_output,
    with_result,
)
from fastprof.ops.cost import CannotModel, Work
from fastprof.ops.parameters import Ints
from fastprof.ops.registry import operators


@operators("""
    conv1d conv2d conv3d _convolution_mode
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
    groups: int | Unknown = UNKNOWN,
    *,
    direction: str,
    result: Tensor | Unknown = UNKNOWN,
) -> Work:
    """x [n, c, h, w] * w [k, c/g, r, s] -> [n, k, p, q], in one to three dimensions.

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
    """
    sizes = sized(x, weight, stride, padding, dilation, groups)
    return _either(with_result(sizes, result), x, weight, bias, direction)


@operators("""
    conv_transpose1d conv_transpose2d conv_transpose3d
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
    groups: int | Unknown = 1,
    dilation: Ints | Unknown = 1,
    *,
    direction: str,
    result: Tensor | Unknown = UNKNOWN,
) -> Work:
    """x [n, c, h, w] * w [c, k/g, r, s] -> [n, k, p, q], transposed, in one to three dimensions.

    FLOPs: forward a multiply-add for each input and weight of its group, 2 n h w c (k/g) r s;
    backward the same for each of the two gradients.
    Bytes: forward input, weight and bias read, output written; backward for each gradient the
    other two read and it written.

    Sizes determine the FLOPs; output and bytes also require the size of the result. In params, C,
    H, W are the call's input and K, P, Q its output, not those of the convolution whose gradient it
    is. Otherwise as `convolution`.
    """
    sizes = sized(
        x,
        weight,
        stride,
        padding,
        dilation,
        groups,
        transposed=True,
        output_padding=output_padding,
        filters=_filters(bias),
    )
    return _either(with_result(sizes, result), x, weight, bias, direction)


@operators("""
    convolution convolution_overrideable
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
    transposed: bool | Unknown = False,
    output_padding: Ints | Unknown = 0,
    groups: int | Unknown = 1,
    *,
    direction: str,
    result: Tensor | Unknown = UNKNOWN,
) -> Work:
    """A convolution, transposed if the flag `transposed` is set.

    FLOPs: as `convolution` or `transposed_convolution`.
    Bytes: as `convolution` or `transposed_convolution`.

    If the flag is unknown, it follows from the channels if they fit only one kind.
    """
    if isinstance(transposed, Unknown):
        transposed = is_transposed(x, weight, _filters(bias))
    if transposed:
        return transposed_convolution(
            x,
            weight,
            bias,
            stride,
            padding,
            output_padding,
            groups,
            dilation,
            direction=direction,
            result=result,
        )
    return convolution(
        x,
        weight,
        bias,
        stride,
        padding,
        dilation,
        groups,
        direction=direction,
        result=result,
    )


@operators("""
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
    groups: int | Unknown = UNKNOWN,
) -> Work:
    """relu(x * w + alpha z + bias), z of the output's shape, in one kernel.

    FLOPs: those of the convolution; fused operations are not counted.
    Bytes: input, weight, bias and z read, output written.

    With z, sizes suffice. There is no backward pass.
    """
    sizes = sized(x, weight, stride, padding, dilation, groups)
    _check_bias(sizes, bias)
    if addend is not None:
        sizes = with_output(sizes, addend)
    return convolution_forward(sizes, x, weight, bias, addend, fused=True)


@operators("conv_tbc")
def conv_tbc(
    x: Tensor, weight: Tensor, bias: Tensor, pad: int | Unknown = 0, *, direction: str
) -> Work:
    """x [t, n, c] * w [s, c, k] + bias [k] -> [q, n, k], along the first dimension.

    FLOPs: as `convolution` of one dimension.
    Bytes: as `convolution` of one dimension.
    """
    return convolution(
        channels_first(x),
        filters_first(weight),
        bias,
        1,
        pad,
        1,
        1,
        direction=direction,
    )


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
