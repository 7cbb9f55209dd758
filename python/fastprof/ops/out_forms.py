"""Calls of ATen operators that are given the tensors for their results: `mm(a, b, out)`.

Source: torch's schemas, in which every `out` overload has its results behind all other arguments.
A trace writes them there, under the name of the plain operator.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

from fastprof.call import Call, Tensor

__all__ = ["ATEN", "without_results"]

ATEN: Final = "aten"

# Operators that have no such overload, and tensors that may be left out: one that is not understood
# is no result.
_NAMES: Final = (
    "_batch_norm_impl_index _batch_norm_impl_index_backward "
    "_batch_norm_with_update_functional _convolution_mode _cudnn_attention_forward "
    "_efficient_attention_backward _efficient_attention_forward _embedding_bag_backward "
    "_flash_attention_forward _flash_attention_forward_no_dropout_inplace _fused_rms_norm "
    "_fused_rms_norm_backward _grouped_mm _mixed_dtypes_linear "
    "_native_batch_norm_legit_functional _scaled_dot_product_attention_math "
    "_scaled_dot_product_attention_math_for_mps _scaled_dot_product_cudnn_attention "
    "_scaled_dot_product_efficient_attention _scaled_dot_product_flash_attention "
    "_scaled_dot_product_flash_attention_for_cpu "
    "_scaled_dot_product_flash_attention_for_cpu_backward "
    "_scaled_dot_product_fused_attention_overrideable _scaled_grouped_mm "
    "_scaled_grouped_mm_v2 _thnn_fused_lstm_cell_backward _unsafe_index _unsafe_index_put "
    "_unsafe_masked_index _unsafe_masked_index_put_accumulate batch_norm batch_norm_backward "
    "bilinear conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d "
    "cross_entropy_loss embedding_bag group_norm gru_cell instance_norm layer_norm lstm_cell "
    "miopen_convolution_add_relu miopen_convolution_relu nll_loss_nd rms_norm rnn_relu_cell "
    "rnn_tanh_cell scaled_dot_product_attention "
)
_WITHOUT: Final = frozenset(_NAMES.split())


def without_results(call: Call) -> Iterator[tuple[Call, Tensor | None]]:
    """The call without the last of its tensors, without the last two, and so on.

    Yields
    ------
    call, given : Call, Tensor or None
        What is left of the call, and the first tensor taken from it (None where that is a list): if
        the rest is all that the operator needs, the tensor is its result, and has its type. Its
        size is `Call.result` of the rest, but where it has no elements: torch makes it larger.
        Nothing for a call that cannot have its results among its arguments: one in place, or of no
        operator of ATen.
    """
    name = call.op.split(".", 1)[0]  # without the overload
    in_place = name.endswith("_") and not name.endswith("__")
    if call.mod != ATEN or in_place or name in _WITHOUT:
        return
    for n in range(len(call.args) - 1, 0, -1):
        last = call.args[n]
        if last.name or not _may_be_result(last.value):
            return
        given = last.value if isinstance(last.value, Tensor) else None
        sized = given is not None and 0 not in given.shape
        yield replace(call, args=call.args[:n], result=given if sized else call.result), given


def _may_be_result(value: Any) -> bool:
    if isinstance(value, tuple):
        return bool(value) and all(map(_may_be_result, value))
    return isinstance(value, Tensor) and bool(value.shape or value.dtype)
