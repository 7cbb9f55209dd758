"""Scaled dot-product attention: FLOPs, bytes, params, forward and backward, in every layout."""

import pytest

from fastprof.model.call import UNKNOWN, Tensor
from fastprof.ops import work
from unit.ops.ops_calls import aten, bf16, fp16, fp32, python, sizes, tensor
from unit.ops.ops_examples import Example, cost, failures, listed

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

SDPA = "scaled_dot_product_attention"
FLASH = "flash_attn.flash_attn_interface"


def shapes(*tensors: Tensor) -> list[tuple[int, ...]]:
    return [each.shape for each in tensors]


# The same with the heads third, as kernels have it; and with concatenated sequences.
LAST = fp16(2, 3, 4, 8), fp16(2, 5, 2, 8), fp16(2, 5, 2, 6)
ENDS = fp16(6, 4, 8), fp16(10, 2, 8), fp16(10, 2, 6)
STARTS = tensor("int32", 3)
VALUES = {
    "q": Q, "k": K, "v": V, "out": OUT, "lse": LSE, "bias": BIAS, "mask": MASK,
    **dict(zip(("ql", "kl", "vl"), LAST, strict=True)), "outl": fp16(2, 3, 4, 6),
    **dict(zip(("qe", "ke", "ve"), ENDS, strict=True)), "oute": fp16(6, 4, 6), "st": STARTS,
    # Sequences first; two sequences of 7 queries, keys and values; keys and values in one.
    "qs": fp16(3, 2, 4, 8), "ks": fp16(5, 2, 2, 8), "vs": fp16(5, 2, 2, 6),
    "even": fp16(14, 3, 4, 8), "qkv": fp16(2, 7, 3, 4, 8), "kv": fp16(2, 5, 2, 2, 8),
    "kve": fp16(10, 2, 2, 8), "qf": fp16(8, 3, 8), "kf": fp16(8, 5, 8), "vf": fp16(8, 5, 6),
}  # fmt: skip


def both(table, forward=FORWARD, backward=BACKWARD, params=None):
    """The calls of a table, forward and backward."""
    return listed(table, VALUES, *forward, params, back=backward)


def forward_only(table, flops, moved, params=None):
    return listed(table, VALUES, flops, moved, params)


HEADS_FIRST = [
    *both(
        f"""torch.nn.functional.{SDPA} q k v
        {SDPA} q k v - 0.0 true - true""",
        params=TEXT,
    ),
    *both(
        f"""torch._C._nn.{SDPA} query=q key=k value=v is_causal=true enable_gqa=true
        _scaled_dot_product_flash_attention q k v 0.0 false false 0.1
        _scaled_dot_product_flash_attention_for_cpu q k v 0.0 false - -
        _scaled_dot_product_efficient_attention q k v - true 0.0 false -
        _scaled_dot_product_cudnn_attention q k v - true 0.0 false false
        _scaled_dot_product_fused_attention_overrideable q k v - 0.0 false
        _triton_scaled_dot_attention q k v 0.0
        _cudnn_attention_forward q k v - - - 3 5 true"""
    ),
    # No softmax sums, a mask of one byte per element.
    *forward_only(
        "_scaled_dot_product_efficient_attention q k v bias false",
        *(FORWARD[0], OPERANDS + WRITTEN + 2 * SCORES),
    ),
    *forward_only(
        f"torch.nn.functional.{SDPA} q k v mask 0.1",
        *(FORWARD[0], FORWARD[1] + 3 * 5, f"{TEXT};[3,5]bool"),
    ),
    # One head of keys for all queries, and a query without a batch.
    *forward_only(
        f"torch.nn.functional.{SDPA} fp32[4,3,8] fp32[1,5,8] fp32[1,5,8]",
        2 * (4 * 3 * 5) * (8 + 8),
        4 * (4 * 3 * 8 + 5 * 8 + 5 * 8 + 4 * 3 * 8) + 4 * (4 * 3),
    ),
    *forward_only(
        f"torch.nn.functional.{SDPA} fp32[3,8] fp32[5,8] fp32[5,8]",
        *(2 * (3 * 5) * (8 + 8), 4 * (3 * 8 + 5 * 8 + 5 * 8 + 3 * 8) + 4 * 3),
    ),
    # Sizes only.
    *forward_only(f"{SDPA} [2,4,3,8] [2,2,5,8] [2,2,5,6] []*3", FORWARD[0], None),
    *forward_only(f"{SDPA} [2,4,3,8] [2,2,5,8] [2,2,5,6] [3,5] []", FORWARD[0], None),
    Example(sizes(SDPA, *shapes(Q, K, V)), BACKWARD[0], None, direction="bprop"),
    # A sequence without keys.
    *forward_only(
        f"torch.nn.functional.{SDPA} fp16[1,1,3,8] fp16[1,1,0,8] fp16[1,1,0,8]",
        *(0, 2 * (3 * 8 + 0 + 0 + 3 * 8) + 4 * 3),
    ),
]

