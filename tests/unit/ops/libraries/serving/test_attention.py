"""Attention of serving stacks: paged caches, latent vectors, concatenated sequences; merging."""

import pytest

from fastprof.model.call import Arg, Call
from fastprof.ops import work
from fastprof.ops.libraries.serving.lengths import Lengths, is_batch, is_detailed, lengths_of
from unit.ops.libraries.serving.serving_calls import int8, int32, reason, uint8
from unit.ops.ops_calls import bf16, calls, fp32
from unit.ops.ops_examples import Example, Rows, listed

DETAILED = "execute_5_context_1(sq4sk4sqsq16sqsk16)_generation_1(sq1sk9sqsq1sqsk9)"
DECODE = "step[DECODE bs=3 g_sq=3 g_sk=60 g_sqsk=60]"

# Decode: 3 sequences, 4 heads of 8 and 2 in the cache; the longest has 40 keys. bf16.
VALUES = {
    "q": bf16(3, 4, 8), "o": bf16(3, 4, 8), "kv": bf16(9, 2, 1, 16, 8), "v": bf16(9, 2, 8, 16),
    "kc": bf16(9, 16, 2, 8), "vc": bf16(9, 16, 2, 8), "rag": bf16(90, 1, 2, 8),
    "flat": bf16(90, 2, 8), "t": int32(3, 4),
    "n": int32(3), "st": int32(4), "e": fp32(3, 4, 1), "tmp": fp32(3, 4, 1, 8), "one": fp32(1),
    "pages": int32(100), "space": uint8(1 << 20), "plan": int8(4096), "part": fp32(3, 4),
    "qv": bf16(3, 4, 8), "k3": bf16(3, 2, 8), "q2": bf16(3, 32), "k2": bf16(3, 16),
    "o2": bf16(3, 32),
}  # fmt: skip
rows = Rows(VALUES)
Q = 2 * 3 * 4 * 8


def paged(keys):
    """FLOPs and bytes by number of keys: two products of 4 heads; q, 2 heads of k, v, output."""
    return 2 * 2 * 4 * 8 * keys, 2 * Q + 2 * 2 * keys * 2 * 8


LIMITED = """
_C::paged_attention_v1 o q kv v 2 1.0 t n 16 40 - _ one one 0 0 0 64 0
_C::paged_attention_v2 o e e tmp q kv v 2 1.0 t n 16 40 - _ one one 0 0 0 64 0
_rocm_C::paged_attention o e e tmp q kv v 2 1.0 t n - 16 40 - _ one one - _
_rocm_C::paged_attention o e e tmp q kv v 2 1.0 t n 16 40 - _ one one
aiter::paged_attention_rocm o e e tmp q kv v 2 1.0 t n 16 40 - _ one one
aiter::paged_attention_v1 o space q kv v 1.0 t - n 40 - _ _ 0.0 one one
aiter::pa_fwd_naive q kv v t n one one 40 2 1.0
aiter::mha_batch_prefill q kc vc st st pages 1 40 0.0 1.0 0.0 false true -1 -1 false false
aiter::mha_batch_prefill q flat flat st st pages 1 40 0.0 1.0 0.0 false true -1 -1 false false
_vllm_fa2_C::varlen_fwd q kc vc o st st n - t - 1 40 0.0 1.0 false true -1 -1 0.0 false - 0
_vllm_fa3_C::fwd q kc vc - - - o st - - - n 1 40 t - - - - - - - 1.0 true -1 -1
sgl_kernel::fwd q kc vc - - - o st - - - n 1 40 t - - - - - - - 1.0 true -1 -1
"""
NOT_TOLD = """
aiter::paged_attention_ragged o space q rag rag 1.0 st pages n 16 4096 - _ _ 0.0 one one
sglang_profiler::attention_paged_attention_ragged o space q rag rag st pages n - one one
sglang_profiler::attention_paged_attention_ragged_2 o space q rag rag st pages n - one one
aiter::pa_fwd_asm q kv v t n 4 40 - - -
aiter::_pa_fwd_asm q kv v t n 4 40 - - -
aiter::pa_fwd q kv v t n 4 40 - - -
aiter::pa_decode_gluon o q kv v n t 1.0 1
flashinfer::batch_decode_run space plan _ q rag rag st pages n o - 0 -1
flashinfer::batch_decode_with_kv_cache_head_dim_128_run space plan _ q rag rag st pages n o
flashinfer::batch_prefill_paged_run space plan _ q rag rag st st pages n o - 0 0
flashinfer::batch_prefill_with_kv_cache_fa2_paged_run space plan _ q rag rag st st pages n o
vllm::unified_attention_with_output q k3 k3 o _ - -
vllm::unified_attention q k3 k3 _
sglang::unified_attention_with_output q2 k3 k3 o2 true 0 - - -
aiter::unified_attention_with_output_base q - k3 k3 n _ false -
"""
ESTIMATES = [
    *rows(LIMITED, *paged(3 * 40)),
    # The block table: 4 blocks of 16 keys, the maximum length.
    *listed(
        "_vllm_fa2_C::fwd_kvcache q kc vc - - n - - - - t - - 1.0 true -1 -1 0.0 true 0",
        {**VALUES, "q": bf16(3, 1, 4, 8)},
        *paged(3 * 64),
    ),
    # New keys and values are read, and written to the cache.
    *listed(
        "_vllm_fa2_C::fwd_kvcache q kc vc new new n - - - - t - - 1.0 true -1 -1 0.0 true 0",
        {**VALUES, "q": bf16(3, 1, 4, 8), "new": bf16(3, 1, 2, 8)},
        paged(3 * 64)[0],
        paged(3 * 64)[1] + 4 * 2 * 3 * 2 * 8,
    ),
]


