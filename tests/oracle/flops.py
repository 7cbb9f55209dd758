"""FLOPs of products, convolutions and attention, from the sizes of their own arguments.

A multiply-add counts as two. Sizes are those of `Input Dims` or of `sizes =`; non-tensors have an
empty list. The result is None if the arguments do not determine it.
"""

import json
from math import prod
from typing import Any

from oracle.capture import Range

# The position of the left factor among the arguments; the right one follows.
PRODUCTS = {
    "mm": 0, "bmm": 0, "matmul": 0, "mv": 0, "dot": 0, "_int_mm": 0, "_scaled_mm": 0,
    "addmm": 1, "addmm_": 1, "_addmm_activation": 1, "baddbmm": 1, "baddbmm_": 1, "addbmm": 1,
    "addmv": 1, "addmv_": 1,
}  # fmt: skip

# Input and weight are the first two arguments.
CONVOLUTIONS = {
    *("convolution", "_convolution", "cudnn_convolution", "miopen_convolution"),
    *("miopen_depthwise_convolution", "mkldnn_convolution", "thnn_conv2d"),
    *("_slow_conv2d_forward", "slow_conv3d_forward", "conv_depthwise3d", "_conv_depthwise2d"),
    *("cudnn_convolution_relu", "conv1d", "conv2d", "conv3d"),
}
# The positions of stride, padding, dilation and transposed, if present.
_FORMS = {
    "convolution": (3, 4, 5, 6),
    "_convolution": (3, 4, 5, 6),
    "conv1d": (3, 4, 5, None),
    "conv2d": (3, 4, 5, None),
    "conv3d": (3, 4, 5, None),
    "cudnn_convolution": (3, 2, 4, None),
    "miopen_convolution": (4, 3, 5, None),
    "miopen_depthwise_convolution": (4, 3, 5, None),
}
# The positions of the gradient, the input, the weight and the mask of wanted gradients.
BACKWARD_CONVOLUTIONS = {
    "convolution_backward": (0, 1, 2, 10),
    "cudnn_convolution_backward": (1, 0, 2, 10),
    "miopen_convolution_backward": (1, 0, 2, 9),
}
ONE_GRADIENT = ("_backward_input", "_backward_weight")

# The positions of query, key and value, and the number of products of that size.
ATTENTIONS = {
    "scaled_dot_product_attention": (0, 2),
    "_scaled_dot_product_attention": (0, 2),
    "_scaled_dot_product_flash_attention": (0, 2),
    "_scaled_dot_product_efficient_attention": (0, 2),
    "_scaled_dot_product_cudnn_attention": (0, 2),
    "_scaled_dot_product_flash_attention_backward": (1, 5),
    "_scaled_dot_product_efficient_attention_backward": (1, 5),
    "_scaled_dot_product_cudnn_attention_backward": (1, 5),
}

_COUNTED = {
    f"aten::{name}"
    for names in (PRODUCTS, CONVOLUTIONS, BACKWARD_CONVOLUTIONS, ATTENTIONS)
    for name in names
}


def bare(name: str) -> str:
    """The operator of a range; "" if it is not an ATen operator."""
    return name.removeprefix("aten::") if name.startswith("aten::") else ""


def is_counted(each: Range) -> bool:
    """Whether a range is a product, a convolution or attention."""
    return each.name in _COUNTED and each.kind in ("op", "marker")


def flops(each: Range, gradient: list[int] | None = None) -> int | None:
    """FLOPs of a range that `is_counted`.

    gradient : the sizes of a convolution's result, if its own arguments do not determine them
    """
    name, dims = bare(each.name), each.dims
    if not dims:
        return None
    if name in PRODUCTS:
        return _product(*dims[PRODUCTS[name] : PRODUCTS[name] + 2])
    if name in ATTENTIONS:
        return _attention(dims, *ATTENTIONS[name])
    if name in CONVOLUTIONS:
        return _convolution(each, name, gradient)
    return _convolution_backward(each, name)


def _product(left: list[int], right: list[int] | None = None) -> int | None:
    """[.., M, K] x [.., K, N]; vectors lack M or N. Operands are broadcast."""
    if not left or not right:
        return None
    n = right[-1] if len(right) > 1 else 1
    inner = right[-2] if len(right) > 1 else right[0]
    rows = left[-2] if len(left) > 1 else 1
    if inner != left[-1]:
        return None
    batch = left[:-2] if prod(left[:-2]) >= prod(right[:-2]) else right[:-2]
    return 2 * prod(batch) * rows * left[-1] * n


def _attention(dims: list[Any], first: int, products: int) -> int | None:
    """query [B, H, Q, D], key [B, h, K, D], value [B, h, K, E]: Q K D and Q K E a head of query."""
    query, key, value = dims[first : first + 3]
    if len(query) != 4 or len(key) != 4 or len(value) != 4:
        return None
    each_head = query[2] * key[2]
    with_keys = products - products // 2  # backward: scores again, dQ, dK; and dP, dV
    per_head = each_head * (with_keys * query[3] + products // 2 * value[3])
    return 2 * query[0] * query[1] * per_head


def _integers(each: Range, place: int | None) -> list[int] | None:
    """A list of integers among the values; a single one is a list of one."""
    if place is None or not each.concrete or place >= len(each.concrete):
        return None
    text = each.concrete[place]
    if not isinstance(text, str) or not text:
        return None
    try:
        value = json.loads(text.lower())
    except ValueError:
        return None
    return value if isinstance(value, list) else [value]


def _convolution(each: Range, name: str, gradient: list[int] | None) -> int | None:
    source, weight = each.dims[0], each.dims[1]
    if len(source) < 3 or len(weight) != len(source):
        return None
    taps = prod(weight[1:])
    form = _FORMS.get(name, (None,) * 4)
    stride, padding, dilation, transposed = (_integers(each, at) for at in form)
    if transposed and transposed[0]:
        return 2 * prod(source) * taps
    if gradient:
        return 2 * prod(gradient) * taps
    space = len(source) - 2
    if stride is None or padding is None or dilation is None:
        return None
    stride, padding, dilation = (
        each * space if len(each) == 1 else each for each in (stride, padding, dilation)
    )
    places = [
        (size + 2 * pad - step * (window - 1) - 1) // jump + 1
        for size, pad, step, window, jump in zip(
            source[2:], padding, dilation, weight[2:], stride, strict=True
        )
    ]
    return 2 * source[0] * weight[0] * prod(places) * taps


def _convolution_backward(each: Range, name: str) -> int | None:
    """Each gradient of input or weight costs as much as the forward product."""
    grad_place, _, weight_place, mask_place = BACKWARD_CONVOLUTIONS[name]
    gradient, weight = each.dims[grad_place], each.dims[weight_place]
    if len(gradient) < 3 or len(weight) < 3:
        return None
    parts = [r for r in each.children if bare(r.name).endswith(ONE_GRADIENT)]
    mask = _integers(each, mask_place)
    wanted = len(parts) or (sum(map(bool, mask[:2])) if mask else None)
    if wanted is None:
        return None
    source = each.dims[BACKWARD_CONVOLUTIONS[name][1]]
    transposed = name == "convolution_backward" and _integers(each, 7)
    positions = prod(source) if transposed and transposed[0] else prod(gradient)
    return 2 * positions * prod(weight[1:]) * wanted