# The softmax is an output; intermediates are not counted.
BY_STEPS = both(
    """_scaled_dot_product_attention_math q k v - 0.0 true - - true
    _scaled_dot_product_attention_math_for_mps q k v - 0.0 true - - true""",
    (FORWARD[0], OPERANDS + WRITTEN + 2 * SCORES),
    (2 * SCORES * (8 + 6 + 6 + 8), 2 * OPERANDS + WRITTEN + 2 * SCORES),
)

HEADS_LAST = [
    *both(
        f"""{FLASH}.flash_attn_func ql kl vl 0.0 - true
        {FLASH}.flash_attn_func q=ql k=kl v=vl causal=true
        flash_attn::_flash_attn_forward ql kl vl 0.0 0.1 true -1 -1 0.0 -
        _flash_attention_forward ql kl vl - - 3 5 0.0 false false
        _flash_attention_forward_no_dropout_inplace outl ql kl vl - - 3 5 0.0
        _efficient_attention_forward ql kl vl - - - - - 0.0 0 true
        xformers::efficient_attention_forward_cutlass ql kl vl - - - -1
        xformers_flash::flash_fwd ql kl vl - - 3 5 0.0 0.1 true false"""
    ),
    *both("FlashAttnFunc [2,3,4,8] [2,5,2,8] [2,5,2,6] []*2", (FORWARD[0], None),
          (BACKWARD[0], None)),
    *forward_only(
        "_efficient_attention_forward ql kl vl bias - - 3 5", FORWARD[0], FORWARD[1] + 2 * SCORES
    ),
]  # fmt: skip

# Queries, keys and values in one tensor: [2, 7, 3, 4, 8], matrices of scores [7, 7].
PACKED = (2 * (2 * 4 * 7 * 7) * (8 + 8), 2 * (4 * 2 * 7 * 4 * 8) + 4 * (2 * 7 * 4))
PACKED_BACK = (2 * (2 * 4 * 7 * 7) * (5 * 8), 2 * (8 * 2 * 7 * 4 * 8) + 4 * (2 * 7 * 4))
# Queries [2, 3, 4, 8], keys and values [2, 5, 2, 2, 8].
TWO = (2 * SCORES * (8 + 8), 2 * (2 * 3 * 4 * 8 + 2 * 5 * 2 * 2 * 8 + 2 * 3 * 4 * 8) + SUMS)
TWO_BACK = (2 * SCORES * (5 * 8), 2 * (4 * 2 * 3 * 4 * 8 + 2 * 2 * 5 * 2 * 2 * 8) + SUMS)
IN_ONE = [
    *both(
        f"""{FLASH}.flash_attn_qkvpacked_func qkv
        FlashAttnQKVPackedFunc qkv 0.0
        FlashAttnVarlenQKVPackedFunc even st 7 0.0
        {FLASH}.flash_attn_varlen_qkvpacked_func even cu_seqlens=st max_seqlen=7
        FusedAttnFunc_qkvpacked true 7 st qkv -
        FusedAttnFunc_qkvpacked st fp16[7,2,4,3,8]""",
        PACKED,
        PACKED_BACK,
    ),
    *both(
        f"""{FLASH}.flash_attn_kvpacked_func ql kv 0.0
        FlashAttnKVPackedFunc ql kv
        FlashAttnVarlenKVPackedFunc qe kve st st 3 5
        {FLASH}.flash_attn_varlen_kvpacked_func qe kve st st 3 5
        FusedAttnFunc_kvpacked true 3 5 st st ql kv""",
        TWO,
        TWO_BACK,
    ),
]