def in_batch(call, name):
    return Call(call.mod, call.op, (*call.args, Arg("batch", name)))


TOLD = [
    *(
        Example(in_batch(call, DECODE), *paged(60))
        for call in calls(LIMITED + NOT_TOLD.lstrip(), VALUES)
    ),
    # A separate rotated part of 4: 12 deep, 8 wide.
    *(
        Example(in_batch(call, DECODE), 2 * 4 * 60 * (12 + 8), 2 * 144 + Q + 2 * 60 * 2 * (12 + 8))
        for call in calls(
            "sglang::unified_attention_with_output q k3 k3 o true 0 qr kr -",
            {**VALUES, "qr": bf16(3, 4, 4), "kr": bf16(3, 2, 4)},
        )
    ),
]

# Concatenated: 6 tokens of one head of 8 in 2 sequences; [1, 6] without a table.
RAGGED = {
    "q": bf16(6, 1, 8), "k": bf16(6, 1, 8), "v": bf16(6, 1, 8), "o": bf16(6, 1, 8),
    "st": int32(3), "space": uint8(64), "qb": bf16(2, 3, 1, 8), "kb": bf16(2, 5, 1, 8),
}  # fmt: skip
ragged = Rows(RAGGED)
END_TO_END = """
_vllm_fa2_C::varlen_fwd q k v o st st - - - - 4 4 0.0 1.0 false true -1 -1 0.0 false - 0
_vllm_fa3_C::fwd q k v - - - o st st - - - 4 4 - - - - - - - - 1.0 true -1 -1
sgl_kernel::fwd q k v - - - o st st - - - 4 4 - - - - - - - - 1.0 true -1 -1
aiter::fmha_v3_varlen_fwd q k v st st 4 4 4 0.0 1.0 0.0 false true -1 -1 false false
aiter::mha_varlen_fwd q k v st st 4 4 4 0.0 1.0 0.0 false true -1 -1 false false
aiter::_flash_attn_varlen_forward q k v st st 4 4 0.0 1.0 true
flashinfer::batch_prefill_ragged_run space space _ q k v st st o - 0 0
flashinfer::batch_prefill_with_kv_cache_fa2_ragged_run space space _ q k v st st o - 0 0
"""
PREFILL = "prefill[bs=2 tok=6 sqsk=20 sk=6]"
DENSE = 2 * 2 * 3 * 5 * (8 + 8)
TOLD += [
    Example(in_batch(call, PREFILL), 2 * 20 * (8 + 8), 4 * 96) for call in calls(END_TO_END, RAGGED)
]
BATCHED = ragged(
              """aiter::mha_fwd qb kb kb 0.0 1.0 true -1 -1
              aiter::fmha_v3_fwd qb kb kb 0.0 1.0 true -1 -1
              aiter::_flash_attn_forward qb kb kb 0.0 1.0 true
              aiter::wrapper_fmha_v3_fwd qb kb kb 0.0 1.0 true
              _vllm_fa3_C::fwd qb kb kb - - - - - - - - - - - - - - - - - - - 1.0 true -1 -1""",
              DENSE, 2 * 96 + 2 * 160 + 4 * 6,
          ) + ragged(
        """flashinfer::single_prefill_run q k v space o - 0 0
        flashinfer::single_prefill_with_kv_cache_fa2_run q k v space o - 0 0""",
        2 * 6 * 6 * 16, 4 * 96 + 4 * 6,
    )  # fmt: skip

