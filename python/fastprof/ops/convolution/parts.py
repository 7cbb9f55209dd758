"""The parts of a convolution's work: forward pass, bias and gradients."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from fastprof.model.call import Tensor
from fastprof.ops.convolution.sizes import Convolution
from fastprof.ops.cost import Cost, Part, Work, add_known
from fastprof.ops.tensor import byte_count, elements, tensor_bytes

# Libraries also implement convolutions as matrix products.
_CONVOLUTION: Final = frozenset({"convolution", "gemm"})
_ELEMENTWISE: Final = frozenset({"elementwise"})
_REDUCTION: Final = frozenset({"reduction"})


def convolution_forward(
    sizes: Convolution,
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    addend: Tensor | None = None,
    *,
    fused: bool = False,
) -> Work:
    """Input (the part the kernel covers), weight, bias and addend read; output written.

    A bias that is not `fused` is a separate part: one addition for each output, which is read and
    written again.
    """
    read = [tensor_bytes(tensor) for tensor in (weight, bias, addend) if tensor is not None]
    read.append(read_bytes(sizes, x))
    main = Part(
        "main",
        Cost(sizes.flops, add_known(_output_bytes(sizes), *read), sizes.exact),
        sizes.params,
        kernels=_CONVOLUTION,
        no_tensor_cores=sizes.no_tensor_cores,
    )
    if bias is None or fused:
        return Work((main,))
    written = _output_bytes(sizes)
    added = Cost(sizes.additions, add_known(written, written), sizes.exact)
    part = Part("bias", added, sizes.bias_params, "bias", _ELEMENTWISE, optional=True)
    return Work((main, part))


def convolution_backward(
    sizes: Convolution,
    x: Tensor,
    weight: Tensor,
    gradient: Tensor | None = None,
    wanted: tuple[bool | None, ...] = (None, None, None),
) -> Work:
    """Gradients of input, weight and bias.

    Parameters
    ----------
    gradient : Tensor, optional
        The output's gradient; by default, of the output's size and type.
    wanted : tuple of bool or None
        Whether the gradients of input, weight and bias are computed; None: if a kernel does.
    """
    read = _output_bytes(sizes) if gradient is None else tensor_bytes(gradient)
    makers: tuple[Callable[[], Part], ...] = (
        lambda: input_gradient(sizes, add_known(read, tensor_bytes(weight), _whole_bytes(x))),
        lambda: weight_gradient(sizes, add_known(read, read_bytes(sizes, x), _whole_bytes(weight))),
        lambda: _bias_gradient(sizes, read),
    )
    parts = []
    for make, flag in zip(makers, wanted, strict=True):
        if flag is not False:
            parts.append(replace(make(), optional=flag is None))
    if not parts:
        parts = [Part("main", Cost(0, 0), sizes.params)]
    return Work(tuple(parts))


def input_gradient(sizes: Convolution, moved: int | None) -> Part:
    """The gradient of the input, from the output's gradient and the weight."""
    return _gradient("dgrad", sizes, moved)


def weight_gradient(sizes: Convolution, moved: int | None) -> Part:
    """The gradient of the weight, from the output's gradient and the input."""
    return _gradient("wgrad", sizes, moved)


def _gradient(role: str, sizes: Convolution, moved: int | None) -> Part:
    # The names of cuDNN's kernels identify the gradient.
    return Part(
        role,
        Cost(sizes.flops, moved, sizes.exact),
        sizes.params,
        kernels=_CONVOLUTION,
        layout=role,
        no_tensor_cores=sizes.no_tensor_cores,
    )


def _bias_gradient(sizes: Convolution, read: int | None) -> Part:
    written = None if sizes.filters is None else byte_count(sizes.filters, sizes.dtype)
    cost = Cost(sizes.additions, add_known(read, written), sizes.exact)
    return Part("bias", cost, sizes.bias_params, "bias", _REDUCTION)


def _output_bytes(sizes: Convolution) -> int | None:
    return None if sizes.outputs is None else byte_count(sizes.outputs, sizes.dtype)


def read_bytes(sizes: Convolution, x: Tensor) -> int | None:
    """Bytes of the input that the forward pass and the weight gradient read.

    A kernel smaller than its stride skips the rest.
    """
    pixels, channels = sizes.pixels_read, sizes.channels
    whole = tensor_bytes(x)
    if whole is None or pixels is None or channels is None:
        return whole
    met = byte_count(sizes.batch * channels * pixels, x.dtype)
    return whole if met is None else min(whole, met)


def _whole_bytes(tensor: Tensor) -> int | None:
    # Outputs have no expanded dimensions.
    return byte_count(elements(tensor.shape), tensor.dtype)