# All sequences are as long as the longest: 6 = 2 * 3 queries, 10 = 2 * 5 keys.
END_TO_END = [
    *both(
        f"""{FLASH}.flash_attn_varlen_func qe ke ve cu_seqlens_q=st cu_seqlens_k=st"""
        """ max_seqlen_q=3 max_seqlen_k=5
        flash_attn::_flash_attn_varlen_forward qe ke ve st st 3 5 0.0 0.1
        torch_attn::_varlen_attn qe ke ve st st 3 5 false - -
        torch_attn::_varlen_attn_out oute qe ke ve st st 3 5 false
        _flash_attention_forward qe ke ve st st 3 5 0.0 false false
        _cudnn_attention_forward qe ke ve - st st 3 5 true
        _efficient_attention_forward fp16[1,6,4,8] fp16[1,10,2,8] fp16[1,10,2,6] - st st 3 5
        xformers_flash::flash_fwd qe ke ve st st - 3 5 0.0 0.1"""
    ),
    *forward_only("xformers::efficient_attention_forward_cutlass qe ke ve - st st 3", *FORWARD),
    *forward_only(
        "flash_attn::_flash_attn_varlen_forward [6,4,8] [10,2,8] [10,2,6] [3] [3] []*2",
        *(FORWARD[0], None),
    ),
]

BACKWARDS = [
    *forward_only(
        """_scaled_dot_product_flash_attention_backward out q k v out lse - - 3
        _scaled_dot_product_flash_attention_for_cpu_backward out q k v out lse 0.0
        _scaled_dot_product_efficient_attention_backward out q k v - out lse
        _scaled_dot_product_cudnn_attention_backward out q k v out lse - -
        _scaled_dot_product_fused_attention_overrideable_backward out q k v -
        _cudnn_attention_backward out q k v out lse int64[]*2 - -
        _cudnn_attention_backward oute qe ke ve oute lse int64[]*2 - st st 3 5 0.0 false
        _flash_attention_backward outl ql kl vl outl lse - - 3 5 0.0
        _flash_attention_backward oute qe ke ve oute lse st st 3 5
        _efficient_attention_backward outl ql kl vl - outl - - 3 5
        flash_attn::_flash_attn_backward outl ql kl vl outl lse ql kl vl 0.0 0.1
        flash_attn::_flash_attn_varlen_backward oute qe ke ve oute lse qe ke ve st st 3 5 0.0
        torch_attn::_varlen_attn_backward oute qe ke ve oute lse st st 3 5 false""",
        *BACKWARD,
    ),
    # The gradient of the mask is also written.
    *forward_only(
        """_scaled_dot_product_efficient_attention_backward out q k v bias out lse int64[]*2 0.0"""
        """ (true,true,true,true) false
        _efficient_attention_backward outl ql kl vl bias outl - - 3 5 lse 0.0 int64[]*2 0 true""",
        *(BACKWARD[0], BACKWARD[1] + 2 * SCORES + 2 * SCORES),
    ),
    *forward_only(
        "_scaled_dot_product_efficient_attention_backward out q k v bias out lse int64[]*2 0.0"
        " (true,true,true,false) false",
        *(BACKWARD[0], BACKWARD[1] + 2 * SCORES),
    ),
    Example(
        sizes("_scaled_dot_product_flash_attention_backward", *shapes(OUT, Q, K, V, OUT, LSE)),
        BACKWARD[0],
        None,
    ),
]

# A layer of size 8 over [2, 3, 8]: projections to [2, 3, 24], products of [3, 3], a projection.
LAYER = (fp32(2, 3, 8), fp32(2, 3, 8), fp32(2, 3, 8), 8, 4)
WEIGHTS = (fp32(24, 8), fp32(24), fp32(8, 8), fp32(8))
TRAINED = "fp32[24,8] fp32[24] fp32[8,8] fp32[8]"
PROJECTED = 2 * (2 * 3 * 8 * 24) + 2 * (2 * (2 * 3 * 3 * 8)) + 2 * (2 * 3 * 8 * 8)
LAYERS = [
    *forward_only(
        f"""_native_multi_head_attention fp32[2,3,8]*3 8 4 {TRAINED} -
        _triton_multi_head_attention fp32[2,3,8]*3 8 4 {TRAINED} -""",
        *(PROJECTED, 4 * (2 * 3 * 8 + 24 * 8 + 24 + 8 * 8 + 8 + 2 * 3 * 8)),
    ),
    *forward_only(
        f"_native_multi_head_attention fp32[2,3,8] fp32[2,5,8]*2 8 4 {TRAINED} -",
        2 * (2 * 3 * 8 * 8) + 2 * (2 * 5 * 8 * 16) + 2 * 2 * (2 * 3 * 5 * 8) + 2 * (2 * 3 * 8 * 8),
        4 * (2 * 3 * 8 + 2 * 2 * 5 * 8 + 24 * 8 + 24 + 8 * 8 + 8 + 2 * 3 * 8),
    ),
    *forward_only(
        "_native_multi_head_attention [2,3,8]*3 []*2 [24,8] [24] [8,8] [8]", PROJECTED, None
    ),
    # Three biases added, a third of the elements scaled.
    *forward_only(
        "_transform_bias_rescale_qkv fp16[2,3,24] fp16[24] 4",
        *(2 * 3 * 24 + 2 * 3 * 8, 2 * (2 * 3 * 24 + 24 + 2 * 3 * 24), "[2,3,24]fp16;[24]fp16"),
    ),
]

