"""Caches of keys and values, of convolutions and of states; sampling."""

from fastprof.model.call import UNKNOWN
from unit.ops.libraries.serving.serving_calls import fp8, int32, reason, uint8
from unit.ops.ops_calls import aten, bf16, fp16, fp32, int64
from unit.ops.ops_examples import Rows, listed

# 5 tokens, 2 heads of 8, bf16; caches in blocks of 16.
K = 2 * 5 * 2 * 8
VALUES = {
    "k": bf16(5, 2, 8), "v": bf16(5, 2, 8), "kc": bf16(9, 16, 2, 8), "vc": bf16(9, 16, 2, 8),
    "k8": fp8(9, 16, 2, 8), "v8": fp8(9, 16, 2, 8), "slots": int64(5), "one": fp32(1),
    "flat": bf16(5, 16), "pool": bf16(100, 16), "starts": int32(3), "at": int32(5), "seq": int32(5),
    "lat": bf16(5, 12), "rot": bf16(5, 4), "mla": bf16(9, 16, 16), "mla8": fp8(9, 16, 16),
    "q": bf16(5, 3, 4), "cos": bf16(100, 4), "pos": int64(5), "pairs": int64(3, 2),
    "layers": (bf16(9, 16, 2, 8), bf16(9, 16, 2, 8)), "more": bf16(9, 16, 2, 8),
    "table": int32(2, 4), "out": bf16(30, 16), "scales": fp32(30, 1), "ptr": int64(4),
}  # fmt: skip
rows = Rows(VALUES)
STORED = """
_C_cache_ops::reshape_and_cache k v kc vc slots _ one one
_C_cache_ops::reshape_and_cache_flash k v kc vc slots _ one one
aiter::reshape_and_cache k v kc vc slots _ - - false
aiter::reshape_and_cache_flash k v kc vc slots _ one one
aiter::reshape_and_cache_with_pertoken_quant k v kc vc one one slots false
aiter::reshape_and_cache_with_block_quant k v kc vc one one slots false
aiter::reshape_and_cache_with_block_quant_for_asm_pa k v kc vc one one slots false 16
"""
FLAT = """
sglang::store_cache flat flat pool pool slots 32 0
sglang_profiler::memory_pool__set_kv_buffer_impl flat flat pool pool slots
sglang_profiler::memory_pool__set_kv_buffer_impl_4 flat flat pool pool slots
sgl_kernel::store_kv_cache pool pool slots flat flat
"""
BLOCK = 2 * 16 * 2 * 8
TRANSFERRED = """
sgl_kernel::transfer_kv_per_layer kc kc vc vc slots slots 64 2 4
sgl_kernel::transfer_kv_per_layer_pf_lf kc kc vc vc slots slots 0 64 640 2 4
sgl_kernel::transfer_kv_per_layer_ph_lf kc kc vc vc slots slots 0 64 640 16 2 2 4
"""
EVERY = """
sgl_kernel::transfer_kv_all_layer ptr ptr ptr ptr slots slots 64 3 2 4
sgl_kernel::transfer_kv_all_layer_lf_pf ptr kc ptr vc slots slots 64 640 3 2 4
sgl_kernel::transfer_kv_all_layer_lf_ph ptr kc ptr vc slots slots 64 640 3 16 2 2 4
"""
LATENT = """
sgl_kernel::transfer_kv_per_layer_mla kc kc slots slots 64 2 4
sgl_kernel::transfer_kv_per_layer_mla_pf_lf kc kc slots slots 0 64 640 2 4
"""
LATENT_EVERY = """
sgl_kernel::transfer_kv_all_layer_mla ptr ptr slots slots 64 3 2 4
sgl_kernel::transfer_kv_all_layer_mla_lf_pf ptr kc slots slots 64 640 3 2 4
"""
CACHES = [
    *rows(STORED, 0, 4 * K + 40, "[5,2,8]bf16;[5,2,8]bf16"),
    # Into float8: one byte and 3 FLOPs per element.
    *rows("_C_cache_ops::reshape_and_cache_flash k v k8 v8 slots _ one one", 3 * 160, 3 * K + 40),
    # Padded: 8 rows, but 5 slots.
    *listed(
        "_C_cache_ops::reshape_and_cache_flash k v kc vc slots _ one one",
        {**VALUES, "k": bf16(8, 2, 8), "v": bf16(8, 2, 8)}, 0, 4 * K + 40,
    ),
    *rows(FLAT, 0, 4 * K + 40),
    *rows(
        """flashinfer::append_paged_kv_cache k v at seq kc vc at starts at 0
        flashinfer::append_paged_mla_kv_cache k v at seq kc vc at starts at""",
        0, 4 * K + 20 + 20,
    ),
    *rows(
        "_C_cache_ops::concat_and_cache_mla|aiter::concat_and_cache_mla lat rot mla slots _ one",
        0, 2 * (120 + 40) + 40,
    ),
    *rows(
        "_C_cache_ops::concat_and_cache_mla lat rot mla8 slots _ one", 3 * 80, (120 + 40) + 80 + 40,
    ),
    *rows(
        """_C_cache_ops::indexer_k_quant_and_cache lat mla8 slots 128 _
        aiter::indexer_k_quant_and_cache lat mla8 slots 128 _""",
        3 * 60, 120 + 60 + 40,
    ),
    # Queries [5, 3, 4] and the rotated part [5, 4] are rotated in place.
    *rows(
        "_C_cache_ops::concat_and_cache_mla_rope_fused pos q rot lat cos true slots mla _ one",
        3 * 80, 2 * 120 + 2 * 40 + 120 + 40 + 40 + 5 * 8 + 160,
    ),
    # The other part [5, 3, 2] is read, whole queries [5, 3, 6] written; two rows of angles.
    *listed(
        "aiter::fused_qk_rope_concat_and_cache_mla nope q lat rot mla whole slots one one pos cos2"
        " cos2 true false",
        {**VALUES, "nope": bf16(5, 3, 2), "whole": bf16(5, 3, 6), "cos2": bf16(100, 2)},
        3 * 80, 120 + 40 + 120 + 40 + 40 + 2 * 5 * 4 + 60 + 180 + 160,
    ),
    *listed(
        "_C_cache_ops::concat_mla_q q nope whole",
        {**VALUES, "nope": bf16(5, 3, 2), "whole": bf16(5, 3, 6)}, 0, 120 + 60 + 180,
    ),
    # 3 blocks of 4 caches, read and written.
    *rows(
        "_C_cache_ops::copy_blocks|aiter::copy_blocks layers layers pairs",
        0, 2 * 3 * 4 * BLOCK + 48,
    ),
    *rows("_C_cache_ops::copy_blocks_mla layers pairs", 0, 2 * 3 * 2 * BLOCK + 48),
    *rows("_C_cache_ops::swap_blocks|aiter::swap_blocks kc more pairs", 0, 2 * 3 * BLOCK),
    *rows("_C_cache_ops::swap_blocks kc more 100 pairs", 0, 2 * 3 * 100),
    *rows("_C_cache_ops::convert_fp8 k8 kc 1.0 _", 3 * 9 * 256, 3 * 9 * 256),
    # Keys and values of 5 rows of 64 bytes, in 1 layer or 3.
    *rows(TRANSFERRED, 0, 2 * 2 * 5 * 64 + 80),
    *rows(EVERY, 0, 3 * 2 * 2 * 5 * 64 + 80),
    *rows(LATENT, 0, 2 * 5 * 64 + 80),
    *rows(LATENT_EVERY, 0, 3 * 2 * 5 * 64 + 80),
]  # fmt: skip
CACHE_ESTIMATES = [
    *rows("vllm::unified_kv_cache_update k v _", 0, 4 * K),
    *rows("vllm::unified_mla_kv_cache_update lat rot _ _ one", 0, 2 * (120 + 40)),
    *rows(
        """_C_cache_ops::gather_and_maybe_dequant_cache mla out table starts 2 _ one -
        _C_cache_ops::gather_cache mla out table starts 2 -
        _C_cache_ops::cp_gather_cache mla out table starts 2 -""",
        0, 2 * 960,
    ),
    *rows(
        "_C_cache_ops::cp_gather_and_upconvert_fp8_kv_cache mla8 out table at starts 2",
        480, 480 + 960,
    ),
    *listed(
        """_C_cache_ops::cp_gather_indexer_k_quant_cache mla8 out8 scales table starts
        aiter::cp_gather_indexer_k_quant_cache mla8 out8 scales table starts false""",
        {**VALUES, "out8": fp8(30, 16)}, 0, 2 * 480 + 2 * 120,
    ),
]  # fmt: skip

