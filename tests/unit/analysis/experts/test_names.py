"""Operators, kernels and layers of experts, by name."""

import pytest

from fastprof.analysis.experts.names import (
    EXCHANGE,
    PRODUCTS,
    ROUTING,
    WHOLE,
    expert_of,
    part_of_kernel,
    part_of_operator,
)


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("aten::_grouped_mm", PRODUCTS),
        ("_C::cutlass_moe_mm", PRODUCTS),
        ("_moe_C::topk_softmax", ROUTING),
        ("_moe_C::moe_align_block_size", ROUTING),
        ("vllm::inplace_fused_experts", WHOLE),
        ("vllm::moe_forward", WHOLE),
        ("trtllm::fused_moe", WHOLE),
        ("aten::mm", None),
        ("aten::topk", None),
        ("aten::permute", None),
    ],
)
def test_parts_of_operators(name, part):
    assert part_of_operator(name) == part


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("fused_moe_kernel", PRODUCTS),
        ("void vllm::moe::moe_align_block_size_kernel<int>(int*)", ROUTING),
        ("void moe::dev::finalize::finalizeKernelVecLoad<int>", ROUTING),
        ("void deep_ep::internode_ll::dispatch<true>(void*)", EXCHANGE),
        ("ampere_sgemm_128x64_tn", None),
        ("void at::native::indexSelect<float>", None),
    ],
)
def test_parts_of_kernels(name, part):
    assert part_of_kernel(name) == part


@pytest.mark.parametrize(
    ("layer", "found"),
    [
        ("model.layers.0.mlp.experts.3.w1", ("model.layers.0.mlp", "3")),
        ("Net:layers.0:experts.12", ("Net:layers.0", "12")),
        ("experts[4]", ("experts", "4")),
        ("Net_0:MoE_1:BlockSparseTop2MLP_7:Linear_3", ("Net_0:MoE_1", "BlockSparseTop2MLP_7")),
        ("Net_0:FusedExperts_0", None),
        ("Net_0:Linear_3", None),
    ],
)  # fmt: skip
def test_experts_that_are_layers(layer, found):
    assert expert_of(layer) == found
