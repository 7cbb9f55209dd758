"""Numbers and lists that traces lack: recorders before torch 2.1 write no values of arguments.

Stride and padding of a convolution follow from the sizes of its input and its result, normalised
dimensions from those of the weights. Other numbers are the defaults of torch's modules. The script
marks them with `?`. The ranges of emit_nvtx and the first traces of torch.profiler have no types:
tensors of operators on floating-point numbers have that of the arithmetic of their kernels.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from fastprof.model.call import Call, Tensor, Unknown

_SUMS: Final = ("add", "add_", "sub", "sub_", "rsub")
_WEIGHTED: Final = ("addmm", "addmm_", "baddbmm", "baddbmm_", "addmv", "addbmm")
_LIKE: Final = ("ones_like", "zeros_like", "empty_like", "rand_like", "randn_like")
_LAYOUT: Final = dict.fromkeys(range(1, 6), "None")
# By operator, the values of arguments that a trace may lack: none changes the size of the result.
_VALUES: Final[Mapping[str, Mapping[int, str]]] = {
    **{key: {2: "1"} for key in _SUMS},
    **{key: {3: "1", 4: "1"} for key in _WEIGHTED},
    **{key: {3: "1"} for key in ("addcmul", "addcmul_", "addcdiv", "addcdiv_")},
    **dict.fromkeys(_LIKE, _LAYOUT),
    **{key: {1: "0"} for key in ("fill_", "zero_")},
    **{key: {1: "0", 2: "1"} for key in ("clamp", "clamp_")},
    **{key: {1: "2"} for key in ("pow", "pow_")},
    **{key: {1: "0.5", 2: "True"} for key in ("dropout", "dropout_")},
    **{key: {1: "0.01"} for key in ("leaky_relu", "leaky_relu_")},
    # Empty lists are recorded as lists without sizes: without amsgrad, without momentum.
    **{op: {4: "[]"} for op in ("_fused_adam_", "_fused_adamw_")},
    "_fused_sgd_": {2: "[]"},
    "contiguous": {1: "0"},
    "clone": {1: "None"},
    "copy_": {2: "False"},
    "threshold_backward": {2: "0"},
    "nan_to_num": {1: "0.0"},
    "batch_norm": {5: "True", 6: "0.1", 7: "1e-05", 8: "True"},
    "layer_norm": {4: "1e-05", 5: "True"},
    "embedding": {2: "-1", 3: "False", 4: "False"},
}
# Operators whose tensors are of one floating-point type.
_FLOATING: Final = frozenset(
    {
        *("mm", "addmm", "bmm", "baddbmm", "linear", "matmul", "conv1d", "conv2d", "conv3d"),
        *("relu", "relu_", "gelu", "silu", "silu_", "sigmoid", "tanh", "threshold_backward"),
        *("batch_norm", "layer_norm", "softmax", "log_softmax", "_softmax", "_log_softmax"),
        *("add", "add_", "sub", "sub_", "mul", "mul_", "addcmul_", "addcdiv_", "sqrt", "exp"),
        *("max_pool2d", "avg_pool2d", "adaptive_avg_pool2d", "mean", "dropout"),
    }
)
_TYPES: Final = {
    "fp32": "float32",
    "tf32": "float32",
    "fp16": "float16",
    "bf16": "bfloat16",
    "fp64": "float64",
}
_CONVOLUTIONS: Final = ("conv1d", "conv2d", "conv3d")
_STRIDES: Final = range(1, 9)


def with_types(call: Call, compute: str | None) -> Call:
    """The call with types of its tensors if none is recorded, and its operator and kernels tell.

    compute : the arithmetic of its kernels: fp32, tf32, fp16, bf16, fp64; None if unknown
    """
    values = [arg.value for arg in call.args]
    tensors = [value for value in values if isinstance(value, Tensor)]
    name = _TYPES.get(compute or "")
    if name is None or call.mod != "aten" or call.op not in _FLOATING:
        return call
    if any(tensor.dtype is not None for tensor in tensors):
        return call
    args = tuple(
        replace(arg, value=replace(arg.value, dtype=name))
        if isinstance(arg.value, Tensor) and arg.value.shape
        else arg
        for arg in call.args
    )
    return replace(call, args=args)


def assumed(call: Call) -> dict[int, str]:
    """Expressions for arguments that are not recorded, by their place."""
    values = [arg.value for arg in call.args]
    known: Mapping[int, str] = _VALUES.get(call.op, {})
    if call.op == "layer_norm" and len(values) > 2 and isinstance(values[2], Tensor):
        known = {**known, 1: repr(list(values[2].shape))}
    if call.op in _CONVOLUTIONS:
        known = _convolution(values, call.result)
        if values[2:3] == [Tensor(())]:  # a bias has a size
            known = {**known, 2: "None"} if known else {}
    return {at: text for at, text in known.items() if at < len(values) and _lacks(values[at])}


def _lacks(value: Any) -> bool:
    """Whether an argument is not recorded: a list, or a number without a value."""
    return isinstance(value, Unknown) or value in (Tensor(()), Tensor((), ""))


def _oddness(extent: int, stride: int, padding: int) -> int:
    """How far from what models use: patches side by side, or half of the filter as padding."""
    return 0 if (stride, padding) == (extent, 0) else 1 + abs(2 * padding - (extent - 1))


def _convolution(values: Sequence[Any], result: Tensor | None) -> dict[int, str]:
    """Stride, padding, dilation and groups by the sizes of input, filters and result."""
    if result is None or not all(isinstance(value, Tensor) for value in values[:2]):
        return {}
    x, filters, y = values[0].shape, values[1].shape, result.shape
    n = len(filters) - 2
    if not len(x) == len(y) == n + 2 or not filters[1] or x[1] % filters[1]:
        return {}
    choices = (
        (_oddness(filters[2], stride, padding), stride, padding)
        for stride in (*_STRIDES, filters[2])
        for padding in range(max(filters[2:]) + 1)
    )
    for _, stride, padding in sorted(choices):
        sizes = (
            (size + 2 * padding - extent) // stride + 1
            for size, extent in zip(x[2:], filters[2:], strict=True)
        )
        if tuple(sizes) == y[2:]:
            steps = (stride, padding, 1)
            return {
                **{at: repr([step] * n) for at, step in enumerate(steps, 3)},
                6: str(x[1] // filters[1]),
            }
    return {}
