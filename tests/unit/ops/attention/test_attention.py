"""Scaled dot-product attention: FLOPs, bytes, params, forward and backward, in every layout."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fastprof.model.call import UNKNOWN, Tensor
from fastprof.ops import work
from fastprof.ops.registry import why_unknown
from unit.ops.ops_examples import Example, aten, bf16, fp16, fp32, int64, python, sizes, tensor

# Two sequences of 3 queries and 5 keys; 4 heads of queries of 8, which share 2 heads of keys;
# values of 6. Each of the 2 * 4 matrices of scores is [3, 5].
Q, K, V = fp16(2, 4, 3, 8), fp16(2, 2, 5, 8), fp16(2, 2, 5, 6)
OUT, LSE = fp16(2, 4, 3, 6), fp32(2, 4, 3)
SCORES = 2 * 4 * 3 * 5
OPERANDS = 2 * (2 * 4 * 3 * 8 + 2 * 2 * 5 * 8 + 2 * 2 * 5 * 6)
WRITTEN = 2 * (2 * 4 * 3 * 6)
SUMS = 4 * (2 * 4 * 3)
FORWARD = (2 * SCORES * (8 + 6), OPERANDS + WRITTEN + SUMS)
BACKWARD = (2 * SCORES * (8 + 6 + 6 + 8 + 8), 2 * OPERANDS + 2 * WRITTEN + SUMS)
MASK = tensor("bool", 3, 5)
BIAS = fp16(2, 4, 3, 5)
TEXT = "[2,4,3,8]fp16;[2,2,5,8]fp16;[2,2,5,6]fp16"

# The same with the heads third, as kernels have it.
LAST = fp16(2, 3, 4, 8), fp16(2, 5, 2, 8), fp16(2, 5, 2, 6)
LAST_OUT = fp16(2, 3, 4, 6)

# And with concatenated sequences.
ENDS = fp16(6, 4, 8), fp16(10, 2, 8), fp16(10, 2, 6)
ENDS_OUT = fp16(6, 4, 6)
STARTS = tensor("int32", 3)

SDPA = "scaled_dot_product_attention"
FLASH = "flash_attn.flash_attn_interface"


def shapes(*tensors: Tensor) -> list[tuple[int, ...]]:
    return [each.shape for each in tensors]


def both(call, forward=FORWARD, backward=BACKWARD, params=None):
    return [Example(call, *forward, params), Example(call, *backward, params, direction="bprop")]


HEADS_FIRST = [
    *both(python("torch.nn.functional", SDPA, Q, K, V), params=TEXT),
    *both(python("torch._C._nn", SDPA, query=Q, key=K, value=V, is_causal=True, enable_gqa=True)),
    *both(aten(SDPA, Q, K, V, None, 0.0, True, None, True), params=TEXT),
    *both(aten("_scaled_dot_product_flash_attention", Q, K, V, 0.0, False, False, 0.1)),
    *both(aten("_scaled_dot_product_flash_attention_for_cpu", Q, K, V, 0.0, False, None, None)),
    *both(aten("_scaled_dot_product_efficient_attention", Q, K, V, None, True, 0.0, False, None)),
    *both(aten("_scaled_dot_product_cudnn_attention", Q, K, V, None, True, 0.0, False, False)),
    *both(aten("_scaled_dot_product_fused_attention_overrideable", Q, K, V, None, 0.0, False)),
    *both(aten("_triton_scaled_dot_attention", Q, K, V, 0.0)),
    *both(aten("_cudnn_attention_forward", Q, K, V, None, None, None, 3, 5, True)),
    # No softmax sums, a mask of one byte per element.
    Example(
        aten("_scaled_dot_product_efficient_attention", Q, K, V, BIAS, False),
        FORWARD[0],
        OPERANDS + WRITTEN + 2 * SCORES,
    ),
    Example(
        python("torch.nn.functional", SDPA, Q, K, V, MASK, 0.1),
        FORWARD[0],
        FORWARD[1] + 3 * 5,
        f"{TEXT};[3,5]bool",
    ),
    # One head of keys for all queries, and a query without a batch.
    Example(
        python("torch.nn.functional", SDPA, fp32(4, 3, 8), fp32(1, 5, 8), fp32(1, 5, 8)),
        2 * (4 * 3 * 5) * (8 + 8),
        4 * (4 * 3 * 8 + 5 * 8 + 5 * 8 + 4 * 3 * 8) + 4 * (4 * 3),
    ),
    Example(
        python("torch.nn.functional", SDPA, fp32(3, 8), fp32(5, 8), fp32(5, 8)),
        2 * (3 * 5) * (8 + 8),
        4 * (3 * 8 + 5 * 8 + 5 * 8 + 3 * 8) + 4 * 3,
    ),
    # Sizes only.
    Example(sizes(SDPA, *shapes(Q, K, V), (), (), ()), FORWARD[0], None),
    Example(sizes(SDPA, *shapes(Q, K, V), (3, 5), ()), FORWARD[0], None),
    Example(sizes(SDPA, *shapes(Q, K, V)), BACKWARD[0], None, direction="bprop"),
    # A sequence without keys.
    Example(
        python("torch.nn.functional", SDPA, fp16(1, 1, 3, 8), fp16(1, 1, 0, 8), fp16(1, 1, 0, 8)),
        0,
        2 * (3 * 8 + 0 + 0 + 3 * 8) + 4 * 3,
    ),
]

# The softmax is an output; intermediates are not counted.
BY_STEPS = [
    example
    for name in ("_scaled_dot_product_attention_math", "_scaled_dot_product_attention_math_for_mps")
    for example in both(
        aten(name, Q, K, V, None, 0.0, True, None, None, True),
        (FORWARD[0], OPERANDS + WRITTEN + 2 * SCORES),
        (2 * SCORES * (8 + 6 + 6 + 8), 2 * OPERANDS + WRITTEN + 2 * SCORES),
    )
]

HEADS_LAST = [
    *both(python(FLASH, "flash_attn_func", *LAST, 0.0, None, True)),
    *both(python(FLASH, "flash_attn_func", q=LAST[0], k=LAST[1], v=LAST[2], causal=True)),
    *both(aten("flash_attn::_flash_attn_forward", *LAST, 0.0, 0.1, True, -1, -1, 0.0, None)),
    *both(sizes("FlashAttnFunc", *shapes(*LAST), (), ()), (FORWARD[0], None), (BACKWARD[0], None)),
    *both(aten("_flash_attention_forward", *LAST, None, None, 3, 5, 0.0, False, False)),
    *both(
        aten("_flash_attention_forward_no_dropout_inplace", LAST_OUT, *LAST, None, None, 3, 5, 0.0)
    ),
    *both(aten("_efficient_attention_forward", *LAST, None, None, None, None, None, 0.0, 0, True)),
    *both(aten("xformers::efficient_attention_forward_cutlass", *LAST, None, None, None, -1)),
    *both(aten("xformers_flash::flash_fwd", *LAST, None, None, 3, 5, 0.0, 0.1, True, False)),
    Example(
        aten("_efficient_attention_forward", *LAST, BIAS, None, None, 3, 5),
        FORWARD[0],
        FORWARD[1] + 2 * SCORES,
    ),
]

# Queries, keys and values in one tensor: [2, 7, 3, 4, 8], matrices of scores [7, 7].
PACKED = (2 * (2 * 4 * 7 * 7) * (8 + 8), 2 * (4 * 2 * 7 * 4 * 8) + 4 * (2 * 7 * 4))
PACKED_BACK = (2 * (2 * 4 * 7 * 7) * (5 * 8), 2 * (8 * 2 * 7 * 4 * 8) + 4 * (2 * 7 * 4))
# Queries [2, 3, 4, 8], keys and values [2, 5, 2, 2, 8].
TWO = (2 * SCORES * (8 + 8), 2 * (2 * 3 * 4 * 8 + 2 * 5 * 2 * 2 * 8 + 2 * 3 * 4 * 8) + SUMS)
TWO_BACK = (2 * SCORES * (5 * 8), 2 * (4 * 2 * 3 * 4 * 8 + 2 * 2 * 5 * 2 * 2 * 8) + SUMS)
IN_ONE = [
    *both(python(FLASH, "flash_attn_qkvpacked_func", fp16(2, 7, 3, 4, 8)), PACKED, PACKED_BACK),
    *both(aten("FlashAttnQKVPackedFunc", fp16(2, 7, 3, 4, 8), 0.0), PACKED, PACKED_BACK),
    *both(
        python(FLASH, "flash_attn_kvpacked_func", LAST[0], fp16(2, 5, 2, 2, 8), 0.0), TWO, TWO_BACK
    ),
    *both(aten("FlashAttnKVPackedFunc", LAST[0], fp16(2, 5, 2, 2, 8)), TWO, TWO_BACK),
]

# All sequences are as long as the longest: 6 = 2 * 3 queries, 10 = 2 * 5 keys.
END_TO_END = [
    *both(
        python(
            FLASH,
            "flash_attn_varlen_func",
            *ENDS,
            cu_seqlens_q=STARTS,
            cu_seqlens_k=STARTS,
            max_seqlen_q=3,
            max_seqlen_k=5,
        )
    ),
    *both(aten("flash_attn::_flash_attn_varlen_forward", *ENDS, STARTS, STARTS, 3, 5, 0.0, 0.1)),
    *both(aten("torch_attn::_varlen_attn", *ENDS, STARTS, STARTS, 3, 5, False, None, None)),
    *both(aten("torch_attn::_varlen_attn_out", ENDS_OUT, *ENDS, STARTS, STARTS, 3, 5, False)),
    *both(aten("_flash_attention_forward", *ENDS, STARTS, STARTS, 3, 5, 0.0, False, False)),
    *both(aten("_cudnn_attention_forward", *ENDS, None, STARTS, STARTS, 3, 5, True)),
    *both(
        aten(
            "_efficient_attention_forward",
            *(Tensor((1, *each.shape), each.dtype) for each in ENDS),
            None,
            STARTS,
            STARTS,
            3,
            5,
        )
    ),
    *both(aten("xformers_flash::flash_fwd", *ENDS, STARTS, STARTS, None, 3, 5, 0.0, 0.1)),
    Example(
        aten("xformers::efficient_attention_forward_cutlass", *ENDS, None, STARTS, STARTS, 3),
        *FORWARD,
    ),
    Example(
        sizes("flash_attn::_flash_attn_varlen_forward", *shapes(*ENDS, STARTS, STARTS), (), ()),
        FORWARD[0],
        None,
    ),
]

BACKWARDS = [
    Example(call, *BACKWARD)
    for call in (
        aten("_scaled_dot_product_flash_attention_backward", OUT, Q, K, V, OUT, LSE, None, None, 3),
        aten("_scaled_dot_product_flash_attention_for_cpu_backward", OUT, Q, K, V, OUT, LSE, 0.0),
        aten("_scaled_dot_product_efficient_attention_backward", OUT, Q, K, V, None, OUT, LSE),
        aten("_scaled_dot_product_cudnn_attention_backward", OUT, Q, K, V, OUT, LSE, None, None),
        aten("_scaled_dot_product_fused_attention_overrideable_backward", OUT, Q, K, V, None),
        aten("_cudnn_attention_backward", OUT, Q, K, V, OUT, LSE, int64(), int64(), None, None),
        aten("_cudnn_attention_backward", ENDS_OUT, *ENDS, ENDS_OUT, LSE, int64(), int64(), None,
             STARTS, STARTS, 3, 5, 0.0, False),
        aten("_flash_attention_backward", LAST_OUT, *LAST, LAST_OUT, LSE, None, None, 3, 5, 0.0),
        aten("_flash_attention_backward", ENDS_OUT, *ENDS, ENDS_OUT, LSE, STARTS, STARTS, 3, 5),
        aten("_efficient_attention_backward", LAST_OUT, *LAST, None, LAST_OUT, None, None, 3, 5),
        aten("flash_attn::_flash_attn_backward", LAST_OUT, *LAST, LAST_OUT, LSE, *LAST, 0.0, 0.1),
        aten("flash_attn::_flash_attn_varlen_backward", ENDS_OUT, *ENDS, ENDS_OUT, LSE, *ENDS,
             STARTS, STARTS, 3, 5, 0.0),
        aten("torch_attn::_varlen_attn_backward", ENDS_OUT, *ENDS, ENDS_OUT, LSE, STARTS, STARTS,
             3, 5, False),
    )
]  # fmt: skip
BACKWARDS += [
    # The gradient of the mask is also written.
    Example(
        aten("_scaled_dot_product_efficient_attention_backward", OUT, Q, K, V, BIAS, OUT, LSE,
             int64(), int64(), 0.0, (True, True, True, True), False),
        BACKWARD[0],
        BACKWARD[1] + 2 * SCORES + 2 * SCORES,
    ),
    Example(
        aten("_efficient_attention_backward", LAST_OUT, *LAST, BIAS, LAST_OUT, None, None, 3, 5,
             LSE, 0.0, int64(), int64(), 0, True),
        BACKWARD[0],
        BACKWARD[1] + 2 * SCORES + 2 * SCORES,
    ),
    Example(
        aten("_scaled_dot_product_efficient_attention_backward", OUT, Q, K, V, BIAS, OUT, LSE,
             int64(), int64(), 0.0, (True, True, True, False), False),
        BACKWARD[0],
        BACKWARD[1] + 2 * SCORES,
    ),
    Example(
        sizes("_scaled_dot_product_flash_attention_backward", *shapes(OUT, Q, K, V, OUT, LSE)),
        BACKWARD[0],
        None,
    ),
]  # fmt: skip

# A layer of size 8 over [2, 3, 8]: projections to [2, 3, 24], products of [3, 3], a projection.
LAYER = (fp32(2, 3, 8), fp32(2, 3, 8), fp32(2, 3, 8), 8, 4)
WEIGHTS = (fp32(24, 8), fp32(24), fp32(8, 8), fp32(8))
CROSS = (fp32(2, 3, 8), fp32(2, 5, 8), fp32(2, 5, 8), 8, 4)
LAYERS = [
    Example(
        aten(name, *LAYER, *WEIGHTS, None),
        2 * (2 * 3 * 8 * 24) + 2 * (2 * (2 * 3 * 3 * 8)) + 2 * (2 * 3 * 8 * 8),
        4 * (2 * 3 * 8 + 24 * 8 + 24 + 8 * 8 + 8 + 2 * 3 * 8),
    )
    for name in ("_native_multi_head_attention", "_triton_multi_head_attention")
] + [
    Example(
        aten("_native_multi_head_attention", *CROSS, *WEIGHTS, None),
        2 * (2 * 3 * 8 * 8) + 2 * (2 * 5 * 8 * 16) + 2 * 2 * (2 * 3 * 5 * 8) + 2 * (2 * 3 * 8 * 8),
        4 * (2 * 3 * 8 + 2 * 2 * 5 * 8 + 24 * 8 + 24 + 8 * 8 + 8 + 2 * 3 * 8),
    ),
    Example(
        sizes("_native_multi_head_attention", *shapes(*LAYER[:3]), (), (), *shapes(*WEIGHTS)),
        2 * (2 * 3 * 8 * 24) + 2 * (2 * (2 * 3 * 3 * 8)) + 2 * (2 * 3 * 8 * 8),
        None,
    ),
    # Three biases added, a third of the elements scaled.
    Example(
        aten("_transform_bias_rescale_qkv", fp16(2, 3, 24), fp16(24), 4),
        2 * 3 * 24 + 2 * 3 * 8,
        2 * (2 * 3 * 24 + 24 + 2 * 3 * 24),
        "[2,3,24]fp16;[24]fp16",
    ),
]

# FlashAttention 3: omitted arguments are between the operands and the lengths.
NO = (None, None, None, None)
CACHE = fp16(9, 4, 2, 8), fp16(9, 4, 2, 6)  # 9 pages of 4 keys
PAGES = tensor("int32", 2, 3)  # at most 3 of them for each of 2 sequences
FLASH3 = [
    *(
        example
        for name in ("fwd", "_flash_attn_forward")
        for example in (
            *both(aten(f"flash_attn_3::{name}", *LAST, *NO)),
            *both(
                aten(
                    f"flash_attn_3::{name}",
                    *(*ENDS, *NO, STARTS, STARTS, None, None, None, 3, 5, None),
                )
            ),
            # Queries of 8 and, after the values' 6, of 6 more.
            Example(
                aten(f"flash_attn_3::{name}", *LAST, None, None, fp16(2, 3, 4, 6)),
                2 * SCORES * (8 + 6 + 6),
                FORWARD[1],
            ),
            # 6 queries of sequences against a batch of 5 keys each.
            Example(aten(f"flash_attn_3::{name}", ENDS[0], *LAST[1:], *NO, STARTS, None), *FORWARD),
            # A sequence may use 12 keys, at most 10 of them by the call's limit.
            Example(
                aten(
                    f"flash_attn_3::{name}",
                    *(LAST[0], *CACHE, *NO, None, None, None, None, tensor("int32", 2), 3, 10),
                    PAGES,
                ),
                2 * (2 * 4 * 3 * 10) * (8 + 6),
                2 * (2 * 4 * 3 * 8 + 2 * 10 * 2 * (8 + 6)) + WRITTEN + SUMS,
            ),
        )
    ),
    Example(
        aten("flash_attn_3::bwd", LAST_OUT, *LAST, LAST_OUT, LSE, *LAST, *NO, None, None), *BACKWARD
    ),
    Example(
        aten(
            "flash_attn_3::bwd",
            *(ENDS_OUT, *ENDS, ENDS_OUT, LSE, *ENDS, STARTS, STARTS, None, None, 3, 5),
        ),
        *BACKWARD,
    ),
    Example(
        aten(
            "flash_attn_3::_flash_attn_backward",
            *(ENDS_OUT, *ENDS, ENDS_OUT, LSE, STARTS, STARTS, None, None, 3, 5, *ENDS),
        ),
        *BACKWARD,
    ),
]

# Autograd functions by their bare names, and other packages.
GROUPED = fp16(2, 3, 2, 2, 8), fp16(2, 5, 2, 1, 8), fp16(2, 5, 2, 1, 6)
FLAT = fp16(8, 3, 8), fp16(8, 5, 8), fp16(8, 5, 6)
FLAT_COST = (FORWARD[0], 2 * (8 * 3 * 8 + 8 * 5 * 8 + 8 * 5 * 6 + 8 * 3 * 6) + SUMS)
FLAT_BACK = (BACKWARD[0], 2 * (2 * (8 * 3 * 8 + 8 * 5 * 8 + 8 * 5 * 6) + 2 * 8 * 3 * 6) + SUMS)
SEQUENCE_FIRST = fp16(3, 2, 4, 8), fp16(5, 2, 2, 8), fp16(5, 2, 2, 6)
EVEN = fp16(14, 3, 4, 8)  # two sequences of 7
FUNCTIONS = [
    *both(aten("flashattn::_flash_attn_forward", *LAST, 0.0, 0.1, True)),
    *both(aten("flashattn::_flash_attn_varlen_forward", *ENDS, STARTS, STARTS, 3, 5, 0.0)),
    *both(aten("FlashAttnVarlenFunc", *ENDS, STARTS, STARTS, 3, 5, 0.0, None, True)),
    *both(aten("FlashAttnVarlenFunc", *ENDS, STARTS, STARTS, None, None, 3, 5, None, True)),
    *both(aten("xformers_flash3::flash_fwd", *ENDS, STARTS, STARTS, None, 3, 5, 0.0)),
    *both(aten("FlashAttnVarlenQKVPackedFunc", EVEN, STARTS, 7, 0.0), PACKED, PACKED_BACK),
    *both(
        python(FLASH, "flash_attn_varlen_qkvpacked_func", EVEN, cu_seqlens=STARTS, max_seqlen=7),
        PACKED,
        PACKED_BACK,
    ),
    *both(
        aten("FlashAttnVarlenKVPackedFunc", ENDS[0], fp16(10, 2, 2, 8), STARTS, STARTS, 3, 5),
        TWO,
        TWO_BACK,
    ),
    *both(
        python(
            FLASH,
            "flash_attn_varlen_kvpacked_func",
            ENDS[0],
            fp16(10, 2, 2, 8),
            STARTS,
            STARTS,
            3,
            5,
        ),
        TWO,
        TWO_BACK,
    ),
    *both(aten("xformers::efficient_attention_forward_ck", *LAST, None, None, None, None, 0.0)),
    *both(aten("_fMHA", *LAST, 0.0, None)),
    *both(aten("_fMHA", *GROUPED, None, 0.0)),
    *both(aten("EvoformerFusedAttention", *(Tensor((1, *each.shape), "float16") for each in LAST))),
    *both(aten("xformers::efficient_attention", *FLAT, True, None, 0.0), FLAT_COST, FLAT_BACK),
    *both(
        aten("xformers::efficient_attention_forward_small_k", *FLAT, True, None, 0.0),
        FLAT_COST,
        FLAT_BACK,
    ),
    *(
        Example(
            aten(f"xformers::{name}", *LAST, tensor("int32", 2), 0.1), FORWARD[0], FORWARD[1] - SUMS
        )
        for name in (
            "efficient_attention_forward_decoder",
            "efficient_attention_forward_decoder_ck",
            "efficient_attention_forward_decoder_splitk_ck",
        )
    ),
    *(
        Example(aten(f"xformers::{name}", fp16(8, 3, 6), *FLAT, LSE, fp16(8, 3, 6)), *FLAT_BACK)
        for name in ("efficient_attention_backward", "efficient_attention_backward_small_k")
    ),
    *(
        Example(
            aten(f"xformers::efficient_attention_backward_{name}", LAST_OUT, *LAST, None, *rest),
            *BACKWARD,
        )
        for name in ("cutlass", "ck")
        for rest in ((LAST_OUT, None, None, 3, 5, LSE), (None, None, 3, 5, LSE, LAST_OUT, 0.0))
    ),
    Example(
        aten("flashattn::_flash_attn_backward", *(LAST_OUT, *LAST, LAST_OUT, LSE, *LAST, 0.0, 0.1)),
        *BACKWARD,
    ),
    *(
        Example(
            aten(name, ENDS_OUT, *ENDS, ENDS_OUT, LSE, *ENDS, STARTS, STARTS, 3, 5, 0.0), *BACKWARD
        )
        for name in ("flashattn::_flash_attn_varlen_backward", "xformers_flash::flash_bwd")
    ),
    *(
        Example(
            aten(name, True, ENDS_OUT, *ENDS, ENDS_OUT, LSE, STARTS, STARTS, 3, 5, 0.0), *BACKWARD
        )
        for name in ("xformers_flash::flash_bwd", "xformers_flash3::flash_bwd")
    ),
    # Transformer Engine: batches first, sequences first, concatenated sequences.
    *both(aten("FusedAttnFunc", True, 3, 5, STARTS, STARTS, *LAST, None, 0.1, 0.0)),
    *both(aten("FusedAttnFunc", STARTS, STARTS, *LAST)),
    *both(aten("FusedAttnFunc", True, 3, 5, STARTS, STARTS, *SEQUENCE_FIRST, None, 0.1)),
    *both(aten("FusedAttnFunc", True, 3, 5, None, None, *SEQUENCE_FIRST, None, 0.1)),
    *both(aten("FusedAttnFunc", True, 3, 5, STARTS, STARTS, None, None, *ENDS, None, 0.1)),
    *both(
        aten("FusedAttnFunc_qkvpacked", True, 7, STARTS, fp16(2, 7, 3, 4, 8), None),
        PACKED,
        PACKED_BACK,
    ),
    *both(aten("FusedAttnFunc_qkvpacked", STARTS, fp16(7, 2, 4, 3, 8)), PACKED, PACKED_BACK),
    *both(
        aten("FusedAttnFunc_kvpacked", True, 3, 5, STARTS, STARTS, LAST[0], fp16(2, 5, 2, 2, 8)),
        TWO,
        TWO_BACK,
    ),
    Example(aten("_PrepareQKVForFA", *SEQUENCE_FIRST), 0, 2 * OPERANDS),
]

EXAMPLES = [
    *FLASH3,
    *FUNCTIONS,
    *HEADS_FIRST,
    *BY_STEPS,
    *HEADS_LAST,
    *IN_ONE,
    *END_TO_END,
    *BACKWARDS,
    *LAYERS,
]


def test_keys_that_an_expand_shares_among_heads_are_read_once():
    shared = Tensor((2, 4, 5, 8), "float16", (80, 0, 8, 1))
    done = work(aten(SDPA, fp16(2, 4, 3, 8), shared, shared), "fprop")
    assert done is not None
    read = 2 * (2 * 4 * 3 * 8 + 2 * (2 * 5 * 8))
    assert done.cost.bytes == read + 2 * (2 * 4 * 3 * 8) + SUMS


def test_attention_is_the_work_of_attention_kernels_or_of_gemms():
    done = work(python("torch.nn.functional", SDPA, Q, K, V), "bprop")
    assert done is not None
    assert [part.kernels for part in done.parts] == [{"attention", "gemm"}]


@pytest.mark.parametrize(
    ("operands", "reason"),
    [
        ((bf16(1, 1, 4, 64),) * 3, "type and sizes allow them: the library chose a kernel without"),
        ((bf16(1, 1, 4, 60),) * 3, "D=60 is not a multiple of 8 (bf16)"),
        (
            (fp16(1, 1, 4, 64), fp16(1, 1, 4, 64), fp16(1, 1, 4, 20)),
            "Dv=20 is not a multiple of 8 (fp16)",
        ),
    ],
)
def test_the_head_size_is_what_tensor_cores_care_about(operands, reason):
    done = work(aten(SDPA, *operands), "fprop")
    assert done is not None
    assert done.parts[0].no_tensor_cores == reason


def test_sequences_of_several_lengths_have_a_bound_that_says_so():
    # 6 queries in sequences of at most 4, 10 keys of at most 7: at most 6 * 7 scores, and 10 * 4.
    call = aten("flash_attn::_flash_attn_varlen_forward", *ENDS, STARTS, STARTS, 4, 7)
    done = work(call, "fprop")
    assert done is not None
    assert (done.cost.flops, done.cost.exact) == (2 * (4 * 10 * 4) * (8 + 6), False)
    even = aten("flash_attn::_flash_attn_varlen_forward", *ENDS, STARTS, STARTS, 3, 7)
    done = work(even, "fprop")  # 3 queries for each of 10 keys, for any lengths of keys
    assert done is not None
    assert (done.cost.flops, done.cost.exact) == (2 * (4 * 10 * 3) * (8 + 6), True)


def test_without_the_longest_sequences_are_taken_to_be_equally_long():
    call = aten("flash_attn::_flash_attn_varlen_forward", *ENDS, STARTS, STARTS, UNKNOWN, UNKNOWN)
    done = work(call, "fprop")
    assert done is not None
    # Two sequences, so 6 / 2 queries for each of 10 keys.
    assert (done.cost.flops, done.cost.bytes, done.cost.exact) == (*FORWARD, False)


def test_without_starts_either_only_bytes_are_known():
    call = aten("flash_attn::_flash_attn_varlen_forward", *ENDS, UNKNOWN, UNKNOWN, UNKNOWN)
    assert work(call, "fprop") is None
    call = aten("flash_attn_3::fwd", *ENDS, *[None] * 4, Tensor((), "int32"), None)
    done = work(call, "fprop")
    assert done is not None
    assert (done.cost.flops, done.cost.bytes) == (None, FORWARD[1])


@pytest.mark.parametrize(
    "call",
    [
        python("torch.nn.functional", SDPA),
        python("torch.nn.functional", SDPA, Q, K),
        python("torch.nn.functional", SDPA, Q, K, None),
        python("torch.nn.functional", SDPA, fp16(8), fp16(8), fp16(8)),
        python("torch.nn.functional", SDPA, Q, fp16(2, 2, 5, 7), V),
        python("torch.nn.functional", SDPA, Q, K, fp16(2, 2, 4, 6)),
        python("torch.nn.functional", SDPA, Q, fp16(2, 3, 5, 8), fp16(2, 3, 5, 6)),
        python("torch.nn.functional", SDPA, Q, fp16(3, 2, 5, 8), fp16(3, 2, 5, 6)),
        aten("_flash_attention_forward", *(fp16(3, 4, 8),) * 3, None, None, 3, 3),
        aten("flash_attn::_flash_attn_varlen_forward", *(fp16(2, 3, 4, 8),) * 3, STARTS, STARTS, 3),
        aten("flash_attn::_flash_attn_varlen_forward", *ENDS, STARTS, STARTS, -1, 3),
        aten("_scaled_dot_product_flash_attention_backward", fp16(2, 4, 3, 5), Q, K, V),
        aten("_native_multi_head_attention", *LAYER, fp32(8, 8), *WEIGHTS[1:]),
        aten("_transform_bias_rescale_qkv", fp16(2, 3, 23), fp16(23), 4),
        python(FLASH, "flash_attn_qkvpacked_func", fp16(2, 7, 2, 4, 8)),
        python(FLASH, "flash_attn_kvpacked_func", LAST[0], fp16(2, 5, 3, 2, 8)),
    ],
    ids=lambda call: call.op,
)
def test_operands_that_do_not_fit_have_no_cost(call):
    assert work(call, "fprop") is None
    assert not (why_unknown(call, "fprop") or "").startswith("its formula failed")


@pytest.mark.parametrize("direction", ["fprop", "bprop"])
def test_arguments_of_packages_that_do_not_fit_have_no_cost_and_a_reason(direction):
    for example in [*FLASH3, *FUNCTIONS]:
        args = example.call.args
        for i, each in enumerate(args):
            for other in (None, Tensor((3,), "float32"), Tensor((2, 2, 2), "float32"), 7, "x"):
                changed = (*args[:i], replace(each, value=other), *args[i + 1 :])
                reason = why_unknown(replace(example.call, args=changed), direction) or ""
                assert not reason.startswith("its formula failed"), (example.call.op, i, reason)
