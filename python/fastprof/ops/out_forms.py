"""Calls of the `out` overloads of ATen operators: `mm(a, b, out)`.

Source: torch's schemas, in which the out tensors of every such overload are the last arguments.
Traces record them there, under the name of the plain operator.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

from fastprof.model.call import Call, Tensor

ATEN: Final = "aten"

# Operators without such an overload but with optional tensor arguments: an unmatched trailing
# tensor is no result.
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

# Operators with several results, by the maximum number of out tensors.
_SEVERAL: Final = (
    (
        2,
        "_aminmax _ctc_loss _cudnn_ctc_loss _fused_dropout _linalg_eigh "
        "_native_multi_head_attention _thnn_fused_gru_cell _unique _weight_norm_interface "
        "_weight_norm_interface_backward adaptive_max_pool2d adaptive_max_pool3d aminmax "
        "batch_norm_gather_stats batch_norm_gather_stats_with_counts batch_norm_stats "
        "batch_norm_update_stats cudnn_grid_sampler_backward cummax cummin "
        "fractional_max_pool2d fractional_max_pool3d frexp geqrf grid_sampler_2d_backward "
        "grid_sampler_3d_backward kthvalue linalg_cholesky_ex linalg_eig linalg_inv_ex "
        "linalg_qr linalg_solve_ex log_sigmoid_forward matmul_backward max "
        "max_pool2d_with_indices max_pool3d_with_indices median min miopen_ctc_loss mode "
        "multilabel_margin_loss_forward nanmedian native_dropout nll_loss2d_forward "
        "nll_loss_forward qr sort std_mean topk triangular_solve var_mean",
    ),
    (
        3,
        "_linalg_det _linalg_svd _native_batch_norm_legit "
        "_native_batch_norm_legit_no_training _slow_conv2d_backward _thnn_fused_lstm_cell "
        "_thnn_fused_lstm_cell_backward_impl _transform_bias_rescale_qkv _unique2 "
        "convolution_backward convolution_backward_overrideable cudnn_batch_norm_backward "
        "linalg_ldl_factor_ex linalg_lu_factor_ex linear_backward miopen_batch_norm "
        "miopen_batch_norm_backward mkldnn_linear_backward native_batch_norm "
        "native_batch_norm_backward native_group_norm native_group_norm_backward "
        "native_layer_norm native_layer_norm_backward unique_consecutive unique_dim "
        "unique_dim_consecutive",
    ),
    (
        4,
        "_batch_norm_no_update _batch_norm_with_update _cudnn_rnn_backward _embedding_bag "
        "_embedding_bag_forward_only _linalg_slogdet _linalg_solve_ex "
        "batch_norm_backward_reduce cudnn_batch_norm miopen_rnn_backward mkldnn_rnn_layer",
    ),
    (5, "_cudnn_rnn _thnn_fused_gru_cell_backward miopen_rnn"),
    (7, "mkldnn_rnn_layer_backward"),
)
_MOST: Final = {name: n for n, names in _SEVERAL for name in names.split()}


def without_results(call: Call) -> Iterator[tuple[Call, Tensor | None]]:
    """The call without its trailing out tensors: without one, then up to the number of results.

    Yields
    ------
    call, given : Call, Tensor or None
        The call without them, and the first removed tensor (None for a list). If the remaining
        arguments match the operator, that tensor is its result and has its type. It becomes
        `Call.result`, unless it has no elements: torch resizes such a tensor.
        Yields nothing for in-place operators and operators outside ATen.
    """
    name = call.op.split(".", 1)[0]  # without the overload
    in_place = name.endswith("_") and not name.endswith("__")
    if call.mod != ATEN or in_place or name in _WITHOUT:
        return
    least = max(len(call.args) - _MOST.get(name, 1), 1)
    for n in range(len(call.args) - 1, least - 1, -1):
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
