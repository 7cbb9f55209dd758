"""Arguments of a call in other sizes, types and layouts: padded, 16 bits, channels_last."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from math import prod
from typing import Any, Final

from fastprof.analysis.advice.rules.tensor_cores import padded_size
from fastprof.model.call import Arg, Call, Tensor
from fastprof.ops.dtypes import canonical_type, is_floating, item_size

# The dimensions of the operands of products, counted from the last, by their names in params:
# rows N, columns M, inner size K. Dimensions before them are batches.
_PRODUCTS: Final[dict[str, tuple[str, ...]]] = {
    "mm": ("NK", "KM"),
    "addmm": ("NM", "NK", "KM"),
    "bmm": ("NK", "KM"),
    "baddbmm": ("NM", "NK", "KM"),
    "matmul": ("NK", "KM"),
    "linear": ("NK", "MK", "M"),
}
# Those of convolutions, counted from the first: batch N, channels of input C and of output K.
_FORWARD: Final = ("NC", "KC", "K")
_TRANSPOSED: Final = ("NC", "CK", "K")
_CONVOLUTIONS: Final[dict[str, tuple[str, ...]]] = {
    **dict.fromkeys(("conv1d", "conv2d", "conv3d", "convolution", "_convolution"), _FORWARD),
    **dict.fromkeys(("cudnn_convolution", "miopen_convolution"), _FORWARD),
    **dict.fromkeys(("conv_transpose1d", "conv_transpose2d", "conv_transpose3d"), _TRANSPOSED),
}
PRODUCTS: Final = frozenset(_PRODUCTS)
CONVOLUTIONS: Final = frozenset(_CONVOLUTIONS)
# Convolutions whose groups are not argument 6, or that may be transposed.
_GROUPS: Final = {"convolution": 8, "_convolution": 8, "cudnn_convolution": 5}
_TRANSPOSED_AT: Final = {"convolution": 6, "_convolution": 6}
ATTENTION: Final = "scaled_dot_product_attention"
_SCALE: Final = 6  # its argument
_FEW: Final = 4  # the channels of images are not padded
_BYTES: Final = 16  # the longest access of a GPU


def padded(call: Call) -> tuple[Call, str, float] | None:
    """A product, convolution or attention with its sizes padded as advice says.

    Rows of a matrix are padded only where they are contiguous in memory: their number does not
    change how the others are aligned. Of attention, the size of heads is padded; a length of keys
    would need a mask.

    Returns
    -------
    The call, what is padded ("M 50257 to 50304"), and the share of its FLOPs that is useful, 0 to
    1; None if there is nothing to pad.
    """
    if any(arg.name for arg in call.args):  # the places of the others are not known
        return None
    names = _dimensions(call)
    sizes = _sizes(call, names)
    wanted = {
        name: _padded_size(size, call)
        for name, size in sizes.items()
        if name in _padded_names(call, names) and size > _FEW
    }
    wanted = {name: size for name, size in wanted.items() if size != sizes[name]}
    if not wanted:
        return None
    if call.op == ATTENTION and not _has_scale(call):
        call = _with_scale(call, sizes["E"] ** -0.5)

    def enlarged(tensor: Tensor, at: int) -> Tensor:
        shape = list(tensor.shape)
        for dim, name in names.get(at, {}).items():
            if shape[dim] == sizes[name]:
                shape[dim] = wanted.get(name, shape[dim])
        return replace(tensor, shape=tuple(shape), strides=_dense(tuple(shape), tensor.strides))

    text = ", ".join(f"{name} {sizes[name]} to {size}" for name, size in wanted.items())
    return _changed(call, enlarged), text, _useful(call, sizes, wanted)


def in_type(call: Call, dtype: str) -> Call | None:
    """The call with its tensors of float32 in another type; None if there are none."""
    result = _changed(
        call,
        lambda tensor, _: (
            replace(tensor, dtype=dtype) if canonical_type(tensor.dtype) == "float32" else tensor
        ),
    )
    return None if result == call else result


def channels_last(call: Call) -> Call | None:
    """The call with its images, and the filters of a convolution, in channels_last.

    None if no tensor of 4 or 5 dimensions changes.
    """
    images = [
        arg.value for arg in call.args if isinstance(arg.value, Tensor) and _is_image(arg.value)
    ]
    if not images or images[0] != call.args[0].value:
        return None
    result = _changed(
        call,
        lambda tensor, _: (
            replace(tensor, strides=_last(tensor.shape)) if _is_image(tensor) else tensor
        ),
    )
    return None if result == call else result


def _is_image(tensor: Tensor) -> bool:
    """Whether it is contiguous with channels and extents, so that channels_last differs."""
    shape = tensor.shape
    if len(shape) not in (4, 5) or shape[1] == 1 or prod(shape[2:]) == 1:
        return False
    return tensor.strides is None or tensor.strides == _dense(shape, None)


def _last(shape: tuple[int, ...]) -> tuple[int, ...]:
    order = [1, *range(len(shape) - 1, 1, -1), 0]
    return _strides(shape, order)


def _dense(shape: tuple[int, ...], like: tuple[int, ...] | None) -> tuple[int, ...]:
    """Strides without gaps, in the order of other strides; their expanded dimensions stay so."""
    dims = range(len(shape) - 1, -1, -1)
    if like is None or len(like) != len(shape):
        return _strides(shape, list(dims))
    strides = _strides(shape, sorted((d for d in dims if like[d]), key=lambda d: like[d]))
    return tuple(step if like[d] else 0 for d, step in enumerate(strides))


def _strides(shape: tuple[int, ...], order: list[int]) -> tuple[int, ...]:
    strides, step = [0] * len(shape), 1
    for dim in order:
        strides[dim] = step
        step *= shape[dim]
    return tuple(strides)


def _changed(call: Call, change: Callable[[Tensor, int], Tensor]) -> Call:
    """The call with other tensors; `change` receives a tensor and the place of its argument."""

    def of(value: Any, at: int) -> Any:
        if isinstance(value, Tensor):
            return change(value, at) if value.dtype != "" else value
        return tuple(of(item, at) for item in value) if isinstance(value, tuple) else value

    args = tuple(replace(arg, value=of(arg.value, i)) for i, arg in enumerate(call.args))
    return replace(call, args=args)


def _dimensions(call: Call) -> dict[int, dict[int, str]]:
    """By argument, the name of each dimension, counted from the first; {} if it is not known."""
    values = [arg.value for arg in call.args]
    result: dict[int, dict[int, str]] = {}
    if call.op == ATTENTION:
        return {
            at: {len(value.shape) - 1: name}
            for at, (value, name) in enumerate(zip(values, ("E", "E", "V"), strict=False))
            if isinstance(value, Tensor)
        }
    if call.op in _CONVOLUTIONS:
        at = _GROUPS.get(call.op, 6)
        if len(values) > at and values[at] != 1:
            return {}
        layout = _CONVOLUTIONS[call.op]
        if call.op in _TRANSPOSED_AT and values[_TRANSPOSED_AT[call.op]]:
            layout = _TRANSPOSED
    else:
        layout = _PRODUCTS.get(call.op, ())
    for at, (value, names) in enumerate(zip(values, layout, strict=False)):
        if isinstance(value, Tensor) and value.dtype != "":
            n = len(value.shape)
            first = n - len(names) if call.op in _PRODUCTS else 0
            if n < len(names) and at != 0:
                return {}
            result[at] = {first + i: name for i, name in enumerate(names) if first + i >= 0}
    return result


def _sizes(call: Call, names: Mapping[int, Mapping[int, str]]) -> dict[str, int]:
    """Sizes by name; a size of 1 of one operand is expanded."""
    sizes: dict[str, int] = {}
    for at, dims in names.items():
        for dim, name in dims.items():
            sizes[name] = max(sizes.get(name, 1), call.args[at].value.shape[dim])
    return sizes


def _padded_names(call: Call, names: Mapping[int, Mapping[int, str]]) -> set[str]:
    if call.op == ATTENTION:
        return {"E", "V"}
    if call.op in CONVOLUTIONS:
        return {"C", "K"}
    result = {"K", "M"}
    for at, dims in names.items():
        strides = call.args[at].value.strides
        if strides is not None:
            result |= {name for dim, name in dims.items() if strides[dim] == 1}
    return result


def _padded_size(size: int, call: Call) -> int:
    types = [arg.value.dtype for arg in call.args if isinstance(arg.value, Tensor)]
    known = [name for name in map(canonical_type, types) if name and is_floating(name)]
    if known and item_size(known[0]) == 1 and size % _BYTES:
        return -(-size // _BYTES) * _BYTES
    return padded_size(size) if size % 8 else size


def _useful(call: Call, sizes: Mapping[str, int], wanted: Mapping[str, int]) -> float:
    """FLOPs of the call over those with padded sizes."""
    if call.op == ATTENTION:  # products of E and of V, of the same length
        whole = sum(wanted.get(name, sizes[name]) for name in ("E", "V"))
        return (sizes["E"] + sizes["V"]) / whole
    return prod(sizes[name] / size for name, size in wanted.items())


def _has_scale(call: Call) -> bool:
    return len(call.args) > _SCALE and isinstance(call.args[_SCALE].value, float)


def _with_scale(call: Call, scale: float) -> Call:
    """`ATTENTION` with a scale: by default it is of the size of heads, which padding changes."""
    values = [arg.value for arg in call.args]
    given: list[Any] = [*values, *(None, 0.0, False)[max(len(values) - 3, 0) :]][:_SCALE]
    args = tuple(Arg("", value) for value in (*given, scale, *values[_SCALE + 1 :]))
    return replace(call, args=args)