# MLA: 3 tokens, 4 heads of 16 + 2, vectors of 18 in the cache.
LATENT = {
    "q": bf16(3, 4, 18), "qn": bf16(3, 4, 16), "qr": bf16(3, 4, 2), "c": bf16(9, 16, 18),
    "c4": bf16(9, 16, 1, 18), "q4": bf16(3, 1, 4, 18), "o": bf16(3, 4, 16), "t": int32(3, 2),
    "n": int32(3), "st": int32(4), "e": fp32(3, 4), "ws": uint8(99), "sp": fp32(3, 1, 4, 16),
    "one": fp32(1),
}  # fmt: skip
vectors = Rows(LATENT)
MLA = """
_C::sm100_cutlass_mla_decode o e qn qr c n t ws 1.0 1
_C::cutlass_mla_decode o qn qr c n t 1.0
sgl_kernel::cutlass_mla_decode o qn qr c n t ws 1.0 1
aiter::mla_decode_stage1_asm_fwd q c4 st st st n n n n n 1 16 1 1.0 sp e o - - -
aiter::mla_decode_stage1_asm_fwd q c4 st st st n 1 1.0 o
aiter::mla_prefill_asm_fwd q c4 st st st n 1 1.0 o
aiter::hk_mla_decode_fwd q c4 st st st n n n 1 1.0 sp e o
vllm::rocm_aiter_mla_decode_fwd q c o st 1 - - - - 1.0
vllm::rocm_aiter_mla_decode_fwd_lse q c o st 1 - - - - 1.0
"""
TABLED = """
sgl_kernel::fwd_kvcache_mla q4 c4 16 n t 1.0 true n n
_flashmla_C::fwd_kvcache_mla q4 c4 - 16 n t 1.0 true n n
_flashmla_C::fwd_kvcache_mla q4 c4 16 n t 1.0 true n n false -
_flashmla_extension_C::fwd_kvcache_mla_fp8 q4 c4 16 n t 1.0 true n n one one
"""


def latent(keys):
    """Products of 18 and of 16; q, each vector once, output [3, 4, 16]."""
    return 2 * 4 * keys * (18 + 16), 2 * (216 + keys * 18 + 192)


ESTIMATES += vectors(TABLED, *latent(3 * 2 * 16))
TOLD += [
    Example(in_batch(call, DECODE), *latent(60)) for call in calls(MLA + TABLED.lstrip(), LATENT)
]

# Two parts of [3, 4, 8] with their softmax sums [3, 4].
MERGED = rows(
    """_C::merge_attn_states o - q part q part
             sgl_kernel::merge_state q part q part o part
             sgl_kernel::merge_state_v2 q part q part o part
             flashinfer::merge_state q part q part
             flashinfer::merge_state_in_place q part q part -""",
    3 * 96,
    3 * Q + 3 * 48,
) + rows("aiter::mla_reduce_v1 q part n n n 1 o part", 3 * 96, 2 * Q + 2 * 48)

EXAMPLES = [*ESTIMATES, *TOLD, *BATCHED, *MERGED]