# FlashAttention 3: omitted arguments are between the operands and the lengths. 9 pages of 4 keys,
# of which at most 3 belong to each of 2 sequences.
PAGED = "ql fp16[9,4,2,8] fp16[9,4,2,6]"
FLASH3 = [
    *(
        example
        for name in ("flash_attn_3::fwd", "flash_attn_3::_flash_attn_forward")
        for example in (
            *both(f"{name} ql kl vl -*4\n{name} qe ke ve -*4 st st -*3 3 5 -"),
            # Queries of 8 and, after the values' 6, of 6 more.
            *forward_only(
                f"{name} ql kl vl -*2 fp16[2,3,4,6]", 2 * SCORES * (8 + 6 + 6), FORWARD[1]
            ),
            # 6 queries of sequences against a batch of 5 keys each.
            *forward_only(f"{name} qe kl vl -*4 st -", *FORWARD),
            # A sequence may use 12 keys, at most 10 of them by the call's limit.
            *forward_only(
                f"{name} {PAGED} -*4 -*4 int32[2] 3 10 int32[2,3]",
                2 * (2 * 4 * 3 * 10) * (8 + 6),
                2 * (2 * 4 * 3 * 8 + 2 * 10 * 2 * (8 + 6)) + WRITTEN + SUMS,
            ),
        )
    ),
    *forward_only(
        """flash_attn_3::bwd outl ql kl vl outl lse ql kl vl -*4 -*2
        flash_attn_3::bwd oute qe ke ve oute lse qe ke ve st st -*2 3 5
        flash_attn_3::_flash_attn_backward oute qe ke ve oute lse st st -*2 3 5 qe ke ve""",
        *BACKWARD,
    ),
]