# Sampling: 3 rows of logits of 100 tokens, fp32.
X = 4 * 300
CHOICE = {
    "x": fp32(3, 100), "o": fp32(3, 100), "seen": uint8(3, 100), "pen": fp32(3),
    "bits": int32(3, 4), "rows": int32(3), "limit": fp32(3), "ids": int32(3), "ends": int32(3),
    "best": int32(3, 8), "space": uint8(4096), "exp": fp32(3, 100),
}  # fmt: skip
choice = Rows(CHOICE)
CHOICES = [
    *choice(
        "_C::apply_repetition_penalties_ x seen seen pen",
        3 * 300, 2 * X + 2 * 300 + 12, "[3,100]fp32",
    ),
    *choice(
        """flashinfer::softmax space x limit 1.0 false
        flashinfer::blackwell_softmax space x limit 1.0""",
        25 * 300, 2 * X + 12,
    ),
]  # fmt: skip
CHOICE_ESTIMATES = [
    *choice("sgl_kernel::apply_token_bitmask_inplace_cuda x bits rows", 0, X + 48 + 12),
    *choice(
        """sgl_kernel::top_k_renorm_probs x o limit 5
        sgl_kernel::top_p_renorm_probs x o limit 0.5
        sgl_kernel::top_k_mask_logits x o limit 5
        flashinfer::top_k_renorm_probs x limit 5
        flashinfer::top_p_renorm_probs x limit 0.5
        flashinfer::top_k_mask_logits x limit 5""",
        3 * 300, 3 * X + 12,
    ),
    *choice(
        """sgl_kernel::min_p_sampling_from_probs x ids rows limit 0.5 true -
        sgl_kernel::top_p_sampling_from_probs x ids rows limit 0.5 true -
        flashinfer::top_p_sampling_from_probs x rows limit 0.5 true -
        flashinfer::top_k_sampling_from_probs x rows limit 5 true -
        flashinfer::min_p_sampling_from_probs x rows limit 0.5 true -""",
        2 * 300, X + 12 + 12 + 12,
    ),
    *choice(
        """sgl_kernel::top_k_top_p_sampling_from_probs x ids rows limit 5 limit 0.5 true -
        flashinfer::top_k_top_p_sampling_from_probs x rows limit 5 limit 0.5 true -""",
        2 * 300, X + 12 + 12 + 24,
    ),
    *choice(
        "flashinfer::sampling_from_logits|flashinfer::sampling_from_probs x rows true -",
        2 * 300, X + 12 + 12,
    ),
    *choice("aiter::greedy_sample ids x", 2 * 300, X + 12),
    *choice("aiter::random_sample|aiter::mixed_sample ids x limit 1.0 - 0.1", 2 * 300, X + 12 + 12),
    *choice(
        """aiter::random_sample_outer_exponential ids x exp limit 0.1
        aiter::mixed_sample_outer_exponential ids x exp limit 0.1""",
        2 * 300, 2 * X + 12 + 12,
    ),
    *choice(
        """_C::top_k_per_row_prefill x rows ends best 3 100 1 8
        aiter::_top_k_per_row_prefill x rows ends best - 3 100 1
        trtllm::indexer_topk_prefill x rows ends best 8""",
        300, X + 24 + 96,
    ),
    *choice(
        """_C::top_k_per_row_decode x 1 ends best 3 100 1 8
        aiter::_top_k_per_row_decode x 1 ends best 3 100 1
        _C::persistent_topk x ends best space 8 100
        sgl_kernel::fast_topk x best ends -
        sgl_kernel::fast_topk_transform_fused x ends best ids ids -
        sgl_kernel::fast_topk_transform_ragged_fused x ends best ids -
        trtllm::indexer_topk_decode x ends best 1 8""",
        300, X + 12 + 96,
    ),
]  # fmt: skip