@pytest.mark.parametrize(
    "call", [*calls(NOT_TOLD, VALUES), *calls(MLA, LATENT)], ids=lambda each: each.op
)
def test_unknown_lengths_give_no_cost(call):
    assert reason(call) == ("the lengths of the sequences are not in the capture")


def test_one_query_of_one_sequence_counts_its_limit():
    (call,) = calls("_C::paged_attention_v1 o q kv v 2 1.0 t n 16 40", {
        **VALUES, "q": bf16(1, 4, 8), "o": bf16(1, 4, 8), "n": int32(1)})  # fmt: skip
    assert work(call, "fprop").cost.flops == paged(40)[0]


def test_latent_attention_of_the_whole_layer_is_unknown():
    (call,) = calls("aiter::unified_attention_with_output_base q - k3 k3 n _ true -", VALUES)
    told = reason(in_batch(call, DECODE))
    assert told == "latent attention: counted by the operators inside"


def test_a_cache_of_another_width_is_unknown():
    (call,) = calls("sgl_kernel::fwd_kvcache_mla q4 c4 16 n t 1.0 true", {
        **LATENT, "c4": bf16(9, 16, 1, 20)})  # fmt: skip
    assert reason(call) == "a cache (9, 16, 1, 20) is not 18 wide"


PREFILL_AND_DECODE = Lengths(2, 5, 13, 25)


@pytest.mark.parametrize(
    ("name", "tokens", "expected"),
    [
        (DETAILED, 5, PREFILL_AND_DECODE),
        (DETAILED, 4, Lengths(1, 4, 4, 16)),
        (DETAILED, 1, Lengths(1, 1, 9, 9)),
        (DETAILED, 3, None),
        # Totals of a prefill: a lower bound for two equally long requests without a past.
        ("execute_context_2(6)_generation_0(0)", 6, Lengths(2, 6, 6, 18, False)),
        ("execute_context_0(0)_generation_3(3)", 3, Lengths(3, 3, None, None)),
        ("execute_context_1(4)_generation_3(3)", 7, Lengths(4, 7, None, None, False)),
        ("step[EXTEND bs=2 toks=6]", 6, Lengths(2, 6, 6, 18, False)),
        ("step[EXTEND bs=2 toks=6 c_sq=6 c_sk=8 c_sqsk=20]", 6, Lengths(2, 6, 8, 20)),
        ("step[DECODE bs=64]", 64, Lengths(64, 64, None, None)),
        (DECODE, 3, Lengths(3, 3, 60, 60)),
        (DECODE, 4, Lengths(3, 3, 60, 60)),  # padded to the size of a captured CUDA graph
        (DECODE, 2, None),
        ("prefill[bs=2 tok=6 sqsk=20 sk=6]", 6, Lengths(2, 6, 6, 20)),
        ("prefill[bs=2 tok=6]", 6, Lengths(2, 6, 6, 18, False)),
        ("decode[bs=3 tok=3 d=3]", 3, Lengths(3, 3, None, None)),
    ],
)
def test_lengths_of_a_batch(name, tokens, expected):
    assert is_batch(name)
    assert lengths_of(name, tokens) == expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [(DETAILED, True), (DECODE, True), ("step[DECODE bs=3]", False), ("forward", False)],
)
def test_a_detailed_name_tells_sums(name, expected):
    assert is_detailed(name) is expected


@pytest.mark.parametrize(
    "name",
    ["", "execute", "step", "step[IDLE bs=0]", "step[EXTEND]", "decode[x]", "ProfilerStep#3",
     "execute_context_2()_generation_3(3)"],
)  # fmt: skip
def test_other_names_tell_no_batch(name):
    assert not is_batch(name)
    assert lengths_of(name, 1) is None


def test_totals_of_a_prefill_are_an_estimate():
    (call,) = calls("vllm::unified_attention_with_output q k3 k3 o _", VALUES)
    done = work(in_batch(call, "execute_context_1(3)_generation_0(0)"), "fprop")
    assert (done.cost.flops, done.cost.exact) == (2 * 9 * 4 * 16, False)
