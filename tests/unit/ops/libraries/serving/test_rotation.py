"""Rotary position embedding of serving stacks."""

from unit.ops.libraries.serving.serving_calls import exact, int32, reason
from unit.ops.ops_calls import aten, bf16, fp32, int64
from unit.ops.ops_examples import Rows, check

# 5 tokens, 4 heads of queries and 2 of keys, of 8; the first 6 are rotated. bf16.
VALUES = {
    "at": int64(5), "q": bf16(5, 32), "k": bf16(5, 16), "cache": bf16(100, 6), "offsets": int64(5),
    "q3": bf16(5, 4, 8), "k3": bf16(5, 2, 8), "v3": bf16(5, 2, 8), "pool": bf16(50, 2, 8),
    "starts": int32(3), "slots": int64(5),
    "x": bf16(5, 1, 4, 8), "y": bf16(5, 1, 2, 8), "freqs": fp32(5, 1, 1, 4),
    "cos": bf16(100, 1, 1, 4), "flat": bf16(5, 4, 8), "table": fp32(9, 1, 1, 4),
}  # fmt: skip
rows = Rows(VALUES)
TURNED = 5 * (4 + 2) * 6  # elements, in place: read and written
WHOLE = 5 * (4 + 2) * 8
ANGLES = 5 * 6 * 2

IN_PLACE = """
_C::rotary_embedding at q k 8 cache true
sgl_kernel::rotary_embedding at q k 8 cache true
vllm::flashinfer_rotary_embedding at q k 8 cache true
trtllm::flashinfer_apply_rope_with_cos_sin_cache_inplace at q k 8 cache true
vllm::rocm_aiter_triton_rotary_embedding at q k 8 cache true false
"""
FROM_CACHE = """
sgl_kernel::apply_rope_pos_ids_cos_sin_cache q3 k3 q3 k3 cache at false 0
flashinfer::apply_rope_pos_ids_cos_sin_cache q3 k3 q3 k3 cache at false
"""
POSITIONS = """
flashinfer::apply_rope_pos_ids q3 k3 q3 k3 at 6 false 1.0 10.0
flashinfer::apply_llama31_rope_pos_ids q3 k3 q3 k3 at 6 false 1.0 10.0 1.0 1.0 1.0
"""
OFFSETS = """
flashinfer::apply_rope q3 k3 q3 k3 starts offsets 6 false 1.0 10.0
flashinfer::apply_llama31_rope q3 k3 q3 k3 starts offsets 6 false 1.0 10.0 1.0 1.0 1.0
"""
X, Y = 5 * 4 * 8, 5 * 2 * 8

EXAMPLES = [
    *rows(IN_PLACE, 3 * TURNED, 2 * 2 * TURNED + 8 * 5 + ANGLES),
    *rows("_C::rotary_embedding at q - 8 cache true", 3 * 120, 4 * 120 + 40 + ANGLES),
    *rows(
        "_C::batched_rotary_embedding at q k 8 cache true 6 offsets",
        3 * TURNED, 2 * 2 * TURNED + 2 * 8 * 5 + ANGLES,
    ),
    *rows(FROM_CACHE, 3 * TURNED, 2 * 2 * WHOLE + 8 * 5 + ANGLES),
    # With a pool: values read, keys and values written there, slots read.
    *rows(
        "sgl_kernel::apply_rope_pos_ids_cos_sin_cache q3 k3 q3 k3 cache at false true 0 v3 pool"
        " pool slots",
        3 * TURNED, 2 * 2 * WHOLE + 8 * 5 + ANGLES + 40 + 3 * 2 * 80,
    ),
    *rows(POSITIONS, 3 * TURNED, 2 * 2 * WHOLE + 8 * 5),
    *rows(OFFSETS, 3 * TURNED, 2 * 2 * WHOLE + 4 * 3 + 8 * 5),
    # A row of 4 fp32 angles for each of 5 positions.
    *rows(
        "aiter::rope_fwd_impl|aiter::rope_bwd_impl x x freqs 0 true true",
        3 * X, 2 * 2 * X + 5 * 4 * 4,
    ),
    *rows(
        "aiter::rope_2c_fwd_impl|aiter::rope_2c_bwd_impl x y x y freqs 0 true true",
        3 * (X + Y), 2 * 2 * (X + Y) + 5 * 4 * 4,
    ),
    *rows(
        """aiter::rope_cached_fwd_impl x x cos cos 0 true true
        aiter::rope_cached_bwd_impl x x cos cos 0 true true
        aiter::rope_cached_positions_fwd_impl x x cos cos at 0 true true
        aiter::rope_cached_positions_offsets_fwd_impl x x cos cos at offsets 0 true true""",
        3 * X, 2 * 2 * X + 2 * 5 * 4 * 2,
    ),
    *rows(
        """aiter::rope_cached_2c_fwd_impl x y x y cos cos 0 true true
        aiter::rope_cached_2c_bwd_impl x y x y cos cos 0 true true
        aiter::rope_cached_positions_2c_fwd_impl x y x y cos cos at 0 true true
        aiter::rope_cached_positions_offsets_2c_fwd_impl x y x y cos cos at offsets 0 true true""",
        3 * (X + Y), 2 * 2 * (X + Y) + 2 * 5 * 4 * 2,
    ),
    # [tokens, heads, d] with starts of sequences: a row of the table for each of 5 tokens.
    *rows(
        "aiter::rope_thd_fwd_impl|aiter::rope_thd_bwd_impl flat flat starts table 0 true true",
        3 * X, 2 * 2 * X + 5 * 4 * 4,
    ),
]  # fmt: skip


def test_heads_that_are_not_told_are_an_estimate():
    (example,) = rows(
        "_C::rotary_embedding at q k _ cache true",
        3 * WHOLE,
        4 * WHOLE + 40 + ANGLES,
    )
    check(example)
    assert not exact(example)


def test_heads_that_do_not_fit_are_unknown():
    call = aten("_C::rotary_embedding", int64(5), bf16(5, 30), None, 8, bf16(9, 6), True)
    assert reason(call) == "(5, 30) does not contain heads of 8"
    call = aten("_C::rotary_embedding", int64(5), bf16(5, 32), None, 8, bf16(9, 16), True)
    assert reason(call) == "a cache 16 wide does not fit heads of 8"