# States: 6 channels, 10 tokens, states of 4; windows of 3.
STATE = {
    "u": bf16(6, 10), "dt": bf16(6, 10), "A": fp32(6, 4), "B": bf16(1, 4, 10), "C": bf16(1, 4, 10),
    "D": fp32(6), "z": bf16(6, 10), "bias": fp32(6), "starts": int32(3), "slots": int32(2),
    "flags": uint8(2), "states": bf16(50, 6, 4), "w": bf16(6, 3), "wb": bf16(6),
    "conv": bf16(50, 6, 2), "step": bf16(2, 6), "len": int32(2),
}  # fmt: skip
state = Rows(STATE)
U = 2 * 60
SCAN = U + U + 96 + 80 + 80 + 2 * 2 * 2 * 24 + 12 + 8 + 2  # states of 2 sequences, and tables
STATES = [
    *state(
        "_C::selective_scan_fwd u dt A B C D z bias true starts slots flags states -1",
        (27 * 4 + 2 + 23 + 1 + 41) * 60, SCAN + 24 + U + 24 + U,
    ),
    *state(
        "_C::selective_scan_fwd u dt A B C - - - false starts slots flags states -1",
        27 * 4 * 60, SCAN + U,
    ),
    *state(
        """_C::causal_conv1d_fwd u w wb conv starts slots flags true -1
        sgl_kernel::causal_conv1d_fwd u w wb conv starts slots flags true -1
        trtllm::causal_conv1d_fwd u w wb conv starts slots flags true -1""",
        2 * 3 * 60, 2 * U + 36 + 12 + 12 + 8 + 2 + 2 * 2 * 2 * 12,
    ),
    *state(
        """_C::causal_conv1d_update step conv w wb true len slots -1
        sgl_kernel::causal_conv1d_update step conv w wb true len slots -1
        trtllm::causal_conv1d_update step conv w wb true len slots -1""",
        2 * 3 * 12, 2 * 24 + 36 + 12 + 8 + 8 + 2 * 2 * 2 * 12,
    ),
]  # fmt: skip

ESTIMATES = CACHE_ESTIMATES + CHOICE_ESTIMATES
EXAMPLES = CACHES + CHOICES + STATES + ESTIMATES


def test_what_the_capture_does_not_hold_is_said():
    call = aten("sgl_kernel::transfer_kv_per_layer", *(fp16(9, 8),) * 4, int64(5), int64(5),
                UNKNOWN, 2, 4)  # fmt: skip
    assert reason(call) == "the size of a row is not in the capture"
    call = aten("_C::causal_conv1d_update", bf16(2, 7), bf16(9, 6, 2), bf16(6, 3), None, True,
                None, None, -1)  # fmt: skip
    assert reason(call) == "weights (6, 3) do not fit (2, 7)"