# Autograd functions by their bare names, and other packages.
FLAT_COST = (FORWARD[0], 2 * (8 * 3 * 8 + 8 * 5 * 8 + 8 * 5 * 6 + 8 * 3 * 6) + SUMS)
FLAT_BACK = (BACKWARD[0], 2 * (2 * (8 * 3 * 8 + 8 * 5 * 8 + 8 * 5 * 6) + 2 * 8 * 3 * 6) + SUMS)
FUNCTIONS = [
    *both(
        """flashattn::_flash_attn_forward ql kl vl 0.0 0.1 true
        flashattn::_flash_attn_varlen_forward qe ke ve st st 3 5 0.0
        FlashAttnVarlenFunc qe ke ve st st 3 5 0.0 - true
        FlashAttnVarlenFunc qe ke ve st st -*2 3 5 - true
        xformers_flash3::flash_fwd qe ke ve st st - 3 5 0.0
        xformers::efficient_attention_forward_ck ql kl vl -*4 0.0
        _fMHA ql kl vl 0.0 -
        _fMHA fp16[2,3,2,2,8] fp16[2,5,2,1,8] fp16[2,5,2,1,6] - 0.0
        EvoformerFusedAttention fp16[1,2,3,4,8] fp16[1,2,5,2,8] fp16[1,2,5,2,6]"""
    ),
    *both(
        """xformers::efficient_attention qf kf vf true - 0.0
        xformers::efficient_attention_forward_small_k qf kf vf true - 0.0""",
        FLAT_COST,
        FLAT_BACK,
    ),
    *forward_only(
        """xformers::efficient_attention_forward_decoder ql kl vl int32[2] 0.1
        xformers::efficient_attention_forward_decoder_ck ql kl vl int32[2] 0.1
        xformers::efficient_attention_forward_decoder_splitk_ck ql kl vl int32[2] 0.1""",
        *(FORWARD[0], FORWARD[1] - SUMS),
    ),
    *forward_only(
        """xformers::efficient_attention_backward fp16[8,3,6] qf kf vf lse fp16[8,3,6]
        xformers::efficient_attention_backward_small_k fp16[8,3,6] qf kf vf lse fp16[8,3,6]""",
        *FLAT_BACK,
    ),
    *forward_only(
        """xformers::efficient_attention_backward_cutlass outl ql kl vl - outl - - 3 5 lse
        xformers::efficient_attention_backward_cutlass outl ql kl vl - - - 3 5 lse outl 0.0
        xformers::efficient_attention_backward_ck outl ql kl vl - outl - - 3 5 lse
        xformers::efficient_attention_backward_ck outl ql kl vl - - - 3 5 lse outl 0.0
        flashattn::_flash_attn_backward outl ql kl vl outl lse ql kl vl 0.0 0.1
        flashattn::_flash_attn_varlen_backward oute qe ke ve oute lse qe ke ve st st 3 5 0.0
        xformers_flash::flash_bwd oute qe ke ve oute lse qe ke ve st st 3 5 0.0
        xformers_flash::flash_bwd true oute qe ke ve oute lse st st 3 5 0.0
        xformers_flash3::flash_bwd true oute qe ke ve oute lse st st 3 5 0.0""",
        *BACKWARD,
    ),
    # Transformer Engine: batches first, sequences first, concatenated sequences.
    *both(
        """FusedAttnFunc true 3 5 st st ql kl vl - 0.1 0.0
        FusedAttnFunc st st ql kl vl
        FusedAttnFunc true 3 5 st st qs ks vs - 0.1
        FusedAttnFunc true 3 5 -*2 qs ks vs - 0.1
        FusedAttnFunc true 3 5 st st -*2 qe ke ve - 0.1"""
    ),
    *forward_only("_PrepareQKVForFA qs ks vs", 0, 2 * OPERANDS),
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
    done = cost(aten(SDPA, fp16(2, 4, 3, 8), shared, shared))
    read = 2 * (2 * 4 * 3 * 8 + 2 * (2 * 5 * 8))
    assert done.bytes == read + 2 * (2 * 4 * 3 * 8) + SUMS


def test_attention_is_the_work_of_attention_kernels_or_of_gemms():
    done = work(python("torch.nn.functional", SDPA, Q, K, V), "bprop")
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
    assert done.parts[0].no_tensor_cores == reason


def test_sequences_of_several_lengths_have_a_bound_that_says_so():
    # 6 queries in sequences of at most 4, 10 keys of at most 7: at most 6 * 7 scores, and 10 * 4.
    call = aten("flash_attn::_flash_attn_varlen_forward", *ENDS, STARTS, STARTS, 4, 7)
    done = cost(call)
    assert (done.flops, done.exact) == (2 * (4 * 10 * 4) * (8 + 6), False)
    even = aten("flash_attn::_flash_attn_varlen_forward", *ENDS, STARTS, STARTS, 3, 7)
    done = cost(even)  # 3 queries for each of 10 keys, for any lengths of keys
    assert (done.flops, done.exact) == (2 * (4 * 10 * 3) * (8 + 6), True)


def test_without_the_longest_sequences_are_taken_to_be_equally_long():
    call = aten("flash_attn::_flash_attn_varlen_forward", *ENDS, STARTS, STARTS, UNKNOWN, UNKNOWN)
    done = cost(call)
    # Two sequences, so 6 / 2 queries for each of 10 keys.
    assert (done.flops, done.bytes, done.exact) == (*FORWARD, False)


def test_without_starts_either_only_bytes_are_known():
    call = aten("flash_attn::_flash_attn_varlen_forward", *ENDS, UNKNOWN, UNKNOWN, UNKNOWN)
    assert work(call, "fprop") is None
    call = aten("flash_attn_3::fwd", *ENDS, *[None] * 4, Tensor((), "int32"), None)
    done = cost(call)
    assert (done.flops, done.bytes) == (None, FORWARD[1])


MALFORMED = [
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
]


def test_arguments_of_packages_that_do_not_fit_have_no_cost_and_a_reason():
    assert [*failures([*FLASH3, *FUNCTIONS, *IN_ONE])] == []
